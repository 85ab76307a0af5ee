// Package prometheus tests pkg/telemetry against a real Prometheus that scrapes
// exporters of ours: that ages are those of the samples, what both spellings of
// dcgm-exporter's labels bring, and that the queries of examples/telemetry.yaml are
// understood. The program is the one in PATH, or what install.sh has put into the
// cache; without either the tests are skipped.
package prometheus
