package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// settles is how long what was set has to stay so before it counts as done.
const settles = 45 * time.Second

// TestWindows has services sleep outside their windows and wake as they were, beside
// the real controllers of Deployments and of autoscalers. One is left to a hand
// meanwhile: what was set has to stay for a while first.
func TestWindows(t *testing.T) {
	s := begin(t, defaults)
	s.within(6 * time.Minute)
	s.gauge(7)
	s.must("KEDA's kind", s.Define(s.ctx, filepath.Join("testdata", "scaledobjects.yaml")))
	s.add(cards("hand", 4), cards("pause", 12), cards("scale", 12), cards("stop", 2), cards("keda", 3), cards("contest", 2), cards("missing", 2))
	s.isEditedByHand()
	for _, part := range []struct {
		name string
		play func(*scene)
	}{
		{"pause", (*scene).pauses},
		{"scale", (*scene).scales},
		{"stop", (*scene).stopsForGood},
		{"keda", (*scene).pausesWhatKEDAScales},
		{"contest", (*scene).refusesTheYounger},
		{"missing", (*scene).forgetsWhatIsGone},
		{"faulty", (*scene).refusesFaultyGroups},
		{"hand", (*scene).respectsAHand},
	} {
		s.part(part.name, part.play)
	}
	s.verify()
}

// TestDayAndNight takes examples/day-night.yaml through a day and a night: by day four of
// the service run, at night the Job, and by day the service again.
func TestDayAndNight(t *testing.T) {
	s := begin(t, defaults)
	s.add(cards("day-night", 4))
	example := filepath.Join(s.Root(), "examples", "day-night.yaml")
	s.must("the service", s.ApplyIn(s.ctx, s.ns, example, "TaskGroup", "Deployment", "HorizontalPodAutoscaler"))
	s.opens("chat", always())
	s.eventually("the service to run", func() error { return s.serves("chat", 4) })
	s.eventually("its bounds to be as they are written", func() error { return s.bounds("chat", 2, 8) })
	s.must("the Job", s.ApplyIn(s.ctx, s.ns, example, "Job"))
	s.opens("chat", between(8*time.Hour, 12*time.Hour))
	s.eventually("the service to sleep", func() error { return s.serves("chat", 0) })
	s.eventually("the Job to run", func() error { return s.jobRuns("nightly", 2) })
	s.verify()
	background := metav1.DeletePropagationBackground
	s.must("end the Job", s.Client.BatchV1().Jobs(s.ns).Delete(s.ctx, "nightly", metav1.DeleteOptions{PropagationPolicy: &background}))
	s.opens("chat", always())
	s.eventually("the service to run", func() error { return s.serves("chat", 4) })
	s.check("bounds", s.bounds("chat", 2, 8))
	s.verify()
}

// jobRuns returns an error unless so many pods of the Job run.
func (s *scene) jobRuns(job string, want int) error {
	n := 0
	for _, p := range s.pods() {
		if p.Labels["batch.kubernetes.io/job-name"] == job && p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d of its pods run, want %d", n, want)
	}
	return nil
}

// within gives the test so long.
func (s *scene) within(d time.Duration) {
	ctx, stop := context.WithTimeout(s.T.Context(), d)
	s.Cleanup(stop)
	s.ctx = ctx
}

// offers has a service of so many replicas run, and makes its group.
func (s *scene) offers(name, node string, replicas int32, spec v1alpha1.TaskGroupSpec) {
	s.Helper()
	s.group(name, name, spec)
	s.service(name, node, replicas)
	s.eventually("the service to run", func() error { return s.serves(name, replicas) })
}

