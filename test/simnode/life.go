package simnode

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a pod's annotations may say; see the package's comment.
const (
	RunFor     = "simnode.test/run-for"
	End        = "simnode.test/end"
	Hang       = "simnode.test/hang"
	StartAfter = "simnode.test/start-after"
	StopAfter  = "simnode.test/stop-after"
	StopCode   = "simnode.test/stop-code"
)

// step is what the kubelet does next with a pod.
type step struct {
	status *corev1.PodStatus // to be written; nil: leave it
	remove bool              // then let the object go
	wait   time.Duration     // look again after that time; 0: when the pod changes
}

// next decides what happens to a bound pod. started is when its containers were
// started here; zero: not yet.
func next(pod *corev1.Pod, started, now time.Time) (step, error) {
	switch {
	case forced(pod), pod.DeletionTimestamp != nil && pod.Annotations[Hang] == "true":
		return step{}, nil
	case pod.DeletionTimestamp != nil && ended(pod):
		return step{remove: true}, nil
	case pod.DeletionTimestamp != nil:
		return stop(pod, now)
	case ended(pod):
		return step{}, nil
	case started.IsZero():
		return start(pod, now)
	}
	s, err := end(pod, started, now)
	if pod.Spec.ActiveDeadlineSeconds == nil || s.status != nil || err != nil {
		return s, err
	}
	return expire(pod, s.wait, started.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second), now)
}

// expire ends the containers of a pod that has been active for as long as it may, which
// may take a while, or looks again then, or after wait. Its object stays.
func expire(pod *corev1.Pod, wait time.Duration, over, now time.Time) (step, error) {
	if pod.Annotations[StopAfter] != "" {
		d, err := duration(pod, StopAfter)
		if err != nil {
			return step{}, err
		}
		over = over.Add(d)
	}
	if left := over.Sub(now); left > 0 {
		if wait == 0 || left < wait {
			wait = left
		}
		return step{wait: wait}, nil
	}
	s := terminated(pod, corev1.PodFailed, 143, now)
	s.Reason = "DeadlineExceeded"
	return step{status: s}, nil
}

// start starts the containers, or waits as long as their images take.
func start(pod *corev1.Pod, now time.Time) (step, error) {
	if pod.Annotations[StartAfter] != "" {
		d, err := duration(pod, StartAfter)
		if err != nil {
			return step{}, err
		}
		if left := boundAt(pod).Add(d).Sub(now); left > 0 {
			return step{wait: left}, nil
		}
	}
	return step{status: running(pod, now)}, nil
}

// duration reads an annotation that is one.
func duration(pod *corev1.Pod, key string) (time.Duration, error) {
	d, err := time.ParseDuration(pod.Annotations[key])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return d, nil
}

func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// forced reports whether the object is going without regard to its containers.
// The API server marks it so, and removes it a moment later: time enough to say
// here that the containers have ended, which no real ones would have.
func forced(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// stop ends the containers of a pod that is being deleted, or waits as long as they
// take, within their grace. One that exits with 0 has succeeded.
func stop(pod *corev1.Pod, now time.Time) (step, error) {
	left, err := stopping(pod, now)
	switch {
	case err != nil:
		return step{}, err
	case left > 0:
		return step{wait: left}, nil
	case pod.Annotations[StopCode] == "0":
		return step{status: terminated(pod, corev1.PodSucceeded, 0, now), remove: true}, nil
	}
	return step{status: terminated(pod, corev1.PodFailed, 143, now), remove: true}, nil // 143: ended by SIGTERM
}

// stopping is how much longer the containers take to stop.
func stopping(pod *corev1.Pod, now time.Time) (left time.Duration, err error) {
	if pod.Annotations[StopAfter] == "" || pod.DeletionGracePeriodSeconds == nil {
		return 0, nil
	}
	d, err := duration(pod, StopAfter)
	if err != nil {
		return 0, err
	}
	grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	return pod.DeletionTimestamp.Add(min(d, grace) - grace).Sub(now), nil
}

// end lets a running pod end by itself when its annotations say so.
func end(pod *corev1.Pod, started, now time.Time) (step, error) {
	how, runFor := corev1.PodPhase(pod.Annotations[End]), pod.Annotations[RunFor]
	if how == "" && runFor == "" {
		return step{}, nil
	}
	if runFor != "" {
		d, err := duration(pod, RunFor)
		if err != nil {
			return step{}, err
		}
		if left := started.Add(d).Sub(now); left > 0 {
			return step{wait: left}, nil
		}
	}
	switch how = cmp.Or(how, corev1.PodSucceeded); how {
	case corev1.PodSucceeded:
		return step{status: terminated(pod, how, 0, now)}, nil
	case corev1.PodFailed:
		return step{status: terminated(pod, how, 1, now)}, nil
	}
	return step{}, fmt.Errorf("%s: %q is neither %s nor %s", End, how, corev1.PodSucceeded, corev1.PodFailed)
}

// running is the status of a pod whose containers have all started: ordinary
// init containers have ended, sidecars run on.
func running(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := pod.Status.DeepCopy()
	s.Phase = corev1.PodRunning
	s.StartTime = &at
	s.HostIP, s.PodIP = simulatedIP, simulatedIP
	s.HostIPs, s.PodIPs = []corev1.HostIP{{IP: simulatedIP}}, []corev1.PodIP{{IP: simulatedIP}}
	s.Conditions = conditions(s.Conditions, corev1.ConditionTrue, at)
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	s.ContainerStatuses, s.InitContainerStatuses = nil, nil
	for i := range pod.Spec.InitContainers {
		state := runs
		if !sidecar(&pod.Spec.InitContainers[i]) {
			state = exited(0, at)
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status(&pod.Spec.InitContainers[i], state))
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, status(&pod.Spec.Containers[i], runs))
	}
	return s
}

// terminated is the status of a pod whose containers have all ended. Those that
// had ended before stay as they are.
func terminated(pod *corev1.Pod, phase corev1.PodPhase, code int32, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	s := pod.Status.DeepCopy()
	s.Phase = phase
	s.Conditions = conditions(s.Conditions, corev1.ConditionFalse, at)
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Terminated == nil {
				list[i].State, list[i].Ready = exited(code, at), false
			}
		}
	}
	return s
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func status(c *corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: started, Started: &started}
}

func exited(code int32, at metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: at, FinishedAt: at,
	}}
}

// conditions sets the kubelet's own conditions and keeps those of others, such
// as the scheduler's.
func conditions(all []corev1.PodCondition, ready corev1.ConditionStatus, at metav1.Time) []corev1.PodCondition {
	set := map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodInitialized: corev1.ConditionTrue, corev1.ContainersReady: ready, corev1.PodReady: ready,
	}
	var kept []corev1.PodCondition
	for _, c := range all {
		if _, ours := set[c.Type]; !ours {
			kept = append(kept, c)
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		kept = append(kept, corev1.PodCondition{Type: t, Status: set[t], LastTransitionTime: at})
	}
	return kept
}
