package oracle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestCheckAcceptsGoodStates(t *testing.T) {
	tests := map[string][]corev1.Pod{
		"nothing":                       nil,
		"a pod for the processor alone": pods(newPod("x", "p").ask(app, nil).but(func(b *build) { b.pod.Spec.NodeName = "n1" })),
		"a pod that waits":              pods(newPod("x", "p").ask(app, limits(wholeCards, 1))),
		"an invalid pod that waits":     pods(newPod("x", "p").ask(app, limits(wholeCards, 1, sliceCores, 20))),
		"a whole card":                  pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1")),
		"two whole cards":               pods(newPod("x", "p").ask(app, limits(wholeCards, 2), whole("a"), whole("b")).on("n1")),
		"a whole card in one piece":     pods(newPod("x", "p").ask(app, limits(wholeCards, 1, sliceMemory, 900), whole("c")).on("n1")),
		"slices that fill a card": pods(
			newPod("x", "p").ask(app, limits(sliceMemory, 4500), part("a", 4500, 50)).on("n1"),
			newPod("x", "q").ask(app, limits(sliceMemory, 4500, sliceCores, 50), part("a", 4500, 50)).on("n1")),
		"a slice by compute alone":  pods(newPod("x", "p").ask(app, limits(sliceCores, 33), part("a", 2970, 33)).on("n1")),
		"a tiny slice":              pods(newPod("x", "p").ask(app, limits(sliceMemory, 10), part("a", 10, 1)).on("n1")),
		"the vendor's whole cards":  pods(newPod("x", "p").ask(app, limits(vendorCards, 1), whole("a")).on("n1")),
		"100 percent are the whole": pods(newPod("x", "p").ask(app, limits(vendorCards, 1, vendorMemory, 50, vendorCores, 100), whole("a")).on("n1")),
		"the vendor's slices have no compute reserved": pods(
			newPod("x", "p").ask(app, limits(vendorCards, 2, vendorMemory, 500), part("a", 500, 0), part("b", 500, 0)).on("n1")),
		"a percentage is of what is usable": pods(
			newPod("x", "p").ask(app, limits(vendorCards, 1, vendorShare, 33), part("a", 2970, 0)).on("n1")),
		"compute alone takes all the memory": pods(
			newPod("x", "p").ask(app, limits(vendorCards, 1, vendorCores, 30), part("a", 9000, 30)).on("n1")),
		"an init container shares the app's card": pods(
			newPod("x", "p").ask(ordinary, limits(sliceMemory, 8000), part("a", 8000, 88)).
				ask(app, limits(sliceMemory, 9000), part("a", 9000, 100)).on("n1")),
		"a sidecar runs beside": pods(
			newPod("x", "p").ask(sidecar, limits(sliceMemory, 900), part("a", 900, 10)).
				ask(app, limits(sliceMemory, 8100), part("a", 8100, 90)).on("n1")),
		"what has ended counts for nothing": pods(
			newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1").but(ends),
			newPod("x", "q").ask(app, limits(wholeCards, 1), whole("a")).on("n1")),
		"a counted card": pods(newPod("x", "p").ask(app, limits(vendorCards, 2), whole("n2-nvidia-0"), whole("n2-nvidia-1")).on("n2")),
		"wishes that are met": pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("b")).on("n1").
			note("heteroflow.io/gpu-type", "NVIDIA").note("heteroflow.io/gpu-model", "h100, a100").
			note("heteroflow.io/gpu-model-exclude", "T4").note("heteroflow.io/numa", "1").
			note("heteroflow.io/gpu-uuid-include", "b,z").note("heteroflow.io/gpu-uuid-exclude", "a")),
		"wishes in HAMi's words": pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("b")).on("n1").
			note("nvidia.com/use-gputype", "A100").note("nvidia.com/nouse-gputype", "T4").note("hami.io/numa-hint", "1").
			note("nvidia.com/numa-bind", "true").note("hami.io/gpu-uuid-include", "b,z").note("nvidia.com/nouse-gpuuuid", "a")),
		"numbers that admission gave": pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1").but(func(b *build) {
			delete(b.pod.Annotations, visiblePrefix+"0")
			b.note(numbersAnnotation, `{"c0":7}`).note(visiblePrefix+"7", "a")
		})),
		"a vendor whose runtime wants indices": pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("d")).on("n1")),
	}
	for name, pods := range tests {
		t.Run(name, func(t *testing.T) {
			if wrong := Check(world(), pods); len(wrong) > 0 {
				t.Errorf("Check complains:\n%s", strings.Join(wrong, "\n"))
			}
		})
	}
}

