package simulate

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// One card, and pods with a patience of 1. By hand:
//
//	0 whole, comes at 0.0, stays 2.0: runs from 0 to 2
//	1 whole, comes at 1.5, stays 1.0: runs from 2 to 3, as it came before 2
//	2 half,  comes at 1.6: there is no room until 2.6, when it is withdrawn
//	3 half,  comes at 2.9, stays 4.0: runs from 3 to 7
//	4 half,  comes at 3.5, stays 20: runs until after the end, 10
//	5 half,  comes at 9.9, stays 1.0: runs at once, as 3 has ended
func TestSojournByHand(t *testing.T) {
	whole, half := Shape{Cards: 1, Milli: 1000}, Shape{Cards: 1, Milli: 500}
	visits := []visit{{whole, 0, 2}, {whole, 1.5, 1}, {half, 1.6, 1}, {half, 2.9, 4}, {half, 3.5, 20}, {half, 9.9, 1}}
	tests := map[string]struct {
		stay Stay
		want Steady
	}{
		"all count": {
			Stay{Patience: 1, Length: 10},
			Steady{
				Held:  30 + 20 + 32.5 + 0.5, // 3 whole, halves of 4, of 6.5 and of 0.1, of 10
				Kinds: map[string]*Waits{"1": {2, 0, 0.5}, "slice": {4, 1, 1.1}},
			},
		},
		"those that come from 1.6 to 3": {
			Stay{Patience: 1, Settle: 1.6, Length: 1.4},
			Steady{Held: 100, Kinds: map[string]*Waits{"slice": {2, 1, 1.1}}},
		},
		"nobody has patience": {
			Stay{Patience: 0.05, Length: 10},
			Steady{
				Held:  20 + 20 + 32.5 + 0.5, // 2 whole, halves of 4, of 6.5 and of 0.1
				Kinds: map[string]*Waits{"1": {2, 1, 0.05}, "slice": {4, 1, 0.05}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := onOneCard(t, visits, tc.stay)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func onOneCard(t *testing.T, visits []visit, stay Stay) Steady {
	t.Helper()
	policies, err := Policies([]string{"bestfit"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster([]Node{{"n", 1, 1, 1, "T4"}}, []int{0}, policies[0].Pipeline(nil))
	got, err := sojourn(c, visits, stay, wholeCard)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Three wait for the card from 0.1, 0.2 and 0.3 on, which is free at 2, for 1, 2 and 3:
// they get it at 2, 3 and 5.
func TestWhoCameFirstIsTriedFirst(t *testing.T) {
	whole := Shape{Cards: 1, Milli: 1000}
	got := onOneCard(t, []visit{{whole, 0, 2}, {whole, 0.1, 1}, {whole, 0.2, 2}, {whole, 0.3, 3}}, Stay{Patience: 9, Length: 10})
	if w := got.Kinds["1"]; w.Withdrawn != 0 || math.Abs(w.Waited-(1.9+2.8+4.7)) > 1e-9 {
		t.Errorf("%+v", w)
	}
}

// As much comes as was promised, for one lifetime on average, at even pace.
func TestVisits(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	trace := someTrace(r, 200, 400)
	stay := Stay{Load: 0.95, Patience: 0.5, Settle: 2, Length: 37.5}
	all := stay.visits(trace, r)
	load, lifetime, early := 0.0, 0.0, 0
	for _, v := range all {
		load += float64(v.Demand()) * v.stays
		lifetime += v.stays
		if v.at < stay.end()/2 {
			early++
		}
	}
	for name, f := range map[string]struct{ got, want float64 }{
		"load":     {load / float64(trace.Capacity()) / stay.end(), 0.95},
		"lifetime": {lifetime / float64(len(all)), 1},
		"pace":     {float64(early) / float64(len(all)), 0.5},
	} {
		if math.Abs(f.got/f.want-1) > 0.05 {
			t.Errorf("%s is %.3f, want about %.3f", name, f.got, f.want)
		}
	}
	if got := stay.visits(&Trace{Nodes: trace.Nodes, Pods: []Pod{{Name: "cpu"}}}, r); got != nil {
		t.Errorf("nothing is asked for, and %d come", len(got))
	}
}

func TestOverTime(t *testing.T) {
	trace := someTrace(rand.New(rand.NewSource(9)), 8, 60)
	policies, err := Policies([]string{"packing", "fgd"})
	if err != nil {
		t.Fatal(err)
	}
	results, err := OverTime(t.Context(), trace, policies, []int64{1, 2}, SteadyStay())
	if err != nil {
		t.Fatal(err)
	}
	var lines, report strings.Builder
	if err := SteadyLines(&lines, results); err != nil {
		t.Fatal(err)
	}
	if err := SteadyReport(&report, results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"openb-time some policy=packing seeds=2 load=0.95 held=", "openb-time some policy=fgd seeds=2 load=0.95 held="} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("%q is not in\n%s", want, &lines)
		}
	}
	if strings.Contains(lines.String()+report.String(), "NaN") {
		t.Errorf("figures that are none:\n%s%s", &lines, &report)
	}
	if nobody := (&SteadyResult{Policy: "p", Runs: []Steady{{}}}); len(nobody.failed(Kind8)) != 0 {
		t.Error("of nobody there is a share that was withdrawn")
	}
	for i := range results {
		for _, run := range results[i].Runs {
			if all := run.of(Kinds()...); all.Came < 50 || run.Held <= 10 || run.Held > 100 || all.Waited < 0 {
				t.Errorf("%s: %+v held %g", results[i].Policy, all, run.Held)
			}
		}
	}
}
