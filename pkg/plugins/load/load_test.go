package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// node has two cards of 1000 MiB with these readings.
func node(r ledger.Readings, cards ...gpu.Reading) *ledger.Node {
	n := &ledger.Node{Readings: r, Cards: make([]ledger.Card, 2)}
	n.Readings.Cards = map[gpu.CardID]gpu.Reading{}
	for i := range n.Cards {
		c := &n.Cards[i]
		c.ID, c.Memory = gpu.CardID(rune('a'+i)), 1000
		if i < len(cards) {
			c.Reading, n.Readings.Cards[c.ID] = cards[i], cards[i]
		}
	}
	return n
}

func bar(place int, r gpu.Reason, g gpu.Gauge, have, want int64) pipeline.Bar {
	return pipeline.Bar{Place: place, Verdict: pipeline.Verdict{Reason: r, Gauge: g, Have: have, Want: want}}
}

func TestFilter(t *testing.T) {
	usual := Thresholds{CPU: 90, Memory: 90, GPUMemory: 95, GPUUtilisation: 95, GPUTemperature: 79}
	is := gpu.Measured
	hot := func(v int64) gpu.Reading { return gpu.Reading{Temperature: is(v)} }
	held := node(ledger.Readings{}, hot(90), hot(90))
	held.Cards[0].Used.Exclusive = true
	tests := map[string]struct {
		thresholds Thresholds
		node       *ledger.Node
		want       []pipeline.Bar
	}{
		"nothing is known":         {usual, node(ledger.Readings{}), nil},
		"all is below":             {usual, node(ledger.Readings{CPU: is(89), Memory: is(89)}, gpu.Reading{MemoryUsed: is(949), Utilisation: is(94), Temperature: is(78)}), nil},
		"CPU at its threshold":     {usual, node(ledger.Readings{CPU: is(90)}), []pipeline.Bar{bar(0, gpu.LoadThresholdExceeded, gpu.NodeCPU, 90, 90), bar(1, gpu.LoadThresholdExceeded, gpu.NodeCPU, 90, 90)}},
		"memory":                   {usual, node(ledger.Readings{Memory: is(97)}), []pipeline.Bar{bar(0, gpu.LoadThresholdExceeded, gpu.NodeMemory, 97, 90), bar(1, gpu.LoadThresholdExceeded, gpu.NodeMemory, 97, 90)}},
		"one card's temperature":   {usual, node(ledger.Readings{}, hot(78), hot(79)), []pipeline.Bar{bar(1, gpu.Overheated, gpu.CardTemperature, 79, 79)}},
		"one card's memory":        {usual, node(ledger.Readings{}, gpu.Reading{MemoryUsed: is(950)}), []pipeline.Bar{bar(0, gpu.LoadThresholdExceeded, gpu.CardMemory, 95, 95)}},
		"one card's utilisation":   {usual, node(ledger.Readings{}, gpu.Reading{}, gpu.Reading{Utilisation: is(100)}), []pipeline.Bar{bar(1, gpu.LoadThresholdExceeded, gpu.CardUtilisation, 100, 95)}},
		"heat comes before load":   {usual, node(ledger.Readings{}, gpu.Reading{Utilisation: is(100), Temperature: is(80)}), []pipeline.Bar{bar(0, gpu.Overheated, gpu.CardTemperature, 80, 79)}},
		"a card that is held":      {usual, held, []pipeline.Bar{bar(1, gpu.Overheated, gpu.CardTemperature, 90, 79)}},
		"0 is none":                {Thresholds{}, node(ledger.Readings{CPU: is(100), Memory: is(100)}, gpu.Reading{MemoryUsed: is(1000), Utilisation: is(100), Temperature: is(120)}), nil},
		"measured 0 is not past 0": {usual, node(ledger.Readings{CPU: is(0)}, gpu.Reading{MemoryUsed: is(0), Utilisation: is(0), Temperature: is(0)}), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &pipeline.Candidate{Node: tc.node, Open: []int{0, 1}}
			if v := (Plugin{tc.thresholds}).Filter(nil, c); !v.OK() {
				t.Errorf("refused: %+v", v)
			}
			if diff := cmp.Diff(tc.want, c.Barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

// A card whose size is not known is not at a threshold of it.
func TestNoMemory(t *testing.T) {
	n := node(ledger.Readings{}, gpu.Reading{MemoryUsed: gpu.Measured(5)})
	n.Cards[0].Memory = 0
	c := &pipeline.Candidate{Node: n, Open: []int{0}}
	if (Plugin{Thresholds{GPUMemory: 1}}).Filter(nil, c); len(c.Barred) > 0 {
		t.Errorf("barred: %+v", c.Barred)
	}
}

// What is asked first, for less, says of every card what its verdict says.
func TestBusyAgreesWithTheVerdict(t *testing.T) {
	figures := []gpu.Figure{{}, {Value: 1000}, gpu.Measured(-7), gpu.Measured(0), gpu.Measured(1), gpu.Measured(94), gpu.Measured(95), gpu.Measured(949), gpu.Measured(950), gpu.Measured(1200)}
	tried := map[bool]int{}
	for _, threshold := range []int64{0, 1, 95, 100} {
		p := Plugin{Thresholds{GPUMemory: threshold, GPUUtilisation: threshold, GPUTemperature: threshold}}
		for _, size := range []gpu.MiB{0, 1, 1000, 1001} {
			for _, memory := range figures {
				for _, other := range figures {
					c := &ledger.Card{Card: gpu.Card{Memory: size}, Reading: gpu.Reading{MemoryUsed: memory, Utilisation: other}}
					for range 2 {
						verdict := p.card(c)
						if busy := p.busy(c); busy == verdict.OK() {
							t.Errorf("threshold %d, %+v: busy %t, verdict %+v", threshold, c, busy, verdict)
						}
						tried[verdict.OK()]++
						c.Reading.Utilisation, c.Reading.Temperature = gpu.Figure{}, other
					}
				}
			}
		}
	}
	if len(tried) < 2 {
		t.Error("one of the answers was not tried")
	}
}
