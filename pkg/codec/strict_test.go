package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/policy"
)

// carrying gives a pod labels.
func carrying(pairs ...string) change {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// Keys of ours that nothing reads are refused on every pod, in the same words
// whether it asks for cards or not.
func TestStrayKeysOfOurs(t *testing.T) {
	tests := map[string]struct {
		change change
		want   []string
	}{
		"a plugin's argument": {
			annotated("heteroflow.io/require-nvlink", "true"),
			[]string{"unknown annotation heteroflow.io/require-nvlink: it is an argument of the nvlink plugin; a pod writes heteroflow.io/nvlink: required"},
		},
		"a slip":                    {annotated("heteroflow.io/nvlnk", "required"), []string{"unknown annotation heteroflow.io/nvlnk; did you mean heteroflow.io/nvlink?"}},
		"two letters swapped":       {annotated("heteroflow.io/rakc", "r1"), []string{"unknown annotation heteroflow.io/rakc; did you mean heteroflow.io/rack?"}},
		"an s too many":             {annotated("heteroflow.io/gpu-types", "nvidia"), []string{"unknown annotation heteroflow.io/gpu-types; did you mean heteroflow.io/gpu-type?"}},
		"in capitals":               {annotated("heteroflow.io/Priority", "5"), []string{"unknown annotation heteroflow.io/Priority; did you mean heteroflow.io/priority?"}},
		"the nearer of two":         {annotated("heteroflow.io/preempt-mod", "evict"), []string{"unknown annotation heteroflow.io/preempt-mod; did you mean heteroflow.io/preempt-mode?"}},
		"three letters off":         {annotated("heteroflow.io/gpu-mem", "1"), []string{"unknown annotation heteroflow.io/gpu-mem"}},
		"like nothing":              {annotated("heteroflow.io/nonsense", "1"), []string{"unknown annotation heteroflow.io/nonsense"}},
		"a resource":                {annotated("heteroflow.io/gpu-memory", "16Gi"), []string{"annotation heteroflow.io/gpu-memory: is a resource; write heteroflow.io/gpu-memory under resources.limits"}},
		"a count":                   {annotated("heteroflow.io/gpu", "two"), []string{"annotation heteroflow.io/gpu: is a resource; write heteroflow.io/gpu under resources.limits"}},
		"a resource as HAMi writes": {annotated("heteroflow.io/gpumem", "8192"), []string{"annotation heteroflow.io/gpumem: is a resource; write heteroflow.io/gpu-memory under resources.limits"}},
		"compute":                   {annotated("heteroflow.io/gpucores", "30"), []string{"annotation heteroflow.io/gpucores: is a resource; write heteroflow.io/gpu-cores under resources.limits"}},
		"what only NVIDIA has":      {annotated("heteroflow.io/gpumem-percentage", "30"), []string{"unknown annotation heteroflow.io/gpumem-percentage"}},
		"a node's":                  {annotated("heteroflow.io/device-cordon", "GPU-a"), []string{"unknown annotation heteroflow.io/device-cordon"}},
		"a label of ours":           {annotated("heteroflow.io/bound-by", "heteroflow"), []string{"unknown annotation heteroflow.io/bound-by"}},
		"a wish as a label":         {carrying("heteroflow.io/nvlink", "required"), []string{"label heteroflow.io/nvlink: is an annotation; write it under metadata.annotations"}},
		"a bad one as a label":      {carrying("heteroflow.io/priority", "high"), []string{"label heteroflow.io/priority: is an annotation; write it under metadata.annotations"}},
		"a resource as a label":     {carrying("heteroflow.io/gpumem", "1"), []string{"label heteroflow.io/gpumem: is a resource; write heteroflow.io/gpu-memory under resources.limits"}},
		"an unknown label":          {carrying("heteroflow.io/tenant", "a"), []string{"unknown label heteroflow.io/tenant"}},
		"an annotation of ours":     {carrying("heteroflow.io/allocation", "a"), []string{"unknown label heteroflow.io/allocation"}},
		"a slip as a label":         {carrying("heteroflow.io/nvlnk", "required"), []string{"unknown label heteroflow.io/nvlnk; did you mean the annotation heteroflow.io/nvlink?"}},
		"all at once": {
			func(p *corev1.Pod) {
				annotated("heteroflow.io/x", "", "heteroflow.io/gpu", "1", "heteroflow.io/ports", "x")(p)
				carrying("heteroflow.io/zone", "a", "heteroflow.io/y", "")(p)
			},
			[]string{
				"annotation heteroflow.io/gpu: is a resource; write heteroflow.io/gpu under resources.limits",
				"unknown annotation heteroflow.io/x",
				"unknown label heteroflow.io/y",
				"label heteroflow.io/zone: is an annotation; write it under metadata.annotations",
				`annotation heteroflow.io/ports: "x" is not a whole number, 0..64`,
			},
		},
		"anybody's": {
			func(p *corev1.Pod) {
				annotated("example.com/gpumem", "1", "gpu", "1", "heteroflow.io.example.com/x", "1", "hami.io/vgpu-node", "n1")(p)
				carrying("app", "x", "example.com/nvlink", "true", "numa", "0")(p)
			},
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sameFaults(t, CheckKeys(podWith(app("main"), tc.change)), tc.want...)
			_, err := Request(podWith(app("main", "heteroflow.io/gpu", "1"), tc.change), policy.Default())
			sameFaults(t, err, tc.want...)
		})
	}
}

