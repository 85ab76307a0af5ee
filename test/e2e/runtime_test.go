package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMaxRuntime has pods run for longer than they may: a Job is suspended, and goes on
// anew when it is resumed; another pod is ended by its kubelet, and its object stays;
// one that only passes the policy's default is warned; inference runs on.
func TestMaxRuntime(t *testing.T) {
	s := begin(t, rebuilding) // with a default of 4 s
	s.add(cards("runtime", 8))
	limited := func(name string) *corev1.Pod {
		return with(on("runtime", podFor(name, amount{wholeCards, 1})), maxRuntimeKey, "5s")
	}
	job := s.job(limited("limited-job"))
	s.create(
		stops(limited("limited"), 2*time.Second),
		with(limited("serving"), taskTypeKey, "inference"),
		on("runtime", podFor("default", amount{wholeCards, 1})))
	s.eventually("the Job to run", func() error { return s.podsOf(job, 2) })
	s.runs("limited")
	s.eventually("the Job to be suspended", func() error { return s.isSuspended(job, true) })
	s.eventually("its pods to be gone", func() error { return s.podsOf(job, 0) })
	s.eventually("the other to end, and stay", func() error {
		if p := s.pod("limited"); p.Status.Phase != corev1.PodFailed || p.Status.Reason != "DeadlineExceeded" {
			return fmt.Errorf("it is %s for %q", p.Status.Phase, p.Status.Reason)
		}
		return nil
	})
	s.eventually("it to be told", func() error { return s.hasEvent("limited", "MaxRuntimeExceeded", "5s") })
	s.eventually("the Job to be told", func() error { return s.hasEvent(job, "MaxRuntimeExceeded", "5s") })
	s.eventually("a warning", func() error { return s.hasEvent("default", "TaskTimeoutExceeded", "4s") })
	for _, name := range []string{"serving", "default"} {
		if p := s.pod(name); p.Status.Phase != corev1.PodRunning {
			s.Errorf("%s is %s", name, p.Status.Phase)
		}
	}
	s.resume(job)
	s.eventually("the Job to go on", func() error { return s.podsOf(job, 2) })
	s.verify()
}

// resume is what a user does with a Job that is suspended.
func (s *scene) resume(job string) {
	s.Helper()
	_, err := s.Client.BatchV1().Jobs(s.ns).Patch(s.ctx, job, "application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	s.must("resume", err)
}
