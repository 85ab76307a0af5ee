package e2e

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

const (
	namespace = "bench"
	workers   = 16 // requests under way at once
	cards     = 8  // of a node
	// perCard is how many slices a card holds: of 100 percent of its compute each takes 30.
	perCard = 3
)

// nodes have processors and memory for more pods than their cards have, so that
// only cards are short.
func nodes(n int) []simnode.Spec {
	specs := make([]simnode.Spec, n)
	for i := range specs {
		name := fmt.Sprintf("gpu-%05d", i)
		specs[i] = simnode.Spec{
			Name: name, CPU: "128", Memory: "1Ti",
			Cards: simnode.Cards(name, cards, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920),
		}
	}
	return specs
}

// fits says whether so many pods leave a fifth of the cards free: what is
// measured is the speed, not the search for the last card.
func fits(nodes, pods int) error {
	if nodes < 1 || pods < 2 {
		return fmt.Errorf("%d nodes, %d pods: want at least 1 and 2", nodes, pods)
	}
	whole := pods / 2
	taken := whole + (pods-whole+perCard-1)/perCard
	if all := nodes * cards; taken > all*4/5 {
		return fmt.Errorf("%d pods take %d of the %d cards of %d nodes, more than four fifths: take fewer pods or more nodes", pods, taken, all, nodes)
	}
	return nil
}

// pod is the one of a number: a slice, or a whole card, in turn.
func pod(i int) *corev1.Pod {
	asks := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("100Mi")}
	if i%2 == 0 {
		asks["heteroflow.io/gpu-memory"] = resource.MustParse("10000")
		asks["heteroflow.io/gpu-cores"] = resource.MustParse("30")
	} else {
		asks["heteroflow.io/gpu"] = resource.MustParse("1")
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("bench-%05d", i)},
		Spec: corev1.PodSpec{
			SchedulerName: "heteroflow-scheduler",
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/app",
				Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
			}},
		},
	}
}

// create makes the pods, and returns when all are there.
func create(ctx context.Context, client kubernetes.Interface, pods int) error {
	return eachPod(ctx, pods, func(ctx context.Context, p *corev1.Pod) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// remove deletes the pods, and returns when none is there. One by one is quicker
// than all at once: the API server takes turns for the pods of one request.
func remove(ctx context.Context, client kubernetes.Interface, pods int) error {
	at := client.CoreV1().Pods(namespace)
	err := eachPod(ctx, pods, func(ctx context.Context, p *corev1.Pod) error {
		err := at.Delete(ctx, p.Name, *metav1.NewDeleteOptions(0))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return cluster.Eventually(ctx, "the pods to go", func(ctx context.Context) error {
		left, err := at.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%s is left", left.Items[0].Name)
		}
		return err
	})
}

// eachPod calls f for every pod of a round, several at once.
func eachPod(ctx context.Context, pods int, f func(context.Context, *corev1.Pod) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range pods {
		g.Go(func() error { return f(ctx, pod(i)) })
	}
	return g.Wait()
}

// watchBound watches pods that are bound from now on: each comes into sight when
// it gets its node. An API server that is busy cuts watches; it is taken up again
// where it was cut.
func watchBound(ctx context.Context, client kubernetes.Interface) (watch.Interface, error) {
	pods := client.CoreV1().Pods(namespace)
	now, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	return watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = bound
			return pods.Watch(ctx, o)
		},
	})
}
