package simulate

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand"
	"slices"
	"strconv"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Steady is what came of pods that come and go.
type Steady struct {
	Held  float64           // of all cards, in percent, the mean over the time that counts
	Kinds map[string]*Waits // by Shape.Kind
}

// Waits is what became of the pods of a kind that count.
type Waits struct {
	Came, Withdrawn int
	// Waited is the sum, of those that were withdrawn too.
	Waited float64
}

// Sojourn has pods of the trace come and go under the policy. Whenever one ends, those
// that wait are tried again in the order in which they came.
func Sojourn(t *Trace, seed int64, p Policy, stay Stay) (Steady, error) {
	r := rand.New(rand.NewSource(seed))
	visits := stay.visits(t, r)
	return sojourn(newCluster(t.Nodes, r.Perm(len(t.Nodes)), p.Pipeline(t)), visits, stay, t.Capacity())
}

func sojourn(c *cluster, visits []visit, stay Stay, capacity int) (Steady, error) {
	g := &going{stay: stay, visits: visits, cluster: c, result: Steady{Kinds: map[string]*Waits{}}}
	for i := range visits {
		if err := g.until(visits[i].at); err != nil {
			return g.result, err
		}
		if err := g.come(i); err != nil {
			return g.result, err
		}
	}
	err := g.until(stay.end())
	g.result.Held = 100 * g.heldTime / (stay.Length * float64(capacity))
	return g.result, err
}

// going is a sojourn under way. Pods are named by their place in visits.
type going struct {
	stay     Stay
	visits   []visit
	cluster  *cluster
	result   Steady
	now      float64
	held     int     // thousandths of cards
	heldTime float64 // times how long, of the time that counts
	running  endings
	waiting  []int // in the order in which they came
}

// until has all happen that happens before then.
func (g *going) until(then float64) error {
	for {
		ends, late := math.Inf(1), math.Inf(1)
		if len(g.running) > 0 {
			ends = g.running[0].at
		}
		if len(g.waiting) > 0 {
			late = g.visits[g.waiting[0]].at + g.stay.Patience
		}
		switch {
		case min(ends, late) > then:
			g.pass(then)
			return nil
		case late <= ends:
			g.pass(late)
			g.settled(g.waiting[0], true)
			g.waiting = g.waiting[1:]
		default:
			g.pass(ends)
			if err := g.end(); err != nil {
				return err
			}
		}
	}
}

// pass lets time pass.
func (g *going) pass(then float64) {
	from, to := max(g.now, g.stay.Settle), min(then, g.stay.Settle+g.stay.Length)
	g.heldTime += float64(g.held) * max(0, to-from)
	g.now = then
}

// end ends the next pod, and tries those that wait. Of several of one shape the others
// need not be tried after one that does not fit.
func (g *going) end() error {
	over := heap.Pop(&g.running).(ending)
	g.held -= g.visits[over.visit].Demand()
	g.cluster.end(podID(over.visit))
	refused := map[Shape]bool{}
	left := g.waiting[:0]
	for _, i := range g.waiting {
		placed := false
		if s := g.visits[i].Shape; !refused[s] {
			var err error
			if placed, err = g.try(i); err != nil {
				return err
			}
			refused[s] = !placed
		}
		if !placed {
			left = append(left, i)
		}
	}
	g.waiting = left
	return nil
}

// come has a pod arrive.
func (g *going) come(i int) error {
	g.cluster.note(g.visits[i].Shape)
	placed, err := g.try(i)
	if err == nil && !placed {
		g.waiting = append(g.waiting, i)
	}
	return err
}

func (g *going) try(i int) (bool, error) {
	v := &g.visits[i]
	placed, err := g.cluster.place(v.Shape, podID(i))
	if err != nil || !placed {
		return false, err
	}
	g.held += v.Demand()
	heap.Push(&g.running, ending{g.now + v.stays, i})
	g.settled(i, false)
	return true, nil
}

// settled notes what has become of the pod.
func (g *going) settled(i int, withdrawn bool) {
	v := &g.visits[i]
	if !g.stay.counts(v.at) {
		return
	}
	w := g.result.Kinds[v.Kind()]
	if w == nil {
		w = &Waits{}
		g.result.Kinds[v.Kind()] = w
	}
	w.Came++
	w.Waited += g.now - v.at
	if withdrawn {
		w.Withdrawn++
	}
}

func podID(visit int) gpu.PodID { return gpu.PodID(strconv.Itoa(visit)) }

// of adds up the pods of these kinds.
func (s *Steady) of(kinds ...string) (sum Waits) {
	for kind, w := range s.Kinds {
		if slices.Contains(kinds, kind) {
			sum.Came += w.Came
			sum.Withdrawn += w.Withdrawn
			sum.Waited += w.Waited
		}
	}
	return sum
}

// ending is when a pod ends.
type ending struct {
	at    float64
	visit int
}

// endings is a heap, the next one first.
type endings []ending

func (e endings) Len() int { return len(e) }
func (e endings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].visit, e[j].visit)) < 0
}
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push is for package heap.
func (e *endings) Push(x any) { *e = append(*e, x.(ending)) }

// Pop is for package heap.
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
