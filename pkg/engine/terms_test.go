package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// witness is a plugin for scores and cards that keeps the outlooks it is shown, and
// prefers the node with the fewest cards.
type witness struct{ saw *[]*demand.Outlook }

func (witness) Name() string { return "witness" }

func (w witness) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	*w.saw = append(*w.saw, c.Outlook)
	return float64(10 - len(n.Cards))
}

func (w witness) Place(c *pipeline.Cycle, _ *pipeline.Candidate) {
	*w.saw = append(*w.saw, c.Outlook)
}

// learning is a cluster whose engine learns, and what its plugins are shown.
func learning(shortlist int, perNode ...int) (c cluster, saw *[]*demand.Outlook) {
	c, saw = newCluster(perNode...), &[]*demand.Outlook{}
	packs := c.cfg.Pipeline()
	pipe := pipeline.New(pipeline.Config{
		Pack: packing{packs}, Shortlist: shortlist, Scores: []pipeline.Weighted{{Score: witness{saw}, Weight: 1}},
		Places: map[gpu.Policy]pipeline.Place{"": witness{saw}},
	})
	cfg := c.cfg
	cfg.Pipeline, cfg.Demand = func() *pipeline.Pipeline { return pipe }, demand.New()
	c.cfg, c.Engine = cfg, New(cfg)
	return c, saw
}

// packing packs as another pipeline does.
type packing struct{ as *pipeline.Pipeline }

func (packing) Name() string { return "as another" }

func (p packing) Pack(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	placed, v := p.as.Assign(c, n.Node)
	return placed.Grants, v
}

// All that one decision looks at is shown one outlook, also what it expects of the bind;
// and the next decision the same one, as long as nothing new is asked for.
func TestOneOutlookADecision(t *testing.T) {
	c, saw := learning(1, 2, 4)
	outlooks := map[*demand.Outlook]bool{}
	for i := range 40 {
		r := pod(fmt.Sprint("p", i), slice(100))
		*saw = nil
		if f := c.Filter(&r, c.all()); len(f.Feasible) != 1 {
			t.Fatalf("feasible %v", f.Feasible)
		}
		if len(*saw) < 1 || (*saw)[0] == nil {
			t.Fatal("nothing is shown to the plugins")
		}
		for _, o := range *saw {
			if o != (*saw)[0] {
				t.Fatal("two outlooks in one decision")
			}
		}
		outlooks[(*saw)[0]] = true
		c.look(c.ledger.Snapshot())
		*saw = nil
		c.Filter(&r, c.all())
		before := *saw
		*saw = nil
		c.Filter(&r, c.all())
		c.Score(&r, c.all())
		_, _ = c.Bind(t.Context(), Target{Pod: r.Pod, Namespace: r.Namespace, Name: r.Name, Node: "n1"})
		for _, o := range *saw {
			if o != before[0] {
				t.Fatal("another outlook for the same pod, though nothing has come")
			}
		}
	}
	if len(outlooks) < 3 || len(outlooks) > 20 {
		t.Errorf("%d outlooks for 40 pods", len(outlooks))
	}
}

// slow is a score that takes that long, and is the higher the fewer cards the node has.
type slow struct {
	took  time.Duration
	now   *time.Time
	rated *int
}

func (slow) Name() string { return "slow" }

func (s slow) Score(_ *pipeline.Cycle, n *ledger.Node) float64 {
	*s.rated++
	*s.now = s.now.Add(s.took)
	return float64(10 - len(n.Cards))
}

// However long nodes take to be rated, an answer comes in time. It is one that fits, and
// those after it get further, until the best of all is found.
func TestAnswersComeInTime(t *testing.T) {
	cards := slices.Repeat([]int{2}, 40)
	cards[9-1] = 1 // the last by name
	for took, rated := range map[time.Duration]int{2 * time.Millisecond: 25, 20 * time.Millisecond: some} {
		t.Run(took.String(), func(t *testing.T) {
			c := newCluster(cards...)
			now, ratings := time.Unix(0, 0), 0
			pipe := pipeline.New(pipeline.Config{
				Pack: packing{c.cfg.Pipeline()}, Shortlist: 1,
				Scores: []pipeline.Weighted{{Score: slow{took, &now, &ratings}, Weight: 1}},
			})
			cfg := c.cfg
			cfg.Pipeline, cfg.Now = func() *pipeline.Pipeline { return pipe }, func() time.Time { return now }
			c.cfg, c.Engine = cfg, New(cfg)
			r := pod("a", slice(100))
			for left := len(cards); left > 0; now = now.Add(hintLife) { // nobody comes
				before, want := ratings, gpu.NodeID("n1")
				if left <= rated {
					want = "n9"
				}
				if f := c.Filter(&r, c.all()); len(f.Feasible) != 1 || f.Feasible[0] != want || f.Fit != len(cards) {
					t.Errorf("feasible %v of %d, want %s", f.Feasible, f.Fit, want)
				}
				if got := ratings - before; got != min(rated, left) {
					t.Fatalf("%d nodes rated, want %d", got, min(rated, left))
				}
				left -= rated
			}
			other := pod("b", slice(200))
			for i, s := range c.Score(&other, c.all()) {
				if (s.Total > 0) != (i < rated) {
					t.Errorf("node %s has the score %v", s.Node, s.Total)
				}
			}
		})
	}
}