func ends(b *build) { b.pod.Status.Phase = corev1.PodSucceeded }

// TestCheckReports breaks one rule at a time, and wants that said and no more.
func TestCheckReports(t *testing.T) {
	one := func(change func(*build)) []corev1.Pod {
		return pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1").but(change))
	}
	slice := func(ns, name string, memory, cores int) *build {
		return newPod(ns, name).ask(app, limits(sliceMemory, memory, sliceCores, cores), part("a", int64(memory), int64(cores))).on("n1")
	}
	tests := map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"memory oversold": {
			pods(slice("x", "p", 5000, 10), slice("x", "q", 4001, 10)),
			[]string{"node n1: card a: 9001 of 9000 MiB are held by x/p, x/q"}},
		"compute oversold": {
			pods(slice("x", "p", 10, 60), slice("x", "q", 10, 41)),
			[]string{"node n1: card a: 101 percent of its compute are held by x/p, x/q"}},
		"slots oversold": {
			pods(
				newPod("x", "p").ask(app, limits(sliceMemory, 10), part("b", 10, 1)).ask(app, limits(sliceMemory, 10), part("b", 10, 1)).on("n1"),
				newPod("x", "q").ask(app, limits(sliceMemory, 10), part("b", 10, 1)).on("n1")),
			[]string{"node n1: card b: 3 of 2 slots are held by x/p, x/q"}},
		"a whole card given twice": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).on("n1"), newPod("x", "q").ask(app, limits(wholeCards, 1), whole("a")).on("n1")),
			[]string{
				"node n1: card a: 200 percent of its compute are held by x/p, x/q",
				"node n1: card a: 20000 of 10000 MiB are held by x/p, x/q",
				"node n1: card a: is exclusive and shared by x/p, x/q"}},
		"two containers on one whole card": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).ask(app, limits(wholeCards, 1), whole("a")).on("n1")),
			[]string{
				"node n1: card a: 200 percent of its compute are held by x/p",
				"node n1: card a: 20000 of 10000 MiB are held by x/p"}},
		"tenants side by side": {
			pods(slice("x", "p", 10, 10), slice("y", "q", 10, 10)),
			[]string{"node n1: card a: is shared by x/p of \"namespace/x\" and y/q of \"namespace/y\""}},
		"the init container is the larger": {
			pods(newPod("x", "p").ask(ordinary, limits(sliceMemory, 9001, sliceCores, 10), part("a", 9001, 10)).
				ask(app, limits(sliceMemory, 10), part("a", 10, 1)).on("n1")),
			[]string{"node n1: card a: 9001 of 9000 MiB are held by x/p"}},
		"the sidecar comes on top": {
			pods(newPod("x", "p").ask(ordinary, limits(sliceMemory, 5000, sliceCores, 1), part("a", 5000, 1)).
				ask(sidecar, limits(sliceMemory, 4001, sliceCores, 1), part("a", 4001, 1)).ask(app, nil).on("n1")),
			[]string{"node n1: card a: 9001 of 9000 MiB are held by x/p"}},

		"bound without an allocation": {
			one(func(b *build) { delete(b.pod.Annotations, allocationAnnotation) }),
			[]string{"pod x/p: bound without heteroflow.io/allocation"}},
		"an allocation nobody can read": {
			one(func(b *build) { b.note(allocationAnnotation, "{") }),
			[]string{"pod x/p: heteroflow.io/allocation cannot be read: unexpected EOF"}},
		"a field that the contract does not have": {
			one(func(b *build) { b.note(allocationAnnotation, `{"version":1,"colour":"red"}`) }),
			[]string{`pod x/p: heteroflow.io/allocation cannot be read: json: unknown field "colour"`}},
		"another version": {
			one(func(b *build) { b.alloc.Version = 2; b.encode() }),
			[]string{"pod x/p: heteroflow.io/allocation cannot be read: version 2"}},
		"annotated without being bound": {
			one(func(b *build) { b.pod.Spec.NodeName = "" }),
			[]string{
				"pod x/p: has heteroflow.io/allocation without being bound to cards",
				"pod x/p: has heteroflow.io/bound-by without being bound to cards",
				"pod x/p: has heteroflow.io/epoch without being bound to cards",
				"pod x/p: has heteroflow.io/visible-devices-0 without being bound to cards"}},
		"annotated without asking": {
			pods(newPod("x", "p").ask(app, nil).but(func(b *build) { b.pod.Spec.NodeName = "n1" }).note("heteroflow.io/mem-limit-0", "1")),
			[]string{"pod x/p: has heteroflow.io/mem-limit-0 without being bound to cards"}},
		"bound by the scheduler without asking": {
			pods(newPod("x", "p").ask(app, nil).on("n1").but(func(b *build) { b.alloc.Tenant = ""; b.encode() })), nil},
		"cards for a pod that asks for none": {
			pods(newPod("x", "p").ask(app, nil, whole("a")).on("n1")),
			[]string{
				"pod x/p: container c0 has cards and asked for none",
				"pod x/p: heteroflow.io/visible-devices-0 belongs to no container"}},
		"bound though invalid": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1, sliceCores, 10), whole("a")).on("n1")),
			[]string{"pod x/p: bound, but its request is invalid: container c0: heteroflow.io/gpu-cores with heteroflow.io/gpu"}},
		"the label is missing": {
			one(func(b *build) { b.pod.Labels = nil }), []string{`pod x/p: label heteroflow.io/bound-by is ""`}},
		"another epoch": {
			one(func(b *build) { b.alloc.Epoch = 3; b.encode() }), []string{`pod x/p: epoch is 3, annotation heteroflow.io/epoch is "0"`}},
		"another epoch beside": {
			one(func(b *build) { b.note(epochAnnotation, "3") }), []string{`pod x/p: epoch is 0, annotation heteroflow.io/epoch is "3"`}},
		"no epoch beside": {
			one(func(b *build) { delete(b.pod.Annotations, epochAnnotation) }), []string{`pod x/p: epoch is 0, annotation heteroflow.io/epoch is ""`}},
		"a later epoch": {
			one(func(b *build) { b.alloc.Epoch = 3; b.note(epochAnnotation, "3").encode() }), nil},
		"a negative epoch": {
			one(func(b *build) { b.alloc.Epoch = -1; b.note(epochAnnotation, "-1").encode() }), []string{`pod x/p: epoch is -1, annotation heteroflow.io/epoch is "-1"`}},
		"another tenant": {
			one(func(b *build) { b.alloc.Tenant = "y"; b.encode() }), []string{`pod x/p: tenant is "namespace/x", recorded as "y"`}},
		"a node that is gone": {
			one(func(b *build) { b.pod.Spec.NodeName = "n9" }), []string{"pod x/p: bound to n9, which does not exist"}},

		"too few cards": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 2), whole("a")).on("n1")),
			[]string{"pod x/p: container c0 has 1 cards, asked were 2"}},
		"too many cards": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a"), whole("b")).on("n1")),
			[]string{"pod x/p: container c0 has 2 cards, asked were 1"}},
		"a container without a grant": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).ask(app, limits(wholeCards, 1)).on("n1")),
			[]string{`pod x/p: container c1 has 0 cards, asked were 1`}},
		"a grant without a container": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("a")).ask(app, nil, whole("b")).on("n1")),
			[]string{"pod x/p: container c1 has cards and asked for none", "pod x/p: heteroflow.io/visible-devices-1 belongs to no container"}},
		"two grants of one container": {
			one(func(b *build) { b.alloc.Containers = append(b.alloc.Containers, b.alloc.Containers[0]); b.encode() }),
			[]string{"pod x/p: a container has two grants"}},
		"the wrong kind of container": {
			one(func(b *build) { b.alloc.Containers[0].Init = true; b.encode() }), []string{"pod x/p: container c0 has init true"}},
		"one card twice": {
			pods(newPod("x", "p").ask(app, limits(vendorCards, 2, vendorMemory, 10), part("a", 10, 0), part("a", 10, 0)).on("n1")),
			[]string{"pod x/p: container c0 has card a twice"}},
		"cards of two vendors": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 2), whole("a"), whole("d")).on("n1")),
			[]string{"pod x/p: container c0 has cards of 2 vendors"}},
		"a card of nowhere": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("z")).on("n1")),
			[]string{"pod x/p: container c0: card z does not exist on n1"}},
		"less memory than asked": {
			pods(newPod("x", "p").ask(app, limits(sliceMemory, 1000), part("a", 999, 11)).on("n1")),
			[]string{"pod x/p: container c0: card a gives {memory:999 cores:11 slots:1 exclusive:false}, asked was {memory:1000 cores:11 slots:1 exclusive:false}"}},
		"other compute than asked": {
			pods(newPod("x", "p").ask(app, limits(sliceMemory, 1000), part("a", 1000, 12)).on("n1")),
			[]string{"pod x/p: container c0: card a gives {memory:1000 cores:12 slots:1 exclusive:false}, asked was {memory:1000 cores:11 slots:1 exclusive:false}"}},
		"a slice for a whole card": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), part("a", 9000, 100)).on("n1")),
			[]string{
				`pod x/p: container c0: card a gives {memory:9000 cores:100 slots:1 exclusive:false}, asked was {memory:10000 cores:100 slots:1 exclusive:true}`,
				`pod x/p: container c0: card a is recorded with isolation "soft", want "exclusive"`}},
		"another index": {
			one(func(b *build) { b.alloc.Containers[0].Cards[0].Index = 5; b.encode() }),
			[]string{"pod x/p: container c0: card a is nvidia 0, recorded as nvidia 5"}},
		"a slice of what cannot be sliced": {
			pods(newPod("x", "p").ask(app, limits(sliceMemory, 100), share{UUID: "c", Vendor: "nvidia", Index: 2, MemoryMiB: 100, Cores: 11, Isolation: "none"}).on("n1")),
			[]string{`pod x/p: container c0: card c is of mode whole, isolation "none" and was sliced`}},
		"a card too small": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1, sliceMemory, 2000), whole("c")).on("n1")),
			[]string{"pod x/p: container c0: card c has 1000 MiB, asked were 2000"}},
		"another vendor than asked": {
			pods(newPod("x", "p").ask(app, limits(vendorCards, 1), whole("d")).on("n1")),
			[]string{"pod x/p: container c0: card d is of ascend, asked was nvidia"}},
		"a card that a device plugin gives to others": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 1), whole("n2-nvidia-0")).on("n2")),
			[]string{`pod x/p: container c0: card n2-nvidia-0 is given out by nvidia.com/gpu, asked was by ""`}},
		"another vendor than wished": {
			one(func(b *build) { b.note("heteroflow.io/gpu-type", "ascend") }),
			[]string{"pod x/p: container c0: card a is of nvidia, gpu-type is ascend"}},
		"another model": {
			one(func(b *build) { b.note("heteroflow.io/gpu-model", "H100,T4") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-model [H100 T4]"}},
		"an excluded model": {
			one(func(b *build) { b.note("heteroflow.io/gpu-model-exclude", "a100") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-model-exclude [a100]"}},
		"a card not on the list": {
			one(func(b *build) { b.note("heteroflow.io/gpu-uuid-include", "b") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-uuid-include [b]"}},
		"a card on the other list": {
			one(func(b *build) { b.note("heteroflow.io/gpu-uuid-exclude", "a") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-uuid-exclude [a]"}},
		"a model that HAMi's word excludes": {
			one(func(b *build) { b.note("hygon.com/nouse-dcutype", "a100") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-model-exclude [a100]"}},
		"a card not on a model's own list": {
			one(func(b *build) { b.note("hami.io/use-Ascend910B4-1-uuid", "b") }),
			[]string{"pod x/p: container c0: card a (NVIDIA A100) breaks gpu-uuid-include [b]"}},
		"two NUMA nodes by HAMi's word": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 2), whole("a"), whole("b")).on("n1").note("nvidia.com/numa-bind", "true")),
			[]string{"pod x/p: its cards are on 2 NUMA nodes"}},
		"two NUMA nodes": {
			pods(newPod("x", "p").ask(app, limits(wholeCards, 2), whole("a"), whole("b")).on("n1").note("heteroflow.io/numa-bind", "true")),
			[]string{"pod x/p: its cards are on 2 NUMA nodes"}},
		"another NUMA node": {
			one(func(b *build) { b.note("heteroflow.io/numa", "1") }),
			[]string{"pod x/p: container c0: card a is not on NUMA node 1"}},
		"numbers that leave a container out": {
			one(func(b *build) { b.note(numbersAnnotation, `{"other":0}`) }),
			[]string{"pod x/p: heteroflow.io/containers does not name container c0"}},
		"injected where the plugin picks": {
			pods(newPod("x", "p").ask(app, limits(vendorCards, 1), whole("n2-nvidia-0")).on("n2").note(visiblePrefix+"0", "n2-nvidia-0")),
			[]string{"pod x/p: heteroflow.io/visible-devices-0 belongs to no container"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Check(world(), tc.pods)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckReportsAnUnreadableInventory(t *testing.T) {
	nodes := world()
	nodes[0].Annotations[devicesAnnotation] = "["
	want := []string{"node n1: heteroflow.io/devices: unexpected end of JSON input"}
	if diff := cmp.Diff(want, Check(nodes, nil)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// A name that is for one model gives no other.
func TestSuitsTheModelOfTheName(t *testing.T) {
	wanted := &ask{vendor: "ascend", model: "910B3"}
	for model, want := range map[string]string{
		"910B3":        "",
		"Ascend 910B3": "",
		"910B2":        "is a 910B2, asked was a 910B3",
	} {
		if got := suits(&corev1.Pod{}, wanted, &card{Vendor: "ascend", Model: model}); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
