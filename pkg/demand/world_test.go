package demand

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// model is a card of 1,000 MiB: a thousandth is a MiB.
func model(name string) gpu.Card {
	return gpu.Card{
		Vendor: gpu.Nvidia, Model: name, Memory: 1000, Usable: 1000, Cores: 100, UsableCores: 100,
		Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}
}

func whole(n int) gpu.Ask { return gpu.Ask{Count: n, Whole: true} }

// slice takes as much of both.
func slice(thousandths gpu.MiB) gpu.Ask {
	return gpu.Ask{Count: 1, Memory: thousandths, Cores: gpu.Cores(thousandths / 10)}
}

func request(cpu gpu.MilliCPU, asks ...gpu.Ask) *gpu.Request {
	return &gpu.Request{CPU: cpu, Asks: asks, NUMA: gpu.NoNUMA}
}

func named(r *gpu.Request, models ...string) *gpu.Request {
	r.Models = models
	return r
}

// wish is a request with its weight in a mix.
type wish struct {
	r      *gpu.Request
	weight float64
}

func mixOf(wishes ...wish) (mix []*weighted) {
	for _, w := range wishes {
		s := shapeOf(w.r)
		mix = append(mix, &weighted{shape: s, key: s.key(), weight: w.weight})
	}
	slices.SortFunc(mix, heavier)
	return mix
}

// outlook is one on cards of one model.
func outlook(wishes ...wish) *Outlook {
	c := model("A")
	return newForecast(mixOf(wishes...), Supply{KindOf(&c): 100}).outlook(nil)
}

// usual is like the mix of the cluster of openb.
func usual() []wish {
	return []wish{
		{request(3200, slice(810)), 13},
		{request(11300, whole(1)), 11},
		{request(11400, whole(1)), 8},
		{request(3200, whole(1)), 6},
		{request(11900, slice(470)), 5},
		{request(12500), 5},
		{request(8000, slice(470)), 4},
		{request(12000, whole(1)), 4},
		{request(4000, slice(320)), 3},
		{request(6000, slice(650)), 3},
		{request(4000, slice(230)), 2},
		{request(6000, slice(160)), 1},
		{request(4000, slice(50)), 0.1},
		{request(23000, whole(2)), 0.2},
		{request(46000, whole(4)), 0.2},
		{request(88000, whole(8)), 0.6},
	}
}

// state is one of a node with cards of the first kind of which as much is left.
func state(cpu gpu.MilliCPU, left ...uint16) *State {
	s := &State{cpu: cpu}
	for _, l := range left {
		s.Add(Room{memory: l, cores: l})
	}
	return s
}

// anyState is one of up to eight cards that are in part used.
func anyState(random *rand.Rand) *State {
	s := &State{cpu: gpu.MilliCPU(random.IntN(96001))}
	for range random.IntN(9) {
		r := Room{memory: full, cores: full}
		if random.IntN(3) > 0 {
			r.memory, r.cores = uint16(random.IntN(full)), uint16(random.IntN(full))
		}
		s.Add(r)
	}
	return s
}

// fmtShape tells the shapes of a test apart.
func fmtShape(w *weighted) string { return fmt.Sprint(int(w.cpu), w.asks[0].Count, w.models) }
