package runtime

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/codec"
)

// run is a pod that runs and may not for ever.
type run struct {
	pod   *corev1.Pod
	limit time.Duration
	own   bool      // by its own word, else by the default
	hard  bool      // it is ended then, else told
	end   time.Time // when the time is over
	late  bool      // it was over before it was known to be enforced
	// ending says that it is being deleted, with a longer grace than its own, and would
	// stay past its end for longer than that.
	ending bool
}

// run returns how long the pod may run yet; false of one that has not begun, has ended or
// is about to in time, or is none of ours to end.
func (c *Controller) run(pod *corev1.Pod) (run, bool) {
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	if pod.Status.StartTime.IsZero() || codec.Terminal(pod) || static || !c.Ours(pod) || c.Inference(pod) {
		return run{}, false
	}
	r := run{pod: pod, limit: c.Default, hard: c.Enforced}
	if own, says := c.Max(pod); says {
		r.limit, r.own, r.hard = own, true, true
	}
	r.end = pod.Status.StartTime.Add(r.limit)
	if first := c.began.Add(mostLead); !r.own && r.hard && r.end.Before(first) {
		r.end, r.late = first, true // the default may have been enforced just now: whoever has passed it is warned as well
	}
	r.ending = r.hard && outstays(pod, r.end)
	return r, r.limit > 0 && (r.ending || pod.DeletionTimestamp == nil)
}

// grace is how many seconds the pod is given to end: its own, and one at least, as with
// none the object goes at once and its containers may go on.
func grace(pod *corev1.Pod) int64 { return max(codec.OwnGrace(pod), 1) }

// outstays reports whether the pod is being deleted, and may be there for longer than if
// it were ended at that time: who deletes it says with how long a grace.
func outstays(pod *corev1.Pod, end time.Time) bool {
	given, own := pod.DeletionGracePeriodSeconds, grace(pod)
	return pod.DeletionTimestamp != nil && given != nil && *given > own && pod.DeletionTimestamp.Add(-time.Duration(own)*time.Second).After(end)
}

// act is what is to be done about a pod.
type act int

// The acts, in the order in which they are done.
const (
	end    act = iota // its time is over
	warn              // it is soon
	report            // it is over, and nothing ends the pod
)

// deed is an act about a pod.
type deed struct {
	run
	act act
}

// mostLead is how long before its end a pod is warned, at most.
const mostLead = 10 * time.Minute

// lead is how long before its end a pod is warned.
func (r *run) lead() time.Duration {
	if r.late {
		return mostLead
	}
	return min(r.limit/10, mostLead)
}

// soon reports whether the pod's end is near enough to be told of, or over.
func (r *run) soon(now time.Time) bool { return !now.Before(r.end.Add(-r.lead())) }

// decide says what is to be done: who is to be ended first, of those who was not tried
// before, and of those whose time has been over for longest. What has been done about
// each is in records, by its UID.
func decide(all []run, records map[types.UID]*record, now time.Time) (deeds []deed) {
	for i := range all {
		if act, due := all[i].due(records[all[i].pod.UID], now); due {
			deeds = append(deeds, deed{all[i], act})
		}
	}
	tried := func(d *deed) time.Time {
		if r := records[d.pod.UID]; r != nil {
			return r.tried
		}
		return time.Time{}
	}
	slices.SortFunc(deeds, func(a, b deed) int {
		return cmp.Or(cmp.Compare(a.act, b.act), tried(&a).Compare(tried(&b)), a.end.Compare(b.end),
			cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return deeds
}

// due returns what is to be done about the pod now, if anything. What was told of
// another end, before the limit was changed, does not count.
func (r *run) due(known *record, now time.Time) (act, bool) {
	if known == nil {
		known = &record{}
	}
	over := !now.Before(r.end)
	switch {
	case over && r.hard:
		return end, !known.rests(now)
	case over:
		return report, !known.reported.Equal(r.end)
	}
	return warn, r.hard && r.soon(now) && !known.warned.Equal(r.end)
}
