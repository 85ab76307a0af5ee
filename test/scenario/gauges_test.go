package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/telemetry"
)

// The scheduler reads from the stand-in what it was given, with its age.
func TestGaugesAreRead(t *testing.T) {
	f := Floor{Nodes: 8}
	g, err := NewGauges(f)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	file := filepath.Join(t.TempDir(), "telemetry.yaml")
	if err := os.WriteFile(file, []byte(g.config()), 0o600); err != nil {
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
	read := func() []telemetry.Sample {
		samples, err := source.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return samples
	}
	if got := read(); len(got) != 0 {
		t.Errorf("before there are any: %v", got)
	}

	h := NewHeat(f)
	h.cards[3][5] = 66.25
	told := time.Now().Add(-4 * time.Second)
	g.Set(h.cards, told)
	h.cards[3][5] = 99 // what was given does not change any more

	samples := read()
	if len(samples) != f.Cards() {
		t.Fatalf("%d samples, want one of each of %d cards", len(samples), f.Cards())
	}
	places := f.places()
	for _, s := range samples {
		want := 30.0
		if at := places[string(s.Card)]; at == (place{3, 5}) {
			want = 66.25
		}
		age := told.Sub(s.At).Abs()
		if s.Kind != telemetry.Temperature || s.Value != want || nodeName(places[string(s.Card)].node) != string(s.Node) || age > 2*time.Second {
			t.Errorf("sample %+v, want %v degrees at %v", s, want, told)
		}
	}
}
