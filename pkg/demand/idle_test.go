package demand

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Where the mix has one shape, or what comes first makes no difference, all streams
// leave the same idle.
func TestIdleByHand(t *testing.T) {
	memoryOnly := func(m gpu.MiB) gpu.Ask { return gpu.Ask{Count: 1, Memory: m} }
	tests := map[string]struct {
		mix   []wish
		state *State
		want  float64
	}{
		"nothing is left":                   {[]wish{{request(0, whole(1)), 1}}, state(9999), 0},
		"all is used":                       {[]wish{{request(0, whole(1)), 1}}, state(0, 1000, 1000), 0},
		"what is begun is not":              {[]wish{{request(0, whole(1)), 1}}, state(0, 1000, 999), 0.999},
		"four of six":                       {[]wish{{request(0, whole(4)), 1}}, state(0, 1000, 1000, 1000, 1000, 1000, 1000), 2},
		"processors for two":                {[]wish{{request(4000, whole(1)), 1}}, state(11000, 1000, 1000, 1000, 1000), 2},
		"two slices a card":                 {[]wish{{request(0, slice(400)), 1}}, state(0, 1000, 500), 0.2 + 0.1},
		"no request for cards":              {[]wish{{request(500), 1}}, state(0, 1000, 500), 1.5},
		"requests without cards take none":  {[]wish{{request(500), 9}, {request(0, whole(1)), 1}}, state(0, 1000), 0},
		"compute runs out":                  {[]wish{{request(0, gpu.Ask{Count: 1, Memory: 100, Cores: 30}), 1}}, state(0, 1000), 0.1},
		"no compute is asked":               {[]wish{{request(0, memoryOnly(300)), 1}}, state(0, 1000), 0.1},
		"slices on different cards":         {[]wish{{request(0, gpu.Ask{Count: 2, Memory: 600}), 1}}, state(0, 1000, 1000, 1000), 0.4 + 0.4 + 1},
		"several containers, all or none":   {[]wish{{request(0, whole(1), slice(500)), 1}}, state(0, 1000, 1000, 1000, 1000), 1},
		"the container that finds no place": {[]wish{{request(0, whole(1), slice(500)), 1}}, state(0, 1000, 400), 1.4},
		"halves and wholes":                 {[]wish{{request(0, slice(500)), 1}, {request(0, whole(1)), 1}}, state(0, 500, 500), 0},
		"the tightest card first":           {[]wish{{request(0, slice(500)), 1}, {request(0, whole(1)), 0.001}}, state(0, 1000, 500), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := outlook(tc.mix...)
			tc.state.reduce(o.mostCPU)
			if tc.state.n == 0 {
				if got := o.lost(*tc.state); got != 0 {
					t.Errorf("%v is lost of nothing", got)
				}
				return
			}
			if got := o.idle(tc.state); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("idle %v, want %v", got, tc.want)
			}
		})
	}
}

// What fits is taken of the cards of which least is left then.
func TestTheTightestCardIsTaken(t *testing.T) {
	o := outlook(wish{request(0, slice(500)), 3}, wish{request(0, gpu.Ask{Count: 2, Memory: 300, Cores: 30}), 2}, wish{request(0, whole(1)), 1})
	for shape, want := range [][]uint16{
		{1000, 400, 100, 600, 1000}, // of 1000, 400, 600, 600, 1000
		{1000, 100, 300, 600, 1000},
		{0, 400, 600, 600, 1000},
	} {
		s := state(0, 1000, 400, 600, 600, 1000)
		if !place(o.views.Load().all, &o.items[shape], s) {
			t.Fatalf("shape %d finds no place", shape)
		}
		if diff := cmp.Diff(state(0, want...).all(), s.all(), cmp.AllowUnexported(Room{})); diff != "" {
			t.Errorf("shape %d leaves (-want +got):\n%s", shape, diff)
		}
	}
}

