package simulate

import (
	"math"
	"strconv"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// buckets is how many there are: one for each percent of arrived demand.
const buckets = int(overload*100) + 1

// Run is what came of one replay.
type Run struct {
	// Allocated is by arrived demand, in percent of what all cards have: the mean over
	// the arrivals at which so much, rounded, had arrived, of what was held, in
	// percent. Not a number where nothing arrived.
	Allocated [buckets]float64
	Failed    map[Shape]int // how many pods of a shape found no room
	// First is what had arrived when a pod with cards first found no room, and First8
	// when one with 8 of them did; not a number where none did.
	First, First8 float64
	Placed        int // pods
}

// Replay has the pods arrive one after the other. Each is tried once, and stays.
func Replay(t *Trace, a Arrivals, p Policy) (Run, error) {
	c, tally := newCluster(t.Nodes, a.Rank, p.Pipeline(t)), NewTally(t)
	for i := range a.Pods {
		s := a.Pods[i].Shape
		c.note(s)
		placed, err := c.place(s, gpu.PodID(strconv.Itoa(i)))
		if err != nil {
			return tally.Run(), err
		}
		tally.Add(s, placed)
	}
	return tally.Run(), nil
}

// Tally counts what comes of arrivals, wherever they are placed.
type Tally struct {
	run                     Run
	curve                   curve
	arrived, held, capacity int
}

// NewTally returns the tally of arrivals to the nodes of the trace, none yet.
func NewTally(t *Trace) *Tally {
	return &Tally{run: Run{Failed: map[Shape]int{}, First: math.NaN(), First8: math.NaN()}, capacity: t.Capacity()}
}

// Add counts the next arrival, and whether it was placed.
func (t *Tally) Add(s Shape, placed bool) {
	t.arrived += s.Demand()
	now := t.percent(t.arrived)
	if placed {
		t.held += s.Demand()
		t.run.Placed++
	} else {
		t.run.fail(s, now)
	}
	t.curve.add(now, t.percent(t.held))
}

func (t *Tally) percent(of int) float64 { return 100 * float64(of) / float64(t.capacity) }

// Run is what came of all of them so far.
func (t *Tally) Run() Run {
	t.run.Allocated = t.curve.means()
	return t.run
}

func (r *Run) fail(s Shape, arrived float64) {
	r.Failed[s]++
	if s.Cards > 0 && math.IsNaN(r.First) {
		r.First = arrived
	}
	if s.Cards == mostCards && math.IsNaN(r.First8) {
		r.First8 = arrived
	}
}

// failed counts the pods that found no room and are such.
func (r *Run) failed(such func(Shape) bool) (n int) {
	for s, count := range r.Failed {
		if such(s) {
			n += count
		}
	}
	return n
}

// curve adds up, by bucket.
type curve struct {
	sums   [buckets]float64
	counts [buckets]int
}

func (c *curve) add(arrived, allocated float64) {
	if b := int(math.Round(arrived)); b < buckets {
		c.sums[b] += allocated
		c.counts[b]++
	}
}

func (c *curve) means() (m [buckets]float64) {
	for b := range m {
		m[b] = c.sums[b] / float64(c.counts[b]) // 0/0 is not a number
	}
	return m
}
