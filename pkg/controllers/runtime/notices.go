package runtime

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// Reasons of the events. Alerts rely on them: add, never rename.
const (
	// ReasonNear, on a pod: its time is over soon.
	ReasonNear = "MaxRuntimeNear"
	// ReasonExceeded, on a pod and its Job: its time is over.
	ReasonExceeded = "MaxRuntimeExceeded"
	// ReasonReported, on a pod: it has run for longer than the default, and goes on.
	ReasonReported = "TaskTimeoutExceeded"
	// ReasonNotStopped, on a pod: its time is over, and it cannot be ended.
	ReasonNotStopped = "MaxRuntimeNotEnforced"
)

// limited names the limit that the pod is under.
func (r *run) limited() string {
	if r.own {
		return "its max-runtime of " + short(r.limit)
	}
	return "the default of " + short(r.limit) + " (defaultTaskTimeout)"
}

// short writes a duration as people do: 2h, not 2h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// warn tells that the pod's time is over soon, once of each end. Whether it has a Job is
// not kept in memory.
func (c *Controller) warn(r *run) {
	known := c.memory.of(r.pod.UID)
	if known.warned.Equal(r.end) {
		return
	}
	known.warned = r.end
	c.Meter.RuntimeExceeded(metrics.RuntimeWarned)
	c.tellPod(r.pod, ReasonNear, fmt.Sprintf("is ended at %s, after %s: its Job is suspended then; a pod without a Job is stopped", stamp(r.end), r.limited()))
}

// report tells that the pod has run for longer than the default, once.
func (c *Controller) report(r *run) {
	c.memory.of(r.pod.UID).reported = r.end
	c.Meter.RuntimeExceeded(metrics.RuntimeReported)
	c.tellPod(r.pod, ReasonReported, fmt.Sprintf("runs for longer than %s; nothing ends it: %s on a pod says how long it may run", r.limited(), codec.AnnotationMaxRuntime))
}

// exceed tells that the pod's time is over, and what is done, once of each end.
func (c *Controller) exceed(r *run, done string) {
	known := c.memory.of(r.pod.UID)
	if known.exceeded.Equal(r.end) {
		return
	}
	known.exceeded = r.end
	c.tellPod(r.pod, ReasonExceeded, fmt.Sprintf("has run for %s, until %s: %s", r.limited(), stamp(r.end), done))
}

// block tells that the pod cannot be ended, once for each cause.
func (c *Controller) block(r *run, cause error) {
	c.Meter.RuntimeExceeded(metrics.RuntimeBlocked)
	known := c.memory.of(r.pod.UID)
	if known.blocked == cause.Error() {
		return
	}
	known.blocked = cause.Error()
	c.tellPod(r.pod, ReasonNotStopped, fmt.Sprintf("has run for %s and cannot be ended; it is tried again: %s", r.limited(), cause))
}

// tellJob tells that the Job is suspended for the pod.
func (c *Controller) tellJob(j *batchv1.Job, r *run) {
	c.Tell(kube.Notice{About: kube.JobSubject(j), Warning: true, Reason: ReasonExceeded, Key: string(r.pod.UID),
		Text: fmt.Sprintf("suspended, for its pod %s has run for %s; when it is resumed, the time of its new pods counts anew", r.pod.Name, r.limited())})
}

func (c *Controller) tellPod(pod *corev1.Pod, reason, text string) {
	c.Tell(kube.Notice{About: kube.PodSubject(pod), Warning: true, Reason: reason, Text: text})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
