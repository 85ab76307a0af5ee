package simulate

import "math/rand"

// Stay says how pods come and go over time. Times are counted in the mean lifetime of
// a pod.
type Stay struct {
	// Load is what the pods would hold of all cards if none of them ever waited.
	Load float64
	// Patience is how long a pod waits for room before it is withdrawn.
	Patience float64
	// Settle is how long pods come before any counts, and Length how long they count.
	Settle, Length float64
}

// SteadyStay is the stay that is reported: after three lifetimes 95 % of a cluster's
// growth from nothing is over.
func SteadyStay() Stay { return Stay{Load: 0.95, Patience: 0.2, Settle: 3, Length: 5} }

// counts reports whether a pod that comes then counts.
func (s Stay) counts(at float64) bool { return at >= s.Settle && at < s.Settle+s.Length }

// end is when all that count are placed or withdrawn.
func (s Stay) end() float64 { return s.Settle + s.Length + s.Patience }

// visit is a pod that comes, runs for some time, and ends.
type visit struct {
	Shape
	at    float64
	stays float64 // once it runs
}

// visits draws the pods of a seed: shapes as often as the trace has them, at times that
// depend on nothing, with lifetimes that are as short as they like (both exponential).
func (s Stay) visits(t *Trace, r *rand.Rand) (all []visit) {
	sum := asked(t.Pods)
	if sum == 0 {
		return nil // nothing is asked for, however many come
	}
	rate := s.Load * float64(t.Capacity()) * float64(len(t.Pods)) / float64(sum)
	for at := r.ExpFloat64() / rate; at < s.end(); at += r.ExpFloat64() / rate {
		all = append(all, visit{t.Pods[r.Intn(len(t.Pods))].Shape, at, r.ExpFloat64()})
	}
	return all
}
