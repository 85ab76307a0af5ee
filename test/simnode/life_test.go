package simnode

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNext(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	started := now.Add(-3 * time.Second)
	always := corev1.ContainerRestartPolicyAlways
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "prepare"}, {Name: "proxy", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "main"}},
	}
	says := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	type seen struct {
		Phase      corev1.PodPhase
		Containers map[string]string
		Removed    bool
		Wait       time.Duration
	}
	runs := map[string]string{"prepare": "exit 0", "proxy": "running", "main": "running"}

	tests := map[string]struct {
		annotations map[string]string
		started     time.Time
		bound       time.Time
		phase       corev1.PodPhase
		deadline    int64 // seconds that it may be active; 0: for ever
		deleted     bool
		left        time.Duration // of its grace
		forced      bool
		want        seen
		wantErr     bool
	}{
		"a bound pod is started": {want: seen{Phase: corev1.PodRunning, Containers: runs}},
		"a running one runs on":  {started: started},
		"one whose images are pulled waits": {
			annotations: says(StartAfter, "5s"), bound: started, want: seen{Wait: 2 * time.Second}},
		"and is started then": {
			annotations: says(StartAfter, "3s"), bound: started, want: seen{Phase: corev1.PodRunning, Containers: runs}},
		"or is deleted before": {
			annotations: says(StartAfter, "5s"), bound: started, deleted: true, want: seen{Phase: corev1.PodFailed, Removed: true, Containers: map[string]string{}}},
		"a bad start": {annotations: says(StartAfter, "soon"), wantErr: true},
		"it ends when its time is over": {
			annotations: says(RunFor, "3s"), started: started,
			want: seen{Phase: corev1.PodSucceeded, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 0", "main": "exit 0"}}},
		"and not before": {annotations: says(RunFor, "10s"), started: started, want: seen{Wait: 7 * time.Second}},
		"it fails on demand": {
			annotations: says(End, "Failed"), started: started,
			want: seen{Phase: corev1.PodFailed, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 1", "main": "exit 1"}}},
		"one that has ended stays": {phase: corev1.PodSucceeded, started: started, annotations: says(End, "Failed")},
		"a deleted one ends, then goes": {
			started: started, deleted: true,
			want: seen{Phase: corev1.PodFailed, Removed: true, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 143", "main": "exit 143"}}},
		"a slow one takes its time": {
			annotations: says(StopAfter, "10s"), started: started, deleted: true, left: 22 * time.Second, want: seen{Wait: 2 * time.Second}},
		"but not more than its grace": {
			annotations: says(StopAfter, "1h"), started: started, deleted: true,
			want: seen{Phase: corev1.PodFailed, Removed: true, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 143", "main": "exit 143"}}},
		"one that ends well when it is told to": {
			annotations: says(StopCode, "0"), started: started, deleted: true,
			want: seen{Phase: corev1.PodSucceeded, Removed: true, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 0", "main": "exit 0"}}},
		"one that is active for too long is ended, and stays": {
			deadline: 3, started: started,
			want: seen{Phase: corev1.PodFailed, Containers: map[string]string{"prepare": "exit 0", "proxy": "exit 143", "main": "exit 143"}}},
		"and takes its time to end":            {deadline: 3, annotations: says(StopAfter, "2s"), started: started, want: seen{Wait: 2 * time.Second}},
		"one that may be active runs on":       {deadline: 5, started: started, want: seen{Wait: 2 * time.Second}},
		"and ends by itself if that is so":     {deadline: 5, annotations: says(RunFor, "4s"), started: started, want: seen{Wait: time.Second}},
		"a bad stop of one that may not be":    {deadline: 3, annotations: says(StopAfter, "late"), started: started, wantErr: true},
		"a bad stop":                           {annotations: says(StopAfter, "late"), started: started, deleted: true, wantErr: true},
		"a deleted one that had ended goes":    {phase: corev1.PodFailed, started: started, deleted: true, want: seen{Removed: true}},
		"a hanging one does neither":           {annotations: says(Hang, "true"), started: started, deleted: true},
		"one that goes by force is left alone": {started: started, deleted: true, forced: true},
		"a bad duration":                       {annotations: says(RunFor, "soon"), started: started, wantErr: true},
		"a bad end":                            {annotations: says(End, "Well"), started: started, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: spec}
			if !tc.started.IsZero() {
				pod.Status = *running(pod, tc.started)
			}
			if tc.phase != "" {
				pod.Status.Phase = tc.phase
			}
			if tc.deadline > 0 {
				pod.Spec.ActiveDeadlineSeconds = &tc.deadline
			}
			if tc.deleted {
				grace := int64(30)
				if tc.forced {
					grace = 0
				}
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(tc.left)}, &grace
			}
			if !tc.bound.IsZero() {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(tc.bound)}}
			}
			got, err := next(pod, tc.started, now)
			if (err != nil) != tc.wantErr {
				t.Fatalf("next: %v, want an error: %t", err, tc.wantErr)
			}
			s := seen{Removed: got.remove, Wait: got.wait}
			if got.status != nil {
				s.Phase, s.Containers = got.status.Phase, states(got.status)
			}
			if diff := cmp.Diff(tc.want, s); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// states says what each container does.
func states(s *corev1.PodStatus) map[string]string {
	m := map[string]string{}
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		m[c.Name] = "running"
		if end := c.State.Terminated; end != nil {
			m[c.Name] = fmt.Sprintf("exit %d", end.ExitCode)
		}
	}
	return m
}
