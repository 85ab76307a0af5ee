package codec

import corev1 "k8s.io/api/core/v1"

// What is read of objects' annotations and labels, for who keeps many objects and
// wants to keep no more of them than that.

// ReadOfNode reports whether Facts goes by a node's annotation of that key.
func ReadOfNode(annotation string) bool {
	switch annotation {
	case AnnotationDevices, AnnotationCordon, AnnotationHAMiCordon, AnnotationTopology, AnnotationHAMiScore:
		return true
	}
	for i := range forms {
		if forms[i].register == annotation {
			return annotation != ""
		}
	}
	return false
}

// ReadOfBound reports whether Placement, Ours, BoundIn, Shown, TaskGroup, Inference or
// MaxRuntime go by a bound pod's annotation of that key. Of its labels they go by
// BoundByLabel and LabelJobID, of its owners by OwningJob. Of a pod that is not bound,
// Request judges every one.
func ReadOfBound(annotation string) bool {
	switch annotation {
	case AnnotationAllocation, AnnotationHAMiNode, AnnotationEpoch, AnnotationTaskGroup, AnnotationTaskType, AnnotationMaxRuntime,
		corev1.MirrorPodAnnotationKey:
		return true
	}
	return injected(annotation)
}

// Victim reports whether Bound tells more of a bound pod than who it is and with whom:
// it lets itself be ended for others, or its earlier lives were.
func Victim(pod *corev1.Pod) bool { return preemptible(pod) || count(pod) > 0 }

// ReadOfVictim reports whether Bound goes by an annotation of that key, of a pod that
// is a Victim.
func ReadOfVictim(annotation string) bool {
	switch annotation {
	case AnnotationPreemptible, AnnotationTaskType, AnnotationPreemptMode, AnnotationPreemptCount, AnnotationPreemptedFrom:
		return true
	}
	return false
}

// Anywhere reports whether the volume is of a kind that every node has, whoever is on
// it. Those kinds are all that is not read of the volumes of a pod that waits.
func Anywhere(v *corev1.Volume) bool {
	return v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil ||
		v.HostPath != nil || v.NFS != nil || v.Image != nil
}
