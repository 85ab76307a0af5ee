package thermal

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func node(cards ...gpu.Reading) *ledger.Node {
	n := &ledger.Node{}
	for _, r := range cards {
		n.Cards = append(n.Cards, ledger.Card{Reading: r})
	}
	return n
}

func heat(v int64) gpu.Reading { return gpu.Reading{Temperature: gpu.Measured(v)} }

func power(watts, limit int64) gpu.Reading {
	return gpu.Reading{Power: gpu.Measured(watts), PowerLimit: gpu.Measured(limit)}
}

func both(degrees, watts, limit int64) gpu.Reading {
	r := power(watts, limit)
	r.Temperature = gpu.Measured(degrees)
	return r
}

func TestScore(t *testing.T) {
	tests := map[string]struct {
		args string
		node *ledger.Node
		want float64
	}{
		"nothing is known":             {"", node(gpu.Reading{}, gpu.Reading{}), 50},
		"no cards":                     {"", node(), 50},
		"cold":                         {"", node(heat(20)), 100},
		"at 50":                        {"", node(heat(50)), 100},
		"at 51":                        {"", node(heat(51)), 96.875},
		"half way, at 66":              {"", node(heat(66)), 50},
		"at 74":                        {"", node(heat(74)), 25},
		"at 82":                        {"", node(heat(82)), 0},
		"beyond":                       {"", node(heat(99)), 0},
		"the mean of the cards":        {"", node(heat(50), heat(82)), 50},
		"the mean of those known":      {"", node(heat(74), gpu.Reading{}), 25},
		"power is lower":               {"", node(both(50, 210, 300)), 30},
		"temperature is lower":         {"", node(both(74, 30, 300)), 25},
		"the means of either":          {"", node(both(66, 300, 300), both(66, 0, 300)), 50},
		"power alone":                  {"", node(power(100, 400)), 75},
		"power without a cap":          {"", node(gpu.Reading{Temperature: gpu.Measured(66), Power: gpu.Measured(300)}), 50},
		"a cap of 0":                   {"", node(both(50, 300, 0)), 100},
		"more power than the cap":      {"", node(both(50, 330, 300)), 0},
		"power of some cards":          {"", node(both(50, 150, 300), heat(50)), 50},
		"other bounds":                 {`{"maxMeanTemperature":90,"fullScoreTemperature":40}`, node(heat(65)), 50},
		"one of the bounds is another": {`{"fullScoreTemperature":72}`, node(heat(77)), 50},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New([]byte(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Score(nil, tc.node); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	tooHot := func(have, allowed int64) *pipeline.Verdict {
		return &pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.MeanTemperature, Have: have, Want: allowed}
	}
	tests := map[string]struct {
		args string
		node *ledger.Node
		want *pipeline.Verdict
	}{
		"nothing is known":     {"", node(gpu.Reading{}), nil},
		"at 82":                {"", node(heat(82), heat(82)), nil},
		"above":                {"", node(heat(83), heat(83)), tooHot(83, 83)},
		"just above":           {"", node(heat(82), heat(83)), tooHot(83, 83)},
		"one hot among cool":   {"", node(heat(95), heat(40)), nil},
		"of those known":       {"", node(heat(95), gpu.Reading{}), tooHot(95, 83)},
		"another bound":        {`{"maxMeanTemperature":70}`, node(heat(71)), tooHot(71, 71)},
		"no power left is not": {"", node(both(60, 300, 300)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New([]byte(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			n := &pipeline.Candidate{Node: tc.node}
			var want []pipeline.Bar
			for i := range tc.node.Cards {
				n.Open = append(n.Open, i)
				if tc.want != nil {
					want = append(want, pipeline.Bar{Place: i, Verdict: *tc.want})
				}
			}
			if v := p.Filter(nil, n); !v.OK() {
				t.Errorf("verdict %+v: it bars, and refuses nothing by itself", v)
			}
			if diff := cmp.Diff(want, n.Barred); diff != "" {
				t.Errorf("barred (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	tests := map[string]struct{ args, fault string }{
		"none":             {"", ""},
		"empty":            {"{}", ""},
		"at their least":   {`{"maxMeanTemperature":1,"fullScoreTemperature":0}`, ""},
		"at their most":    {`{"maxMeanTemperature":150,"fullScoreTemperature":149}`, ""},
		"too hot":          {`{"maxMeanTemperature":151}`, "maxMeanTemperature: 151 is outside 1..150"},
		"none at all":      {`{"maxMeanTemperature":0}`, "maxMeanTemperature: 0 is outside 1..150"},
		"frozen":           {`{"fullScoreTemperature":-1}`, "fullScoreTemperature: -1 is not 0 or more and below maxMeanTemperature, 82"},
		"the same":         {`{"fullScoreTemperature":82}`, "fullScoreTemperature: 82 is not 0 or more and below maxMeanTemperature, 82"},
		"below the other":  {`{"maxMeanTemperature":50}`, "fullScoreTemperature: 50 is not 0 or more and below maxMeanTemperature, 50"},
		"a typo":           {`{"maxMeanTemp":50}`, "maxMeanTemp: there is no such argument"},
		"of another type":  {`{"maxMeanTemperature":"82"}`, "maxMeanTemperature: is a string"},
		"not whole":        {`{"maxMeanTemperature":82.5}`, "maxMeanTemperature: is a number 82.5"},
		"null":             {`{"maxMeanTemperature":null}`, "maxMeanTemperature: null is no value"},
		"two at once, one": {`{"maxMeanTemperature":200,"fullScoreTemperature":-1}`, "maxMeanTemperature: 200 is outside 1..150\nfullScoreTemperature: -1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New([]byte(tc.args))
			switch {
			case (err == nil) != (tc.fault == ""):
				t.Errorf("New = %v", err)
			case err != nil && !strings.HasPrefix(err.Error(), tc.fault):
				t.Errorf("New = %q, want %q", err, tc.fault)
			}
		})
	}
}
