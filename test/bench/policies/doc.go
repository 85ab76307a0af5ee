// Package policies measures what the chart's admission policies cost the API
// server, on a real one. Nothing else runs there.
//
//	go test -run '^$' -bench . ./test/bench/policies
package policies
