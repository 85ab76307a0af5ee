package codec

// What is read of objects' annotations and labels, for who keeps many objects and
// wants to keep no more of them than that.

// ReadOfNode reports whether Facts goes by a node's annotation of that key.
func ReadOfNode(annotation string) bool {
	switch annotation {
	case AnnotationDevices, AnnotationCordon, AnnotationHAMiCordon:
		return true
	}
	for i := range forms {
		if forms[i].register == annotation {
			return annotation != ""
		}
	}
	return false
}

// ReadOfBound lists what Placement and Ours go by on a bound pod: annotations and
// labels. Of a pod that is not bound, Request judges every one.
func ReadOfBound() (annotations, labels []string) {
	return []string{AnnotationAllocation, AnnotationHAMiNode}, []string{BoundByLabel}
}