// Keys that are not ours are judged only where they can have been meant for us.
func TestStrayKeysOfOthers(t *testing.T) {
	nvidia := app("main", "nvidia.com/gpu", "1")
	tests := map[string]struct {
		container, change change
		want              []string
	}{
		"NVIDIA's memory":            {nvidia, annotated("nvidia.com/gpumem", "8192"), []string{"annotation nvidia.com/gpumem: is a resource; write nvidia.com/gpumem under resources.limits"}},
		"... in no number":           {nvidia, annotated("nvidia.com/gpumem", "8GB"), []string{"annotation nvidia.com/gpumem: is a resource; write nvidia.com/gpumem under resources.limits"}},
		"a count":                    {nvidia, annotated("nvidia.com/gpu", "1"), []string{"annotation nvidia.com/gpu: is a resource; write nvidia.com/gpu under resources.limits"}},
		"a vendor's in another form": {nvidia, annotated("metax-tech.com/vmemory", "1"), []string{"annotation metax-tech.com/vmemory: is a resource; write metax-tech.com/vmemory under resources.limits"}},
		"memory without a domain":    {nvidia, annotated("gpumem", "8192"), []string{"annotation gpumem: is a resource; write nvidia.com/gpumem under resources.limits"}},
		"... in our words":           {nvidia, annotated("gpu-memory", "8192"), []string{"annotation gpu-memory: is a resource; write nvidia.com/gpumem under resources.limits"}},
		"our words in their domain":  {nvidia, annotated("nvidia.com/gpu-cores", "30"), []string{"annotation nvidia.com/gpu-cores: is a resource; write nvidia.com/gpucores under resources.limits"}},
		"... in HAMi's":              {nvidia, annotated("hami.io/gpumem", "30"), []string{"annotation hami.io/gpumem: is a resource; write nvidia.com/gpumem under resources.limits"}},
		"a percentage":               {nvidia, annotated("gpumem-percentage", "30"), []string{"annotation gpumem-percentage: is a resource; write nvidia.com/gpumem-percentage under resources.limits"}},
		"for another vendor's cards": {app("main", "hygon.com/dcunum", "1"), annotated("gpumem", "1", "gpucores", "1"), []string{
			"annotation gpucores: is a resource; write hygon.com/dcucores under resources.limits",
			"annotation gpumem: is a resource; write hygon.com/dcumem under resources.limits",
		}},
		"where the form has none": {app("main", "birentech.com/gpu", "1"), annotated("gpucores", "1"), []string{"annotation gpucores: is a resource; write heteroflow.io/gpu-cores under resources.limits"}},
		"bare labels": {nvidia, carrying("nvlink", "true", "rdma", "true"), []string{
			"label nvlink: is an annotation; write heteroflow.io/nvlink under metadata.annotations",
			"label rdma: is an annotation; write heteroflow.io/rdma under metadata.annotations",
		}},
		"how HAMi is to share":   {nvidia, annotated("nvidia.com/vgpu-mode", "mig"), []string{`annotation nvidia.com/vgpu-mode: "mig" is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"... Ascend":             {nvidia, annotated("huawei.com/vnpu-mode", "vir"), []string{`annotation huawei.com/vnpu-mode: "vir" is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"MetaX's bounds":         {nvidia, annotated("metax-tech.com/sgpu-qos-policy", "fixed-share"), []string{`annotation metax-tech.com/sgpu-qos-policy: "fixed-share" is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"MetaX's class":          {nvidia, annotated("metax-tech.com/sgpu-app-class", "online"), []string{`annotation metax-tech.com/sgpu-app-class: is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"MetaX's links":          {nvidia, annotated("metax-tech.com/sgpu-topology-aware", "true"), []string{`annotation metax-tech.com/sgpu-topology-aware: "true" is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"HAMi's weights":         {nvidia, annotated("hami.io/device-scoring-weights", "slot=1,core=1"), []string{`annotation hami.io/device-scoring-weights: is read by HAMi's own scheduler alone and is not handled; leave it out`}},
		"an alias with a slip":   {nvidia, annotated("nvidia.com/use-gpu-uuid", "GPU-a"), []string{"unknown annotation nvidia.com/use-gpu-uuid; did you mean nvidia.com/use-gpuuuid?"}},
		"... with two":           {nvidia, annotated("nvidia.com/no-use-gpuuuid", "GPU-a", "hami.io/gpu-uuid-exlcude", "GPU-a"), []string{"unknown annotation hami.io/gpu-uuid-exlcude; did you mean hami.io/gpu-uuid-exclude?", "unknown annotation nvidia.com/no-use-gpuuuid; did you mean nvidia.com/nouse-gpuuuid?"}},
		"... in a short name":    {nvidia, annotated("hami.io/gpu-types", "A100"), []string{"unknown annotation hami.io/gpu-types; did you mean hami.io/gpu-type?"}},
		"a domain without forms": {nvidia, annotated("baidu.com/use-gpu-uuid", "a"), []string{"unknown annotation baidu.com/use-gpu-uuid; did you mean baidu.com/use-gpuuuid?"}},
		"HAMi's wish as a label": {nvidia, carrying("nvidia.com/use-gpuuuid", "GPU-a"), []string{"label nvidia.com/use-gpuuuid: is an annotation; write it under metadata.annotations"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(tc.container, tc.change)
			_, err := Request(pod, policy.Default())
			sameFaults(t, err, tc.want...)
			sameFaults(t, CheckKeys(pod))
			_, err = Request(podWith(app("main", "cpu", "1"), tc.change), policy.Default())
			sameFaults(t, err)
		})
	}
}

// Values that come to the same without them, and what is no slip, are let pass.
func TestOthersThatAreHarmless(t *testing.T) {
	_, err := Request(podWith(app("main", "nvidia.com/gpu", "1"), annotated(
		"nvidia.com/vgpu-mode", "hami-core", "huawei.com/vnpu-mode", " hami-core ", "metax-tech.com/sgpu-qos-policy", "best-effort",
		"metax-tech.com/sgpu-app-class", "", "metax-tech.com/sgpu-topology-aware", "false", "hami.io/device-scoring-weights", " ",
		"hami.io/gpu-tips", "two slips in a short name", "amd.com/use-gpu-uuid", "nobody's here", "nvidia.com/use-gpu", "far", "hami.io/vgpu-node", "n1",
	)), policy.Default())
	sameFaults(t, err)
}

// What schedulers leave on pods that they have placed is no fault of theirs.
func TestBoundPodsHaveNoFault(t *testing.T) {
	pod := podWith(app("main", "huawei.com/Ascend910B3", "1"), boundTo("n1"), carrying(BoundByLabel, BoundByValue), annotated(
		AnnotationAllocation, "{}", AnnotationEpoch, "1", AnnotationPreemptCount, "0", AnnotationPort, "8000", AnnotationContainers, `{"main":0}`,
		"heteroflow.io/visible-devices-0", "1", "heteroflow.io/mem-limit-0", "1", "heteroflow.io/core-limit-0", "1",
		AnnotationHAMiNode, "n1", AnnotationHAMiAllocated, "{}",
		"huawei.com/Ascend910B3", `[{"UUID":"a","temp":"vir05","memory":100}]`, "huawei.com/Ascend910", "Ascend910-0", "predicate-time", "1",
		"hami.io/Ascend910B3-devices-allocated", "a,Ascend910B3,1,1:;", "hami.io/bind-phase", "success", "mthreads.com/gpu-index", "0",
		"enflame.com/gcu-assigned", "true", "metax-tech.com/gpu-devices-allocated", "[]",
	))
	_, err := Request(pod, policy.Default())
	sameFaults(t, err)
	sameFaults(t, CheckKeys(pod))
}

func TestCheckChange(t *testing.T) {
	const exclude = `annotation heteroflow.io/preemptible: "true" contradicts heteroflow.io/task-type: training, which is never preempted; leave one of them out`
	wrong := []string{"heteroflow.io/x", "1", "heteroflow.io/numa", "x", "heteroflow.io/task-type", "training", "heteroflow.io/preemptible", "true"}
	tests := map[string]struct {
		before, after change
		want          []string
	}{
		"nothing":                        {annotated(), annotated(), nil},
		"all wrong, as before":           {annotated(wrong...), annotated(wrong...), nil},
		"a fault gone":                   {annotated("heteroflow.io/x", "1"), annotated(), nil},
		"one put right":                  {annotated("heteroflow.io/numa", "x"), annotated("heteroflow.io/numa", "1"), nil},
		"another added beside":           {annotated(wrong...), annotated(append(wrong, "heteroflow.io/ports", "0")...), nil},
		"a new fault":                    {annotated(), annotated("heteroflow.io/x", ""), []string{"unknown annotation heteroflow.io/x"}},
		"another fault":                  {annotated("heteroflow.io/numa", "x"), annotated("heteroflow.io/numa", "y"), []string{`annotation heteroflow.io/numa: "y" is not the number of a NUMA node, 0..1023`}},
		"made wrong":                     {annotated("heteroflow.io/numa", "1"), annotated("heteroflow.io/numa", ""), []string{`annotation heteroflow.io/numa: "" is not the number of a NUMA node, 0..1023`}},
		"a label":                        {carrying("heteroflow.io/x", "1"), carrying("heteroflow.io/x", "2"), []string{"unknown label heteroflow.io/x"}},
		"the same label":                 {carrying("heteroflow.io/x", "1"), carrying("heteroflow.io/x", "1"), nil},
		"a label that was an annotation": {annotated("heteroflow.io/zone", "a"), carrying("heteroflow.io/zone", "a"), []string{"label heteroflow.io/zone: is an annotation; write it under metadata.annotations"}},
		"both, on a new pod":             {annotated(), annotated(wrong[4:]...), []string{exclude}},
		"one beside the other":           {annotated("heteroflow.io/task-type", "training"), annotated(wrong[4:]...), []string{exclude}},
		"the other beside one":           {annotated("heteroflow.io/preemptible", "true", "heteroflow.io/task-type", "batch"), annotated(wrong[4:]...), []string{exclude}},
		"both, with blanks":              {annotated(), annotated("heteroflow.io/task-type", " training", "heteroflow.io/preemptible", "true "), []string{exclude}},
		"preemptible inference":          {annotated(), annotated("heteroflow.io/task-type", "inference", "heteroflow.io/preemptible", "true"), nil},
		"training that stays":            {annotated(), annotated("heteroflow.io/task-type", "training", "heteroflow.io/preemptible", "false"), nil},
		"others' keys":                   {annotated(), annotated("nvidia.com/gpumem", "1", "hami.io/numa-hint", "x"), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cards := app("main", "nvidia.com/gpu", "1")
			sameFaults(t, CheckChange(podWith(cards, tc.before), podWith(cards, tc.after)), tc.want...)
		})
	}
}

// Who has got cards since it will have ended in time may end sooner, and not later.
func TestALimitStays(t *testing.T) {
	const longer = "annotation heteroflow.io/max-runtime: cannot become longer than 1h0m0s, or go: the pod has got its cards by it"
	tests := map[string]struct {
		after []string
		want  []string
	}{
		"as it was":      {[]string{AnnotationMaxRuntime, "60m"}, nil},
		"shorter":        {[]string{AnnotationMaxRuntime, "30m"}, nil},
		"longer":         {[]string{AnnotationMaxRuntime, "61m"}, []string{longer}},
		"gone":           {nil, []string{longer}},
		"nothing to say": {[]string{AnnotationMaxRuntime, "long"}, []string{`annotation heteroflow.io/max-runtime: "long" is not a duration above 0; write it as 45s, 90m or 2h30m`, longer}},
		"inference":      {[]string{AnnotationMaxRuntime, "1h", AnnotationTaskType, "inference"}, []string{"annotation heteroflow.io/task-type: cannot become inference, which runs for ever: the pod has got its cards by its heteroflow.io/max-runtime"}},
		"a member":       {[]string{AnnotationMaxRuntime, "1h", AnnotationTaskGroup, "chat"}, []string{"annotation heteroflow.io/task-group: cannot become another, whose members may run for ever: the pod has got its cards by its heteroflow.io/max-runtime"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := func(node string, annotations ...string) *corev1.Pod {
				p := podWith(app("main", "nvidia.com/gpu", "1"), annotated(annotations...))
				p.Spec.NodeName = node
				return p
			}
			sameFaults(t, CheckChange(pod("n1", AnnotationMaxRuntime, "1h"), pod("n1", tc.after...)), tc.want...)
			if name != "nothing to say" { // it has none yet
				sameFaults(t, CheckChange(pod("", AnnotationMaxRuntime, "1h"), pod("", tc.after...)))
			}
		})
	}
}

// What the scheduler has written may not be changed by others, not even taken
// off.
func TestChangesOfWhatTheSchedulerWrites(t *testing.T) {
	const alone = ": is written by the scheduler alone"
	keys := []string{
		AnnotationAllocation, AnnotationContainers, AnnotationEpoch, AnnotationPreemptCount, AnnotationPort,
		"heteroflow.io/visible-devices-0", "heteroflow.io/mem-limit-3", "heteroflow.io/core-limit-12", AnnotationHAMiNode, AnnotationHAMiAllocated,
	}
	for _, key := range keys {
		t.Run(key, func(t *testing.T) {
			none, one, other := podWith(annotated()), podWith(annotated(key, "1")), podWith(annotated(key, "2"))
			sameFaults(t, CheckChange(one, one))
			for _, change := range [][2]*corev1.Pod{{none, one}, {one, other}, {one, none}} {
				sameFaults(t, CheckChange(change[0], change[1]), "annotation "+key+alone)
			}
		})
	}
	labelled, relabelled := podWith(carrying(BoundByLabel, "1")), podWith(carrying(BoundByLabel, "2"))
	sameFaults(t, CheckChange(labelled, labelled))
	for _, change := range [][2]*corev1.Pod{{podWith(), labelled}, {labelled, relabelled}, {labelled, podWith()}} {
		sameFaults(t, CheckChange(change[0], change[1]), "label heteroflow.io/bound-by"+alone)
	}
	sameFaults(t, CheckChange(podWith(annotated(AnnotationPort, "1", AnnotationEpoch, "1")), podWith(annotated("heteroflow.io/x", "1"), carrying(BoundByLabel, "x"))),
		"annotation heteroflow.io/epoch"+alone, "annotation heteroflow.io/port"+alone, "label heteroflow.io/bound-by"+alone, "unknown annotation heteroflow.io/x")
	// As an annotation or a label of the other kind, such a key is nobody's.
	sameFaults(t, CheckChange(podWith(annotated("heteroflow.io/core-limit-x", "1")), podWith()))
	sameFaults(t, CheckChange(podWith(carrying(AnnotationHAMiNode, "1")), podWith()))
}

// drawKeys draws annotations: wishes with good or bad values, and strays.
func drawKeys(t *rapid.T, name string) map[string]string {
	keys := append(slices.Sorted(maps.Keys(wishValues)), "heteroflow.io/x", "heteroflow.io/gpumem", AnnotationEpoch)
	all := map[string]string{}
	for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID).Draw(t, name) {
		values := slices.Concat(wishValues[key].good, wishValues[key].bad, []string{"1"})
		all[key] = rapid.SampledFrom(values).Draw(t, key)
	}
	return all
}

// No change makes a pod without faults one that has them, and none that takes
// keys of its author away is refused.
func TestChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := podWith(annotated()), podWith(annotated())
		before.Annotations, after.Annotations = drawKeys(t, "before"), drawKeys(t, "after")
		after.Labels = drawKeys(t, "labels")
		// Most updates leave most keys as they were.
		for key, value := range before.Annotations {
			if rapid.Bool().Draw(t, "kept") {
				after.Annotations[key] = value
			}
		}
		if old, ok := before.Annotations[AnnotationEpoch]; ok {
			after.Annotations[AnnotationEpoch] = old // the scheduler's
		} else {
			delete(after.Annotations, AnnotationEpoch)
		}
		change, old, now := CheckChange(before, after), CheckKeys(before), CheckKeys(after)
		if old == nil && (change == nil) != (now == nil) {
			t.Errorf("of a pod without faults the change has %v, what it leads to %v", change, now)
		}
		if now == nil && change != nil {
			t.Errorf("no fault is left, and the change has %v", change)
		}
		maps.DeleteFunc(after.Annotations, func(string, string) bool { return rapid.Bool().Draw(t, "gone") })
		fewer := after.DeepCopy()
		maps.DeleteFunc(fewer.Annotations, func(key, _ string) bool { return key != AnnotationEpoch && rapid.Bool().Draw(t, "gone too") })
		maps.DeleteFunc(fewer.Labels, func(string, string) bool { return rapid.Bool().Draw(t, "label gone") })
		if err := CheckChange(after, fewer); err != nil {
			t.Errorf("keys taken away: %v", err)
		}
	})
}

// Wishes that are right each by itself are right together, but for the two that
// exclude each other.
func TestGoodWishesTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := podWith(app("main", "nvidia.com/gpu", "2"))
		for i := range wishes {
			w := &wishes[i]
			if w.key == AnnotationPreemptible || !rapid.Bool().Draw(t, w.key) {
				continue
			}
			name := rapid.SampledFrom(append([]string{w.key}, w.aliases...)).Draw(t, "name")
			pod.Annotations[name] = rapid.SampledFrom(wishValues[w.key].good).Draw(t, "value")
			if w.key == AnnotationGPUType {
				pod.Annotations[name] = "nvidia" // as its container asks
			}
		}
		if err := CheckKeys(pod); err != nil {
			t.Errorf("CheckKeys: %v", err)
		}
		if _, err := Request(pod, policy.Default()); err != nil {
			t.Errorf("Request: %v", err)
		}
	})
}

