package codec

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Bound reads a bound pod as one that may be ended for another. Of a pod that is no
// Victim it says who it is, with whom it would be ended, and whether it ends, and no
// more: it is left alone in any case, and nothing else of it is kept.
//
// Whatever cannot be read is read so that the pod is left alone.
func Bound(pod *corev1.Pod) preempt.Pod {
	p := preempt.Pod{
		ID: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: gpu.NodeID(pod.Spec.NodeName),
		Lineage: string(pod.UID), Unit: groupUnit(pod), Phase: preempt.Running, Type: gpu.Batch,
	}
	if Victim(pod) {
		describe(&p, pod)
	}
	if pod.DeletionTimestamp != nil {
		p.Phase, p.Due = preempt.Ending, pod.DeletionTimestamp.Time
	}
	return p
}

// describe adds what is known of a Victim alone.
func describe(p *preempt.Pod, pod *corev1.Pod) {
	p.Created, p.Priority = pod.CreationTimestamp.Time, clamped(pod)
	of, known := taskType(pod)
	p.Type, p.Preemptible = of, known && preemptible(pod)
	p.Count = count(pod)
	p.Ours = placedByUs(pod)
	p.System = system(pod)
	p.Lineage = lineage(pod)
	p.Grace = Grace(pod)
	p.Phase, p.Since = phase(pod)
	owner := metav1.GetControllerOfNoCopy(pod)
	p.Bare = owner == nil
	if p.Bare && len(pod.OwnerReferences) > 0 {
		p.Unmade = "it belongs to another object that does not make it anew"
	}
	if job := suspends(pod); job != nil && p.Unit == "" {
		p.Mode, p.Unit = preempt.Suspend, pod.Namespace+"/job/"+string(job.UID)
	}
}

// preemptible reports whether the pod lets itself be ended for others.
func preemptible(pod *corev1.Pod) bool {
	return strings.TrimSpace(pod.Annotations[AnnotationPreemptible]) == yes
}

// taskType returns what kind of work the pod does; known is false if that cannot be
// told, and then it may be any.
func taskType(pod *corev1.Pod) (of gpu.TaskType, known bool) {
	switch of = gpu.TaskType(strings.TrimSpace(pod.Annotations[AnnotationTaskType])); of {
	case "":
		return gpu.Batch, true
	case gpu.Training, gpu.Inference, gpu.Batch:
		return of, true
	}
	return of, false
}

// count is how often the pod's earlier lives were ended for others. The annotation
// is there for no other reason, so of one that cannot be read it is once.
func count(pod *corev1.Pod) int {
	text, ok := pod.Annotations[AnnotationPreemptCount]
	if !ok {
		return 0
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return 1
}

// placedByUs reports whether our kube-scheduler has placed the pod: one with cards by
// a record that is believed, one without any by its name alone.
func placedByUs(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == SchedulerName && (Ours(pod) || !AsksForCards(pod))
}

const (
	// systemPriority is from where on priorities are those of what runs the cluster.
	systemPriority = 1_000_000_000
	systemClass    = "system-"
)

// system reports whether the pod is one of those that run the cluster, or would be put
// back on the node that it was taken from.
func system(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(pod)
	return mirror || pod.Namespace == metav1.NamespaceSystem || or(pod.Spec.Priority, 0) >= systemPriority ||
		strings.HasPrefix(pod.Spec.PriorityClassName, systemClass) ||
		owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// clamped is the priority of a pod among those that pods can ask for. Nobody can
// change what it is made of.
func clamped(pod *corev1.Pod) int32 { return min(max(or(pod.Spec.Priority, 0), 0), mostPriority) }

// lineage names all lives of a pod: by what makes it anew, else by its first life.
func lineage(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return string(owner.UID)
	}
	if first := pod.Annotations[AnnotationPreemptedFrom]; first != "" {
		return first
	}
	return string(pod.UID)
}

func groupUnit(pod *corev1.Pod) string {
	if group := TaskGroup(pod); group != "" {
		return pod.Namespace + "/group/" + group
	}
	return ""
}

// suspends returns the Job that is suspended in place of the pod's being evicted; nil:
// none is.
func suspends(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if strings.TrimSpace(pod.Annotations[AnnotationPreemptMode]) != modeSuspend || owner == nil ||
		owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, "batch/") {
		return nil
	}
	return owner
}

// mostGrace bounds what an author can write as a grace period. Past 290 years
// the sum would wrap, and the cards look free at once.
const mostGrace = 365 * 24 * time.Hour

// Grace is how long the kubelet gives the pod's containers to stop: what the
// pod asks for, or what the deletion did if that is longer.
func Grace(pod *corev1.Pod) time.Duration {
	seconds := OwnGrace(pod)
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		seconds = max(seconds, *s)
	}
	return time.Duration(min(max(seconds, 0), int64(mostGrace/time.Second))) * time.Second
}

// OwnGrace is how many seconds the pod asks to be given, whatever its deletion gave it.
func OwnGrace(pod *corev1.Pod) int64 {
	return or(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
}

// phase tells whether any container has been started, and since when the longest
// running one has run. Of a pod of which none runs at the moment, though it has,
// the kubelet's first word counts: who crashes again and again is not always new.
func phase(pod *corev1.Pod) (preempt.Phase, time.Time) {
	var since time.Time
	started := pod.Status.Phase == corev1.PodRunning
	for _, list := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			state := &list[i].State
			started = started || state.Running != nil || state.Terminated != nil
			if r := state.Running; r != nil && (since.IsZero() || r.StartedAt.Time.Before(since)) {
				since = r.StartedAt.Time
			}
		}
	}
	switch {
	case !started:
		return preempt.Scheduled, time.Time{}
	case since.IsZero() && pod.Status.StartTime != nil:
		since = pod.Status.StartTime.Time
	}
	return preempt.Running, since
}