// pauses: 7 replicas and an autoscaler of 3..10 are so again after a pause, whatever the
// autoscaler wants meanwhile.
func (s *scene) pauses() {
	s.offers("pause", "pause", 7, pausing(always()))
	s.autoscale("pause", 3, 10)
	s.opens("pause", shut())
	s.eventually("nobody to run", func() error { return s.serves("pause", 0) })
	g := s.becomes("pause", "Paused")
	if diff := cmp.Diff(v1alpha1.TaskGroupScaling{Replicas: 7, MinReplicas: ptr.To[int32](3), MaxReplicas: ptr.To[int32](10)}, g.Status.Action.Before); diff != "" {
		s.Errorf("what is remembered (-want +got):\n%s", diff)
	}
	if g.Status.Kept == nil || len(g.Status.Kept.Members) != 7 || g.Status.Next == nil || !g.Status.Next.Opens || g.Status.Next.Cards != 7 {
		s.Errorf("its cards are not kept for when it wakes: %v, next %v", g.Status.Kept, g.Status.Next)
	}
	s.meanwhile(6*time.Second, "a pause beside an autoscaler", func() error { return s.serves("pause", 0) })
	s.opens("pause", always())
	s.eventually("all to run", func() error { return s.serves("pause", 7) })
	s.becomes("pause", "AlwaysOpen", "")
	s.check("bounds", s.bounds("pause", 3, 10))
	s.eventually("nothing to be kept", func() error {
		if g := s.taskGroup("pause"); g.Status.Kept != nil || g.Status.Members != 7 || g.Status.Cards != 7 || len(g.Finalizers) > 0 {
			return fmt.Errorf("%v, finalizers %v", g.Status, g.Finalizers)
		}
		return nil
	})
	s.check("events", s.hasEvent("pause", "Paused", ""))
}

// scales: the autoscaler wants 7 where the window says 1. A group that is deleted then
// leaves its target as it was.
func (s *scene) scales() {
	spec := pausing(always())
	spec.WindowAction, spec.Replicas = v1alpha1.TaskGroupScale, ptr.To[int32](1)
	s.offers("scale", "scale", 7, spec)
	s.autoscale("scale", 3, 10)
	s.opens("scale", shut())
	s.eventually("one to run", func() error { return s.serves("scale", 1) })
	s.becomes("scale", "Scaled")
	s.meanwhile(6*time.Second, "one replica beside an autoscaler that wants 7", func() error { return s.serves("scale", 1) })
	s.check("bounds", s.bounds("scale", 1, 1))
	s.edit("scale", func(spec *v1alpha1.TaskGroupSpec) { spec.Replicas = ptr.To[int32](2) })
	s.eventually("two to run", func() error { return s.serves("scale", 2) })
	s.deleteGroup("scale")
	s.leaves("scale")
	s.eventually("all to run", func() error { return s.serves("scale", 7) })
	s.check("bounds", s.bounds("scale", 3, 10))
}

// stopsForGood: nothing brings back what was stopped.
func (s *scene) stopsForGood() {
	spec := pausing(always())
	spec.WindowAction = v1alpha1.TaskGroupStop
	s.offers("stop", "stop", 2, spec)
	s.opens("stop", shut())
	s.eventually("nobody to run", func() error { return s.serves("stop", 0) })
	if g := s.becomes("stop", "Stopped"); g.Status.Kept != nil {
		s.Errorf("cards are kept for who does not come back: %v", g.Status.Kept)
	}
	s.opens("stop", always())
	s.becomes("stop", "StayedStopped")
	s.meanwhile(3*time.Second, "what was stopped", func() error { return s.serves("stop", 0) })
	s.deleteGroup("stop")
	s.leaves("stop")
	s.check("what was stopped", s.serves("stop", 0))
}

// pausesWhatKEDAScales: KEDA is told to keep still, and is as it was afterwards.
func (s *scene) pausesWhatKEDAScales() {
	for name, was := range map[string]string{"keda-free": "", "keda-set": "1"} {
		annotations := map[string]any{"mine": "yes"}
		if was != "" {
			annotations[pausedKey] = was
		}
		s.scaledObject(name, annotations)
		s.offers(name, "keda", 1, pausing(always()))
		s.opens(name, shut())
		s.eventually("nobody to run", func() error { return s.serves(name, 0) })
		s.eventually("KEDA to keep still", func() error { return s.pausedAt(name, "0") })
		s.opens(name, always())
		s.eventually("it to run", func() error { return s.serves(name, 1) })
		s.eventually("KEDA to be as it was", func() error { return s.pausedAt(name, was) })
	}
}

// refusesTheYounger: of two groups that have one target the older rules it.
func (s *scene) refusesTheYounger() {
	s.offers("contest", "contest", 2, pausing(shut()))
	s.meanwhile(1100*time.Millisecond, "the clock of creation", func() error { return nil }) // it counts seconds
	s.group("younger", "contest", pausing(between(-time.Hour, 2*time.Hour)))
	s.disturbed("younger", "TargetTaken")
	s.eventually("nobody to run", func() error { return s.serves("contest", 0) })
	s.deleteGroup("younger")
	s.leaves("younger")
	s.check("the older's pause", s.serves("contest", 0))
}

