package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Task is a pod to be: when it comes, what it asks for, and how long it takes.
type Task struct {
	Name  string
	Kind  string
	Group string // the job whose pods work together; "" for none
	At    time.Duration
	Takes time.Duration // once it runs
	Cards int           // whole ones; 0: a slice of one
	// Memory in MiB, and Cores in percent, of a slice.
	Memory, Cores int
	// Busy is how much of what it holds it keeps busy, 0 to 1.
	Busy float64
}

// Whole reports whether the task asks for whole cards.
func (t *Task) Whole() bool { return t.Cards > 0 }

// kind is one kind of task. Those of a kind offer share of the load.
type kind struct {
	name  string
	share float64
	takes time.Duration // on average
	pods  int           // that come together
	asks  []ask
}

// ask is what one pod asks for, with how many of a hundred do.
type ask struct {
	percent       int
	cards         int
	memory, cores int
}

// kinds are the mix. Its shares are of card-time: a slice counts for what it takes
// of a card's compute.
func kinds() []kind {
	return []kind{
		{"slice", 0.25, time.Minute, 1, []ask{{30, 0, 8000, 10}, {30, 0, 16000, 20}, {25, 0, 24000, 30}, {15, 0, 40000, 50}}},
		{"single", 0.20, time.Minute, 1, []ask{{100, 1, 0, 0}}},
		{"several", 0.25, 80 * time.Second, 1, []ask{{50, 2, 0, 0}, {30, 4, 0, 0}, {20, 8, 0, 0}}},
		{"group", 0.30, 80 * time.Second, 8, []ask{{50, 1, 0, 0}, {50, 2, 0, 0}}},
	}
}

// amount is how much of a card the ask takes, or how many cards.
func (a ask) amount() float64 {
	if a.cards > 0 {
		return float64(a.cards)
	}
	return float64(a.cores) / 100
}

// amount is what all pods of one arrival take together, on average.
func (k kind) amount() float64 {
	sum := 0.0
	for _, a := range k.asks {
		sum += a.amount() * float64(a.percent) / 100
	}
	return sum * float64(k.pods)
}

// Plan says what is drawn.
type Plan struct {
	Floor Floor
	// Load is how much of all cards the tasks would hold on average if none waited.
	Load float64
	// Fill is the time at the start in which tasks come that would be there
	// already; after it the cluster is as loaded as ever. What comes before it
	// ends counts for nothing.
	Fill time.Duration
	// Length is the time from the start to the end, Wait how long a task waits
	// before it is withdrawn. The last tasks come so long before the end.
	Length, Wait time.Duration
}

// Validate reports the first thing that is wrong.
func (p Plan) Validate() error {
	switch {
	case p.Load <= 0 || p.Load > 2:
		return fmt.Errorf("load: %g is outside 0..2", p.Load)
	case p.Wait < time.Second:
		return fmt.Errorf("wait: %v is less than a second", p.Wait)
	case p.Fill < 0 || p.Length-p.Wait <= p.Fill:
		return fmt.Errorf("length: of %v nothing is left after %v to fill and %v to wait", p.Length, p.Fill, p.Wait)
	}
	return p.Floor.Validate()
}

// Draw returns the tasks of a seed, in the order in which they come. A kind's do
// not depend on what is drawn of others.
func Draw(p Plan, seed uint64) []Task {
	var all []Task
	for i, k := range kinds() {
		d := drawer{Plan: p, kind: k, random: source(seed, i)}
		all = append(all, d.tasks()...)
	}
	slices.SortStableFunc(all, byTime)
	return all
}

func byTime(a, b Task) int { return cmp.Compare(a.At, b.At) }

// source is where one kind of one seed is drawn from.
func source(seed uint64, kind int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(kind))) }

type drawer struct {
	Plan
	kind
	random *rand.Rand
	drawn  int
}

func (d *drawer) tasks() (all []Task) {
	running := d.Load * d.share * float64(d.Floor.Cards()) / d.amount() // arrivals whose pods would run, on average
	for range int(running + 0.5) {
		all = append(all, d.earlier()...)
	}
	apart := time.Duration(float64(d.takes) / running)
	for at := d.exponential(apart); at < d.Length-d.Wait; at += d.exponential(apart) {
		all = append(all, d.arrival(at)...)
	}
	return all
}

// earlier is what runs at the start already: its time that is left is distributed as
// a whole one. What would have ended before it comes does not come.
func (d *drawer) earlier() []Task {
	at := time.Duration(d.random.Float64() * float64(d.Fill))
	left := d.exponential(d.takes)
	if left < at {
		return nil
	}
	all := d.arrival(at)
	for i := range all {
		all[i].Takes = rounded(left - at)
	}
	return all
}

func (d *drawer) exponential(mean time.Duration) time.Duration {
	return time.Duration(d.random.ExpFloat64() * float64(mean))
}

// shortest is what a task takes at least.
const shortest = 2 * time.Second

func rounded(takes time.Duration) time.Duration {
	return max(shortest, takes.Round(100*time.Millisecond))
}

// arrival is what comes at one time: one pod, or those of a group, which are alike.
func (d *drawer) arrival(at time.Duration) []Task {
	d.drawn++
	a := d.ask()
	t := Task{
		Name: fmt.Sprintf("%s-%04d", d.name, d.drawn), Kind: d.name, At: at,
		Takes: rounded(d.exponential(d.takes)),
		Cards: a.cards, Memory: a.memory, Cores: a.cores,
		Busy: 0.6 + 0.4*d.random.Float64(),
	}
	if d.pods == 1 {
		return []Task{t}
	}
	t.Group = t.Name
	all := make([]Task, d.pods)
	for i := range all {
		all[i] = t
		all[i].Name = fmt.Sprintf("%s-%d", t.Group, i)
	}
	return all
}

func (d *drawer) ask() ask {
	at := d.random.IntN(100)
	for _, a := range d.asks {
		if at < a.percent {
			return a
		}
		at -= a.percent
	}
	return d.asks[0]
}
