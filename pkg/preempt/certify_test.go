package preempt_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// TestCertify: whatever has happened since a plan was made that makes it wrong is seen.
func TestCertify(t *testing.T) {
	victim := func(c *cluster, change func(*resident)) {
		c.residents = append([]resident(nil), c.residents...)
		change(&c.residents[0])
	}
	tests := map[string]struct {
		cluster func(*cluster)
		books   func(*ledger.Ledger)
		world   func(*preempt.World)
		plan    func(*preempt.Plan)
		want    string // "": it holds
	}{
		"nothing":                       {},
		"a victim has gone":             {books: func(l *ledger.Ledger) { l.Release("a") }, want: "holds nothing on n1"},
		"a victim turns out to train":   {plan: func(p *preempt.Plan) { p.Victims[0].Type = gpu.Training }, want: "training is not ended for others"},
		"a victim is of equal priority": {plan: func(p *preempt.Plan) { p.Victims[0].Priority = 50 }, want: "its priority is not lower"},
		"a card has become free":        {books: func(l *ledger.Ledger) { l.Release("b") }, want: "it fits without anybody being ended"},
		"a card is about to":            {cluster: func(c *cluster) { c.residents[1] = c.residents[1].ending() }, want: "it fits without anybody being ended"},
		"somebody else is on the way":   {books: func(l *ledger.Ledger) { l.Confirm(on("n1", "third", 0).placement()) }, want: "it does not fit even then"},
		"a limit is in the way":         {books: func(l *ledger.Ledger) { l.Govern(town{devices: map[string]int64{"red": 1}}) }, want: "it does not fit even then"},
		"the node has gone":             {books: func(l *ledger.Ledger) { l.RemoveNode("n1") }, want: "the node is gone"},
		"the node is kept off": {world: func(w *preempt.World) { w.Suits = func(*preempt.Asker, gpu.NodeID) bool { return false } },
			want: "kube-scheduler's own rules keep the pod off the node"},
		"the policy is another": {world: func(w *preempt.World) { w.Rules.Stage = preempt.Disabled }, want: "the policy has nobody ended"},
		"enough within the hour": {world: func(w *preempt.World) {
			w.Rules.PerHour, w.History = 1, []preempt.Eviction{{Tenant: "red", At: now}}
		}, want: "enough pods of its tenant were ended within the hour"},
		"more at once than within the hour": {world: func(w *preempt.World) { w.Rules.PerHour = 1 }, want: "more pods of a tenant",
			plan: func(p *preempt.Plan) { p.Victims = append(p.Victims, on("n1", "b", 1).Pod) }},
		"one more than it takes": {plan: func(p *preempt.Plan) { p.Victims = append(p.Victims, on("n1", "b", 1).Pod) }, want: "need not go"},
		"nobody":                 {plan: func(p *preempt.Plan) { p.Victims = nil }, want: "it does not fit even then"},
		"a unit is torn apart": {cluster: func(c *cluster) {
			victim(c, func(r *resident) { r.Unit = "u" })
			c.residents[1].Unit = "u"
		}, plan: func(p *preempt.Plan) { p.Victims[0].Unit = "u" }, want: "goes with red/b, which is none"},
		"other cards are meant": {plan: func(p *preempt.Plan) { p.Placement = on("n1", "high", 1).placement() }, want: "no room left"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster{nodes: []ledger.Facts{facts("n1", 2)}, residents: []resident{on("n1", "a", 0), on("n1", "b", 1)}}
			l, a := c.books(), wholes(1)
			plan, outcome := (&preempt.Planner{}).Plan(c.world(l), &a)
			if outcome != preempt.Planned {
				t.Fatalf("outcome %d", outcome)
			}
			if tc.cluster != nil {
				tc.cluster(&c)
			}
			if tc.books != nil {
				tc.books(l)
			}
			w := c.world(l)
			if tc.world != nil {
				tc.world(w)
			}
			if tc.plan != nil {
				tc.plan(&plan)
			}
			switch err := preempt.Certify(w, &plan); {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.Is(err, preempt.ErrStale) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("certified with %v, want %q", err, tc.want)
			}
		})
	}
}

// TestBars: what is said for people says it in words, and for a unit by which member.
func TestBars(t *testing.T) {
	c := cluster{nodes: []ledger.Facts{facts("n1", 2)}, residents: []resident{
		on("n1", "a", 0).unit("u"), on("n1", "b", 1).unit("u").but(func(r *resident) { r.Type = gpu.Training }),
	}}
	w, a := c.world(c.books()), wholes(1)
	if got, want := preempt.Bars(w, &a, &c.residents[0].Pod), "it goes with red/b, which may not be ended: training is not ended for others"; got != want {
		t.Errorf("bars %q, want %q", got, want)
	}
	free := on("n1", "c", 0).Pod
	if got := preempt.Bars(w, &a, &free); got != "" {
		t.Errorf("bars %q, want nothing", got)
	}
	free.Grace, w.Rules.MaxGrace = 2*time.Minute, time.Minute
	if got, want := preempt.Bars(w, &a, &free), "it has longer to end than the policy lets others wait"; got != want {
		t.Errorf("bars %q, want %q", got, want)
	}
	free.Grace = time.Minute
	free.Priority = 50
	if got, want := preempt.Bars(w, &a, &free), "its priority is not lower"; got != want {
		t.Errorf("bars %q, want %q", got, want)
	}
}
