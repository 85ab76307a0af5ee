package fragment

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// books holds nodes n0, n1 ... of as many free cards each.
func books(counts ...int) *ledger.Ledger {
	l := ledger.New(tenancy.Separate{})
	for i, count := range counts {
		f := ledger.Facts{ID: gpu.NodeID(fmt.Sprintf("n%d", i)), CPU: 32000}
		for k := range count {
			f.Cards = append(f.Cards, card(gpu.CardID(fmt.Sprintf("n%d-%d", i, k)), 0, 0).Card)
		}
		l.SetNode(f)
	}
	return l
}

// Cards count that somebody can get, whoever has them now.
func TestSupply(t *testing.T) {
	l := books(4, 0)
	other := card("b", 0, 0).Card
	other.Model = "B"
	sick, kept, part, gone := other, other, other, other
	sick.ID, sick.Healthy = "c", false
	kept.ID, kept.Cordoned = "d", true
	part.ID, part.Mode = "e", gpu.ModeMIG
	gone.ID = "f"
	l.SetNode(ledger.Facts{ID: "m", Cards: []gpu.Card{other, sick, kept, part}})
	l.SetNode(ledger.Facts{ID: "u", Cards: []gpu.Card{gone}, Unavailable: true})
	if err := l.Reserve(gpu.Placement{Pod: "p", Node: "n0", Grants: []gpu.Grant{{Shares: []gpu.Share{{Card: "n0-0", Memory: 10240, Cores: 100, Exclusive: true}}}}}); err != nil {
		t.Fatal(err)
	}
	a := card("", 0, 0)
	want := demand.Supply{demand.KindOf(&a.Card): 4, demand.KindOf(&other): 1}
	if diff := cmp.Diff(want, Nodes{l.Snapshot()}.Supply()); diff != "" {
		t.Errorf("supply (-want +got):\n%s", diff)
	}
}

// Where the last node for a pod of four cards is one of two, what is begun of it is
// rated lower once somebody has counted.
func TestSurveySeesTheBooks(t *testing.T) {
	l := books(4, 2)
	learner := demand.New()
	for range 600 {
		learner.Note(request(0, whole(4)))
		learner.Note(request(0, whole(1)))
	}
	single := request(0, whole(1))
	score := func() (four, two float64) {
		c := cycle(single)
		c.Outlook = learner.Outlook(Nodes{l.Snapshot()}.Supply)
		p, _ := New(nil)
		s := l.Snapshot()
		return p.Score(c, s.At(0)), p.Score(c, s.At(1))
	}
	before, _ := score()
	learner.Look(Nodes{l.Snapshot()})
	after, two := score()
	if after >= before || two <= after {
		t.Errorf("four cards have the score %v, %v before the count; two have %v", after, before, two)
	}
	// A node that is not available has no place for four to lose, though there is one for two.
	f := l.Snapshot().At(0).Facts
	f.Unavailable = true
	l.SetNode(f)
	learner.Look(Nodes{l.Snapshot()})
	if again, _ := score(); again <= after || again >= before {
		t.Errorf("score %v with no place for four to lose, want between %v and %v", again, after, before)
	}
}
