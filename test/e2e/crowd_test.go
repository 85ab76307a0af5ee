package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdmissionOfACrowd creates 2,000 pods as fast as the API server takes them.
// Each comes out with its record and its priority, and none is lost. Nobody
// schedules them, which would be another test.
func TestAdmissionOfACrowd(t *testing.T) {
	const crowd, creators = 2000, 32
	s := begin(t, defaults)
	s.admit()
	s.pauseKubeScheduler()

	var mu sync.Mutex
	var slowest time.Duration // guarded by mu
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(creators)
	for i := range crowd {
		g.Go(func() error {
			took, err := s.createInCrowd(i)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, took)
			return err
		})
	}
	s.must("create", g.Wait())
	took := time.Since(began).Seconds()
	t.Logf("%d pods in %.1f s: %.0f a second, the slowest after %s", crowd, took, crowd/took, slowest.Round(time.Millisecond))
	pods := s.pods()
	if len(pods) != crowd {
		t.Errorf("%d pods are there, want %d", len(pods), crowd)
	}
	for i := range pods { // many at once, which a collection's deletion does not do
		g.Go(func() error {
			return s.Client.CoreV1().Pods(s.ns).Delete(s.ctx, pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		})
	}
	s.must("delete", g.Wait())
}

// createInCrowd makes one pod of some shape and priority, and says how long that
// took and what is wrong with what came out.
func (s *scene) createInCrowd(i int) (took time.Duration, err error) {
	shapes := [][]amount{
		{{wholeCards, 1}},
		{{sliceMemory, 8000}, {sliceCores, 10}},
		{{vendorCards, 2}, {vendorMemory, 4000}},
		{{"huawei.com/Ascend910B3", 2}},
	}
	priority := strconv.Itoa(i % 101)
	p := with(bare(podFor("crowd-"+strconv.Itoa(i), shapes[i%len(shapes)]...)), priorityKey, priority)
	began := time.Now()
	p, err = s.Client.CoreV1().Pods(s.ns).Create(s.ctx, p, metav1.CreateOptions{})
	if took = time.Since(began); err != nil {
		return took, err
	}
	got := fmt.Sprintf("%s %s %s %d", p.Spec.SchedulerName, p.Annotations[numbersOf], p.Spec.PriorityClassName, *p.Spec.Priority)
	if want := `heteroflow-scheduler {"main":0} heteroflow-` + priority + " " + priority; got != want {
		err = fmt.Errorf("pod %s is %s, want %s", p.Name, got, want)
	}
	return took, err
}

// pauseKubeScheduler has pods wait unseen until the test ends.
func (s *scene) pauseKubeScheduler() {
	s.Helper()
	s.must("stop kube-scheduler", s.StopKubeScheduler(s.ctx))
	s.Cleanup(func() { s.check("kube-scheduler", s.StartKubeScheduler(context.Background())) })
}

// firstBound waits until a pod is bound, and names it.
func (s *scene) firstBound() string {
	s.Helper()
	var first *corev1.Pod
	s.eventually("a pod to be bound", func() error {
		pods := s.pods()
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				first = &pods[i]
				return nil
			}
		}
		return fmt.Errorf("%d pods wait", len(pods))
	})
	return first.Name
}
