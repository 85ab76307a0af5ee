package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// What is done about one pod, in the course of three hours.
func TestOnePod(t *testing.T) {
	for name, tc := range map[string]struct {
		enforced bool
		none     bool // there is no default
		change   []func(*corev1.Pod)
		done     []string
		told     []string
	}{
		"by its own word": {false, false, []func(*corev1.Pod){may("1h")}, []string{"deadline p 3600"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"longer than the default, by its own word": {true, false, []func(*corev1.Pod){may("150m")}, []string{"deadline p 9000"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"longer than it is looked at": {true, false, []func(*corev1.Pod){may("4h")}, nil, nil},
		"in whole seconds":            {false, false, []func(*corev1.Pod){may("3600.9s")}, []string{"deadline p 3600"}, []string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"a moment":                    {false, false, []func(*corev1.Pod){may("1ms")}, []string{"deadline p 1"}, []string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"for ever":                    {false, false, []func(*corev1.Pod){may("2562047h")}, nil, nil},
		"by the default":              {false, false, nil, nil, []string{"Pod TaskTimeoutExceeded"}},
		"by the default, enforced":    {true, false, nil, []string{"deadline p 7200"}, []string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"no default":                  {true, true, nil, nil, nil},
		"inference":                   {true, false, []func(*corev1.Pod){may("1h"), noted(codec.AnnotationTaskType, "inference")}, nil, nil},
		"of others":                   {true, false, []func(*corev1.Pod){may("1h"), func(p *corev1.Pod) { p.Labels = nil }}, nil, nil},
		"a mirror":                    {true, false, []func(*corev1.Pod){may("1h"), noted(corev1.MirrorPodAnnotationKey, "x")}, nil, nil},
		"it has not begun":            {true, false, []func(*corev1.Pod){may("1h"), func(p *corev1.Pod) { p.Status.StartTime = nil }}, nil, nil},
		"it has finished":             {true, false, []func(*corev1.Pod){may("1h"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }}, nil, nil},
		"it has a deadline":           {false, false, []func(*corev1.Pod){may("1h"), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1800)) }}, nil, nil},
		"it has a later deadline": {false, false, []func(*corev1.Pod){may("1h"), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(9000)) }},
			[]string{"deadline p 3600"}, []string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"of a ReplicaSet": {false, false, []func(*corev1.Pod){may("1h"), ownedBy("apps/v1", "ReplicaSet", "rs")}, []string{"deadline p 3600"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"of a Job of another API": {false, false, []func(*corev1.Pod){may("1h"), ownedBy("kubeflow.org/v1", "Job", "train")}, []string{"deadline p 3600"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"of a Job": {false, false, []func(*corev1.Pod){may("1h"), ofJob("train")}, []string{"suspend train"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded", "Job MaxRuntimeExceeded"}},
		"of a Job, by the default": {false, false, []func(*corev1.Pod){ofJob("train")}, nil, []string{"Pod TaskTimeoutExceeded"}},
		"of a Job, by the default, enforced": {true, false, []func(*corev1.Pod){ofJob("train")}, []string{"suspend train"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded", "Job MaxRuntimeExceeded"}},
		"of a Job that is gone": {false, false, []func(*corev1.Pod){may("1h"), ofJob("other")}, []string{"deadline p 3600"}, []string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
		"of a Job of a version that there is not": {false, false, []func(*corev1.Pod){may("1h"), ownedBy("batch/v9", "Job", "other")}, []string{"deadline p 3600"},
			[]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.c.Enforced = tc.enforced
			if tc.none {
				w.c.Default = 0
			}
			w.job("train")
			w.pod("p", tc.change...)
			w.rounds(int(3 * time.Hour / period))
			w.want(t, "in three hours", tc.done...)
			if name == "it has a deadline" { // which its kubelet ends it by, before it is warned
				return
			}
			if diff := cmp.Diff(tc.told, w.reasons()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if w.jobs["ns/train"].Annotations["of"] != "its user" {
				t.Error("the annotations of the Job are gone")
			}
		})
	}
}

// When it is warned, told and ended.
func TestWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		limit      string
		warn, ends time.Duration
	}{
		"a tenth before":            {"100m", 90 * time.Minute, 100 * time.Minute},
		"ten minutes before":        {"10h", 590 * time.Minute, 10 * time.Hour},
		"a minute":                  {"1m", 55 * time.Second, time.Minute}, // 54 s, which no round is at
		"less than between rounds":  {"3s", 5 * time.Second, 5 * time.Second},
		"a tenth that is no second": {"5s", 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod("p", may(tc.limit))
			var warned, ended time.Duration
			for ended == 0 && w.now.Before(start().Add(11*time.Hour)) {
				w.rounds(1)
				if len(w.told) > 0 && warned == 0 {
					warned = w.now.Sub(start())
				}
				if len(w.done) > 0 {
					ended = w.now.Sub(start())
				}
			}
			if warned != tc.warn || ended != tc.ends {
				t.Errorf("warned after %s and ended after %s, want %s and %s", warned, ended, tc.warn, tc.ends)
			}
		})
	}
}

// What is told.
func TestWhatIsTold(t *testing.T) {
	w := newWorld()
	w.job("train")
	w.pod("a", may("1h"), ofJob("train"))
	w.pod("b", may("90m"))
	w.pod("c")
	w.rounds(int(3 * time.Hour / period))
	want := []string{
		"Pod ns/a MaxRuntimeNear: is ended at 2026-11-30T13:00:00Z, after its max-runtime of 1h: its Job is suspended then; a pod without a Job is stopped",
		"Pod ns/a MaxRuntimeExceeded: has run for its max-runtime of 1h, until 2026-11-30T13:00:00Z: its Job train is suspended",
		"Job ns/train MaxRuntimeExceeded: suspended, for its pod a has run for its max-runtime of 1h; when it is resumed, the time of its new pods counts anew",
		"Pod ns/b MaxRuntimeNear: is ended at 2026-11-30T13:30:00Z, after its max-runtime of 1h30m: its Job is suspended then; a pod without a Job is stopped",
		"Pod ns/b MaxRuntimeExceeded: has run for its max-runtime of 1h30m, until 2026-11-30T13:30:00Z: it is stopped",
		"Pod ns/c TaskTimeoutExceeded: runs for longer than the default of 2h (defaultTaskTimeout); nothing ends it: heteroflow.io/max-runtime on a pod says how long it may run",
	}
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[metrics.RuntimeAction]int{metrics.RuntimeWarned: 2, metrics.RuntimeSuspended: 1, metrics.RuntimeStopped: 1, metrics.RuntimeReported: 1}, w.counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		2 * time.Hour: "2h", 90 * time.Minute: "1h30m", 20 * time.Minute: "20m", 10 * time.Second: "10s", 100 * time.Second: "1m40s",
		10 * time.Hour: "10h", time.Hour + 5*time.Second: "1h0m5s", 1500 * time.Millisecond: "1.5s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%s) = %s, want %s", d, got, want)
		}
	}
}

// A Job with many pods is suspended once, and when it is resumed its new pods run for as
// long as the first.
func TestAJobOfManyPods(t *testing.T) {
	w := newWorld()
	w.job("train")
	for i := range 10 {
		w.pod(fmt.Sprint("p", i), may("1h"), ofJob("train"))
	}
	w.rounds(720)
	w.want(t, "after an hour", "suspend train")
	if n := strings.Count(strings.Join(w.told, "\n"), "MaxRuntimeExceeded: has run"); n != 10 || w.reads != 1 {
		t.Errorf("%d pods were told, and the Job was read %d times", n, w.reads)
	}
	w.rounds(100)
	if len(w.pods) > 0 {
		t.Errorf("left: %d pods", len(w.pods))
	}
	resume := false
	w.jobs["ns/train"].Spec.Suspend = &resume
	w.write(w.jobs["ns/train"])
	w.pod("q", may("1h"), ofJob("train"))
	w.rounds(719)
	w.want(t, "an hour after it was resumed, but for a moment", "suspend train")
	w.rounds(1)
	w.want(t, "then", "suspend train", "suspend train")
}

// What there is about the Job when its pod's time is over.
func TestJobs(t *testing.T) {
	yes, ended := true, []string{"deadline p 3600"} // by a word of its own that may not be true
	for name, tc := range map[string]struct {
		happens func(*world, *batchv1.Job)
		done    []string
	}{
		"suspended by somebody": {func(_ *world, j *batchv1.Job) { j.Spec.Suspend = &yes }, nil},
		"complete": {func(_ *world, j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, ended},
		"failed": {func(_ *world, j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}, ended},
		"not failed": {func(_ *world, j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}
		}, []string{"suspend train"}},
		"being deleted":       {func(w *world, j *batchv1.Job) { j.DeletionTimestamp = new(metav1.NewTime(w.now)) }, ended},
		"another of its name": {func(_ *world, j *batchv1.Job) { j.UID = "other" }, ended},
		"written at each try": {func(w *world, j *batchv1.Job) { w.meddle = func() { w.write(j) } }, nil},
		"written once":        {func(w *world, j *batchv1.Job) { w.meddle = func() { w.write(j); w.meddle = nil } }, []string{"suspend train"}},
		"taken away":          {func(w *world, _ *batchv1.Job) { w.meddle = func() { delete(w.jobs, "ns/train") } }, nil},
		"kept by a webhook": {func(w *world, _ *batchv1.Job) {
			w.holdsJobs = apierrors.NewForbidden(resource("jobs"), "train", errors.New("denied"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			j := w.job("train")
			w.pod("p", may("1h"), ofJob("train"))
			tc.happens(w, j)
			w.round(time.Hour)
			w.want(t, "at the end", tc.done...)
			refused := slices.Contains(w.reasons(), "Pod "+ReasonNotStopped)
			if want := w.holdsJobs != nil; refused != want {
				t.Errorf("told %v", w.told)
			}
		})
	}
}

// Whatever becomes of the pod between the look and the deed, nothing is done to who has
// become another.
func TestWhatHappensMeanwhile(t *testing.T) {
	pod := func(w *world) *corev1.Pod { return w.pods["ns/p"] }
	for name, happens := range map[string]func(*world){
		"it is gone":             func(w *world) { delete(w.pods, "ns/p"); w.version++ },
		"another of its name":    func(w *world) { w.pod("p", may("1h")) },
		"another, older":         func(w *world) { w.pod("p", may("1h")).Status.StartTime = new(metav1.NewTime(start())) },
		"it is asked to go":      func(w *world) { pod(w).DeletionTimestamp = new(metav1.NewTime(w.now)); w.write(pod(w)) },
		"it has finished":        func(w *world) { pod(w).Status.Phase = corev1.PodSucceeded; w.write(pod(w)) },
		"it may run for longer":  func(w *world) { may("2h")(pod(w)); w.write(pod(w)) },
		"it may run for ever":    func(w *world) { noted(codec.AnnotationTaskType, "inference")(pod(w)); w.write(pod(w)) },
		"it is not ours anymore": func(w *world) { pod(w).Labels = nil; w.write(pod(w)) },
		"it runs by the default": func(w *world) { delete(pod(w).Annotations, codec.AnnotationMaxRuntime); w.write(pod(w)) },
	} {
		for when, late := range map[string]bool{"before it is read": false, "after it is read": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				w := newWorld()
				w.c.Default = 30 * time.Minute
				w.pod("p", may("1h"))
				w.now = w.now.Add(time.Hour)
				w.see()
				if late {
					w.meddle = func() { happens(w) }
				} else {
					happens(w)
				}
				w.take()
				w.want(t, name)
				if w.meddle = nil; name == "another, older" {
					return // whose time is over as well
				}
				w.rounds(2)
				w.want(t, "and afterwards")
			})
		}
	}
}

// A pod that has changed meanwhile has its turn in the next round.
func TestAConflictIsNotWaitedFor(t *testing.T) {
	w := newWorld()
	p := w.pod("p", may("1h"))
	w.meddle = func() { w.write(p); w.meddle = nil }
	w.round(time.Hour)
	w.want(t, "it has changed")
	w.rounds(1)
	w.want(t, "a round later", "deadline p 3600")
	if w.counts[metrics.RuntimeFailed] > 0 {
		t.Errorf("counted %v", w.counts)
	}
}

// A deadline that is refused is no end of it.
func TestRefusedDeadlines(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	kept := fmt.Errorf("evict: %w: the budget", kube.ErrBlocked)
	for name, tc := range map[string]struct {
		refuse, keep error
		done         []string
		want         metrics.RuntimeAction
	}{
		"invalid":           {invalid, nil, []string{"evict p"}, metrics.RuntimeEvicted},
		"forbidden":         {apierrors.NewForbidden(resource("pods"), "p", errors.New("no")), nil, []string{"evict p"}, metrics.RuntimeEvicted},
		"kept by a budget":  {invalid, kept, nil, metrics.RuntimeBlocked},
		"no answer":         {errors.New("timeout"), nil, nil, metrics.RuntimeFailed},
		"no answer, either": {invalid, errors.New("timeout"), nil, metrics.RuntimeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod("p", may("1h"))
			w.refuse, w.keep = tc.refuse, tc.keep
			w.round(time.Hour)
			w.want(t, "at the end", tc.done...)
			if w.counts[tc.want] != 1 {
				t.Errorf("counted %v", w.counts)
			}
			w.rounds(60) // tried again each minute, and told once
			if n := strings.Count(strings.Join(w.told, "\n"), ReasonNotStopped); n > 1 || (n == 1) != (tc.want == metrics.RuntimeBlocked) {
				t.Errorf("told %v", w.told)
			}
			if tc.done == nil && w.counts[tc.want] != 6 {
				t.Errorf("tried %d times in five minutes", w.counts[tc.want])
			}
			w.refuse, w.keep = nil, nil
			w.rounds(12)
			if tc.done == nil {
				w.want(t, "when it is not refused any more", "deadline p 3600")
			}
		})
	}
}

// A leader that comes late warns and ends at once, and one that comes after it does
// neither again.
func TestLateLeaders(t *testing.T) {
	w := newWorld()
	w.job("train")
	w.pod("p", may("1h"))
	w.pod("q", may("1h"), ofJob("train"))
	w.round(30 * time.Hour)
	w.want(t, "at once", "deadline p 3600", "suspend train")
	if diff := cmp.Diff([]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded", "Pod MaxRuntimeNear", "Pod MaxRuntimeExceeded", "Job MaxRuntimeExceeded"}, w.reasons()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	w.lead()
	w.rounds(30)
	w.want(t, "after another", "deadline p 3600", "suspend train")
}

// Who has passed the default when it begins to be enforced is warned, and has ten minutes.
func TestTheDefaultIsEnforcedNow(t *testing.T) {
	for _, limit := range []time.Duration{2 * time.Hour, 10 * time.Minute} {
		w := newWorld()
		w.c.Default, w.c.Enforced = limit, true
		w.pod("p")
		w.round(30 * time.Hour)
		if diff := cmp.Diff([]string{"Pod MaxRuntimeNear"}, w.reasons()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		w.rounds(int(mostLead/period) - 1)
		w.want(t, "before ten minutes are over")
		w.rounds(2)
		w.want(t, "after ten minutes", fmt.Sprintf("deadline p %d", limit/time.Second))
	}
}

// A leader that began while the clock was a year ahead enforces the default all the same.
func TestTheDefaultWhereTheClockIsPutBack(t *testing.T) {
	w := newWorld()
	w.c.Enforced = true
	w.pod("p")
	w.now = start().AddDate(1, 0, 0)
	w.see()
	w.take()
	w.now = start()
	w.rounds(int(3 * time.Hour / period))
	w.want(t, "three hours later", "deadline p 7200")
}

// The process may be killed right after any change: nothing is done twice, and nothing
// is left.
func TestDeaths(t *testing.T) {
	w := newWorld()
	w.job("train")
	w.pod("a", may("1h"), ofJob("train"))
	w.pod("b", may("1h"), ofJob("train"))
	w.pod("c", may("1h"))
	w.crash = true
	w.round(time.Hour)
	w.want(t, "killed after the first", "suspend train")
	w.crash = true
	w.round(period)
	w.want(t, "killed after the second", "suspend train", "deadline c 3600")
	w.round(period)
	w.want(t, "then", "suspend train", "deadline c 3600")
	for _, pod := range []string{"a", "b"} {
		if !strings.Contains(strings.Join(w.told, "\n"), "Pod ns/"+pod+" MaxRuntimeExceeded: has run for its max-runtime of 1h, until 2026-11-30T13:00:00Z: its Job train is suspended") {
			t.Errorf("pod %s was not told:\n%s", pod, strings.Join(w.told, "\n"))
		}
	}
}

// A clock that is put back has nothing be done twice, and nobody wait for ever.
func TestTheClockIsPutBack(t *testing.T) {
	w := newWorld()
	w.job("train")
	w.pod("p", may("1h"))
	w.pod("q", may("1h"), ofJob("train"))
	w.pod("soft")
	w.pod("stuck", may("1h"))
	w.rounds(int(3 * time.Hour / period))
	told := len(w.told)
	done := slices.Clone(w.done)
	w.now = w.now.Add(-150 * time.Minute)
	w.rounds(int(3 * time.Hour / period))
	w.want(t, "put back", done...)
	if len(w.told) != told {
		t.Errorf("told again:\n%s", strings.Join(w.told[told:], "\n"))
	}

	w = newWorld()
	w.pod("p", may("1h"))
	w.refuse = errors.New("timeout")
	w.round(2 * time.Hour)
	w.refuse = nil
	w.round(-30 * time.Minute)
	w.want(t, "tried again by the clock that there is", "deadline p 3600")
}

// A limit that is changed while the pod runs holds, and it is warned of the new end.
func TestALimitThatIsChanged(t *testing.T) {
	w := newWorld()
	p := w.pod("p", may("1h"))
	w.rounds(700)
	may("2h")(p)
	w.write(p)
	w.rounds(620)
	w.want(t, "after an hour and fifty minutes")
	if diff := cmp.Diff([]string{"Pod MaxRuntimeNear", "Pod MaxRuntimeNear"}, w.reasons()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	may("1m")(p)
	w.write(p)
	w.rounds(1)
	w.want(t, "shortened", "deadline p 60")
}

// A round does so much, who is to be ended first, and those that cannot be do not keep
// the others from it.
func TestARoundIsBounded(t *testing.T) {
	w := newWorld()
	for i := range 500 {
		w.pod(fmt.Sprintf("p-%03d", i), may("1h"))
	}
	for i := range 500 {
		w.pod(fmt.Sprintf("soft-%03d", i))
	}
	w.refuse = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	w.keep = fmt.Errorf("evict: %w: the budget", kube.ErrBlocked)
	w.round(3 * time.Hour)
	if n := w.counts[metrics.RuntimeBlocked]; n != mostDeeds {
		t.Errorf("%d tried in a round, want %d", n, mostDeeds)
	}
	w.rounds(2)
	if n := w.counts[metrics.RuntimeBlocked]; n != 500 {
		t.Errorf("%d tried in three rounds, want all 500", n)
	}
	w.rounds(2)
	if n := w.counts[metrics.RuntimeReported]; n != 500 {
		t.Errorf("%d reported in five rounds, want all 500", n)
	}
	w.refuse, w.keep = nil, nil
	w.rounds(int(time.Minute/period) + 3)
	if n := w.counts[metrics.RuntimeStopped]; n != 500 {
		t.Errorf("%d stopped, want all 500", n)
	}
}

// An API server that does not answer is left in peace until the next round.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fail error
		want int
	}{
		"no answer": {errors.New("connection refused"), 1},
		"too many":  {apierrors.NewTooManyRequests("slow down", 1), 1},
		"no right":  {apierrors.NewForbidden(resource("pods"), "p", errors.New("no")), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, p := range []string{"a", "b", "c"} {
				w.pod(p, may("1h"))
			}
			w.fail = tc.fail
			w.round(time.Hour)
			if n := w.counts[metrics.RuntimeFailed]; n != tc.want {
				t.Errorf("%d faults, want %d", n, tc.want)
			}
			w.fail = nil
			w.rounds(15)
			slices.Sort(w.done)
			w.want(t, "when it answers", "deadline a 3600", "deadline b 3600", "deadline c 3600")
		})
	}
}

// What is remembered is of pods that are there.
func TestNothingIsRememberedForEver(t *testing.T) {
	w := newWorld()
	for i := range 300 {
		w.pod(fmt.Sprint("soft-", i))
		w.pod(fmt.Sprint("hard-", i), may("1h"))
	}
	for range 80 {
		w.round(2 * time.Minute)
		w.lives()
	}
	w.rounds(1)
	if n := len(w.c.memory.pods); n != 300 { // those that were stopped have finished
		t.Errorf("%d are remembered of 300 that run", n)
	}
	clear(w.pods)
	w.version++
	w.rounds(1)
	if n := len(w.c.memory.pods); n != 0 {
		t.Errorf("%d are remembered", n)
	}
}

// The longest limit that can be written is no deadline that the API server refuses.
func TestTheLongestDeadline(t *testing.T) {
	w := newWorld()
	w.pod("p", may("2562047h")) // 292 years
	w.round(0)
	w.now = start().AddDate(293, 0, 0)
	w.round(0)
	w.want(t, "after it", fmt.Sprintf("deadline p %d", math.MaxInt32))
}

// The loop takes a round every five seconds until it is told to end.
func TestRun(t *testing.T) {
	for runs, done := range map[time.Duration][]string{59 * time.Second: nil, 61 * time.Second: {"deadline p 60"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.c.Now = time.Now
			w.now = time.Now()
			w.pod("p", may("1m"))
			w.see()
			ctx, stop := context.WithTimeout(quiet(), runs)
			defer stop()
			if err := w.c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run = %v", err)
			}
			w.want(t, runs.String(), done...)
		})
	}
}

// A pod that only says that it is of a Job, or whose Job is managed by others, does not go
// on for ever since that Job is suspended, or has been from the first.
func TestAJobThatEndsNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		suspended, resumed bool
		done               []string
	}{
		"it goes on":             {false, false, []string{"suspend train", "deadline p 3600"}},
		"it is suspended anyway": {true, false, []string{"deadline p 3600"}},
		"it is resumed each time": {false, true, []string{
			"suspend train", "suspend train", "suspend train", "suspend train", "suspend train", "deadline p 3600"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.managed = true
			j := w.job("train")
			j.Spec.Suspend = &tc.suspended
			w.pod("p", may("1h"), ofJob("train"))
			for w.now.Before(start().Add(time.Hour + patience - period)) {
				w.rounds(1)
				if tc.resumed {
					j.Spec.Suspend = new(bool)
					w.write(j)
				}
			}
			if w.pods["ns/p"].Spec.ActiveDeadlineSeconds != nil {
				t.Error("who ends the pods of suspended Jobs had no time to do it")
			}
			w.rounds(int(time.Hour / period))
			w.want(t, "two hours later", tc.done...)
		})
	}
}

// Who deletes a pod may say with how long a grace. That has nobody stay for longer than
// the time and the pod's own grace.
func TestDeletedWithALongGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		change []func(*corev1.Pod)
		own    time.Duration
		after  time.Duration // it is deleted then
		grace  time.Duration
		done   []string
	}{
		"for a day":                  {[]func(*corev1.Pod){may("1h")}, 30 * time.Second, time.Minute, 24 * time.Hour, []string{"hasten p"}},
		"of a Job":                   {[]func(*corev1.Pod){may("1h"), ofJob("train")}, 30 * time.Second, time.Minute, 24 * time.Hour, []string{"hasten p"}},
		"with none of its own":       {[]func(*corev1.Pod){may("1h")}, 0, time.Minute, 24 * time.Hour, []string{"hasten p"}},
		"a moment before its end":    {[]func(*corev1.Pod){may("1h")}, 30 * time.Second, time.Hour - time.Second, time.Hour, []string{"hasten p"}},
		"for longer than its own":    {[]func(*corev1.Pod){may("1h")}, 30 * time.Second, time.Minute, 30 * time.Minute, nil},
		"with its own, for a day":    {[]func(*corev1.Pod){may("1h")}, 24 * time.Hour, time.Minute, 24 * time.Hour, nil},
		"without a limit":            {nil, 30 * time.Second, time.Minute, 24 * time.Hour, nil},
		"as it ends by its deadline": {[]func(*corev1.Pod){may("1h")}, 30 * time.Second, time.Hour + period, time.Minute, []string{"deadline p 3600"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.job("train")
			p := w.pod("p", tc.change...)
			p.Spec.TerminationGracePeriodSeconds = new(int64(tc.own / time.Second))
			w.round(tc.after)
			w.deleted(p, tc.grace)
			for range int(2 * time.Hour / period) {
				w.rounds(1)
			}
			w.want(t, "in two hours", tc.done...)
		})
	}
}
