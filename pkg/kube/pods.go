package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

var _ engine.Pods = (*Pods)(nil)

// Pods finds pods for the engine.
type Pods struct {
	Client   kubernetes.Interface
	Lister   corelisters.PodLister
	Settings policy.Settings
}

// Pod answers from what has been seen; a pod that was created a moment ago may
// not have been, and is asked for.
func (p *Pods) Pod(ctx context.Context, namespace, name string) (engine.Pod, error) {
	pod, err := p.Lister.Pods(namespace).Get(name)
	if err != nil {
		return p.Live(ctx, namespace, name)
	}
	return p.decode(pod), nil
}

// Live asks the API server for the newest state.
func (p *Pods) Live(ctx context.Context, namespace, name string) (engine.Pod, error) {
	pod, err := p.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return engine.Pod{}, fmt.Errorf("get pod %s/%s: %w", namespace, name, engine.ErrNoPod)
	case err != nil:
		return engine.Pod{}, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return p.decode(pod), nil
}

func (p *Pods) decode(pod *corev1.Pod) engine.Pod {
	request, invalid := codec.Request(pod, p.Settings)
	return engine.Pod{
		Request: request,
		Node:    gpu.NodeID(pod.Spec.NodeName),
		Ours:    codec.Ours(pod),
		Gone:    pod.DeletionTimestamp != nil || terminal(pod),
		Invalid: invalid,
	}
}

// terminal reports whether the pod will not run any more. Unlike codec.Ended it
// says nothing about what still runs.
func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
