package pipeline

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Of CPU and main memory, what pods ask for and what was measured, the larger counts.
func TestUsageOfWhatWasMeasured(t *testing.T) {
	half := ledger.Node{Facts: ledger.Facts{CPU: 10, Memory: 10}, UsedCPU: 5, UsedMemory: 5}
	tests := map[string]struct {
		readings ledger.Readings
		want     float64 // of the three thirds, of which the GPUs' is 0
	}{
		"nothing was":        {ledger.Readings{}, 0.5 + 0.5},
		"less":               {ledger.Readings{CPU: gpu.Measured(10), Memory: gpu.Measured(0)}, 0.5 + 0.5},
		"more CPU":           {ledger.Readings{CPU: gpu.Measured(80)}, 0.8 + 0.5},
		"more memory":        {ledger.Readings{Memory: gpu.Measured(75)}, 0.5 + 0.75},
		"both":               {ledger.Readings{CPU: gpu.Measured(60), Memory: gpu.Measured(70)}, 0.6 + 0.7},
		"more than there is": {ledger.Readings{CPU: gpu.Measured(250)}, 1 + 0.5},
		"nonsense":           {ledger.Readings{CPU: gpu.Measured(-5)}, 0.5 + 0.5},
		"a value unknown":    {ledger.Readings{CPU: gpu.Figure{Value: 90}}, 0.5 + 0.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := half
			n.Readings = tc.readings
			if got := Usage(&n); math.Abs(got-tc.want/3) > 1e-9 {
				t.Errorf("usage %v, want %v", got, tc.want/3)
			}
		})
	}
	n := ledger.Node{Readings: ledger.Readings{CPU: gpu.Measured(30)}} // that does not say how much it has
	if got := Usage(&n); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("usage %v, want 0.1", got)
	}
}

// Of cards that are equal to the policy the one comes first that nobody unknown uses.
func TestSortPutsCardsThatAreUsedLast(t *testing.T) {
	card := func(id gpu.CardID, memory gpu.MiB, used int64) ledger.Card {
		return ledger.Card{Card: gpu.Card{ID: id, Memory: memory, Usable: memory}, Reading: gpu.Reading{MemoryUsed: gpu.Measured(used)}}
	}
	n := &Candidate{
		Node: &ledger.Node{Cards: []ledger.Card{card("a", 10, 3), card("b", 20, 0), card("c", 10, 1), card("d", 10, 0)}},
		Open: []int{0, 1, 2, 3},
	}
	n.Sort(func(*ledger.Card) float64 { return 0 })
	if diff := cmp.Diff([]int{3, 1, 2, 0}, n.Open); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	n.Sort(func(c *ledger.Card) float64 { return -float64(c.Reading.MemoryUsed.Value) })
	if n.Open[0] != 0 {
		t.Errorf("order %v: the policy comes first", n.Open)
	}
}
