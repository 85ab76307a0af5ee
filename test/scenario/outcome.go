package scenario

import (
	"maps"
	"slices"
	"time"
)

// Outcome is what one run came to.
type Outcome struct {
	Setup string
	Seed  uint64
	// Bound counts, by kind of task, those that counted: how many there were, and
	// how many of them had a node in time.
	Kinds map[string]Count
	// Pairs are those of pods of one group that both had a node in time: all, and
	// those in one rack. Members are those pods, and those in the rack in which
	// most of their group are.
	Pairs, Members Count
	// Node is the highest mean temperature of a node's cards, Card the highest of a
	// card; Throttled how many card-minutes were above that at which cards slow down.
	Node, Card float64
	Throttled  float64
	// Seconds is the median time from the creation of a slice's pod until it was
	// bound. Slices find room nearly always: more than a second or two says that the
	// machine was too busy, and the other figures little.
	Seconds float64
	Held    float64 // the cards of which at least a part was held, as a share of all, on average
	Wrong   []string
}

// Count is how many of all.
type Count struct{ Of, All int }

func (c Count) plus(d Count) Count { return Count{c.Of + d.Of, c.All + d.All} }

// Percent is 0 of nothing.
func (c Count) Percent() float64 {
	if c.All == 0 {
		return 0
	}
	return 100 * float64(c.Of) / float64(c.All)
}

// Whole is of all tasks that asked for whole cards.
func (o *Outcome) Whole() Count {
	var sum Count
	for _, k := range slices.Sorted(maps.Keys(o.Kinds)) {
		if k != "slice" {
			sum = sum.plus(o.Kinds[k])
		}
	}
	return sum
}

// inTime reports whether the task had a node before it was to be withdrawn.
func (f *fate) inTime(wait time.Duration) bool {
	return !f.bound.IsZero() && f.bound.Sub(f.asked) <= wait
}

// Count sums up what became of the tasks that came after filling.
func (t *Tally) Count(p Plan, o *Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Kinds = map[string]Count{}
	racks := map[string]map[int]int{} // group -> rack -> pods
	var waits []float64               // of slices
	for _, name := range slices.Sorted(maps.Keys(t.fates)) {
		f := t.fates[name]
		if f.task.At < p.Fill {
			continue
		}
		one := Count{All: 1}
		if f.inTime(p.Wait) {
			one.Of = 1
			if !f.task.Whole() {
				waits = append(waits, f.bound.Sub(f.asked).Seconds())
			}
			if g := f.task.Group; g != "" {
				if racks[g] == nil {
					racks[g] = map[int]int{}
				}
				racks[g][rackOf(f.node)]++
			}
		}
		o.Kinds[f.task.Kind] = o.Kinds[f.task.Kind].plus(one)
	}
	o.Seconds = median(waits)
	for _, in := range racks {
		pairs, members := together(in)
		o.Pairs, o.Members = o.Pairs.plus(pairs), o.Members.plus(members)
	}
}

// together counts the pairs of a group that are in one rack, and the pods in the
// rack where most are. A pod by itself is near nobody, and counts for nothing.
func together(in map[int]int) (pairs, members Count) {
	all, most := 0, 0
	for _, n := range in {
		all += n
		most = max(most, n)
		pairs.Of += n * (n - 1) / 2
	}
	if all < 2 {
		return Count{}, Count{}
	}
	pairs.All = all * (all - 1) / 2
	return pairs, Count{most, all}
}
