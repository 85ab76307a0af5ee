package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/codec"
)

// victim adds what is read of a bound pod that may be ended for others, or whose
// earlier lives were. All others are as small as without it.
func victim(p, slim *corev1.Pod) {
	for key, value := range p.Annotations {
		if codec.ReadOfVictim(key) {
			put(&slim.Annotations, one(key), one(value))
		}
	}
	slim.CreationTimestamp = p.CreationTimestamp
	slim.OwnerReferences = owner(p)
	slim.Spec.SchedulerName = one(p.Spec.SchedulerName)
	slim.Spec.Priority, slim.Spec.PriorityClassName = p.Spec.Priority, one(p.Spec.PriorityClassName)
	began(p.Status.InitContainerStatuses, slim.Status.InitContainerStatuses)
	began(p.Status.ContainerStatuses, slim.Status.ContainerStatuses)
}

// began adds when containers began to run, and which have ended.
func began(all, slim []corev1.ContainerStatus) {
	for i := range all {
		if r := all[i].State.Running; r != nil {
			slim[i].State.Running = &corev1.ContainerStateRunning{StartedAt: r.StartedAt}
		}
		if all[i].State.Terminated != nil {
			slim[i].State.Terminated = &corev1.ContainerStateTerminated{}
		}
	}
}

// owner returns who makes the pod anew, or whose it is though it does not.
func owner(p *corev1.Pod) []metav1.OwnerReference {
	of := metav1.GetControllerOfNoCopy(p)
	if of == nil && len(p.OwnerReferences) > 0 {
		of = &p.OwnerReferences[0]
	}
	if of == nil {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion: one(of.APIVersion), Kind: one(of.Kind), Name: one(of.Name), UID: types.UID(one(string(of.UID))), Controller: of.Controller,
	}}
}

// asker adds what is read of a pod that waits about whether others are ended for it.
func asker(p, slim *corev1.Pod) {
	slim.CreationTimestamp = p.CreationTimestamp
	slim.OwnerReferences = owner(p)
	slim.Spec.SchedulerName = one(p.Spec.SchedulerName)
	slim.Spec.PreemptionPolicy = p.Spec.PreemptionPolicy
	slim.Spec.SchedulingGates = p.Spec.SchedulingGates
	slim.Spec.SchedulingGroup = p.Spec.SchedulingGroup
	slim.Spec.ResourceClaims = p.Spec.ResourceClaims
	for i := range p.Spec.Volumes {
		if !codec.Anywhere(&p.Spec.Volumes[i]) {
			slim.Spec.Volumes = append(slim.Spec.Volumes, p.Spec.Volumes[i])
		}
	}
	hostPorts(p.Spec.InitContainers, slim.Spec.InitContainers)
	hostPorts(p.Spec.Containers, slim.Spec.Containers)
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
}

func hostPorts(all, slim []corev1.Container) {
	ours := func(p corev1.ContainerPort) bool { return p.HostPort == 0 }
	for i := range all {
		slim[i].Ports = slices.DeleteFunc(slices.Clone(all[i].Ports), ours)
	}
}