// A node may have cards of several kinds.
func TestIdleOfSeveralKinds(t *testing.T) {
	a, b := model("A"), model("B")
	o := newForecast(mixOf(wish{named(request(0, whole(1)), "B"), 1}), Supply{KindOf(&a): 1, KindOf(&b): 1}).outlook(nil)
	var s State
	for _, c := range []gpu.Card{a, b, a} {
		r, ok := o.Room(&c, true, 0, 0)
		if !ok {
			t.Fatal("the kind is not known")
		}
		s.Add(r)
	}
	if got := o.idle(&s); got != 2 {
		t.Errorf("idle %v, want the two that are not B", got)
	}
	// To the next request the two are of no use: F is 2 as well.
	if got := o.lost(s); got != 2+weightFragments*2 {
		t.Errorf("lost %v, want 2.5", got)
	}
}

func TestFragmentsByHand(t *testing.T) {
	mix := []wish{
		{request(1000, slice(500)), 0.5},
		{request(2000, whole(1)), 0.25},
		{request(0), 0.125},
		{request(0, whole(2)), 0.125},
	}
	tests := map[string]struct {
		state *State
		want  float64
	}{
		// 0.125 of 1 to who wants none, and 0.125 of 1 to who wants two.
		"one free card": {state(9000, 1000), 0.25},
		// 0.3 fits nobody; to the whole one 0.6 is no use either.
		"in part":           {state(9000, 1000, 600, 300), 0.5*0.3 + 0.25*0.9 + 0.125*1.9 + 0.125*1.9},
		"no processors":     {state(500, 1000, 1000), 0.5*2 + 0.25*2 + 0.125*2},
		"processors for it": {state(1000, 1000, 1000), 0.25*2 + 0.125*2},
		"two free ones":     {state(2000, 1000, 1000, 400), 0.5*0.4 + 0.25*0.4 + 0.125*2.4 + 0.125*0.4},
		"nothing":           {state(9000), 0},
	}
	o := outlook(mix...)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := o.fragments(tc.state); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("fragments %v, want %v", got, tc.want)
			}
		})
	}
}

// What is popular are the first shapes that come to 95 %, and the shares of these are
// told among themselves.
func TestMostPopular(t *testing.T) {
	mix := mixOf(wish{request(1), 80}, wish{request(2), 14}, wish{request(3), 4}, wish{request(4), 2})
	top := mostPopular(mix)
	if len(top) != 3 || math.Abs(top[0].of-80.0/98) > 1e-9 || math.Abs(top[2].of-4.0/98) > 1e-9 {
		t.Errorf("popular: %+v, want three, of 80, 14 and 4 of 98", top)
	}
}

// To a pod of several containers those cards are of use that any of them fits, if all
// of them find a place.
func TestFragmentsOfSeveralContainers(t *testing.T) {
	o := outlook(wish{request(0, whole(1), slice(500)), 1})
	for _, tc := range []struct {
		state *State
		want  float64
	}{
		{state(0, 1000, 500, 300), 0.3},
		{state(0, 500, 500, 300), 1.3},
		{state(0, 1000, 400), 1.4},
	} {
		if got := o.fragments(tc.state); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("fragments of %v: %v, want %v", tc.state.all(), got, tc.want)
		}
	}
}

// However many shapes there are, F looks at a bounded number: the most popular, whose
// shares come to one.
func TestMostPopularIsBounded(t *testing.T) {
	var wishes []wish
	for i := range mostShapes {
		wishes = append(wishes, wish{request(gpu.MilliCPU(i), whole(1)), 1 + float64(i)})
	}
	top, sum := mostPopular(mixOf(wishes...)), 0.0
	for i, p := range top {
		if sum += p.of; p.shape != i {
			t.Errorf("shape %d at place %d", p.shape, i)
		}
	}
	if len(top) != most || math.Abs(sum-1) > 1e-9 {
		t.Errorf("%d shapes with shares of %v, want %d", len(top), sum, most)
	}
}