func TestDistance(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want int
	}{
		"the same":  {"numa", "numa", 0},
		"added":     {"numa", "numas", 1},
		"dropped":   {"numa", "nma", 1},
		"replaced":  {"numa", "nuna", 1},
		"swapped":   {"numa", "nmua", 2},
		"all":       {"", "numa", 4},
		"of either": {"kitten", "sitting", 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if one, other := distance(tc.a, tc.b), distance(tc.b, tc.a); one != tc.want || other != tc.want {
				t.Errorf("distance = %d, the other way %d, want %d", one, other, tc.want)
			}
		})
	}
}

// A pod has room for a hundred thousand labels. What is wrong with them costs no more to
// say than what is wrong with a few, whoever asks and wherever they stand.
func TestManyStrayKeysAreNotAllNamed(t *testing.T) {
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprintf("heteroflow.io/x%d", i)] = ""
	}
	for name, change := range map[string]change{
		"annotations": func(p *corev1.Pod) { p.Annotations = many },
		"labels":      func(p *corev1.Pod) { p.Labels = many },
		"both":        func(p *corev1.Pod) { p.Annotations, p.Labels = many, many },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Request(podWith(app("main", "heteroflow.io/gpu", "1"), change), policy.Default())
			for _, err := range []error{err, CheckKeys(podWith(change)), CheckChange(&corev1.Pod{}, podWith(change))} {
				if err == nil {
					t.Fatal("nothing is wrong with a thousand keys that nothing reads")
				}
				if lines := strings.Split(err.Error(), "\n"); len(lines) != mostStrays+1 {
					t.Errorf("%d faults are named, and not %d: %.500s", len(lines), mostStrays+1, err)
				}
			}
		})
	}
}
