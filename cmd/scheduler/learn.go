package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// learn has the engine learn what is asked for from the pods that are bound when this
// replica begins to lead: those that come from then on it is asked about.
func (p *program) learn(ctx context.Context) error {
	if err := until(ctx, p.cluster.Ready); err != nil {
		return err
	}
	bound, err := p.cluster.Pods().List(labels.SelectorFromSet(labels.Set{codec.BoundByLabel: codec.BoundByValue}))
	if err != nil {
		return err
	}
	for _, r := range asked(bound, p.settings) {
		p.engine.Learn(&r)
	}
	<-ctx.Done()
	return ctx.Err()
}

// until waits until it is so.
func until(ctx context.Context, so func() bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// asked returns what the pods that have a node ask for, the oldest first. Their wishes for
// models of cards are not known any more, see kube: only what they ask for is.
func asked(pods []*corev1.Pod, s policy.Settings) (all []gpu.Request) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, pod := range pods {
		if r, err := codec.Request(pod, s); err == nil && pod.Spec.NodeName != "" && r.AsksForCards() {
			all = append(all, r)
		}
	}
	return all
}
