package rebuild

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/kube"
)

// Reasons of the events. Alerts rely on them: add, never rename.
const (
	// ReasonRebuilding, on a pod and its TaskGroup: it is evicted from a lost node.
	ReasonRebuilding = "Rebuilding"
	// ReasonNotRebuilt, on a pod: nobody would make it anew elsewhere.
	ReasonNotRebuilt = "NotRebuilt"
	// ReasonBlocked, on a pod: a PodDisruptionBudget keeps it.
	ReasonBlocked = "RebuildBlocked"
	// ReasonHalted, on a TaskGroup: too many nodes are lost at once.
	ReasonHalted = "RebuildHalted"
)

// String says how the node is lost.
func (l loss) String() string {
	how := "has not been ready"
	if l.gone {
		how = "has been gone"
	}
	return fmt.Sprintf("%s since %s", how, l.since.UTC().Format(time.RFC3339))
}

// tellEvicted tells that the pod is evicted.
func (c *Controller) tellEvicted(ctx context.Context, t *turn, owner *metav1.OwnerReference) {
	node, by := t.pod.Spec.NodeName, owner.Kind+" "+owner.Name
	klog.FromContext(ctx).Info("evicted a pod of a service from a lost node", "pod", klog.KObj(t.pod), "podUID", t.pod.UID, "node", node, "taskGroup", t.of.Name, "gone", t.loss.gone, "since", t.loss.since)
	c.Tell(kube.Notice{About: kube.PodSubject(t.pod), Warning: true, Reason: ReasonRebuilding,
		Text: fmt.Sprintf("evicted so that %s makes another elsewhere: node %s %s", by, node, t.loss)})
	c.Tell(kube.Notice{About: kube.TaskGroupSubject(t.of.TaskGroup), Warning: true, Reason: ReasonRebuilding, Key: string(t.pod.UID),
		Text: fmt.Sprintf("pod %s is evicted so that %s makes another elsewhere: node %s %s", t.pod.Name, by, node, t.loss)})
}

// tellOnce tells why the pod is not evicted, and reports whether that is news.
func (c *Controller) tellOnce(t *turn, reason, why string) bool {
	if c.memory.told[t.pod.UID] == reason+why {
		return false
	}
	put(&c.memory.told, t.pod.UID, reason+why)
	c.Tell(kube.Notice{About: kube.PodSubject(t.pod), Warning: true, Reason: reason,
		Text: fmt.Sprintf("not evicted though node %s %s: %s", t.pod.Spec.NodeName, t.loss, why)})
	return true
}

// tellHalted tells the groups of which nothing is rebuilt, once until it goes on.
func (c *Controller) tellHalted(ctx context.Context, halted []halt) {
	was := c.memory.halted
	c.memory.halted = nil
	for _, h := range halted {
		put(&c.memory.halted, h.of.UID, true)
		if was[h.of.UID] {
			continue
		}
		text := fmt.Sprintf("no pod is evicted from a node that is not ready: %d of the %d nodes %s are not, as when the control plane is cut off from them; it goes on by itself when at most half are", h.notReady, h.nodes, h.whose)
		klog.FromContext(ctx).Info("services are not rebuilt: too many nodes are not ready at once", "taskGroup", klog.KObj(h.of), "notReady", h.notReady, "nodes", h.nodes)
		c.Tell(kube.Notice{About: kube.TaskGroupSubject(h.of.TaskGroup), Warning: true, Reason: ReasonHalted, Text: text})
	}
}
