package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
)

// history is a world in which anything happens, and what of it the promises are about.
type history struct {
	*world
	t      *rapid.T
	judged int // how many of what was done has been looked at
}

// overdue returns why the pod's time is over; "" if it is not, or it is not to be ended.
func (h *history) overdue(p *corev1.Pod) string {
	r, limited := h.c.run(p)
	if !limited || !r.hard || h.now.Before(r.end) {
		return ""
	}
	return "until " + stamp(r.end)
}

// happens has something happen.
func (h *history) happens() {
	t := h.t
	names := slices.Sorted(maps.Keys(h.pods))
	some := func() *corev1.Pod { return h.pods[rapid.SampledFrom(names).Draw(t, "pod")] }
	switch what := rapid.IntRange(0, 16).Draw(t, "what"); {
	case what <= 4:
		h.begins()
	case what == 5 && len(names) > 0:
		p := some()
		may(rapid.SampledFrom([]string{"10s", "1m", "1h", "never"}).Draw(t, "from now on"))(p)
		h.write(p)
	case what == 6 && len(names) > 0:
		p := some()
		p.Status.Phase = corev1.PodSucceeded
		h.write(p)
	case what == 7 && len(names) > 0:
		delete(h.pods, "ns/"+some().Name)
		h.version++
	case what == 15 && len(names) > 0:
		if p := some(); p.DeletionTimestamp == nil {
			h.deleted(p, rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, 24 * time.Hour}).Draw(t, "is deleted with a grace of"))
		}
	case what == 8:
		for _, j := range h.jobs {
			if rapid.Bool().Draw(t, "is resumed") {
				j.Spec.Suspend = nil
				h.write(j)
			}
		}
	case what == 9:
		h.refuse = rapid.SampledFrom([]error{nil, nil, errors.New("timeout"), apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)}).Draw(t, "deadlines are refused")
	case what == 10:
		h.keep = rapid.SampledFrom([]error{nil, nil, fmt.Errorf("evict: %w: the budget", kube.ErrBlocked)}).Draw(t, "evictions are")
	case what == 11:
		h.fail = rapid.SampledFrom([]error{nil, nil, errors.New("no answer")}).Draw(t, "all requests are")
	case what == 12:
		h.crash = true
	case what == 13:
		h.now = h.now.Add(time.Duration(rapid.IntRange(-120, 120).Draw(t, "the clock jumps by")) * time.Second)
	case what == 14:
		h.meddle = rapid.SampledFrom([]func(){nil, nil, func() {
			for _, name := range slices.Sorted(maps.Keys(h.pods)) {
				h.write(h.pods[name])
			}
		}}).Draw(t, "all pods change")
	}
}

// begins has a pod begin.
func (h *history) begins() {
	t := h.t
	change := []func(*corev1.Pod){}
	if limit := rapid.SampledFrom([]string{"", "10s", "1m", "3m"}).Draw(t, "max-runtime"); limit != "" {
		change = append(change, may(limit))
	}
	if job := rapid.SampledFrom([]string{"", "j1", "j2"}).Draw(t, "Job"); job != "" {
		change = append(change, ofJob(job))
	}
	if rapid.IntRange(0, 3).Draw(t, "service") == 0 {
		change = append(change, noted(codec.AnnotationTaskType, "inference"))
	}
	h.pod(fmt.Sprint("p", h.made), change...)
}

// judge looks at what was done in the last round, to who is still there to tell.
func (h *history) judge(before map[string]*corev1.Pod) {
	told := strings.Join(h.told, "\n")
	for _, deed := range h.done[h.judged:] {
		words := strings.Fields(deed)
		if words[0] == "suspend" {
			h.judgeJob(words[1], before, told)
			continue
		}
		p := before[words[1]]
		why := h.overdue(p)
		if why == "" || metav1.GetControllerOf(p) != nil && words[0] != "hasten" {
			h.t.Fatalf("%s, of a pod with %v, phase %s", deed, p.Annotations, p.Status.Phase)
		}
		for _, line := range []string{"Pod ns/" + p.Name + " " + ReasonNear, "Pod ns/" + p.Name + " " + ReasonExceeded} {
			if !strings.Contains(told, line) {
				h.t.Fatalf("%s, and nobody was told: %s", deed, line)
			}
		}
		if old := p.Spec.ActiveDeadlineSeconds; old != nil && words[0] == "deadline" && fmt.Sprint(*old) == words[2] {
			h.t.Fatalf("%s once more", deed)
		}
	}
	h.judged = len(h.done)
}

func (h *history) judgeJob(job string, before map[string]*corev1.Pod, told string) {
	for _, p := range before {
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Name == job {
			if why := h.overdue(p); why != "" && strings.Contains(told, "Pod ns/"+p.Name+" "+ReasonExceeded) && strings.Contains(told, why) {
				return
			}
		}
	}
	h.t.Fatalf("Job %s is suspended without a reason", job)
}

// step takes a round.
func (h *history) step() {
	h.now = h.now.Add(period)
	before := map[string]*corev1.Pod{}
	for _, p := range h.pods {
		before[p.Name] = p.DeepCopy()
	}
	h.see()
	h.take()
	h.judge(before)
	h.lives()
}

// Whatever happens: nobody is ended before his time or unwarned, no service ever, and in
// the end everybody whose time is over is.
func TestWhateverHappens(t *testing.T) {
	done := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := &history{world: newWorld(), t: t}
		h.c.Default, h.c.Enforced = 2*time.Minute, rapid.Bool().Draw(t, "enforced")
		h.job("j1")
		h.job("j2")
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			h.happens()
			h.step()
		}
		h.fail, h.refuse, h.keep, h.meddle, h.crash = nil, nil, nil, nil, false
		for range 12 * 6 {
			h.step()
		}
		for name, p := range h.pods {
			if h.overdue(p) != "" {
				t.Fatalf("%s still runs %s after its time was over: %+v", name, h.overdue(p), p.Status)
			}
		}
		for _, deed := range h.done {
			done[strings.Fields(deed)[0]]++
		}
	})
	for _, what := range []string{"suspend", "deadline", "evict", "hasten"} {
		if done[what] == 0 {
			t.Errorf("%s was not tried", what)
		}
	}
}
