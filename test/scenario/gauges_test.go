package scenario

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/telemetry"
)

// TestGaugesAreReadAsPrometheus: by the code of the extender, with the
// configuration that it is given.
func TestGaugesAreReadAsPrometheus(t *testing.T) {
	gauges, err := NewGauges(row)
	if err != nil {
		t.Fatal(err)
	}
	defer gauges.Close()
	file := filepath.Join(t.TempDir(), "telemetry.yaml")
	if err := os.WriteFile(file, []byte(gauges.config()), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := telemetry.ReadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := telemetry.NewPrometheus(config, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if samples, err := source.Read(t.Context()); err != nil || len(samples) != 0 {
		t.Fatalf("before any are set: %d samples, %v", len(samples), err)
	}

	heat := NewHeat(row)
	heat.cards[5][2] = 71.25
	gauges.Set(heat.cards, time.Now().Add(-10*time.Second))
	heat.cards[5][2] = 99 // what is told does not change by itself
	samples, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != row.Cards() {
		t.Errorf("%d samples of %d cards", len(samples), row.Cards())
	}
	card := gpu.CardID(row.cards(nodeName(5))[2].UUID)
	for _, s := range samples {
		if s.Card != card {
			continue
		}
		if age := time.Since(s.At); s.Node != "gpu-0005" || s.Value != 71.25 || age < 9*time.Second || age > time.Minute {
			t.Errorf("sample %+v, of %v ago", s, age)
		}
		return
	}
	t.Errorf("there is no sample of %s", card)
}
