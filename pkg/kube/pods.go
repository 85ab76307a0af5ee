package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

var _ engine.Pods = (*Pods)(nil)

// Pods finds pods for the engine.
type Pods struct {
	Client    kubernetes.Interface
	Lister    corelisters.PodLister
	Nodes     corelisters.NodeLister
	Settings  policy.Settings
	Now       func() time.Time
	Touched   func() // is told of each touch
	Nominated func() // is told of each nomination
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
	if err != nil {
		return engine.Pod{}, lookupError("get", namespace, name, err)
	}
	return p.decode(pod), nil
}

// Touched is the condition by which a pod is touched. Nobody acts on it.
const Touched corev1.PodConditionType = "heteroflow.io/Touched"

// Touch sets a condition of the pod, with a text that it has never had: a change
// that changes nothing would not make the pod's Bindings from before impossible.
func (p *Pods) Touch(ctx context.Context, t engine.Target, why string) (engine.Pod, error) {
	pod, err := p.touch(ctx, t, map[string]any{"conditions": []any{p.touched(why)}})
	if err != nil {
		return engine.Pod{}, lookupError("touch", t.Namespace, t.Name, err)
	}
	p.Touched()
	klog.FromContext(ctx).V(2).Info("pod touched", "pod", klog.KObj(pod), "podUID", t.Pod, "why", why)
	return p.decode(pod), nil
}

func (p *Pods) touched(why string) map[string]any {
	now := p.Now()
	return map[string]any{
		"type": Touched, "status": corev1.ConditionTrue, "reason": "Scheduling",
		"message":            why + " (" + now.UTC().Format(time.RFC3339Nano) + ")",
		"lastTransitionTime": metav1.NewTime(now),
	}
}

// touch merges into the pod's status. The UID in the patch makes it that very
// pod, as the API server refuses another.
func (p *Pods) touch(ctx context.Context, t engine.Target, status map[string]any) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.Pod}, "status": status})
	if err != nil {
		return nil, err
	}
	return p.Client.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

func lookupError(doing, namespace, name string, err error) error {
	if apierrors.IsNotFound(err) {
		err = engine.ErrNoPod
	}
	return fmt.Errorf("%s pod %s/%s: %w", doing, namespace, name, err)
}

func (p *Pods) decode(pod *corev1.Pod) engine.Pod {
	request, invalid := codec.Request(pod, p.Settings)
	return engine.Pod{
		Request: request,
		Says:    pod.Annotations,
		Node:    gpu.NodeID(pod.Spec.NodeName),
		Ours:    codec.Ours(pod),
		Gone:    pod.DeletionTimestamp != nil || codec.Terminal(pod),
		Invalid: invalid,
	}
}
