package main

import (
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/telemetry"
)

// reader is what reads figures of cards; nil where nobody has said from where. Every
// replica reads: one that comes to lead knows them already.
func (p *program) reader(cfg config, counts *metrics.Metrics) (*telemetry.Feeder, error) {
	if cfg.telemetryFile == "" {
		return nil, nil
	}
	source, err := telemetry.NewPrometheus(cfg.telemetry, time.Now)
	if err != nil {
		return nil, fmt.Errorf("--telemetry-config %s: %w", cfg.telemetryFile, err)
	}
	t := cfg.settings.Thresholds
	return &telemetry.Feeder{
		Source: source, Books: p.books.Ledger, Ready: p.cluster.Ready, Counts: counts, Now: time.Now,
		Period: cfg.telemetry.Period.Duration, Limit: cfg.telemetry.Timeout.Duration, Stale: cfg.telemetry.Stale.Duration,
		Marks: telemetry.Marks{
			CPU: t.CPU, Memory: t.Memory, CardMemory: t.GPUMemory, Utilisation: t.GPUUtilisation, Temperature: t.GPUTemperature,
			MeanTemperature: cfg.settings.MaxMeanTemperature(),
		},
	}, nil
}
