package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/controllers/rebuild"
	"heteroflow.io/heteroflow/pkg/controllers/runtime"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/test/cluster"
)

// TestEndsOfPods has the controllers of run time and of lost nodes work on a real API
// server, beside the controllers of Jobs and ReplicaSets.
func TestEndsOfPods(t *testing.T) {
	s := begin(t, defaults)
	s.StopExtender()
	s.running = cluster.Extender{}
	s.part("a Job is suspended", (*scene).suspendsAJobWhoseTimeIsOver)
	s.part("a pod of a service is replaced", (*scene).replacesAPodOfALostNode)
}

type silent struct{}

func (silent) RuntimeExceeded(metrics.RuntimeAction) {}
func (silent) Rebuilt(metrics.RebuildOutcome)        {}
func (silent) RebuildHalted(int)                     {}

// store is what there is of the scene's pods now.
func (s *scene) store() cache.Indexer {
	s.Helper()
	all, err := s.Client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{})
	s.must("list", err)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for i := range all.Items {
		s.must("store", store.Add(&all.Items[i]))
	}
	return store
}

// took has a controller take its first round, seconds after which it is ended.
func (s *scene) took(run func(context.Context) error) {
	s.Helper()
	ctx, stop := context.WithTimeout(s.ctx, 3*time.Second)
	defer stop()
	if err := run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Run = %v", err)
	}
}

func (s *scene) template(node string, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// first waits for a pod that is not being deleted.
func (s *scene) first(not string) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	s.must("a pod", cluster.Eventually(s.ctx, "there is a pod", func(ctx context.Context) error {
		all, err := s.Client.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
		if err != nil {
			return err
		}
		for i := range all.Items {
			if p := &all.Items[i]; p.DeletionTimestamp == nil && string(p.UID) != not {
				found = p
				return nil
			}
		}
		return fmt.Errorf("%d pods, none of them new", len(all.Items))
	}))
	return found
}

func (s *scene) suspendsAJobWhoseTimeIsOver() {
	template := s.template("nowhere", map[string]string{codec.AnnotationMaxRuntime: "1h"})
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.Client.BatchV1().Jobs(s.ns).Create(s.ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "long"}, Spec: batchv1.JobSpec{Template: template}}, metav1.CreateOptions{})
	s.must("create", err)
	pod := s.first("")
	pod.Status.StartTime = new(metav1.NewTime(time.Now().Add(-2 * time.Hour)))
	pod.Status.Phase = corev1.PodRunning
	_, err = s.Client.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	s.must("it has run for two hours", err)
	c := &runtime.Controller{
		PodLister: corelisters.NewPodLister(s.store()), Pods: kube.PodAPI{Client: s.Client}, Jobs: kube.JobAPI{Client: s.Client},
		Max: func(p *corev1.Pod) (time.Duration, bool) {
			d, err := time.ParseDuration(p.Annotations[codec.AnnotationMaxRuntime])
			return d, err == nil
		},
		Inference: func(*corev1.Pod) bool { return false }, Ours: func(*corev1.Pod) bool { return true },
		Tell: func(n kube.Notice) { s.Logf("%s: %s", n.Reason, n.Text) }, Meter: silent{}, Now: time.Now,
	}
	s.took(c.Run)
	job, err := s.Client.BatchV1().Jobs(s.ns).Get(s.ctx, "long", metav1.GetOptions{})
	s.must("read", err)
	if job.Spec.Suspend == nil || !*job.Spec.Suspend {
		s.Error("the Job goes on")
	}
	s.must("its pod goes", cluster.Eventually(s.ctx, "its pod is asked to go", func(ctx context.Context) error {
		now, err := s.Client.CoreV1().Pods(s.ns).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	}))
}

func (s *scene) replacesAPodOfALostNode() {
	one := int32(1)
	_, err := s.Client.AppsV1().ReplicaSets(s.ns).Create(s.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "chat"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		Template: s.template("lost", map[string]string{codec.AnnotationTaskGroup: "chat"}),
	}}, metav1.CreateOptions{})
	s.must("create", err)
	pod := s.first("")
	groups, nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	s.must("store", groups.Add(&v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "chat", UID: "uid"}, Spec: v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference}}))
	c := &rebuild.Controller{
		PodLister: corelisters.NewPodLister(s.store()), NodeLister: corelisters.NewNodeLister(nodes), Groups: kindlisters.NewTaskGroupLister(groups),
		Pods: kube.PodAPI{Client: s.Client}, Nodes: kube.NodeAPI{Client: s.Client}, Rules: rebuild.Rules{AtOnce: 1},
		Tell: func(n kube.Notice) { s.Logf("%s: %s", n.Reason, n.Text) }, Meter: silent{}, Now: time.Now,
	}
	s.took(c.Run)
	if other := s.first(string(pod.UID)); other.Name == pod.Name {
		s.Errorf("%s is still there", pod.Name)
	}
}
