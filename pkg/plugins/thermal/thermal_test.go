package thermal

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func node(cards ...gpu.Reading) *ledger.Node {
	n := &ledger.Node{Cards: make([]ledger.Card, len(cards))}
	for i := range cards {
		n.Cards[i].Reading = cards[i]
	}
	return n
}

func hot(v int64) gpu.Reading { return gpu.Reading{Temperature: gpu.Measured(v)} }

func draws(power, limit int64) gpu.Reading {
	return gpu.Reading{Power: gpu.Measured(power), PowerLimit: gpu.Measured(limit)}
}

func both(t, power, limit int64) gpu.Reading {
	r := draws(power, limit)
	r.Temperature = gpu.Measured(t)
	return r
}

func TestScore(t *testing.T) {
	usual, _ := New(nil)
	other, err := New([]byte(`{"maxMeanTemperature":90,"fullScoreTemperature":40}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		plugin Plugin
		node   *ledger.Node
		want   float64
	}{
		"no card":                       {usual, node(), 50},
		"nothing is known":              {usual, node(gpu.Reading{}, gpu.Reading{}), 50},
		"cold":                          {usual, node(hot(20)), 100},
		"just cool":                     {usual, node(hot(50)), 100},
		"half way":                      {usual, node(hot(66)), 50},
		"at the most":                   {usual, node(hot(82)), 0},
		"beyond":                        {usual, node(hot(100)), 0},
		"the mean of those known":       {usual, node(hot(50), gpu.Reading{}, hot(82)), 50},
		"other arguments":               {other, node(hot(65)), 50},
		"power is the lower":            {usual, node(both(50, 300, 400)), 25},
		"temperature is the lower":      {usual, node(both(74, 100, 400)), 25},
		"power alone":                   {usual, node(draws(100, 400)), 75},
		"beyond its limit":              {usual, node(draws(500, 400)), 0},
		"no limit":                      {usual, node(gpu.Reading{Temperature: gpu.Measured(66), Power: gpu.Measured(9999)}), 50},
		"a limit of nothing":            {usual, node(both(66, 10, 0)), 50},
		"the mean of the shares":        {usual, node(draws(100, 200), draws(0, 400)), 75},
		"the example of the docs":       {usual, node(both(50, 300, 400), both(60, 300, 400), both(70, 300, 400), both(72, 300, 400)), 25},
		"the example of the docs, cool": {usual, node(hot(50), hot(60), hot(70), hot(72)), 59.375},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.plugin.Score(nil, tc.node); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	refused := func(have int64) *pipeline.Verdict {
		return &pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.MeanTemperature, Have: have, Want: 83}
	}
	tests := map[string]struct {
		node *ledger.Node
		want *pipeline.Verdict
	}{
		"nothing is known":         {node(gpu.Reading{}), nil},
		"at the most":              {node(hot(82), hot(82)), nil},
		"above by a part":          {node(hot(84), hot(84), hot(84), hot(78)), refused(83)},
		"above":                    {node(hot(90), hot(80)), refused(85)},
		"what is not known is not": {node(hot(84), gpu.Reading{}), refused(84)},
		"one that is hot":          {node(hot(100), hot(60)), nil},
	}
	p, _ := New(nil)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &pipeline.Candidate{Node: tc.node}
			for i := range tc.node.Cards {
				c.Open = append(c.Open, i)
			}
			if v := p.Filter(nil, c); !v.OK() {
				t.Errorf("refused: %+v", v)
			}
			var want []pipeline.Bar
			for i := range c.Open {
				if tc.want != nil {
					want = append(want, pipeline.Bar{Place: i, Verdict: *tc.want})
				}
			}
			if diff := cmp.Diff(want, c.Barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "",
		`{}`:                           "",
		`{"maxMeanTemperature":150}`:   "",
		`{"fullScoreTemperature":0}`:   "",
		`{"maxMeanTemperature":50}`:    "fullScoreTemperature: 50 is not 0 or more and below maxMeanTemperature, 50",
		`{"maxMeanTemperature":151}`:   "maxMeanTemperature: 151 is outside 1..150",
		`{"fullScoreTemperature":-1}`:  "fullScoreTemperature: -1 is not 0 or more and below maxMeanTemperature, 82",
		`{"maxmeantemperature":70}`:    "maxmeantemperature: there is no such argument",
		`{"fullScoreTemperature":1.5}`: "fullScoreTemperature: is a number 1.5, and not a int64",
		`{"maxMeanTemperature":0,"fullScoreTemperature":0}`: "maxMeanTemperature: 0 is outside 1..150\nfullScoreTemperature: 0 is not 0 or more and below maxMeanTemperature, 0",
	} {
		_, err := New([]byte(args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
