package e2e

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

const (
	namespace = "bench"
	creators  = 16 // requests under way at once
	cards     = 8  // of a node
	// perCard is how many slices a card holds: of 100 percent of its compute each takes 30.
	perCard = 3
)

// quick lets a client work at full speed, in the API server's own encoding.
func quick(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 5000, 10000
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

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
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for i := range pods {
		g.Go(func() error {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, pod(i), metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// remove deletes all pods, and returns when none is there.
func remove(ctx context.Context, client kubernetes.Interface) error {
	pods := client.CoreV1().Pods(namespace)
	return cluster.Eventually(ctx, "the pods to go", func(ctx context.Context) error {
		if err := pods.DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{}); err != nil {
			return err
		}
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%s and others are left", left.Items[0].Name)
		}
		return err
	})
}

// watchBound watches pods that are bound from now on: each comes into sight when
// it gets its node.
func watchBound(ctx context.Context, client kubernetes.Interface) (watch.Interface, error) {
	pods := client.CoreV1().Pods(namespace)
	now, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return pods.Watch(ctx, metav1.ListOptions{
		ResourceVersion: now.ResourceVersion,
		FieldSelector:   fields.OneTermNotEqualSelector("spec.nodeName", "").String(),
	})
}
