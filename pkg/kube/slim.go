package kube

import (
	"reflect"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// slimmer makes small objects of those that informers keep: it picks what is read
// here, and drops all the rest. A bound pod is 2,300 bytes as it is kept, whatever it
// was, which is 90 MiB for 40,000 of them.
//
// What is kept of whom:
//   - a node: what codec.Facts goes by, what decides whether it takes a pod at all
//     (labels, taints), and since when it has not been ready, if it is not;
//   - a pod that waits for its node: what codec.Request, codec.Asking and a Binding go
//     by, all annotations among them, its wishes about nodes, and who has nominated
//     which;
//   - a bound pod: what codec.Placement goes by (of one that is ours, with whom it
//     works), since when it runs and how long it may, its end, and its grace period; of
//     one that may be ended for others, or whose earlier lives were, what codec.Bound
//     goes by too;
//   - a namespace: its labels, and a ResourceQuota: its spec. The figures in its
//     status change with every pod, and are Kubernetes' own;
//   - a Tenant, a Preemption and a TaskGroup: all but who has written which field of it;
//     of a TaskGroup, which users make, no annotations and labels either.
type slimmer struct {
	lists  lists
	marks  map[string]string // the labels of a pod that we have bound; never edited
	groups marked
}

func newSlimmer() *slimmer {
	return &slimmer{marks: map[string]string{codec.BoundByLabel: codec.BoundByValue}}
}

// slim is a cache.TransformFunc. It may come more than once to one object, and
// changes it in place.
func (s *slimmer) slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		*o = s.pod(o)
	case *corev1.Node:
		*o = s.node(o)
	case *corev1.Namespace:
		labels := shared(o.Labels)
		*o = corev1.Namespace{ObjectMeta: identity(&o.ObjectMeta)}
		o.Labels = labels
	case *corev1.ResourceQuota:
		*o = s.quota(o)
	case *v1alpha1.Tenant:
		o.ManagedFields = nil
	case *v1alpha1.Preemption:
		o.ManagedFields = nil
	case *v1alpha1.TaskGroup:
		o.ManagedFields, o.Annotations, o.Labels = nil, nil, nil // a user may write 256 KiB into each of thousands
	}
	return object, nil
}

func (s *slimmer) quota(q *corev1.ResourceQuota) corev1.ResourceQuota {
	slim := corev1.ResourceQuota{ObjectMeta: identity(&q.ObjectMeta), Spec: q.Spec}
	slim.Spec.Hard = s.lists.one(q.Spec.Hard)
	return slim
}

func (s *slimmer) node(n *corev1.Node) corev1.Node {
	slim := corev1.Node{
		ObjectMeta: identity(&n.ObjectMeta),
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{
			Allocatable: s.lists.one(n.Status.Allocatable),
			NodeInfo:    corev1.NodeSystemInfo{BootID: n.Status.NodeInfo.BootID},
		},
	}
	slim.Labels = shared(n.Labels)
	for key, value := range n.Annotations {
		if codec.ReadOfNode(key) {
			put(&slim.Annotations, key, value)
		}
	}
	for i := range n.Status.Conditions {
		// Without the time of its heartbeat, which each changes; since when it is not
		// ready decides what becomes of services there.
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			ready := corev1.NodeCondition{Type: c.Type, Status: c.Status}
			if c.Status != corev1.ConditionTrue {
				ready.LastTransitionTime = c.LastTransitionTime
			}
			slim.Status.Conditions = append(slim.Status.Conditions, ready)
		}
	}
	return slim
}

// pod picks what is read of any pod, and then of one that is bound or is not.
func (s *slimmer) pod(p *corev1.Pod) corev1.Pod {
	slim := corev1.Pod{
		ObjectMeta: identity(&p.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName:                      p.Spec.NodeName,
			InitContainers:                s.containers(p.Spec.InitContainers),
			Containers:                    s.containers(p.Spec.Containers),
			Overhead:                      s.lists.one(p.Spec.Overhead),
			Resources:                     s.requirements(p.Spec.Resources),
			TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds,
		},
		Status: s.status(&p.Status),
	}
	if p.Spec.NodeName == "" {
		waiting(p, &slim)
	} else {
		s.bound(p, &slim)
		if codec.Victim(p) {
			victim(p, &slim)
			return slim
		}
	}
	if plain(&slim) {
		slim.Status.InitContainerStatuses, slim.Status.ContainerStatuses, slim.Status.EphemeralContainerStatuses = nil, nil, nil
	}
	return slim
}

