package preempt

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Only who was asked to go has been ended for somebody.
func TestHistory(t *testing.T) {
	p := preemption(v1alpha1.PreemptionBound, v1alpha1.VictimEvicting, v1alpha1.VictimSpared, v1alpha1.VictimSucceeded, v1alpha1.VictimRefused, v1alpha1.VictimGone)
	p.Spec.Preemptor.Lineage = "high"
	for i := range p.Spec.Victims {
		p.Spec.Victims[i].Lineage, p.Spec.Victims[i].Tenant = p.Spec.Victims[i].Name, "red"
	}
	var want []preempt.Eviction
	for _, of := range []string{"v0", "v2", "v3", "v4"} {
		want = append(want, preempt.Eviction{By: "high", Of: of, Tenant: "red", At: noon.Add(-time.Minute)})
	}
	all := []*v1alpha1.Preemption{p, preemption("", v1alpha1.VictimChosen)}
	if diff := cmp.Diff(want, history(all)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// Who was kept by a budget is left alone for a while; who was spared is not.
func TestBlockedAreRemembered(t *testing.T) {
	p := preemption(v1alpha1.PreemptionRolledBack, v1alpha1.VictimSpared, v1alpha1.VictimSpared)
	p.Status.Victims[0].Message = blockedText
	if diff := cmp.Diff(map[gpu.PodID]time.Time{"u0": noon.Add(blockedTime - time.Second)}, blocked([]*v1alpha1.Preemption{p})); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

// The more has come to nothing, the longer nothing is tried.
func TestRest(t *testing.T) {
	const back, expired, bound = v1alpha1.PreemptionRolledBack, v1alpha1.PreemptionExpired, v1alpha1.PreemptionBound
	for name, tc := range map[string]struct {
		ended []v1alpha1.PreemptionPhase
		want  time.Duration
	}{
		"went well":           {[]v1alpha1.PreemptionPhase{bound}, 0},
		"rolled back":         {[]v1alpha1.PreemptionPhase{back}, time.Second},
		"thrice":              {[]v1alpha1.PreemptionPhase{back, back, back}, 4 * time.Second},
		"very often":          {make40(back), 5 * time.Minute},
		"in vain":             {[]v1alpha1.PreemptionPhase{expired}, 10 * time.Minute},
		"in vain, and again":  {[]v1alpha1.PreemptionPhase{expired, back, expired}, 20 * time.Minute},
		"in vain, very often": {make40(expired), 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*v1alpha1.Preemption
			for _, phase := range tc.ended {
				all = append(all, preemption(phase))
			}
			if got := restOf(all)["uh"].Sub(noon.Add(-time.Second)); got != tc.want {
				t.Errorf("it rests for %v, want %v", got, tc.want)
			}
		})
	}
}

func make40(phase v1alpha1.PreemptionPhase) (all []v1alpha1.PreemptionPhase) {
	for range 40 {
		all = append(all, phase)
	}
	return all
}

// A Job is not resumed while pods of it are still being ended.
func TestAJobIsResumedAsAWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		states []v1alpha1.VictimState
		want   bool
	}{
		"all have gone":         {[]v1alpha1.VictimState{v1alpha1.VictimGone, v1alpha1.VictimSpared}, true},
		"one is still going":    {[]v1alpha1.VictimState{v1alpha1.VictimGone, v1alpha1.VictimEvicting}, false},
		"one of another is too": {[]v1alpha1.VictimState{v1alpha1.VictimGone, v1alpha1.VictimGone, v1alpha1.VictimEvicting}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := preemption(v1alpha1.PreemptionBound, tc.states...)
			for i, owner := range []types.UID{"job", "job", "another"}[:len(tc.states)] {
				p.Spec.Victims[i].Owner = &metav1.OwnerReference{UID: owner}
			}
			if got := allGone(p, "job"); got != tc.want {
				t.Errorf("allGone = %v, want %v", got, tc.want)
			}
		})
	}
}
