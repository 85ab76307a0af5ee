package demand

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// medley is a cluster of more kinds of cards than are known, and of nodes with more
// cards than are looked at, some of which take nobody in.
type medley struct {
	nodes  [][]gpu.Card
	left   [][]gpu.MiB
	supply Supply
}

func newMedley(random *rand.Rand, nodes, kinds int) *medley {
	c := &medley{supply: Supply{}}
	for range nodes {
		cards, left := make([]gpu.Card, random.IntN(MostCards+16)), []gpu.MiB(nil)
		for i := range cards {
			cards[i] = model(fmt.Sprint("M", random.IntN(kinds)))
			cards[i].Usable, cards[i].UsableCores = gpu.MiB(500*random.IntN(3)), gpu.Cores(100*random.IntN(3))
			cards[i].Mode = []gpu.Mode{gpu.ModeSlice, gpu.ModeWhole, gpu.ModeMIG}[random.IntN(3)]
			left = append(left, gpu.MiB(500*random.IntN(3)))
			if random.IntN(3) > 0 { // others are not supplied, as cordoned ones are not
				c.supply[KindOf(&cards[i])]++
			}
		}
		c.nodes, c.left = append(c.nodes, cards), append(c.left, left)
	}
	return c
}

func (c *medley) Len() int             { return len(c.nodes) }
func (c *medley) Version(i int) uint64 { return uint64(i + 1) }
func (c *medley) Supply() Supply       { return c.supply }

func (c *medley) State(i int, o *Outlook, s *State) {
	s.SetCPU(gpu.MilliCPU(1000 * len(c.nodes[i])))
	for k := range c.nodes[i] {
		card := &c.nodes[i][k]
		r, _ := o.Room(card, c.left[i][k] == 1000, c.left[i][k]*card.Usable/1000, gpu.Cores(c.left[i][k]/10))
		s.Add(r)
	}
}

// anyRequest has up to three containers of any role.
func anyRequest(random *rand.Rand) *gpu.Request {
	var asks []gpu.Ask
	for range random.IntN(4) {
		a := gpu.Ask{Count: 1 + random.IntN(8), Role: gpu.Role(random.IntN(3))}
		switch random.IntN(3) {
		case 0:
			a.Whole = true
		case 1:
			a.MemoryPercent, a.ProportionalCores = 1+random.IntN(100), true
		default:
			a.Memory, a.Cores = gpu.MiB(1+random.IntN(1200)), gpu.Cores(random.IntN(100))
		}
		asks = append(asks, a)
	}
	return request(gpu.MilliCPU(random.IntN(3000)), asks...)
}

// Whatever is asked for of whatever cards, by many at once while the outlook changes and
// kinds of cards come to be known: what fits takes no more than there is.
func TestAnythingOnAnything(t *testing.T) {
	l, c := New(), newMedley(rand.New(rand.NewPCG(3, 3)), 40, 400)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 9))
			for n := range 100 {
				r := anyRequest(random)
				l.Note(r)
				o := l.Outlook(c.Supply)
				if n%20 == 0 {
					o = l.Look(c)
				}
				i := random.IntN(c.Len())
				var s State
				c.State(i, o, &s)
				w := o.Of(r)
				if cost, ok := w.Cost(&s); ok && cost.left < 0 {
					t.Errorf("%+v leaves %d of node %d", r.Asks, cost.left, i)
				}
				for k := range MostCards {
					if cost, ask := w.CostAt(&s, k); ask >= 0 && (k >= s.n || cost.left < 0 || cost.left > full) {
						t.Errorf("%+v leaves %d of card %d of node %d", r.Asks, cost.left, k, i)
					}
				}
			}
		})
	}
	all.Wait()
}