// waiting adds what is read of a pod that has no node.
func waiting(p, slim *corev1.Pod) {
	slim.Annotations, slim.Labels = p.Annotations, p.Labels
	slim.Spec.NodeSelector = p.Spec.NodeSelector
	slim.Spec.Affinity = p.Spec.Affinity
	slim.Spec.Tolerations = p.Spec.Tolerations
	slim.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints
	slim.Spec.Priority = p.Spec.Priority
	slim.Status.NominatedNodeName = p.Status.NominatedNodeName
	asker(p, slim)
}

// bound adds what is read of a pod that has a node. The copy of the record that
// is there for HAMi's readers goes, and the names of all are one string.
func (s *slimmer) bound(p, slim *corev1.Pod) {
	for key, value := range p.Annotations {
		if value == p.Spec.NodeName {
			value = p.Spec.NodeName // the string that is there already
		}
		switch key {
		case codec.AnnotationTaskGroup, codec.AnnotationMaxRuntime, codec.AnnotationTaskType:
			value = one(value)
		}
		if codec.ReadOfBound(key) {
			put(&slim.Annotations, one(key), value)
		}
	}
	slim.Status.StartTime = p.Status.StartTime
	job := p.Labels[codec.LabelJobID]
	switch mark, ok := p.Labels[codec.BoundByLabel]; {
	case mark == codec.BoundByValue && job != "":
		slim.Labels = s.groups.labels(job)
	case mark == codec.BoundByValue:
		slim.Labels = s.marks
		slim.OwnerReferences = s.groups.owners(codec.OwningJob(p))
	case ok:
		slim.Labels = map[string]string{codec.BoundByLabel: mark}
	}
}

// plain reports whether the statuses of a pod's containers say nothing: its end
// is not near, so that it does not matter which of them run, and each has what
// the pod asks for, as all have but those that are being resized.
func plain(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || len(p.Status.Conditions) > 0 {
		return false
	}
	asked := map[string]corev1.ResourceList{}
	for _, all := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range all {
			if _, twice := asked[all[i].Name]; twice {
				return false // the API server lets nobody through with that
			}
			asked[all[i].Name] = all[i].Resources.Requests
		}
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			c := &all[i]
			if c.AllocatedResources != nil && !same(c.AllocatedResources, asked[c.Name]) ||
				c.Resources != nil && c.Resources.Requests != nil && !same(c.Resources.Requests, asked[c.Name]) {
				return false
			}
		}
	}
	return true
}

// same reports whether two lists are one, as lists make them of equal ones.
func same(a, b corev1.ResourceList) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func (s *slimmer) status(p *corev1.PodStatus) corev1.PodStatus {
	slim := corev1.PodStatus{
		Phase:                      p.Phase,
		InitContainerStatuses:      s.statuses(p.InitContainerStatuses),
		ContainerStatuses:          s.statuses(p.ContainerStatuses),
		EphemeralContainerStatuses: s.statuses(p.EphemeralContainerStatuses),
		Resources:                  s.requirements(p.Resources),
		AllocatedResources:         s.lists.one(p.AllocatedResources),
	}
	for i := range p.Conditions {
		// Which of the figures of a pod that is being resized count hangs on it.
		if c := &p.Conditions[i]; c.Type == corev1.PodResizePending {
			slim.Conditions = append(slim.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	return slim
}

func (s *slimmer) containers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	slim := make([]corev1.Container, len(all))
	for i := range all {
		c := &all[i]
		slim[i] = corev1.Container{
			Name:          one(c.Name),
			RestartPolicy: c.RestartPolicy,
			Resources:     corev1.ResourceRequirements{Limits: s.lists.one(c.Resources.Limits), Requests: s.lists.one(c.Resources.Requests)},
		}
	}
	return slim
}

func (s *slimmer) statuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(all) == 0 {
		return nil
	}
	slim := make([]corev1.ContainerStatus, len(all))
	for i := range all {
		c := &all[i]
		slim[i] = corev1.ContainerStatus{Name: one(c.Name), AllocatedResources: s.lists.one(c.AllocatedResources), Resources: s.requirements(c.Resources)}
		if c.State.Running != nil {
			slim[i].State.Running = &corev1.ContainerStateRunning{}
		}
	}
	return slim
}

func (s *slimmer) requirements(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	return &corev1.ResourceRequirements{Limits: s.lists.one(r.Limits), Requests: s.lists.one(r.Requests)}
}

// identity is what tells an object and its version from others, and how its end
// stands.
func identity(o *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: one(o.Namespace), Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		DeletionTimestamp: o.DeletionTimestamp, DeletionGracePeriodSeconds: o.DeletionGracePeriodSeconds,
	}
}

func put(into *map[string]string, key, value string) {
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
}

// shared returns the map with keys and values that equal ones of others share.
func shared(from map[string]string) (all map[string]string) {
	for key, value := range from {
		put(&all, one(key), one(value))
	}
	return all
}

// one returns the one copy of a string that many objects have.
func one(s string) string { return unique.Make(s).Value() }
