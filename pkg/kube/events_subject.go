package kube

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Subject is what an event is about that is no pod.
type Subject struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
}

// PodSubject is a pod.
func PodSubject(p *corev1.Pod) Subject {
	return Subject{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// JobSubject is a Job.
func JobSubject(j *batchv1.Job) Subject {
	return Subject{APIVersion: "batch/v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name, UID: j.UID}
}

// NodeSubject is a node. Like the kubelet's own, events about it have its name in
// place of a UID, which is what kubectl describe looks for.
func NodeSubject(node gpu.NodeID) Subject {
	return Subject{APIVersion: "v1", Kind: "Node", Name: string(node), UID: types.UID(node)}
}

// TenantSubject is a Tenant.
func TenantSubject(t *v1alpha1.Tenant) Subject {
	return Subject{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.TenantKind, Name: t.Name, UID: t.UID}
}

// TaskGroupSubject is a TaskGroup.
func TaskGroupSubject(g *v1alpha1.TaskGroup) Subject {
	return Subject{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.TaskGroupKind, Namespace: g.Namespace, Name: g.Name, UID: g.UID}
}

// QuotaSubject is a ResourceQuota.
func QuotaSubject(q *corev1.ResourceQuota) Subject {
	return Subject{APIVersion: "v1", Kind: "ResourceQuota", Namespace: q.Namespace, Name: q.Name, UID: q.UID}
}

// Notice is something that is to be told of a subject.
type Notice struct {
	About   Subject
	Warning bool
	Reason  string
	// Key tells apart what is told of one subject for one reason; what has the same
	// is one event, whose text changes.
	Key  string
	Text string
}

// Tell tells it. It never blocks.
func (e *Events) Tell(n Notice) { e.send(noticeEvent(&n)) }

// noticeEvent makes the event. One about what is in no namespace is in the default
// one, where kubectl describe looks for it.
func noticeEvent(n *Notice) *corev1.Event {
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	s := &n.About
	ev := event(about{gpu.PodID(s.UID), cmp.Or(s.Namespace, metav1.NamespaceDefault), s.Name}, kind, n.Reason, n.Key, n.Text, 1)
	ev.InvolvedObject = corev1.ObjectReference{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	return ev
}
