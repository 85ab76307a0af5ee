package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// workers is how many requests are under way at once.
const workers = 32

// quick returns a client that takes as much as the API server gives: in
// protobuf, and without a limit of its own.
func quick(config *rest.Config) (*kubernetes.Clientset, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = c.ContentType
	return kubernetes.NewForConfig(c)
}

// load writes the whole world, and returns the UIDs of its pods.
func (w world) load(ctx context.Context, client kubernetes.Interface, say func(string, ...any)) ([]types.UID, error) {
	began := time.Now()
	err := each(ctx, w.nodes, func(ctx context.Context, i int) error {
		node, err := w.node(i, began)
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return unlessThere(err)
	})
	if err != nil {
		return nil, fmt.Errorf("create nodes: %w", err)
	}
	say("%d nodes are there, %.0f s", w.nodes, time.Since(began).Seconds())
	uids := make([]types.UID, w.pods)
	err = each(ctx, w.pods, func(ctx context.Context, i int) (err error) {
		uids[i], err = w.run(ctx, client, i, began)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create pods: %w", err)
	}
	say("%d pods are bound, %.0f s", w.pods, time.Since(began).Seconds())
	return uids, nil
}

// reported is one of how many pods has a status when it is loaded: it doubles the
// writes, and little of it is kept.
const reported = 4

// run writes one pod, and returns its UID.
func (w world) run(ctx context.Context, client kubernetes.Interface, i int, at time.Time) (types.UID, error) {
	pod, err := w.pod(i, at)
	if err != nil {
		return "", err
	}
	pods := client.CoreV1().Pods(pod.Namespace)
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // an earlier try
		made, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	}
	if err != nil || i%reported != 0 {
		return made.UID, err
	}
	made.Status = pod.Status
	_, err = pods.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return made.UID, err
}

// unlessThere forgives what an earlier try has done.
func unlessThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// each calls f with 0 to n-1, several at once.
func each(ctx context.Context, n int, f func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return persist(ctx, func() error { return f(ctx, i) }) })
	}
	return g.Wait()
}

// tries is how often a write is tried: on a machine of few cores, which builds
// something beside, etcd may not answer in time.
const tries = 20

func persist(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// storm changes nodes and pods in turn at that rate until ctx ends, and says how
// many changes the API server has taken, and how many seconds that took.
func (w world) storm(ctx context.Context, client kubernetes.Interface, rate int) (taken int, took time.Duration, err error) {
	g, ctx2 := errgroup.WithContext(context.WithoutCancel(ctx))
	turns := make(chan int)
	var mu sync.Mutex
	for range workers {
		g.Go(func() error {
			for i := range turns {
				if err := persist(ctx2, func() error { return w.change(ctx2, client, i) }); err != nil {
					return err
				}
				mu.Lock()
				taken++
				mu.Unlock()
			}
			return nil
		})
	}
	began := time.Now()
	beat := time.NewTicker(time.Second / time.Duration(rate))
	defer beat.Stop()
	for i := 0; ctx.Err() == nil && ctx2.Err() == nil; i++ {
		<-beat.C
		select {
		case turns <- i:
		case <-ctx.Done():
		case <-ctx2.Done():
		}
	}
	took = time.Since(began)
	close(turns)
	return taken, took, g.Wait()
}

// change writes one heartbeat of a node, or one new status of a pod.
func (w world) change(ctx context.Context, client kubernetes.Interface, i int) error {
	now := time.Now()
	if i%2 == 0 {
		node, err := w.node(i/2%w.nodes, now)
		if err == nil {
			_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		}
		return err
	}
	var pod *corev1.Pod
	pod, err := w.pod(i/2*7919%w.pods, now) // a prime: all over the cluster
	if err == nil {
		_, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	return err
}
