package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// defaults are those of the policy, which is on a floor above.
func defaults() Thresholds {
	return Thresholds{CPU: 90, Memory: 90, GPUMemory: 95, GPUUtilisation: 95, GPUTemperature: 79}
}

func node(r ledger.Readings, cards ...gpu.Reading) *ledger.Node {
	n := &ledger.Node{Readings: r}
	for i, card := range cards {
		id := gpu.CardID("abc"[i : i+1])
		n.Cards = append(n.Cards, ledger.Card{Card: gpu.Card{ID: id, Memory: 1000, Usable: 900}, Reading: card})
		if n.Readings.Cards == nil {
			n.Readings.Cards = map[gpu.CardID]gpu.Reading{}
		}
		n.Readings.Cards[id] = card
	}
	return n
}

func exceeded(g gpu.Gauge, have, threshold int64) pipeline.Verdict {
	return pipeline.Verdict{Reason: gpu.LoadThresholdExceeded, Gauge: g, Have: have, Want: threshold}
}

func hot(have int64) pipeline.Verdict {
	return pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.CardTemperature, Have: have, Want: 79}
}

func TestFilter(t *testing.T) {
	used := func(v int64) gpu.Reading { return gpu.Reading{MemoryUsed: gpu.Measured(v)} }
	busy := func(v int64) gpu.Reading { return gpu.Reading{Utilisation: gpu.Measured(v)} }
	heat := func(v int64) gpu.Reading { return gpu.Reading{Temperature: gpu.Measured(v)} }
	tests := map[string]struct {
		thresholds Thresholds
		node       *ledger.Node
		want       []pipeline.Bar
	}{
		"nothing was measured": {defaults(), node(ledger.Readings{}, gpu.Reading{}), nil},
		"CPU below":            {defaults(), node(ledger.Readings{CPU: gpu.Measured(89)}, gpu.Reading{}), nil},
		"CPU at 90":            {defaults(), node(ledger.Readings{CPU: gpu.Measured(90)}, gpu.Reading{}, gpu.Reading{}), []pipeline.Bar{{0, exceeded(gpu.NodeCPU, 90, 90)}, {1, exceeded(gpu.NodeCPU, 90, 90)}}},
		"memory below":         {defaults(), node(ledger.Readings{Memory: gpu.Measured(89)}, gpu.Reading{}), nil},
		"memory at 90":         {defaults(), node(ledger.Readings{Memory: gpu.Measured(90)}, gpu.Reading{}), []pipeline.Bar{{0, exceeded(gpu.NodeMemory, 90, 90)}}},
		"GPU memory below":     {defaults(), node(ledger.Readings{}, used(949)), nil},
		"GPU memory at 95":     {defaults(), node(ledger.Readings{}, used(950)), []pipeline.Bar{{0, exceeded(gpu.CardMemory, 95, 95)}}},
		"utilisation below":    {defaults(), node(ledger.Readings{}, busy(94)), nil},
		"utilisation at 95":    {defaults(), node(ledger.Readings{}, busy(95)), []pipeline.Bar{{0, exceeded(gpu.CardUtilisation, 95, 95)}}},
		"temperature below":    {defaults(), node(ledger.Readings{}, heat(78)), nil},
		"temperature at 79":    {defaults(), node(ledger.Readings{}, heat(79)), []pipeline.Bar{{0, hot(79)}}},
		"one card of three":    {defaults(), node(ledger.Readings{}, heat(50), heat(95), heat(78)), []pipeline.Bar{{1, hot(95)}}},
		"each for its own": {
			defaults(), node(ledger.Readings{}, used(990), busy(100), heat(85)),
			[]pipeline.Bar{{0, exceeded(gpu.CardMemory, 99, 95)}, {1, exceeded(gpu.CardUtilisation, 100, 95)}, {2, hot(85)}},
		},
		"the node before its cards": {defaults(), node(ledger.Readings{CPU: gpu.Measured(91)}, heat(90)), []pipeline.Bar{{0, exceeded(gpu.NodeCPU, 91, 90)}}},
		"heat before memory, and memory before utilisation": {
			defaults(), node(ledger.Readings{},
				gpu.Reading{MemoryUsed: gpu.Measured(1000), Utilisation: gpu.Measured(100), Temperature: gpu.Measured(90)},
				gpu.Reading{MemoryUsed: gpu.Measured(1000), Utilisation: gpu.Measured(100)},
			),
			[]pipeline.Bar{{0, hot(90)}, {1, exceeded(gpu.CardMemory, 100, 95)}},
		},
		"a card that somebody has whole": {defaults(), &ledger.Node{
			Readings: ledger.Readings{CPU: gpu.Measured(1)},
			Cards:    []ledger.Card{{Used: gpu.Use{Exclusive: true}, Reading: heat(90)}},
		}, nil},
		"a value that is not known": {defaults(), node(ledger.Readings{CPU: gpu.Figure{Value: 99}}, gpu.Reading{Temperature: gpu.Figure{Value: 99}}), nil},
		"no thresholds": {
			Thresholds{}, node(ledger.Readings{CPU: gpu.Measured(100), Memory: gpu.Measured(100)}, gpu.Reading{MemoryUsed: gpu.Measured(1000), Utilisation: gpu.Measured(100), Temperature: gpu.Measured(99)}),
			nil,
		},
		"other thresholds": {
			Thresholds{GPUTemperature: 60}, node(ledger.Readings{}, heat(60), busy(100)),
			[]pipeline.Bar{{0, pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.CardTemperature, Have: 60, Want: 60}}},
		},
		"a card without any memory": {defaults(), &ledger.Node{
			Readings: ledger.Readings{CPU: gpu.Measured(1)}, Cards: []ledger.Card{{Reading: used(5)}},
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: tc.node}
			for i := range tc.node.Cards {
				n.Open = append(n.Open, i)
			}
			before := len(n.Open)
			if v := (Plugin{tc.thresholds}).Filter(&pipeline.Cycle{Request: &gpu.Request{}}, n); !v.OK() || len(n.Open) != before {
				t.Errorf("verdict %+v, open %v: it bars, and refuses nothing by itself", v, n.Open)
			}
			if diff := cmp.Diff(tc.want, n.Barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

// Cards that another filter has taken out are not looked at.
func TestFilterLooksAtOpenCards(t *testing.T) {
	n := &pipeline.Candidate{Node: node(ledger.Readings{}, gpu.Reading{Temperature: gpu.Measured(90)}, gpu.Reading{Temperature: gpu.Measured(91)}), Open: []int{1}}
	Plugin{defaults()}.Filter(nil, n)
	if diff := cmp.Diff([]pipeline.Bar{{1, hot(91)}}, n.Barred); diff != "" {
		t.Errorf("barred (-want +got):\n%s", diff)
	}
}
