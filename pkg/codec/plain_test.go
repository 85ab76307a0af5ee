package codec

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/policy"
)

// HAMi's rank among the tasks on one card gives out nothing: it holds no card,
// and is refused where it would be ignored, 0 being a rank too.
func TestHAMiPriority(t *testing.T) {
	const sentence = ": nvidia.com/priority: is a rank among the tasks on one card, which HAMi's own device plugin alone knows; leave it out"
	for _, rank := range []string{"0", "1"} {
		pod := podWith(app("side", "nvidia.com/priority", rank), app("main", "nvidia.com/gpu", "1", "nvidia.com/priority", rank))
		_, err := Request(pod, policy.Default())
		sameFaults(t, err, "containers[side]"+sentence, "containers[main]"+sentence)
	}
	alone := podWith(app("main", "nvidia.com/priority", "1"), boundTo("n1"))
	if p := Placement(alone); p.Foreign != nil {
		t.Errorf("holds %v", p.Foreign)
	}
	// A pod of HAMi's with the device plugin's one card holds one, not all.
	beside := podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/priority", "1"), boundTo("n1"))
	if p := Placement(beside); len(p.Foreign) != 1 || p.Foreign[0].Cards != 1 {
		t.Errorf("holds %v, want one card", p.Foreign)
	}
}
