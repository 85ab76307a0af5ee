package engine

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestDecisions(t *testing.T) {
	var d decisions
	all := []Scored{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}, {Node: "n4"}}
	d.filtered("a", 4, 9)
	d.scored("a", all, []int{1, 2, 0, 3})
	d.scored("a", all, []int{2, 0, 3, 1}) // asked again
	want := Decision{Feasible: 4, Asked: 9, Best: []Scored{{Node: "n3"}, {Node: "n1"}, {Node: "n4"}}}
	if diff := cmp.Diff(want, d.take("a")); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Decision{}, d.take("a")); diff != "" {
		t.Errorf("taken twice (-want +got):\n%s", diff)
	}
}

// What was found out before does not stand beside what is found out now.
func TestDecisionsAreReplaced(t *testing.T) {
	var d decisions
	d.filtered("a", 4, 9)
	d.scored("a", []Scored{{Node: "n1"}}, []int{0})
	d.filtered("a", 1, 9)
	if diff := cmp.Diff(Decision{Feasible: 1, Asked: 9}, d.take("a")); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

// Pods that are filtered and never bound, and pods that are bound, leave no
// memory behind.
func TestDecisionsAreBounded(t *testing.T) {
	var d decisions
	for i := range 3 * mostDecisions {
		id := gpu.PodID(fmt.Sprintf("p%d", i))
		d.filtered(id, 1, 1)
		d.filtered(id, 1, 1)
		if i%3 == 0 {
			d.take(id)
		}
		if len(d.byPod) > mostDecisions || len(d.order) > mostDecisions {
			t.Fatalf("%d decisions, %d in order", len(d.byPod), len(d.order))
		}
	}
	if got := d.take(gpu.PodID(fmt.Sprintf("p%d", 3*mostDecisions-1))); got.Feasible != 1 {
		t.Error("the latest is forgotten")
	}
	if got := d.take("p1"); got.Feasible != 0 {
		t.Error("the oldest is remembered")
	}
}

func TestDecisionsAreSafe(t *testing.T) {
	var d decisions
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 500 {
				id := gpu.PodID(fmt.Sprintf("p%d", (i+j)%50))
				d.filtered(id, 1, 1)
				d.scored(id, []Scored{{Node: "n1"}}, []int{0})
				d.take(id)
			}
		})
	}
	all.Wait()
}

// A pod that is decided about anew after it was bound (its Binding came to
// nothing) is as young as its new decision.
func TestDecisionsForgetWhatIsTaken(t *testing.T) {
	var d decisions
	d.filtered("again", 1, 1)
	d.take("again")
	for i := range mostDecisions - 1 {
		d.filtered(gpu.PodID(fmt.Sprintf("p%d", i)), 1, 1)
	}
	d.filtered("again", 2, 2)
	d.filtered("one more", 1, 1)
	if got := d.take("again"); got.Feasible != 2 {
		t.Error("the decision is forgotten for an older one of the same pod")
	}
}
