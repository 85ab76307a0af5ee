package ledger_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// TestConcurrent lets many binders fight for four cards while others look on, one
// tells what it has measured, and one what services keep for themselves. No
// view may ever show a broken promise, and in the end the books are exactly what
// the binders believe to hold.
func TestConcurrent(t *testing.T) {
	const binders, lookers, rounds = 8, 2, 400
	run := rand.Uint64()
	t.Logf("seed %d", run)
	l := ledger.New(chain{})
	l.SetNode(n1())
	mine := make([]map[gpu.PodID]gpu.Placement, binders)

	var binding, looking sync.WaitGroup
	done := make(chan struct{})
	for range lookers {
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					keepsPromises(t, l.Snapshot())
				}
			}
		})
	}
	looking.Go(func() { promise(l, rand.New(rand.NewPCG(run, binders+1)), done) })
	looking.Go(func() { measure(l, rand.New(rand.NewPCG(run, binders)), done) })
	for i := range binders {
		binding.Go(func() { mine[i] = bind(t, l, rand.New(rand.NewPCG(run, uint64(i))), i, rounds) })
	}
	binding.Wait()
	close(done)
	looking.Wait()
	keepsPromises(t, l.Snapshot())

	quiet := ledger.New(chain{})
	quiet.SetNode(n1())
	for _, own := range mine {
		for _, p := range own {
			quiet.Confirm(p)
		}
	}
	for id, n := range l.Snapshot().Nodes() {
		want := node(t, quiet.Snapshot(), id)
		for i := range n.Cards {
			if got, want := describe(&n.Cards[i]), describe(&want.Cards[i]); got != want {
				t.Errorf("card %s: %s, want %s", n.Cards[i].ID, got, want)
			}
		}
	}
}

// bind is one binder: it reserves for its own pods, and ends them in every way
// there is. It returns what it holds in the end.
func bind(t *testing.T, l *ledger.Ledger, rnd *rand.Rand, binder, rounds int) map[gpu.PodID]gpu.Placement {
	own := map[gpu.PodID]gpu.Placement{}
	for range rounds {
		id := gpu.PodID('a'+rune(binder)) + gpu.PodID('0'+rune(rnd.IntN(5)))
		p, have := own[id]
		switch {
		case have && rnd.IntN(3) == 0:
			l.Confirm(p)
			if err := l.Drain(id); err != nil {
				t.Errorf("drain %s: %v", id, err)
			}
		case have:
			end(l, rnd, id)
			delete(own, id)
		default:
			p = anyPlacement(rnd, id)
			if l.Reserve(p) == nil {
				own[id] = p
			}
		}
	}
	return own
}

func end(l *ledger.Ledger, rnd *rand.Rand, id gpu.PodID) {
	if rnd.IntN(2) == 0 {
		l.Linger(id, start)
		l.Expire(start.Add(-time.Second)) // ends nothing
	}
	l.Unreserve(id)
	l.Release(id)
}

func anyPlacement(rnd *rand.Rand, id gpu.PodID) gpu.Placement {
	tenant := []gpu.TenantID{"u", "v", "w"}[rnd.IntN(3)]
	cards := []gpu.CardID{"a", "b", "c", "d"}
	rnd.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
	var shares []gpu.Share
	for _, c := range cards[:1+rnd.IntN(3)] {
		if rnd.IntN(4) == 0 {
			shares = append(shares, whole(c))
		} else {
			shares = append(shares, slice(c, gpu.MiB(10+rnd.IntN(50)), gpu.Cores(rnd.IntN(60))))
		}
	}
	return of(tenant, pod(id, shares...))
}

// promise makes and drops services that keep this and that.
func promise(l *ledger.Ledger, random *rand.Rand, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		g := gpu.GroupID('g' + rune(random.IntN(3)))
		if random.IntN(3) == 0 {
			l.DropService(g)
		} else {
			l.SetService(ledger.Service{Group: g, From: start, Kept: []gpu.Placement{anyPlacement(random, "m"), anyPlacement(random, "n")}})
		}
	}
}

// keepsPromises holds the promises against a view, adding up by itself.
func keepsPromises(t *testing.T, s ledger.Snapshot) {
	for _, n := range s.Nodes() {
		if rest := n.For("", time.Time{}); !n.Keeps() && rest != n || rest.For("", time.Time{}) != rest {
			t.Errorf("%s is another to who stays for ever, and nothing is kept of it", n.ID)
		}
		for i := range n.Cards {
			c := &n.Cards[i]
			if s := sum(c.Holders); s != c.Used || over(&c.Card, c.Holders) || crowded(c.Holders) || c.Divided || mixed(c.Holders, chain{}) {
				t.Errorf("card %s: used %+v by %s", c.ID, c.Used, describe(c))
			}
			if !slices.IsSortedFunc(c.Holders, func(a, b ledger.Holder) int { return cmp.Compare(a.Pod, b.Pod) }) {
				t.Errorf("card %s: holders out of order: %s", c.ID, describe(c))
			}
		}
	}
}

func mixed(holders []ledger.Holder, b ledger.Boundary) bool {
	for i, h := range holders {
		for _, o := range holders[:i] {
			if !b.MayShare(h.Tenant, o.Tenant) {
				return true
			}
		}
	}
	return false
}

// measure tells again and again what it has measured, of a node as it was a moment
// ago.
func measure(l *ledger.Ledger, random *rand.Rand, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		n, _ := l.Snapshot().Node("n1")
		r := ledger.Readings{Seen: n.Version, Cards: map[gpu.CardID]gpu.Reading{}}
		for i := range n.Cards {
			r.Cards[n.Cards[i].ID] = gpu.Reading{MemoryUsed: gpu.Measured(random.Int64N(100)), Temperature: gpu.Measured(random.Int64N(100))}
		}
		l.SetReadings("n1", r)
	}
}
