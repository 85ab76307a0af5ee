package simnode

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestInventory compares with the text that the contract shows, so that the
// field names here are not merely those of the reader.
func TestInventory(t *testing.T) {
	const want = `{"version":1,"cards":[
		{"uuid":"GPU-n1-ascend-0","index":0,"vendor":"ascend","model":"910B3","memoryMiB":65536,"cores":100,
		 "numa":0,"pciBusID":"0000:10:00.0","healthy":true,"mode":"slice","maxSlices":10,"isolation":"soft"},
		{"uuid":"GPU-n1-ascend-1","index":1,"vendor":"ascend","model":"910B3","memoryMiB":65536,"cores":100,
		 "numa":1,"pciBusID":"0000:11:00.0","healthy":false,"mode":"whole","maxSlices":10,"isolation":"none"}]}`
	cards := Cards("n1", 2, "ascend", "910B3", 65536)
	cards[1].Healthy, cards[1].Mode, cards[1].Isolation = false, "whole", "none"
	node := Spec{Name: "n1", Cards: cards, Annotations: map[string]string{"other": "kept"}}.object()

	if diff := cmp.Diff(parse(t, want), parse(t, node.Annotations[DevicesAnnotation])); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	if node.Annotations["other"] != "kept" || node.Labels[labelHost] != "n1" {
		t.Errorf("annotations %v, labels %v", node.Annotations, node.Labels)
	}
	if c := node.Status.Conditions; len(c) != 1 || c[0].Type != corev1.NodeReady || c[0].Status != corev1.ConditionTrue {
		t.Errorf("conditions %v, want Ready alone", c)
	}
}

func TestNodesThatTakeNothing(t *testing.T) {
	node := Spec{Name: "n1", Cordoned: true, NotReady: true}.object()
	if !node.Spec.Unschedulable || node.Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Errorf("unschedulable %t, conditions %v", node.Spec.Unschedulable, node.Status.Conditions)
	}
}

func TestPlainInventory(t *testing.T) {
	node := Spec{Name: "n1", Plain: &Plain{Count: 4, Product: "Tesla-T4", MemoryMiB: 15360}}.object()

	if _, found := node.Annotations[DevicesAnnotation]; found {
		t.Error("a node of the stock device plugin publishes no annotation")
	}
	if got := node.Status.Allocatable[plainResource]; got.Value() != 4 {
		t.Errorf("allocatable %s = %s, want 4", plainResource, got.String())
	}
	want := map[string]string{labelHost: "n1", "nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360", "nvidia.com/gpu.count": "4"}
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func parse(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
