package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// unownedRest is for how long a pod that nobody would make anew is not looked at again:
// it may be adopted.
const unownedRest = 10 * time.Minute

// apply looks at those whose turn it is, and evicts who is to go.
func (c *Controller) apply(ctx context.Context, p *plan) {
	looks := mostLooks
	for i := range p.turns {
		t := &p.turns[i]
		if ctx.Err() != nil || looks == 0 {
			return
		}
		if *t.left <= 0 {
			continue
		}
		looks--
		put(&c.memory.tried, t.pod.UID, c.Now())
		if err := c.attend(ctx, t); err != nil && ctx.Err() == nil {
			c.Meter.Rebuilt(metrics.RebuildFailed)
			klog.FromContext(ctx).Error(err, "pod on a lost node is not evicted", "pod", klog.KObj(t.pod), "podUID", t.pod.UID, "node", t.pod.Spec.NodeName)
			if !kube.Answered(err) {
				return // it would be the same for the others
			}
		}
	}
}

// attend reads the pod and then its node anew, and evicts the pod if all is as it was
// seen. What happens to the pod after it was read has the eviction refused.
func (c *Controller) attend(ctx context.Context, t *turn) error {
	pod, err := c.Pods.Get(ctx, t.pod.Namespace, t.pod.Name)
	if apierrors.IsNotFound(err) {
		c.Meter.Rebuilt(metrics.RebuildOvertaken)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	if pod.UID != t.pod.UID || pod.DeletionTimestamp != nil || codec.Terminal(pod) || pod.Spec.NodeName != t.pod.Spec.NodeName || groupOf(pod) != groupOf(t.pod) {
		c.Meter.Rebuilt(metrics.RebuildOvertaken)
		return nil
	}
	if !t.loss.gone && serves(pod) { // of a node that is gone nobody takes back that its pods are ready
		c.Meter.Rebuilt(metrics.RebuildServes)
		return nil
	}
	lost, err := c.stillLost(ctx, t)
	if err != nil {
		return fmt.Errorf("read the node: %w", err)
	}
	if !lost {
		c.Meter.Rebuilt(metrics.RebuildOvertaken)
		return nil
	}
	return c.evict(ctx, t, pod)
}

// serves reports whether the pod is ready: its kubelet lives, for where a node is lost
// this is taken back.
func serves(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// stillLost reports whether the node is lost as it was seen to be, for as long.
func (c *Controller) stillLost(ctx context.Context, t *turn) (bool, error) {
	n, err := c.Nodes.Get(ctx, t.pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return t.loss.gone, nil
	}
	if err != nil {
		return false, err
	}
	ready, since := readiness(n)
	if since.IsZero() {
		since = t.loss.since
	}
	return !ready && !t.loss.gone && c.Now().Sub(since) >= c.Rules.Grace, nil
}

// evict evicts the pod, if there is somebody who makes another elsewhere.
func (c *Controller) evict(ctx context.Context, t *turn, pod *corev1.Pod) error {
	owner := metav1.GetControllerOfNoCopy(pod)
	if why := notRemade(owner); why != "" {
		put(&c.memory.rests, pod.UID, c.Now().Add(unownedRest))
		if c.tellOnce(t, ReasonNotRebuilt, why) {
			c.Meter.Rebuilt(metrics.RebuildUnowned)
		}
		return nil
	}
	err := c.Pods.Evict(ctx, pod, false)
	switch {
	case err == nil:
		*t.left--
		put(&c.memory.evicted, pod.UID, eviction{t.of.UID, c.Now()})
		c.Meter.Rebuilt(metrics.RebuildEvicted)
		c.tellEvicted(ctx, t, owner)
		return nil
	case errors.Is(err, kube.ErrBlocked):
		c.Meter.Rebuilt(metrics.RebuildBlocked)
		c.tellOnce(t, ReasonBlocked, err.Error())
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		c.Meter.Rebuilt(metrics.RebuildOvertaken)
		return nil
	}
	return err
}

// notRemade says why nobody would make the pod anew on another node; "": its owner does.
func notRemade(owner *metav1.OwnerReference) string {
	switch {
	case owner == nil:
		return "no controller owns it, so that nobody would make another"
	case owner.Kind == "DaemonSet", owner.Kind == "Node":
		return fmt.Sprintf("%s %s would make another on that very node", owner.Kind, owner.Name)
	}
	return ""
}
