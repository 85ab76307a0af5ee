package preempt

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// lead has the leader alone do its work: nobody else sees anything.
func (s *stage) lead() { s.c.round(klog.NewContext(context.Background(), klog.Logger{})) }

// Somebody else has written a moment ago: nothing is done on what is out of date.
func TestNothingIsDoneUnwritten(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	s.rounds(1)
	s.c.Plans = overtaken{planServer{s.world}}
	s.rounds(5)
	s.want("not written", "high on n1 Planned: n1-0 Chosen")
	if pod := s.pods["ns/n1-0"]; len(s.evicted) > 0 || pod.Annotations[codec.AnnotationPreemptedBy] != "" {
		t.Errorf("evicted %v, annotations %v", s.evicted, pod.Annotations)
	}
}

// overtaken has each write come too late.
type overtaken struct{ planServer }

func (o overtaken) UpdateStatus(_ context.Context, p *v1alpha1.Preemption, _ metav1.UpdateOptions) (*v1alpha1.Preemption, error) {
	return nil, conflict("preemptions", p.Name)
}

// The room is given back when a preemption ends in vain, and before that is seen.
func TestTheRoomIsGivenBack(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1", labelled("app", "a"))
	high := gpu.PodID(s.pod("high", 10, 1).UID)
	s.rounds(1)
	if _, has := s.Hold(high); !has {
		t.Fatal("no room is kept for a plan")
	}
	s.budget["a"] = 0
	s.lead()
	if _, has := s.Hold(high); has {
		t.Error("room is kept though the plan is given up")
	}
}

// A claim that has been lost is made again, and nobody is asked to go without one.
func TestAClaimIsMadeAgain(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	high := gpu.PodID(s.pod("high", 10, 1).UID)
	s.rounds(2)
	delete(s.holds, high)
	s.lead()
	if h, has := s.Hold(high); !has || h.State != claimed {
		t.Errorf("no claim: %+v", h)
	}
	s.want("it goes on", "high on n1 Draining: n1-0 Evicting")

	delete(s.holds, high)
	s.holds["stranger"] = ledger.Hold{Placement: gpu.Placement{Pod: "stranger", Node: "n1", CPU: 4}, State: ledger.Bound}
	s.lead()
	s.see()
	s.want("given up: there is no room to claim", "high on n1 RolledBack: n1-0 Evicting")
}

// What is bound elsewhere, or is being, is not claimed for.
func TestAPodThatHoldsElsewhere(t *testing.T) {
	s := newStage(t, "n1", "n2")
	s.fill("n1")
	s.pod("other", 20, 4, on("n2"))
	high := s.pod("high", 10, 1)
	s.rounds(2)
	s.holds[gpu.PodID(high.UID)] = ledger.Hold{Placement: placement(high, "n2"), State: ledger.Held}
	s.lead()
	s.see()
	s.want("given up", "high on n1 RolledBack: n1-0 Evicting")
	if h, _ := s.Hold(gpu.PodID(high.UID)); h.State != ledger.Held {
		t.Errorf("what it holds is %v", h.State)
	}
}

// The plan of a round ago, which has not been seen yet, is not made once more.
func TestAPlanIsNotMadeTwice(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high1", 10, 1, refused)
	s.see()
	for range 4 {
		s.now = s.now.Add(period)
		s.lead()
	}
	if len(s.plans) != 1 {
		t.Errorf("%d plans for one pod", len(s.plans))
	}
	s.see()
	s.want("it has been begun all the same", "high1 on n1 Draining: n1-0 Evicting")
}

// Who is not to be ended any more when its turn comes is left alone, whatever the plan
// says.
func TestVictimsAreAskedAboutLast(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	s.rounds(1)
	s.edit(s.pods["ns/n1-0"], noted(codec.AnnotationTaskType, string(gpu.Training)))
	s.lead()
	s.see()
	s.want("given up", "high on n1 RolledBack: n1-0 Spared")
	if len(s.evicted) > 0 {
		t.Errorf("evicted %v", s.evicted)
	}
}
