package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/test/cluster"
)

// TestPreemptionRequests sends a real API server what preemptions are carried out by:
// what is of another version than the one that is there must not be done.
func TestPreemptionRequests(t *testing.T) {
	s := begin(t, defaults)
	s.StopExtender()
	s.running = cluster.Extender{}
	s.part("versions", (*scene).refusesOtherVersions)
	s.part("budget", (*scene).tellsABudgetApart)
	s.part("job", (*scene).suspendsAJobOfOneVersion)
	s.part("deadline", (*scene).setsADeadlineOfOneVersion)
}

// placed makes a pod that is bound to a node.
func (s *scene) placed(name string) *corev1.Pod {
	s.Helper()
	pod, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	s.must("create", err)
	return pod
}

func (s *scene) refusesOtherVersions() {
	api := kube.PodAPI{Client: s.Client}
	old := s.placed("victim")
	s.must("a trial", api.Evict(s.ctx, old, true))
	marked, err := api.Annotate(s.ctx, old, map[string]any{"example.com/a": "b"})
	s.must("mark", err)
	if _, err := api.Annotate(s.ctx, old, map[string]any{"example.com/a": nil}); !apierrors.IsConflict(err) {
		s.Errorf("a patch of an old version: %v", err)
	}
	if err := api.Evict(s.ctx, old, false); !apierrors.IsConflict(err) {
		s.Errorf("an eviction of an old version: %v", err)
	}
	s.must("a trial of an old version", api.Evict(s.ctx, old, true))
	if now, err := api.Get(s.ctx, s.ns, "victim"); err != nil || now.DeletionTimestamp != nil {
		s.Errorf("the pod is asked to go: %v, %v", now.DeletionTimestamp, err)
	}
	s.must("evict", api.Evict(s.ctx, marked, false))
	now, err := api.Get(s.ctx, s.ns, "victim")
	s.must("read", err)
	if now.DeletionTimestamp == nil {
		s.Error("the pod is not asked to go")
	}
	other := now.DeepCopy()
	other.UID = "another"
	if err := api.Kill(s.ctx, other); !apierrors.IsConflict(err) {
		s.Errorf("another pod of its name is deleted: %v", err)
	}
	s.must("kill", api.Kill(s.ctx, now))
	if _, err := api.Get(s.ctx, s.ns, "victim"); !apierrors.IsNotFound(err) {
		s.Errorf("it is still there: %v", err)
	}
}

func (s *scene) tellsABudgetApart() {
	api := kube.PodAPI{Client: s.Client}
	none := intstr.FromInt32(0)
	_, err := s.Client.PolicyV1().PodDisruptionBudgets(s.ns).Create(s.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	}, metav1.CreateOptions{})
	s.must("budget", err)
	pod := s.placed("guarded")
	// The API server asks no budget about a pod that is pending.
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	pod, err = s.Client.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	s.must("status", err)
	for _, trial := range []bool{true, false} {
		if err := api.Evict(s.ctx, pod, trial); !errors.Is(err, kube.ErrBlocked) {
			s.Errorf("evicted (for a trial: %v) against a budget: %v", trial, err)
		}
	}
}

func (s *scene) suspendsAJobOfOneVersion() {
	api := kube.JobAPI{Client: s.Client}
	made, err := s.Client.BatchV1().Jobs(s.ns).Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, NodeName: "nowhere", Containers: []corev1.Container{{Name: "main", Image: "none"}},
		}}},
	}, metav1.CreateOptions{})
	s.must("create", err)
	s.must("suspended", cluster.Eventually(s.ctx, "the Job is suspended", func(ctx context.Context) error {
		now, err := api.Get(ctx, s.ns, made.Name)
		if err != nil {
			return err
		}
		return api.Suspend(ctx, now, true, map[string]any{"example.com/by": "us"})
	}))
	old, err := api.Get(s.ctx, s.ns, "job")
	s.must("read", err)
	if old.Spec.Suspend == nil || !*old.Spec.Suspend || old.Annotations["example.com/by"] != "us" {
		s.Errorf("suspended: %+v", old.Spec)
	}
	_, err = s.Client.BatchV1().Jobs(s.ns).Patch(s.ctx, "job", "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/by":null}}}`), metav1.PatchOptions{})
	s.must("its user takes the mark off", err)
	if err := api.Suspend(s.ctx, old, false, map[string]any{"example.com/by": nil}); !apierrors.IsConflict(err) {
		s.Errorf("a Job is resumed that its user has touched: %v", err)
	}
}

// The API server lets a pod that is bound be given a deadline, and a shorter one, and of
// just that version.
func (s *scene) setsADeadlineOfOneVersion() {
	api := kube.PodAPI{Client: s.Client}
	old := s.placed("limited")
	s.must("a deadline", api.SetDeadline(s.ctx, old, 7200))
	if err := api.SetDeadline(s.ctx, old, 3600); !apierrors.IsConflict(err) {
		s.Errorf("a deadline of an old version: %v", err)
	}
	now, err := api.Get(s.ctx, s.ns, "limited")
	s.must("read", err)
	if d := now.Spec.ActiveDeadlineSeconds; d == nil || *d != 7200 {
		s.Errorf("the deadline is %v", d)
	}
	if err := api.SetDeadline(s.ctx, now, 7201); !apierrors.IsInvalid(err) {
		s.Errorf("a later deadline: %v", err)
	}
	s.must("a shorter deadline", api.SetDeadline(s.ctx, now, 1))
	day := int64(24 * 60 * 60)
	s.must("deleted with a grace of a day", s.Client.CoreV1().Pods(s.ns).Delete(s.ctx, "limited", metav1.DeleteOptions{GracePeriodSeconds: &day}))
	now, err = api.Get(s.ctx, s.ns, "limited")
	s.must("read", err)
	asked := now.DeletionTimestamp.Add(-24 * time.Hour)
	s.must("hastened", api.Hasten(s.ctx, now, 30))
	now, err = api.Get(s.ctx, s.ns, "limited")
	s.must("read", err)
	if *now.DeletionGracePeriodSeconds != 30 || !now.DeletionTimestamp.Time.Equal(asked.Add(30*time.Second)) {
		s.Errorf("it was deleted at %v, and ends at %v", asked, now.DeletionTimestamp)
	}
	node, err := kube.NodeAPI{Client: s.Client}.Get(s.ctx, "nowhere")
	if !apierrors.IsNotFound(err) {
		s.Errorf("a node that is not there: %v, %v", node, err)
	}
}
