package simulate

import (
	"math/rand"
	"slices"
)

// overload is how much comes in the end, as a part of what there is.
const overload = 1.3

// Arrivals are the pods of a trace in the order in which they come, to nodes in the
// order in which ties are broken.
type Arrivals struct {
	Pods []Pod
	Rank []int // by node, in the order of the trace; each number once
}

// Arrive draws the arrivals of a seed: all pods in random order, less some or with
// some drawn again, until 1.3 times what all cards have is asked for. It does what
// the experiment that was published does, number by number.
func Arrive(t *Trace, seed int64) Arrivals {
	r := rand.New(rand.NewSource(seed))
	r.Int() // the experiment draws one for its log
	pods := slices.Clone(t.Pods)
	r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	most := overload * float64(t.Capacity())
	if total := asked(pods); float64(total) > most {
		pods = thin(r, pods, total, most)
	} else {
		pods = fill(r, pods, t.Pods, total, most)
	}
	return Arrivals{Pods: pods, Rank: r.Perm(len(t.Nodes))}
}

func asked(pods []Pod) (sum int) {
	for i := range pods {
		sum += pods[i].Demand()
	}
	return sum
}

// thin takes pods out until no more than that is asked for.
func thin(r *rand.Rand, pods []Pod, total int, most float64) []Pod {
	for float64(total) > most {
		i := r.Intn(len(pods))
		total -= pods[i].Demand()
		pods = slices.Delete(pods, i, i+1)
	}
	return pods
}

// fill appends pods drawn from the trace. The first one that would be too much ends
// it; of one with several cards a single one counts for that, as was published.
func fill(r *rand.Rand, pods, from []Pod, total int, most float64) []Pod {
	if asked(from) == 0 {
		return pods // it would never end
	}
	for {
		p := from[r.Intn(len(from))]
		if float64(total+p.Milli) > most {
			return pods
		}
		total += p.Demand()
		pods = append(pods, p)
	}
}
