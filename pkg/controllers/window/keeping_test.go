package window

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// come has so many of the group's members be there, whatever the target asks for.
func (w *world) come(members int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.feeds, "chat")
	w.members["chat"] = nil
	for range members {
		w.members["chat"] = append(w.members["chat"], w.pod(w.members["chat"]))
	}
}

// After the opening what is kept goes as members come back, one for one; what is left
// after a while is kept no more.
func TestKeptUntilTheyAreBack(t *testing.T) {
	w, c := asleep(t, withHPA(7, 3, 10))
	kept := func(want int) {
		t.Helper()
		got := 0
		if k := w.status("chat").Kept; k != nil {
			got = len(k.Members)
		}
		if got != want {
			t.Errorf("%s: kept for %d, want %d", w.now(), got, want)
		}
	}
	w.come(0)
	w.at(c, opened())
	kept(7)
	w.come(3)
	w.at(c, w.now().Add(retry)) // and not a minute later
	kept(4)
	w.at(c, w.now().Add(retry))
	kept(4)
	w.edit("chat", withReplicas(5)) // the HPA finds 5 enough
	w.at(c, w.now().Add(retry))
	kept(2)
	w.at(c, opened().Add(patience-time.Second))
	kept(2)
	w.at(c, opened().Add(patience+period))
	kept(0)
}

// A target that cannot be read or written when its windows open does not keep cards from
// others for ever, whether the API server refuses it or gives no answer.
func TestKeptForNoTarget(t *testing.T) {
	for name, cause := range map[string]error{
		"refused":   apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "chat", nil),
		"no answer": apierrors.NewInternalError(errors.New("conversion webhook failed")),
	} {
		for _, where := range []string{"read", "replicas"} {
			t.Run(name+" "+where, func(t *testing.T) {
				w, c := asleep(t, scaled(7))
				w.refuse = func(at string) error {
					if at == where {
						return cause
					}
					return nil
				}
				w.run(c, opened().Add(patience-time.Second).Sub(w.now()))
				if k := w.status("chat").Kept; k == nil || len(k.Members) != 7 {
					t.Fatalf("kept right before the end: %+v", k)
				}
				w.run(c, 2*period)
				if k := w.status("chat").Kept; k != nil {
					t.Fatalf("kept for ever: %+v", k)
				}
				w.refuse = func(string) error { return nil }
				w.run(c, 2*period)
				w.expect(t, "chat", scaled(7))
			})
		}
	}
}

// Where windows open earlier than they were to, what is kept is taken back from then on.
func TestKeptFromTheOpening(t *testing.T) {
	w, c := asleep(t, scaled(7))
	w.come(0)
	w.group("chat", func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].To = "23:30" })
	at := w.now().Add(time.Second)
	w.at(c, at)
	if k := w.status("chat").Kept; k == nil || !k.From.Time.Equal(at) || len(k.Members) != 7 {
		t.Fatalf("kept: %+v", k)
	}
	w.at(c, at.Add(patience))
	if k := w.status("chat").Kept; k != nil {
		t.Errorf("kept: %+v", k)
	}
}

// A service that is put to sleep again while it is being restored keeps what its members
// have now; and what those had who have not come back since.
func TestKeptOfTheNextNight(t *testing.T) {
	for name, there := range map[string]int{"all were back": 7, "some were back": 4, "none was": 0} {
		t.Run(name, func(t *testing.T) {
			w, c := asleep(t, withKEDA(7, ""))
			w.come(there)
			w.at(c, opened())
			if r := w.status("chat").Action; r == nil || r.Phase != "Restoring" {
				t.Fatalf("action = %+v", r)
			}
			w.group("chat", func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].From = "10:00" })
			w.at(c, w.now().Add(time.Second))
			k := w.status("chat").Kept
			if k == nil || len(k.Members) != 7 || w.is("chat").Replicas != 0 {
				t.Fatalf("kept: %+v, %d replicas", k, w.is("chat").Replicas)
			}
			of := map[string]bool{}
			for _, m := range k.Members {
				of[m.Node+m.Allocation] = true
			}
			if len(of) != 7 {
				t.Errorf("the cards of %d members are kept: %+v", len(of), k.Members)
			}
		})
	}
}

// Of who has cards that we cannot name nothing is kept: it could not be read again.
func TestNothingKeptOfForeignCards(t *testing.T) {
	w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(2)}).begin()
	c := w.leader()
	w.come(0)
	w.members["chat"] = []gpu.Placement{{Pod: "f", Node: "n0", Foreign: []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 2}}}, placed("p", "n1", "1")}
	w.at(c, start())
	if s := w.status("chat"); s.Members != 2 || s.Cards != 3 {
		t.Errorf("%d members with %d cards", s.Members, s.Cards)
	}
	w.at(c, closed())
	if k := w.status("chat").Kept; k == nil || len(k.Members) != 1 || k.Members[0].UID != "p" {
		t.Errorf("kept: %+v", k)
	}
}