// Without a learner there is no outlook.
func TestNothingIsLearned(t *testing.T) {
	c := newCluster(1)
	r := pod("a", whole(1))
	c.Learn(&r)
	if got := c.terms(c.ledger.Snapshot()).outlook; got != nil {
		t.Errorf("outlook %v", got)
	}
}

// A pod counts once, however often it is asked about, and whether or not it fits.
func TestPodsCountOnce(t *testing.T) {
	c, _ := learning(16, 1)
	now := func() *demand.Outlook {
		c.look(c.ledger.Snapshot())
		return c.terms(c.ledger.Snapshot()).outlook
	}
	before := now()
	r := pod("a", whole(9))
	c.Filter(&r, c.all())
	first := now()
	if first == before {
		t.Fatal("a new pod makes no difference") // the first does: it is all there is
	}
	for range 50 {
		c.Filter(&r, c.all())
		c.Learn(&r)
	}
	if now() != first {
		t.Error("a pod that is asked about again has counted again")
	}
	for i := range 50 {
		r := pod(fmt.Sprint("b", i), whole(1))
		c.Learn(&r)
	}
	if now() == first {
		t.Error("fifty new pods make no difference")
	}
}

// What a quota or a tenant that is not active keeps out makes no difference to the others,
// however often it comes; it counts once it is let in.
func TestWhatIsKeptOutDoesNotCount(t *testing.T) {
	for name, kept := range map[string]rules{
		"by a quota": rules{}.limiting("ns", cardLimit(3)), "by a tenant that is not active": {closed: []string{"ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := learning(16, 8)
			c.ledger.Govern(kept)
			now := func() *demand.Outlook {
				c.look(c.ledger.Snapshot())
				return c.terms(c.ledger.Snapshot()).outlook
			}
			before := now()
			for i := range 50 {
				r := pod(fmt.Sprint("p", i), whole(4))
				if f := c.Filter(&r, c.all()); f.Fit > 0 {
					t.Fatal("a pod is let in")
				}
			}
			if now() != before {
				t.Error("what is kept out has counted")
			}
			c.ledger.Govern(rules{})
			r := pod("p0", whole(4))
			c.Filter(&r, c.all())
			if now() == before {
				t.Error("a pod that is let in at last has not counted")
			}
		})
	}
}

// Who asks for no card is met by Score alone, and counts once too.
func TestPodsWithoutCardsCount(t *testing.T) {
	c, _ := learning(16, 1)
	outlook := func(name string) *demand.Outlook {
		r := pod(name)
		r.CPU = 4000
		c.Score(&r, c.all())
		c.look(c.ledger.Snapshot())
		return c.terms(c.ledger.Snapshot()).outlook
	}
	before := c.terms(c.ledger.Snapshot()).outlook
	first := outlook("a")
	if first == before {
		t.Fatal("a new pod makes no difference") // the first does: it is all there is
	}
	for range 50 {
		if outlook("a") != first {
			t.Fatal("a pod that is rated again has counted again")
		}
	}
}

// The memory for pods that were counted is bounded. Who is asked about again now and
// then is never counted again; who is not may be, at last.
func TestCountedIsBounded(t *testing.T) {
	var c counted
	waits, left := gpu.PodID("waits"), gpu.PodID("has left")
	if !c.first(waits) || !c.first(left) {
		t.Fatal("a new pod is known")
	}
	for i := range 3 * mostCounted {
		if !c.first(gpu.PodID(fmt.Sprint(i))) {
			t.Fatalf("new pod %d is known", i)
		}
		if i%(mostCounted/2) == 0 && c.first(waits) {
			t.Fatalf("after %d pods: one that waits is counted again", i)
		}
		if len(c.now) > mostCounted || len(c.before) > mostCounted {
			t.Fatalf("%d and %d pods are remembered", len(c.now), len(c.before))
		}
	}
	if c.first(gpu.PodID(fmt.Sprint(3*mostCounted - mostCounted/2))) {
		t.Error("a pod of lately is counted again")
	}
	if !c.first(left) {
		t.Error("a pod of long ago is remembered: nothing is forgotten")
	}
}

// Of several who bring one pod at once, one counts it.
func TestCountedByOne(t *testing.T) {
	var c counted
	var all sync.WaitGroup
	firsts := make([]int, 8)
	for k := range firsts {
		all.Go(func() {
			for i := range 2000 {
				if c.first(gpu.PodID(fmt.Sprint(i))) {
					firsts[k]++
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range firsts {
		sum += n
	}
	if sum != 2000 {
		t.Errorf("2000 pods were counted %d times", sum)
	}
}

// Wake counts the places that there are for pods of several cards: where they run out
// the outlook is another, though nobody has come.
func TestWakeLooksAtWhatThereIsRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := learning(16, 4, 4)
		for i := range 100 {
			r := pod(fmt.Sprint("p", i), whole(4))
			c.Learn(&r)
		}
		before := c.terms(c.ledger.Snapshot()).outlook
		c.wakes(t)
		time.Sleep(2 * WakePeriod)
		synctest.Wait()
		if c.terms(c.ledger.Snapshot()).outlook == before {
			t.Error("nobody has looked: two places are few for a hundred pods")
		}
	})
}
