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

// ReadOfBound reports whether Placement, Ours, BoundIn or Shown go by a bound pod's
// annotation of that key. Of its labels they go by BoundByLabel and LabelJobID, of
// its owners by OwningJob. Of a pod that is not bound, Request judges every one.
func ReadOfBound(annotation string) bool {
	switch annotation {
	case AnnotationAllocation, AnnotationHAMiNode, AnnotationEpoch, AnnotationTaskGroup, corev1.MirrorPodAnnotationKey:
		return true
	}
	return injected(annotation)
}
