package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRoom(t *testing.T) {
	asks := func(pairs ...any) *build { return newPod("x", "new").ask(app, limits(pairs...)) }
	both, first, second := []string{"n1", "n2"}, []string{"n1"}, []string{"n2"}
	tests := map[string]struct {
		held []corev1.Pod
		pod  *build
		node func(*corev1.Node) // changes n1
		want []string
	}{
		"an empty cluster":                           {pod: asks(vendorCards, 1), want: both},
		"a device plugin gives nobody else a card":   {pod: asks(wholeCards, 1), want: first},
		"for the processor alone":                    {pod: asks()},
		"more than any node has":                     {pod: asks(wholeCards, 5)},
		"one vendor a container":                     {pod: asks(wholeCards, 4)},
		"as many as one vendor has":                  {pod: asks(wholeCards, 3), want: first},
		"large cards":                                {pod: asks(wholeCards, 2, sliceMemory, 9000), want: first},
		"slices are for where something bounds them": {pod: asks(sliceMemory, 10), want: first},
		"as large as what is usable":                 {pod: asks(sliceMemory, 9000), want: first},
		"larger than what is usable":                 {pod: asks(sliceMemory, 9001)},
		"held cards": {
			held: pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1")),
			pod:  asks(wholeCards, 3)},
		"beside a slice of another tenant": {
			held: pods(newPod("y", "p").ask(app, limits(sliceMemory, 10), part("a", 10, 1)).on("n1"), newPod("y", "q").ask(app, limits(sliceMemory, 10), part("b", 10, 1)).on("n1")),
			pod:  asks(vendorCards, 1, vendorMemory, 10)},
		"beside a slice of one's own": {
			held: pods(newPod("x", "p").ask(app, limits(sliceMemory, 8000, sliceCores, 1), part("a", 8000, 1)).on("n1"), newPod("x", "q").ask(app, limits(wholeCards, 1), whole("b")).on("n1")),
			pod:  asks(vendorCards, 1, vendorMemory, 1000), want: first},
		"two containers find two cards": {
			held: pods(newPod("x", "p").ask(app, limits(sliceMemory, 4000, sliceCores, 1), part("a", 4000, 1)).on("n1")),
			pod:  newPod("x", "new").ask(app, limits(vendorCards, 1, vendorMemory, 5000)).ask(app, limits(vendorCards, 1, vendorMemory, 9000)), want: first},
		"the search goes back": { // the first container has to leave card a to the second
			pod: newPod("x", "new").ask(app, limits(wholeCards, 1)).ask(app, limits(wholeCards, 1)).
				ask(app, limits(wholeCards, 1, sliceMemory, 10000)).ask(app, limits(wholeCards, 1, sliceMemory, 10000)), want: first},
		"a wish":        {pod: asks(vendorCards, 1).note("heteroflow.io/gpu-model", "v100"), want: second},
		"cordoned":      {pod: asks(vendorCards, 1), node: func(n *corev1.Node) { n.Spec.Unschedulable = true }, want: second},
		"tainted":       {pod: asks(vendorCards, 1), node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, want: second},
		"not ready":     {pod: asks(vendorCards, 1), node: func(n *corev1.Node) { n.Status.Conditions = nil }, want: second},
		"no processors": {pod: asks(vendorCards, 1).but(needs("9")), want: nil},
		"processors in use": {
			held: pods(newPod("x", "p").ask(app, nil).but(needs("7")).but(func(b *build) { b.pod.Spec.NodeName = "n1" })),
			pod:  asks(vendorCards, 1).but(needs("2")), want: second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			nodes := world()
			if tc.node != nil {
				tc.node(&nodes[0])
			}
			if diff := cmp.Diff(tc.want, Room(nodes, tc.held, tc.pod.pod)); diff != "" {
				t.Errorf("nodes with room (-want +got):\n%s", diff)
			}
		})
	}
}

func needs(cpu string) func(*build) {
	return func(b *build) {
		b.pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}
