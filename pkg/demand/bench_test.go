package demand

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// What is asked most often: what stays idle of a state that is not remembered.
func BenchmarkIdle(b *testing.B) {
	o := outlook(usual()...)
	for name, s := range map[string]*State{
		"free":        state(96000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000),
		"in part":     state(40000, 1000, 1000, 530, 190),
		"slices":      state(60000, 190, 190, 530, 530, 350, 680, 190, 60),
		"two cards":   state(90000, 1000, 530),
		"little left": state(3500, 190, 190, 60),
	} {
		b.Run(name, func(b *testing.B) {
			s.reduce(o.mostCPU)
			b.ReportAllocs()
			for b.Loop() {
				o.idle(s)
			}
		})
		b.Run(name+", F", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.fragments(s)
			}
		})
	}
}

func BenchmarkCost(b *testing.B) {
	for name, r := range map[string]wish{"whole": usual()[1], "slice": usual()[0], "eight": usual()[15], "no card": usual()[5]} {
		for _, warm := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s, warm %v", name, warm), func(b *testing.B) {
				o := outlook(usual()...)
				w := o.Of(r.r)
				b.ReportAllocs()
				for b.Loop() {
					if !warm {
						o.worths = memo{}
					}
					w.Cost(state(96000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000))
				}
			})
		}
	}
}

func BenchmarkOutlook(b *testing.B) {
	c := model("A")
	for b.Loop() {
		newForecast(mixOf(usual()...), Supply{KindOf(&c): 100})
	}
}

// What somebody can bring about who asks for as much that is different as he can: an
// outlook, which is made beside the decisions, and what a place costs in it on cards
// that are all partly used.
func BenchmarkManyShapes(b *testing.B) {
	for _, containers := range []int{1, 4} {
		mix := mixOf(many(mostShapes, containers, 8)...)
		supply := Supply{}
		for k := range 4 {
			c := model("A")
			c.Usable -= gpu.MiB(100 * k)
			supply[KindOf(&c)] = 100
		}
		b.Run(fmt.Sprintf("outlook, containers %d", containers), func(b *testing.B) {
			for b.Loop() {
				newForecast(mix, supply)
			}
		})
		o := newForecast(mix, supply).outlook(nil)
		for _, cards := range []int{8, 16, 64} {
			s := state(96000)
			for i := range cards {
				s.Add(Room{memory: uint16(300 + 37*i%700), cores: uint16(300 + 59*i%700), kind: uint16(i % 4)})
			}
			w := o.Of(many(1, containers, 8)[0].r)
			b.Run(fmt.Sprintf("cost, containers %d, cards %d", containers, cards), func(b *testing.B) {
				for b.Loop() {
					o.worths = memo{}
					w.Cost(s)
				}
			})
		}
	}
}

// many is as many shapes as there may be, of so many containers and devices at most.
func many(n, containers, devices int) (wishes []wish) {
	random := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		asks := make([]gpu.Ask, 1+random.IntN(containers))
		for k := range asks {
			asks[k] = gpu.Ask{Count: 1 + random.IntN(devices), Memory: gpu.MiB(1 + random.IntN(600)), Cores: gpu.Cores(random.IntN(60))}
		}
		wishes = append(wishes, wish{request(gpu.MilliCPU(i), asks...), 1 + float64(random.IntN(9))})
	}
	return wishes
}

func BenchmarkNote(b *testing.B) {
	l := New()
	r := usual()[0].r
	b.ReportAllocs()
	for b.Loop() {
		l.Note(r)
	}
}
