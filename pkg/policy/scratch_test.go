package policy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// What a node was judged with serves its score too: the score is the same as of a node
// that nobody has looked at, whatever else the memory was used for before.
func TestAScoreAfterAVerdict(t *testing.T) {
	moreChecks(t)
	aware := Default()
	for i := range aware.Plugins {
		aware.Plugins[i].Enabled = true
	}
	pipes := []*pipeline.Pipeline{Default().Pipeline(), aware.Pipeline()}
	served := 0
	rapid.Check(t, func(t *rapid.T) {
		worlds := []world{drawLinkedWorld(t), drawWorld(t)}
		r := drawLinkedRequest(t)
		pipe := pick(t, "policy", pipes...)
		var nodes []*ledger.Node
		for _, w := range worlds {
			n, _ := w.books().Snapshot().Node("n1")
			nodes = append(nodes, n)
		}
		c, s := &pipeline.Cycle{Request: r, Outlook: drawOutlook(t, worlds[0])}, &pipeline.Scratch{}
		other := *r
		other.Asks = slices.Clone(r.Asks)
		slices.Reverse(other.Asks)
		for range 6 {
			n := pick(t, "node", nodes...)
			switch pick(t, "do", "judge", "rate", "rate", "prices", "another") {
			case "judge":
				served++
				if got, want := pipe.Judge(c, n, s), pipe.Judge(c, n, &pipeline.Scratch{}); got != want {
					t.Fatalf("judged %+v, by itself %+v", got, want)
				}
			case "rate":
				if got, want := pipe.Base(c, n, s), pipe.Base(c, n, &pipeline.Scratch{}); got != want {
					t.Fatalf("rated %+v, by itself %+v", got, want)
				}
			case "prices":
				if diff := cmp.Diff(pipe.Prices(c, n, &pipeline.Scratch{}), pipe.Prices(c, n, s)); diff != "" {
					t.Fatalf("prices (-by itself +got):\n%s", diff)
				}
			case "another":
				pipe.Judge(&pipeline.Cycle{Request: &other}, n, s)
			}
		}
	})
	if served == 0 {
		t.Error("nothing was judged")
	}
}

// Who gets all open cards or none gets the same by any order.
func TestAllCardsOrNone(t *testing.T) {
	moreChecks(t)
	pipe, all := Default().Pipeline(), 0
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawLinkedWorld(t), drawLinkedRequest(t)
		n, _ := w.books().Snapshot().Node("n1")
		r.Asks = r.Asks[:min(1, len(r.Asks))]
		for i := range r.Asks {
			r.Asks[i].Count = max(2, len(n.Cards))
		}
		var want gpu.Placement
		for i, policy := range []gpu.Policy{"", gpu.Binpack, gpu.Spread, gpu.TopologyAware, "none"} {
			r.CardPolicy = policy
			got, v := pipe.Assign(&pipeline.Cycle{Request: r}, n)
			if v.OK() && len(got.Grants) > 0 {
				all++
			}
			if i == 0 {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("by the policy %q (-without +got):\n%s", policy, diff)
			}
		}
	})
	t.Logf("%d placements", all)
	if all == 0 {
		t.Error("nobody got all cards")
	}
}
