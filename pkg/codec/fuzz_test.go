package codec

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// FuzzAllocation: whatever decodes must encode and decode to itself, and be a
// record that could have been written.
func FuzzAllocation(f *testing.F) {
	for _, p := range []gpu.Placement{
		placed(),
		placed(granted("main", 0, gpu.App, whole(gpu.Ascend, "vdie-9", 9, 65536))),
		placed(granted("a", 0, gpu.Init, sliceOf(gpu.Nvidia, "GPU-a", 0, 3000, 30)), granted("b", 1, gpu.App, sliceOf(gpu.Nvidia, "GPU-a", 0, 1, 0))),
	} {
		a := newAllocation(&p, noon, 0)
		text, err := a.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(`{"version":1,"tenant":"","boundAt":"2026-03-01T12:00:00Z","epoch":0,"containers":[{"name":"main","init":false,"cards":null}]}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, text string) {
		pod := podWith(app("main", "nvidia.com/gpu", "1"), annotated(AnnotationAllocation, text), boundTo("n1"))
		p := Placement(pod)
		if (len(p.Foreign) == 0) != Ours(pod) || len(p.Grants)+len(p.Foreign) == 0 {
			t.Fatalf("holds nothing, or is ours and not ours: %+v", p)
		}
		a, err := decodeAllocation(text)
		if err != nil {
			return
		}
		again, err := a.encode()
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		b, err := decodeAllocation(again)
		if err != nil {
			t.Fatalf("encoded, but does not decode: %v", err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("decoded twice (-first +second):\n%s", diff)
		}
	})
}

// FuzzInventory: no panic, and no card that would lead a decision astray.
func FuzzInventory(f *testing.F) {
	f.Add(twoCards, "4", "40960")
	f.Add(`{"version":1,"cards":[{"uuid":"MIG-1","vendor":"nvidia","memoryMiB":4864,"healthy":true,"mode":"mig","parent":"GPU-a"}]}`, "", "")
	f.Add(`{"version":1,"cards":[{}]}`, "-1", "x")
	f.Fuzz(func(t *testing.T, text, replicas, memory string) {
		for _, node := range []*corev1.Node{
			nodeWith(inventoried(text), nodeAnnotated("heteroflow.io/device-cordon", replicas)),
			nodeWith(allocatable("nvidia.com/gpu", "3"), labelled("nvidia.com/gpu.replicas", replicas, "nvidia.com/gpu.memory", memory, "nvidia.com/gpu.product", text)),
		} {
			facts, err := Facts(node, policy.Default())
			if err != nil && len(facts.Cards) > 0 {
				t.Fatalf("cards beside %v", err)
			}
			seen := map[gpu.CardID]bool{}
			for _, c := range facts.Cards {
				_, vendor := gpu.ParseVendor(string(c.Vendor))
				if !vendor || c.ID == "" || seen[c.ID] || c.Memory < 0 || c.Usable < 0 || c.Usable > c.Memory ||
					c.Cores < 1 || c.UsableCores != c.Cores || c.MaxSlices < 1 || c.NUMA < gpu.NoNUMA || c.Index < 0 {
					t.Fatalf("card %+v", c)
				}
				seen[c.ID] = true
			}
		}
		sameAgain(t, text)
	})
}

// sameAgain checks that an inventory that decodes is the same when it is written
// and read again.
func sameAgain(t *testing.T, text string) {
	cards, err := decodeDevices(text)
	if err != nil {
		return
	}
	var d devices
	if err := openJSON(text, &d); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := decodeDevices(string(again))
	if err != nil {
		t.Fatalf("written anew it does not decode: %v", err)
	}
	if diff := cmp.Diff(cards, twice); diff != "" {
		t.Fatalf("decoded twice (-first +second):\n%s", diff)
	}
}

// FuzzRequest: no panic; a pod that says anything of ours is invalid or asks for
// cards within the bounds, and is read alike each time.
func FuzzRequest(f *testing.F) {
	f.Add("heteroflow.io/gpu", "1", "heteroflow.io/gpu-memory", "16Gi", "heteroflow.io/numa", "0")
	f.Add("nvidia.com/gpu", "1500m", "nvidia.com/gpumem", "9223372036854775808", "hami.io/gpu-type", "A100")
	f.Add("nvidia.com/gpumem-percentage", "1e30", "limits.nvidia.com/gpu", "1", "heteroflow.io/containers", `{"main":0}`)
	f.Add("heteroflow.io/gpu", "1e1999999998", "nvidia.com/cores", "-1", "heteroflow.io/gpu-uuid-include", ",")
	f.Add("mthreads.com/sgpu-core", "17", "mthreads.com/sgpu-memory", "3", "heteroflow.io/gpu-type", "musa")
	f.Add("metax-tech.com/sgpu", "2", "metax-tech.com/vmemory", "4Gi", "", "")
	f.Add("huawei.com/Ascend910C", "3", "huawei.com/Ascend910-2c", "1", "", "")
	f.Add("huawei.com/Ascend910", "2", "iluvatar.ai/gpu", "1e1999999998", "", "")
	f.Fuzz(func(t *testing.T, name1, amount1, name2, amount2, key, value string) {
		limits := corev1.ResourceList{}
		for name, amount := range map[string]string{name1: amount1, name2: amount2} {
			if q, err := resource.ParseQuantity(amount); err == nil && sensible(name, amount) {
				limits[corev1.ResourceName(name)] = q
			}
		}
		pod := podWith(app("main"), initContainer("init"), annotated(key, value))
		pod.Spec.Containers[0].Resources.Limits = limits
		r, err := Request(pod, policy.Default())
		again, errAgain := Request(pod, policy.Default())
		if diff := cmp.Diff(r, again); diff != "" || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("read twice: %v, %v (-first +second):\n%s", err, errAgain, diff)
		}
		if err == nil && !r.AsksForCards() && speaks(limits) {
			t.Fatalf("%v asks for no card", limits)
		}
		if err := bounded(&r); err != nil {
			t.Fatal(err)
		}
		boundTo("n1")(pod)
		p := Placement(pod)
		if p.Foreign == nil && (err != nil && speaks(limits) || r.AsksForCards() || plainly(limits)) {
			t.Fatalf("%v holds nothing", limits)
		}
	})
}

// sensible keeps quantities away on which Kubernetes' own arithmetic would not
// end; those of ours are none of them.
func sensible(name, amount string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(amount), "e")
	_, ours := vendorOf(corev1.ResourceName(name))
	return len(exponent) < 4 || ours && !strings.HasPrefix(exponent, "-")
}

// plainly reports whether the limits name a device plugin's cards in any amount
// but 0.
func plainly(limits corev1.ResourceList) bool {
	for name, q := range limits {
		if p := plainOf(name); p != nil && p.idle == "" && !q.IsZero() {
			return true
		}
	}
	return false
}

// speaks reports whether the limits name a card of ours in any amount but 0.
func speaks(limits corev1.ResourceList) bool {
	for name, q := range limits {
		if formOf(name) != nil && !q.IsZero() {
			return true
		}
	}
	return false
}

func bounded(r *gpu.Request) error {
	for _, a := range r.Asks {
		if a.Count < 1 || a.Count > gpu.MostCards || a.Memory < 0 || a.Memory > gpu.MostMemory || a.Cores < 0 || a.Cores > gpu.MostCores ||
			a.MemoryPercent < 0 || a.MemoryPercent > 100 || a.Memory > 0 && a.MemoryPercent > 0 || a.Number < 0 || a.Number > math.MaxInt32 {
			return errors.New("out of bounds")
		}
		if !a.Whole && a.Memory == 0 && a.MemoryPercent == 0 && a.Cores == 0 {
			return errors.New("a slice of no size")
		}
	}
	return nil
}

// FuzzAnnotations: whatever a pod carries, what is read is within bounds and is
// judged alike by all who judge it.
func FuzzAnnotations(f *testing.F) {
	for key, values := range wishValues {
		f.Add(key, values.good[0], "heteroflow.io/nvlink", "required", "rdma", "true")
		f.Add(key, values.bad[len(values.bad)-1], "hami.io/gpu-type", "", "heteroflow.io/bound-by", "heteroflow")
	}
	f.Add("heteroflow.io/require-nvlink", "true", "gpumem", "8192", "heteroflow.io/", "")
	f.Add("heteroflow.io/task-type", "training", "heteroflow.io/preemptible", "true", "heteroflow.io/gpu", "1")
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2, label, value string) {
		pod := wishing(key1, value1, key2, value2)
		pod.Labels = map[string]string{label: value}
		r, err := Request(pod, policy.Default())
		if (err == nil) != r.AsksForCards() || r.NUMA < gpu.NoNUMA || r.NUMA > mostNUMA || slices.Contains(r.Models, "") || slices.Contains(r.Cards, "") {
			t.Fatalf("read as %+v, %v", r, err)
		}
		faults := CheckKeys(pod)
		// Request knows more: others' keys, and what containers ask for.
		if faults != nil && err == nil && contradiction(pod.Annotations, pod.Annotations) == nil {
			t.Fatalf("Request lets pass what CheckKeys does not: %v", faults)
		}
		if n, named, err := Priority(pod); n < 0 || n > mostPriority || err != nil && (!named || faults == nil) {
			t.Fatalf("priority %d, %t, %v; faults %v", n, named, err, faults)
		}
		if err := CheckChange(pod, pod); err != nil {
			t.Fatalf("no change: %v", err)
		}
		if err := CheckChange(pod, podWith()); err != nil && checkOwned(pod, podWith()) == nil {
			t.Fatalf("all taken off: %v", err)
		}
	})
}
