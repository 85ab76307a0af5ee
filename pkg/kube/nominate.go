package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Suits answers from what has been seen. Not looked at is what depends on other
// pods and on volumes: kube-scheduler refuses such a node itself.
func (p *Pods) Suits(t engine.Target) bool {
	pod := p.waiting(t)
	if pod == nil {
		return false
	}
	return p.Takes(pod, t.Node)
}

// Takes is Suits for a pod that need not be there.
func (p *Pods) Takes(pod *corev1.Pod, node gpu.NodeID) bool {
	known, err := p.Nodes.Get(string(node))
	return err == nil && suits(pod, known)
}

// waiting returns the pod as it was seen last, if it is that one and waits for a
// node, else nil.
func (p *Pods) waiting(t engine.Target) *corev1.Pod {
	pod, err := p.Lister.Pods(t.Namespace).Get(t.Name)
	if err != nil || gpu.PodID(pod.UID) != t.Pod || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return nil
	}
	return pod
}

// suits is kube-scheduler's NodeUnschedulable, TaintToleration and NodeAffinity.
// A cordoned node is refused even to a pod that tolerates it, as we do too.
func suits(pod *corev1.Pod, node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	if _, kept := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, keepsOff, false); kept {
		return false
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return matches && err == nil
}

func keepsOff(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// Nominate sets the pod's nominated node, and touches it in the same request: a
// nomination that was there already would not be a change, and wake nobody. The
// API server refuses it for a pod that has been bound meanwhile, which is then
// returned as it is.
func (p *Pods) Nominate(ctx context.Context, t engine.Target, why string) (engine.Pod, error) {
	if pod := p.waiting(t); pod != nil && pod.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName != string(t.Node) {
		return p.Touch(ctx, t, why)
	}
	pod, err := p.touch(ctx, t, map[string]any{"nominatedNodeName": t.Node, "conditions": []any{p.touched(why)}})
	if apierrors.IsInvalid(err) {
		if now, lost := p.Live(ctx, t.Namespace, t.Name); lost == nil && now.Node != "" {
			return now, nil
		}
	}
	if err != nil {
		return engine.Pod{}, lookupError("nominate a node for", t.Namespace, t.Name, err)
	}
	p.Nominated()
	klog.FromContext(ctx).V(2).Info("node nominated", "pod", klog.KObj(pod), "podUID", t.Pod, "node", t.Node, "why", why)
	return p.decode(pod), nil
}

// Withdraw takes the nomination away if it is still the same when the request
// arrives. One that has been seen to be another costs no request.
func (p *Pods) Withdraw(ctx context.Context, t engine.Target) error {
	if pod := p.waiting(t); pod == nil || pod.Status.NominatedNodeName != string(t.Node) {
		return nil
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value,omitempty"`
	}
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", string(t.Pod)},
		{"test", "/status/nominatedNodeName", string(t.Node)},
		{"remove", "/status/nominatedNodeName", ""},
	})
	if err != nil {
		return err
	}
	_, err = p.Client.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err): // a test failed, or there is no pod: it is not there
		return nil
	case err != nil:
		return fmt.Errorf("withdraw the nomination of %s for pod %s/%s: %w", t.Node, t.Namespace, t.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("nomination withdrawn", "pod", klog.KRef(t.Namespace, t.Name), "podUID", t.Pod, "node", t.Node)
	return nil
}
