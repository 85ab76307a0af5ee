package quality

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/simulate"
)

func TestValidate(t *testing.T) {
	trace := &simulate.Trace{Nodes: make([]simulate.Node, 5)}
	for nodes, want := range map[int]string{1: "", 5: "", 0: "nodes: 0 is outside 1..5", 6: "nodes: 6 is outside 1..5"} {
		text := ""
		if err := (&Config{Trace: trace, Nodes: nodes}).Validate(); err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%d nodes: %q, want %q", nodes, text, want)
		}
	}
}

// What is there in the end has to be what was counted.
func TestUnseen(t *testing.T) {
	on := func(name, node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	}
	bound := []corev1.Pod{on("a", "n1"), on("b", "n2")}
	tests := map[string]struct {
		now  []corev1.Pod
		want []string
	}{
		"as it was seen":   {bound, nil},
		"one more":         {append(bound[:2:2], on("c", "n1")), []string{`pod x/c: is on "n1", was seen on ""`}},
		"one that waits":   {append(bound[:2:2], on("c", "")), []string{`pod x/c: is on "", was seen on ""`}},
		"one that is gone": {bound[:1], []string{"1 pods that were bound are gone"}},
		"elsewhere":        {[]corev1.Pod{bound[0], on("b", "n1")}, []string{`pod x/b: is on "n1", was seen on "n2"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unseen(bound, tc.now)); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
		})
	}
}
