package engine

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func TestEntrySize(t *testing.T) {
	if got := unsafe.Sizeof(said{}); got != entrySize {
		t.Errorf("an entry takes %d bytes, and what the documents say of memory goes by %d", got, entrySize)
	}
}

// A verdict is remembered as it is, or not at all.
func TestVerdictsAreRememberedExactly(t *testing.T) {
	const most, least = math.MaxInt32, math.MinInt32
	tests := map[string]struct {
		v    pipeline.Verdict
		lost bool
	}{
		"it fits":                  {pipeline.Verdict{}, false},
		"a reason":                 {pipeline.Verdict{Reason: gpu.DeviceTypeMismatch}, false},
		"all figures":              {pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: 1, Want: 2, Closed: 3, Foreign: 4, Gauge: gpu.CardMemory}, false},
		"the largest":              {pipeline.Verdict{Reason: gpu.Overheated, Have: most, Want: most, Foreign: most, Closed: 255}, false},
		"the least":                {pipeline.Verdict{Reason: gpu.Overheated, Have: least, Want: least, Foreign: least}, false},
		"more than fits":           {pipeline.Verdict{Reason: gpu.Overheated, Have: most + 1}, true},
		"as much wanted":           {pipeline.Verdict{Reason: gpu.Overheated, Want: least - 1}, true},
		"as much of others":        {pipeline.Verdict{Reason: gpu.Overheated, Foreign: 1 << 40}, true},
		"more cards closed":        {pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Closed: 256}, true},
		"a quota":                  {pipeline.Verdict{Reason: gpu.QuotaExceeded, Limit: &gpu.Limit{}}, true},
		"of a reason nobody knows": {pipeline.Verdict{Reason: "Tired"}, false},
	}
	var m memory
	m.room(1)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m.enter(&m.said[0], 7, pipeline.Verdict{Reason: gpu.DeviceUnhealthy, Have: 9, Want: 9}) // what was there before
			if got := m.enter(&m.said[0], 8, tc.v); got == tc.lost {
				t.Errorf("remembered: %t, want %t", got, !tc.lost)
			}
			switch at := &m.said[0]; {
			case tc.lost && *at != said{}:
				t.Errorf("%+v stays of it", *at)
			case !tc.lost && (at.version != 8 || m.verdict(at) != tc.v):
				t.Errorf("version %d, verdict (-want +got):\n%s", at.version, cmp.Diff(tc.v, m.verdict(at)))
			}
		})
	}
}

// Of more causes than there are numbers for, the last are not remembered, and no other
// is told in place of them.
func TestTooManyCauses(t *testing.T) {
	var m memory
	m.room(1)
	for i := range 300 {
		v := pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.Gauge(string(rune('a' + i)))}
		if got := m.enter(&m.said[0], 1, v); got != (i < 255) || got && m.verdict(&m.said[0]) != v {
			t.Fatalf("cause %d: remembered %t, %+v", i, got, m.said[0])
		}
	}
}

// Prices are those of the node's state, and go with it.
func TestPricesAreOfAState(t *testing.T) {
	var m memory
	m.room(2)
	one, two := []gpu.Spending{{{Devices: 1}}}, []gpu.Spending{{{Devices: 2}}}
	m.enter(&m.said[1], 1, pipeline.Verdict{})
	m.price(1, one)
	m.room(4) // nodes have come
	m.enter(&m.said[3], 2, pipeline.Verdict{})
	m.price(3, two)
	same := func(a, b []gpu.Spending) bool { return slices.EqualFunc(a, b, slices.Equal[gpu.Spending]) }
	if !same(m.prices[1], one) || !same(m.prices[3], two) || m.said[1].known != priced || m.said[0].known != 0 {
		t.Errorf("prices %v, %+v", m.prices, m.said)
	}
	if m.enter(&m.said[1], 3, pipeline.Verdict{}); m.said[1].known != 0 {
		t.Error("the prices of the state before are taken for those of another")
	}
}