// forgetsWhatIsGone: a target that is deleted while it sleeps is not waited for, and its
// group can go.
func (s *scene) forgetsWhatIsGone() {
	s.offers("missing", "missing", 2, pausing(always()))
	s.opens("missing", shut())
	s.eventually("nobody to run", func() error { return s.serves("missing", 0) })
	s.must("delete deployment", s.Client.AppsV1().Deployments(s.ns).Delete(s.ctx, "missing", metav1.DeleteOptions{}))
	s.edit("missing", func(spec *v1alpha1.TaskGroupSpec) { spec.Windows[0].TimeZone = "Europe/Berlin" }) // has it looked at now
	s.disturbed("missing", "TargetMissing")
	s.deleteGroup("missing")
	s.leaves("missing")
}

// refusesFaultyGroups: what can be seen to be wrong is refused by the API server, by its
// field; what cannot is said by the group, and nothing is done.
func (s *scene) refusesFaultyGroups() {
	three := ptr.To[int32](3)
	for field, fault := range map[string]func(*v1alpha1.TaskGroupSpec){
		"spec.scaleTargetRef": func(*v1alpha1.TaskGroupSpec) {},
		"spec.windowAction":   func(spec *v1alpha1.TaskGroupSpec) { spec.WindowAction = "" },
		"spec.replicas":       func(spec *v1alpha1.TaskGroupSpec) { spec.Replicas = three },
		"spec.windows[0].from": func(spec *v1alpha1.TaskGroupSpec) {
			spec.Windows = []v1alpha1.TaskGroupWindow{{From: "25:00", To: "26:00"}}
		},
		"spec.windows[0]": func(spec *v1alpha1.TaskGroupSpec) {
			spec.Windows = []v1alpha1.TaskGroupWindow{{From: "08:00", To: "09:00", Start: "0 8 * * *", End: "0 9 * * *"}}
		},
		"spec.type": func(spec *v1alpha1.TaskGroupSpec) { spec.Type = "training" },
	} {
		spec := pausing(always())
		if field != "spec.scaleTargetRef" {
			spec.ScaleTargetRef = &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "none"}
		}
		fault(&spec)
		_, err := s.groups().Create(s.ctx, &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Name: "faulty"}, Spec: spec}, metav1.CreateOptions{})
		s.names("a faulty group", err, field)
	}
	spec := pausing(v1alpha1.TaskGroupWindow{Start: "0 8 * * *", End: "every other day", TimeZone: "Europe/Nowhere"})
	s.group("faulty", "none", spec)
	s.eventually("the group to name its faults", func() error {
		for _, c := range s.taskGroup("faulty").Status.Conditions {
			if c.Type == v1alpha1.TaskGroupAccepted && c.Status == metav1.ConditionFalse {
				return missing(c.Message, "windows[0].end", "windows[0].timeZone")
			}
		}
		return fmt.Errorf("it does not: %v", s.taskGroup("faulty").Status)
	})
}

// isEditedByHand has a service sleep, of which somebody will want two to run.
func (s *scene) isEditedByHand() {
	s.offers("hand", "hand", 3, pausing(always()))
	s.opens("hand", shut())
	s.eventually("nobody to run", func() error { return s.serves("hand", 0) })
}

// respectsAHand: who scales by hand what sleeps is not fought, and it stays so when the
// window opens.
func (s *scene) respectsAHand() {
	s.within(2*settles + time.Minute)
	s.becomes("hand", "Paused", "Acted")
	s.scale("hand", 2)
	s.edit("hand", func(spec *v1alpha1.TaskGroupSpec) { spec.Windows[0].TimeZone = "Etc/UTC" }) // has it looked at now
	s.disturbed("hand", "EditedByHand")
	s.eventually("two to run", func() error { return s.serves("hand", 2) })
	s.meanwhile(3*time.Second, "what was scaled by hand", func() error { return s.serves("hand", 2) })
	s.opens("hand", always())
	s.becomes("hand", "AlwaysOpen", "")
	s.check("what was scaled by hand", s.serves("hand", 2))
}

// names wants an error that names the field.
func (s *scene) names(what string, err error, field string) {
	s.Helper()
	if err == nil {
		s.Errorf("%s is let through, field %s", what, field)
		return
	}
	s.check(what, missing(err.Error(), field))
}

// missing returns an error unless the text has all the words.
func missing(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("%q does not say %q", text, w)
		}
	}
	return nil
}
