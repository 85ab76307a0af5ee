package preempt

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// reference is what the mark on a victim says.
type reference struct {
	Preemption string    `json:"preemption"`
	Preemptor  string    `json:"preemptor"`
	UID        string    `json:"uid"`
	Priority   int32     `json:"priority"`
	Rule       string    `json:"rule"`
	At         time.Time `json:"at"`
}

// mark returns the mark of those who are ended by p.
func mark(p *v1alpha1.Preemption, now time.Time) string {
	who := &p.Spec.Preemptor
	text, err := json.Marshal(reference{Preemption: p.Name, Preemptor: nameOf(who), UID: string(who.UID), Priority: who.Priority, Rule: p.Spec.Rule, At: now.UTC().Truncate(time.Second)})
	if err != nil {
		return "" // of texts and numbers: it cannot be
	}
	return string(text)
}

// marked reports whether the pod has been marked as asked to go by that Preemption.
func marked(pod *corev1.Pod, preemption string) bool {
	var r reference
	return json.Unmarshal([]byte(pod.Annotations[codec.AnnotationPreemptedBy]), &r) == nil && r.Preemption == preemption
}

// explained returns the manifest of a successor with the mark of its predecessor: who
// looks at it sees for whom that was ended, and by which rule.
func explained(manifest []byte, p *v1alpha1.Preemption, now time.Time) ([]byte, error) {
	pod := corev1.Pod{}
	if err := json.Unmarshal(manifest, &pod); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, codec.AnnotationPreemptedBy, mark(p, now))
	return json.Marshal(&pod)
}
