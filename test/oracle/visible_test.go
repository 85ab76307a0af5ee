package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestCheckJudgesWhatContainersSee starts from a pod of two containers with
// cards and one without, and shows one of them something else.
func TestCheckJudgesWhatContainersSee(t *testing.T) {
	// c0 is an init container with a slice of card a, c1 has card b, c2 none.
	trio := func() *build {
		return newPod("x", "p").ask(ordinary, limits(sliceMemory, 900), part("a", 900, 10)).
			ask(app, limits(wholeCards, 1), whole("b")).ask(app, nil).on("n1")
	}
	// pair has slices of two cards in one container.
	pair := func() *build {
		return newPod("x", "p").ask(app, limits(vendorCards, 2, vendorMemory, 500, vendorCores, 20), part("a", 500, 20), part("b", 500, 20)).on("n1")
	}
	npu := func() *build { return newPod("x", "p").ask(app, limits(wholeCards, 1), whole("d")).on("n1") }
	plugged := func() *build {
		return newPod("x", "p").ask(app, limits(vendorCards, 1), whole("n2-nvidia-0")).on("n2")
	}
	first := func(b *build) *corev1.Container { return &b.pod.Spec.InitContainers[0] }
	tests := map[string]struct {
		pod  *build
		want []string
	}{
		"nothing else": {trio(), nil},
		"each reads its own": {
			trio().env(is("CARDS", "$(MINE)"), is("NVIDIA_VISIBLE_DEVICES", "void")).but(func(b *build) {
				first(b).Env = []corev1.EnvVar{reads("MINE", visiblePrefix+"0"), is("NVIDIA_VISIBLE_DEVICES", "$(MINE)"), reads("LIMIT", memoryPrefix+"0")}
				b.pod.Spec.Containers[0].Env = []corev1.EnvVar{reads("NVIDIA_VISIBLE_DEVICES", visiblePrefix+"1"), reads("CORES", coresPrefix+"1")}
			}), nil},
		"by the numbers of the record": {
			trio().note(numbersAnnotation, `{"c0":5,"c1":0,"c2":1}`).but(func(b *build) {
				for _, key := range []string{visiblePrefix, memoryPrefix, coresPrefix} {
					delete(b.pod.Annotations, key+"0")
					delete(b.pod.Annotations, key+"1")
				}
				b.show(5, []share{part("a", 900, 10)})
				b.show(0, []share{whole("b")})
			}).env(reads("NVIDIA_VISIBLE_DEVICES", visiblePrefix+"1")), nil},
		"an earlier life's keys that are emptied": {trio().note(visiblePrefix+"7", "").note(memoryPrefix+"1", ""), nil},
		"an index where the runtime wants one":    {npu().env(reads("ASCEND_VISIBLE_DEVICES", visiblePrefix+"0"), is("NVIDIA_VISIBLE_DEVICES", "none")), nil},
		"what the device plugin shows":            {plugged().env(is("NVIDIA_VISIBLE_DEVICES", "all")), nil},

		"shown too much": {
			trio().note(visiblePrefix+"1", "b,a"),
			[]string{`pod x/p: container c1: heteroflow.io/visible-devices-1 is "b,a", want "b"`}},
		"shown all": {
			trio().note(visiblePrefix+"1", "all"),
			[]string{`pod x/p: container c1: heteroflow.io/visible-devices-1 is "all", want "b"`}},
		"shown nothing": {
			trio().but(func(b *build) { delete(b.pod.Annotations, visiblePrefix+"1") }),
			[]string{`pod x/p: container c1: heteroflow.io/visible-devices-1 is "", want "b"`}},
		"shown by index where UUIDs are wanted": {
			trio().note(visiblePrefix+"1", "1"),
			[]string{`pod x/p: container c1: heteroflow.io/visible-devices-1 is "1", want "b"`}},
		"shown by UUID where an index is wanted": {
			npu().note(visiblePrefix+"0", "d"),
			[]string{`pod x/p: container c0: heteroflow.io/visible-devices-0 is "d", want "0"`}},
		"another order than the limits": {
			pair().note(visiblePrefix+"0", "b,a"),
			[]string{`pod x/p: container c0: heteroflow.io/visible-devices-0 is "b,a", want "a,b"`}},
		"a limit too wide": {
			pair().note(memoryPrefix+"0", "501"),
			[]string{`pod x/p: container c0: heteroflow.io/mem-limit-0 is "501", want "500"`}},
		"no limit": {
			pair().but(func(b *build) { delete(b.pod.Annotations, coresPrefix+"0") }),
			[]string{`pod x/p: container c0: heteroflow.io/core-limit-0 is "", want "20"`}},
		"a limit on a whole card": {
			trio().note(memoryPrefix+"1", "500"),
			[]string{`pod x/p: container c1: heteroflow.io/mem-limit-1 is "500", want ""`}},
		"swapped numbers": {
			trio().note(visiblePrefix+"0", "b").note(visiblePrefix+"1", "a"),
			[]string{
				`pod x/p: container c0: heteroflow.io/visible-devices-0 is "b", want "a"`,
				`pod x/p: container c1: heteroflow.io/visible-devices-1 is "a", want "b"`}},
		"a value for nobody":      {trio().note(visiblePrefix+"2", "c"), []string{"pod x/p: heteroflow.io/visible-devices-2 belongs to no container"}},
		"a limit for nobody":      {trio().note(memoryPrefix+"9", "1"), []string{"pod x/p: heteroflow.io/mem-limit-9 belongs to no container"}},
		"a value for no number":   {trio().note(visiblePrefix+"main", "c"), []string{"pod x/p: heteroflow.io/visible-devices-main belongs to no container"}},
		"shown beside the plugin": {plugged().note(visiblePrefix+"0", "n2-nvidia-0"), []string{"pod x/p: heteroflow.io/visible-devices-0 belongs to no container"}},

		"reads another's": {
			trio().but(func(b *build) { first(b).Env = []corev1.EnvVar{reads("A", visiblePrefix+"1")} }),
			[]string{"pod x/p: container c0: variable A reads heteroflow.io/visible-devices-1, which is not its own"}},
		"reads another's limit": {
			trio().but(func(b *build) { first(b).Env = []corev1.EnvVar{reads("A", coresPrefix+"1")} }),
			[]string{"pod x/p: container c0: variable A reads heteroflow.io/core-limit-1, which is not its own"}},
		"reads nobody's": {
			trio().but(func(b *build) { first(b).Env = []corev1.EnvVar{reads("A", memoryPrefix+"8")} }),
			[]string{"pod x/p: container c0: variable A reads heteroflow.io/mem-limit-8, which is not its own"}},
		"reads another's without having any": {
			trio().env(reads("A", visiblePrefix+"1")),
			[]string{"pod x/p: container c2: variable A reads heteroflow.io/visible-devices-1, which is not its own"}},
		"its place and not its number": {
			trio().note(numbersAnnotation, `{"c0":0,"c1":2}`).but(func(b *build) {
				delete(b.pod.Annotations, visiblePrefix+"1")
				b.show(2, []share{whole("b")})
			}).env(reads("A", visiblePrefix+"2")),
			[]string{"pod x/p: container c2: variable A reads heteroflow.io/visible-devices-2, which is not its own"}},

		"a variable that shows all": {
			trio().but(func(b *build) { b.pod.Spec.Containers[0].Env = []corev1.EnvVar{is("NVIDIA_VISIBLE_DEVICES", "all")} }),
			[]string{`pod x/p: container c1: NVIDIA_VISIBLE_DEVICES is "all", its cards are "b"`}},
		"a variable that hides the cards": {
			trio().but(func(b *build) { b.pod.Spec.Containers[0].Env = []corev1.EnvVar{is("CUDA_VISIBLE_DEVICES", "")} }),
			[]string{`pod x/p: container c1: CUDA_VISIBLE_DEVICES is "", its cards are "b"`}},
		"a variable that shows all to a container without cards": {
			trio().env(is("NVIDIA_VISIBLE_DEVICES", "all")),
			[]string{`pod x/p: container c2: NVIDIA_VISIBLE_DEVICES is "all", it has none of these cards`}},
		"another vendor's variable": {
			npu().env(is("NVIDIA_VISIBLE_DEVICES", "0")),
			[]string{`pod x/p: container c0: NVIDIA_VISIBLE_DEVICES is "0", it has none of these cards`}},
		"the author's variable comes last": {
			trio().but(func(b *build) {
				b.pod.Spec.Containers[0].Env = []corev1.EnvVar{reads("NVIDIA_VISIBLE_DEVICES", visiblePrefix+"1"), is("NVIDIA_VISIBLE_DEVICES", "a,b")}
			}),
			[]string{`pod x/p: container c1: NVIDIA_VISIBLE_DEVICES is "a,b", its cards are "b"`}},
		"an ephemeral container looks on": {
			trio().but(func(b *build) {
				b.pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: "debug", Env: []corev1.EnvVar{reads("CUDA_VISIBLE_DEVICES", visiblePrefix+"1")}}}}
			}),
			[]string{
				`pod x/p: container debug: CUDA_VISIBLE_DEVICES is "b", it has none of these cards`,
				"pod x/p: container debug: variable CUDA_VISIBLE_DEVICES reads heteroflow.io/visible-devices-1, which is not its own"}},
		"a variable from where nobody can look": {
			trio().env(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{}}),
			[]string{"pod x/p: container c2: variable A: valueFrom other than fieldRef: not simulated"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Check(world(), pods(tc.pod))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// Shares in percent of unequal cards differ: the limits are those of each card,
// in the order in which the cards are shown.
func TestCheckWantsTheLimitsOfEachCard(t *testing.T) {
	nodes := world()
	cards, err := inventory(&nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	s := sight{asks: true, cards: []share{part("a", 100, 10), part("b", 200, 10)}}
	want := map[string]string{visiblePrefix + "0": cards[0].UUID + "," + cards[1].UUID, memoryPrefix + "0": "100,200", coresPrefix + "0": "10"}
	if diff := cmp.Diff(want, s.annotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
