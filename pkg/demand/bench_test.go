package demand

import (
	"fmt"
	"testing"
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

func BenchmarkNote(b *testing.B) {
	l := New()
	r := usual()[0].r
	b.ReportAllocs()
	for b.Loop() {
		l.Note(r)
	}
}
