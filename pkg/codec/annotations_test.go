package codec

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// What a pod's author may write, and HAMi's names for it, is the contract: typed
// from the table of annotations, not from the code.
func TestWishes(t *testing.T) {
	want := map[string][]string{
		"heteroflow.io/gpu-type": nil,
		"heteroflow.io/gpu-model": {
			"hami.io/gpu-type", "nvidia.com/use-gputype", "hygon.com/use-dcutype", "cambricon.com/use-mlutype", "birentech.com/use-biren",
		},
		"heteroflow.io/gpu-model-exclude": {
			"nvidia.com/nouse-gputype", "hygon.com/nouse-dcutype", "cambricon.com/nouse-mlutype", "birentech.com/nouse-biren",
		},
		"heteroflow.io/gpu-uuid-include": {
			"hami.io/gpu-uuid-include", "nvidia.com/use-gpuuuid", "hygon.com/use-gpuuuid", "cambricon.com/use-gpuuuid", "mthreads.ai/use-gpuuuid",
			"metax-tech.com/use-gpuuuid", "enflame.com/use-gpuuuid", "baidu.com/use-gpuuuid", "birentech.com/use-gpuuuid", "hami.io/use-xpu-uuid",
			"hami.io/use-Ascend910A-uuid", "hami.io/use-Ascend910B2-uuid", "hami.io/use-Ascend910B3-uuid", "hami.io/use-Ascend910B4-uuid",
			"hami.io/use-Ascend910B4-1-uuid", "hami.io/use-Ascend910C-uuid", "hami.io/use-Ascend310P-uuid",
			"hami.io/use-MR-V100-uuid", "hami.io/use-MR-V50-uuid", "hami.io/use-BI-V150-uuid", "hami.io/use-BI-V100-uuid",
		},
		"heteroflow.io/gpu-uuid-exclude": {
			"hami.io/gpu-uuid-exclude", "nvidia.com/nouse-gpuuuid", "hygon.com/nouse-gpuuuid", "cambricon.com/nouse-gpuuuid", "mthreads.ai/nouse-gpuuuid",
			"metax-tech.com/nouse-gpuuuid", "enflame.com/nouse-gpuuuid", "baidu.com/nouse-gpuuuid", "birentech.com/nouse-gpuuuid", "hami.io/no-use-xpu-uuid",
			"hami.io/no-use-Ascend910A-uuid", "hami.io/no-use-Ascend910B2-uuid", "hami.io/no-use-Ascend910B3-uuid", "hami.io/no-use-Ascend910B4-uuid",
			"hami.io/no-use-Ascend910B4-1-uuid", "hami.io/no-use-Ascend910C-uuid", "hami.io/no-use-Ascend310P-uuid",
			"hami.io/no-use-MR-V100-uuid", "hami.io/no-use-MR-V50-uuid", "hami.io/no-use-BI-V150-uuid", "hami.io/no-use-BI-V100-uuid",
		},
		"heteroflow.io/numa":           {"hami.io/numa-hint"},
		"heteroflow.io/numa-bind":      {"nvidia.com/numa-bind"},
		"heteroflow.io/priority":       nil,
		"heteroflow.io/task-type":      nil,
		"heteroflow.io/preemptible":    nil,
		"heteroflow.io/nvlink":         nil,
		"heteroflow.io/rdma":           nil,
		"heteroflow.io/region":         nil,
		"heteroflow.io/zone":           nil,
		"heteroflow.io/rack":           nil,
		"heteroflow.io/node-policy":    {"hami.io/node-scheduler-policy"},
		"heteroflow.io/card-policy":    {"hami.io/gpu-scheduler-policy"},
		"heteroflow.io/task-group":     nil,
		"heteroflow.io/max-runtime":    nil,
		"heteroflow.io/borrow":         nil,
		"heteroflow.io/preempt-signal": nil,
		"heteroflow.io/preempt-mode":   nil,
		"heteroflow.io/ports":          nil,
		"heteroflow.io/model":          nil,
	}
	got := map[string][]string{}
	for _, w := range wishes {
		got[w.key] = slices.Sorted(slices.Values(w.aliases))
	}
	for _, aliases := range want {
		slices.Sort(aliases)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wishes (-want +got):\n%s", diff)
	}
}

// wishValues is read only: for each wish what may be written, two that mean
// different things first, and what may not.
var wishValues = map[string]struct{ good, bad []string }{
	AnnotationGPUType:       {[]string{"nvidia", "Ascend", "MUSA"}, []string{"", "amd", "nvidia,ascend"}},
	AnnotationModel:         {[]string{"A100", "H100", "A100,H100 PCIe", "a , b"}, []string{"", ",", "A100,", "A100,,H100"}},
	AnnotationNotModel:      {[]string{"A100", "T4"}, []string{"", ",T4"}},
	AnnotationUUIDInclude:   {[]string{"GPU-a", "GPU-a,GPU-b"}, []string{"", "GPU-a, ,GPU-b"}},
	AnnotationUUIDExclude:   {[]string{"GPU-a", "GPU-a,GPU-b"}, []string{"", "GPU-a,"}},
	AnnotationNUMA:          {[]string{"0", "1023"}, []string{"", "-1", "+1", "1024", "0x1", "1.0", "node0"}},
	AnnotationNUMABind:      {[]string{"true", "false"}, []string{"", "True", "1", "yes"}},
	AnnotationPriority:      {[]string{"0", "100", "50"}, []string{"", "-1", "+1", "101", "1e1", "high", "5.0", "99999999999999999999"}},
	AnnotationTaskType:      {[]string{"training", "inference", "batch"}, []string{"", "train", "Training"}},
	AnnotationPreemptible:   {[]string{"true", "false"}, []string{"", "TRUE", "no"}},
	AnnotationNVLink:        {[]string{"required", "preferred"}, []string{"", "true", "require"}},
	AnnotationRDMA:          {[]string{"required", "preferred"}, []string{"", "false", "Required"}},
	AnnotationRegion:        {[]string{"eu-1", "A_b.c", strings.Repeat("r", 63)}, []string{"", "-eu", "eu 1", "a/b", strings.Repeat("r", 64)}},
	AnnotationZone:          {[]string{"eu-1a", "b"}, []string{"", "eu-1a,eu-1b"}},
	AnnotationRack:          {[]string{"r17", "b"}, []string{"", "r17."}},
	AnnotationNodePolicy:    {[]string{"binpack", "spread", "topology-aware"}, []string{"", "binpak", "Spread", "mutex", "numa", "random"}},
	AnnotationCardPolicy:    {[]string{"binpack", "spread", "topology-aware"}, []string{"", "binpak", "mutex", "numa", "binpack,spread"}},
	AnnotationTaskGroup:     {[]string{"train", "a.b-c", strings.Repeat("g", 253)}, []string{"", "Train", "a_b", "-a", "a..b", "team/train", strings.Repeat("g", 254)}},
	AnnotationMaxRuntime:    {[]string{"90m", "2h30m", "1ns", "1.5h"}, []string{"", "0", "0s", "-1h", "7200", "2 hours", "1d", "3000000h"}},
	AnnotationBorrow:        {[]string{"true", "false"}, []string{"", "yes"}},
	AnnotationPreemptSignal: {[]string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}, []string{"", "SIGKILL", "TERM", "15", "sigterm", "SIGSTOP"}},
	AnnotationPreemptMode:   {[]string{"evict", "suspend"}, []string{"", "delete"}},
	AnnotationPorts:         {[]string{"0", "64", "1"}, []string{"", "-1", "65", "8080", "1,2"}},
	AnnotationServedModel:   {[]string{"Qwen/Qwen3-8B", "a model", "模型", strings.Repeat("模", 253)}, []string{"", "a\nb", "a\x00b", "\xff", "a\u00a0b", strings.Repeat("m", 254)}},
}

// wishing is a pod that asks for two cards and has these annotations.
func wishing(annotations ...string) *corev1.Pod {
	return podWith(app("main", "heteroflow.io/gpu", "2"), annotated(annotations...))
}

func TestWishValues(t *testing.T) {
	if len(wishValues) != len(wishes) {
		t.Errorf("values of %d wishes, there are %d", len(wishValues), len(wishes))
	}
	for _, w := range wishes {
		values := wishValues[w.key]
		for _, key := range append([]string{w.key}, w.aliases...) {
			t.Run(key, func(t *testing.T) {
				for _, value := range values.good {
					mustWish(t, key, value, w.key)
				}
				for _, value := range values.bad {
					mustNotWish(t, key, value, w.key)
				}
				if key != w.key {
					mustAgree(t, w.key, key, values.good)
				}
			})
		}
	}
}

// mustWish checks that a value is read, by an alias as by ours.
func mustWish(t *testing.T, key, value, ours string) {
	t.Helper()
	pod := wishing(key, value)
	got, err := Request(pod, policy.Default())
	sameFaults(t, err)
	sameFaults(t, CheckKeys(pod))
	want, _ := Request(wishing(ours, "  "+value+"\t"), policy.Default())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q differs from %s (-want +got):\n%s", value, ours, diff)
	}
}

// mustNotWish checks that a value is refused in one sentence that names the key,
// and leaves no asks. Others' keys are not judged where no card is asked for,
// and are no wish when they are empty.
func mustNotWish(t *testing.T, key, value, ours string) {
	t.Helper()
	pod := wishing(key, value)
	got, err := Request(pod, policy.Default())
	empty := slices.ContainsFunc(strings.Split(value, ","), func(item string) bool { return strings.TrimSpace(item) == "" })
	switch {
	case key != ours && (value == "True" || value == "1" || empty && strings.Trim(value, ", ") != ""):
		return // see TestSpellingsOfHAMi
	case key == ours:
		if diff := cmp.Diff(text(err), text(CheckKeys(pod))); diff != "" {
			t.Errorf("%q (-Request +CheckKeys):\n%s", value, diff)
		}
	case value == "":
		sameFaults(t, err)
		return
	default:
		sameFaults(t, CheckKeys(pod))
	}
	if said := text(err); !strings.HasPrefix(said, "annotation "+key+": \"") || strings.Contains(said, "\n") || got.AsksForCards() {
		t.Errorf("%q: %q, asks %v", value, said, got.Asks)
	}
}

// mustAgree checks that two names of a wish have to say the same.
func mustAgree(t *testing.T, ours, alias string, good []string) {
	t.Helper()
	_, err := Request(wishing(ours, " "+good[0], alias, good[0]+" "), policy.Default())
	sameFaults(t, err)
	_, err = Request(wishing(ours, good[0], alias, good[1]), policy.Default())
	if said := text(err); !strings.HasPrefix(said, "annotation "+ours+": ") || !strings.Contains(said, " differs from "+alias+", which means the same") {
		t.Errorf("%s beside %s: %q", good[1], good[0], said)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNVLinkOfAPod(t *testing.T) {
	for value, want := range map[string]bool{"required": true, "preferred": false} {
		r, err := Request(podWith(app("main", "heteroflow.io/gpu", "2"), annotated("heteroflow.io/nvlink", value)), policy.Default())
		sameFaults(t, err)
		if r.NVLink != want || r.Unmet != "" {
			t.Errorf("%s: required %t, unmet %q", value, r.NVLink, r.Unmet)
		}
	}
}

// What no node can vouch for must not be as good as met.
func TestUnmet(t *testing.T) {
	two, one := []string{"heteroflow.io/gpu", "2"}, []string{"nvidia.com/gpumem", "100"}
	tests := map[string]struct {
		limits      []string
		annotations []string
		want        gpu.Reason
	}{
		"nothing":                                    {two, nil, ""},
		"NVLink, as nodes tell":                      {two, []string{"heteroflow.io/nvlink", "required"}, ""},
		"RDMA, for which nodes can":                  {one, []string{"heteroflow.io/rdma", "required"}, ""},
		"a group, as those know who know TaskGroups": {one, []string{"heteroflow.io/task-group", "train"}, ""},
		"a port":             {one, []string{"heteroflow.io/ports", "1"}, gpu.InsufficientPorts},
		"no port":            {one, []string{"heteroflow.io/ports", "0"}, ""},
		"a port beside them": {two, []string{"heteroflow.io/ports", "1", "heteroflow.io/task-group", "g", "heteroflow.io/rdma", "required", "heteroflow.io/nvlink", "required"}, gpu.InsufficientPorts},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Request(podWith(app("side"), app("main", tc.limits...), annotated(tc.annotations...)), policy.Default())
			sameFaults(t, err)
			if r.Unmet != tc.want {
				t.Errorf("Unmet = %q, want %q", r.Unmet, tc.want)
			}
		})
	}
}

// HAMi takes more than one spelling for the same.
func TestSpellingsOfHAMi(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		want        gpu.Request
	}{
		"a comma at the end":  {[]string{"nvidia.com/use-gputype", "A100,"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"a comma at the head": {[]string{"nvidia.com/nouse-gputype", " ,T4"}, gpu.Request{NUMA: gpu.NoNUMA, NotModels: []string{"T4"}}},
		"commas in between":   {[]string{"nvidia.com/use-gpuuuid", "GPU-a,, ,GPU-b"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a", "GPU-b"}}},
		"beside ours":         {[]string{"heteroflow.io/gpu-uuid-exclude", "GPU-a, GPU-b", "nvidia.com/nouse-gpuuuid", "GPU-a, GPU-b,"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-a", "GPU-b"}}},
		"yes":                 {[]string{"nvidia.com/numa-bind", "1"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"yes, in capitals":    {[]string{"nvidia.com/numa-bind", "True"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"yes beside ours":     {[]string{"nvidia.com/numa-bind", "t", "heteroflow.io/numa-bind", "true"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"no":                  {[]string{"nvidia.com/numa-bind", "F"}, gpu.Request{NUMA: gpu.NoNUMA}},
		"the most items":      {[]string{"hami.io/gpu-type", strings.Repeat("zq,", 256)}, gpu.Request{NUMA: gpu.NoNUMA, Models: slices.Repeat([]string{"zq"}, 256)}},
		"the longest item":    {[]string{"hami.io/gpu-type", strings.Repeat("x", 256)}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{strings.Repeat("x", 256)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Request(wishing(tc.annotations...), untimed())
			sameFaults(t, err)
			tc.want.Pod, tc.want.Namespace, tc.want.Name, tc.want.Asks = got.Pod, got.Namespace, got.Name, got.Asks
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// A refusal is read by people, in an event of 1 KiB: no value of theirs, however
// long and wherever it stands, fills it.
func TestRefusalsAreShort(t *testing.T) {
	long := strings.Repeat("\u2026", 80000)
	digits := strings.Repeat("9", 50000)
	pods := map[string]*corev1.Pod{
		"record":          podWith(app("main", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, long)),
		"record of names": podWith(app("main", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"main":0,"`+long+`":0,"x`+long+`":-1}`)),
		"record, twice":   podWith(app("main", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"`+long+`":0,"`+long+`":0}`)),
		"amount":          podWith(app("main", "nvidia.com/gpu", digits)),
		"amount of MiB":   podWith(app("main", "heteroflow.io/gpu-memory", digits)),
		"requests":        podWith(app("main", "nvidia.com/gpu", "1"), requesting("nvidia.com/gpu", digits)),
		"two names":       wishing("heteroflow.io/gpu-model", long, "hami.io/gpu-type", long+"x"),
	}
	for i := range wishes {
		w := &wishes[i]
		for _, key := range append(w.aliases, w.key) {
			pods[key] = wishing(key, long)
		}
	}
	for _, o := range others {
		pods[o.key] = wishing(o.key, long)
	}
	for name, pod := range pods {
		if _, err := Request(pod, policy.Default()); err == nil || len(err.Error()) > 1024 || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: %d bytes: %.200v", name, len(text(err)), err)
		}
	}
}

func TestPriority(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		n           int
		named       bool
		fault       string
	}{
		"none":     {nil, 0, false, ""},
		"lowest":   {[]string{"heteroflow.io/priority", "0"}, 0, true, ""},
		"highest":  {[]string{"heteroflow.io/priority", " 100 "}, 100, true, ""},
		"too high": {[]string{"heteroflow.io/priority", "101"}, 0, true, `annotation heteroflow.io/priority: "101" is not a whole number, 0..100`},
		"a word":   {[]string{"heteroflow.io/priority", "high"}, 0, true, `annotation heteroflow.io/priority: "high" is not a whole number, 0..100`},
		"empty":    {[]string{"heteroflow.io/priority", ""}, 0, true, `annotation heteroflow.io/priority: "" is not a whole number, 0..100`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n, named, err := Priority(podWith(annotated(tc.annotations...)))
			if n != tc.n || named != tc.named || text(err) != tc.fault {
				t.Errorf("Priority = %d, %t, %v; want %d, %t, %q", n, named, err, tc.n, tc.named, tc.fault)
			}
		})
	}
}

func TestAnnotationsOfAuthors(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		want        gpu.Request // beside what every pod here has
	}{
		"none":                        {nil, gpu.Request{NUMA: gpu.NoNUMA}},
		"type in any case":            {[]string{"heteroflow.io/gpu-type", "NVIDIA"}, gpu.Request{NUMA: gpu.NoNUMA, Vendor: gpu.Nvidia}},
		"one NUMA node":               {[]string{"heteroflow.io/numa-bind", "true"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"one NUMA node, HAMi's":       {[]string{"nvidia.com/numa-bind", "true"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"any NUMA nodes":              {[]string{"heteroflow.io/numa-bind", "false"}, gpu.Request{NUMA: gpu.NoNUMA}},
		"models":                      {[]string{"heteroflow.io/gpu-model", "A100, H100 PCIe"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100", "H100 PCIe"}}},
		"models by HAMi's name":       {[]string{"hami.io/gpu-type", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"models by NVIDIA's":          {[]string{"nvidia.com/use-gputype", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"the same by all names":       {[]string{"heteroflow.io/gpu-model", "A100", "nvidia.com/use-gputype", " A100 ", "hami.io/gpu-type", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"models excluded":             {[]string{"heteroflow.io/gpu-model-exclude", "T4"}, gpu.Request{NUMA: gpu.NoNUMA, NotModels: []string{"T4"}}},
		"... by NVIDIA's name":        {[]string{"nvidia.com/nouse-gputype", "T4"}, gpu.Request{NUMA: gpu.NoNUMA, NotModels: []string{"T4"}}},
		"UUIDs":                       {[]string{"heteroflow.io/gpu-uuid-include", "GPU-a,GPU-b"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a", "GPU-b"}}},
		"... by HAMi's name":          {[]string{"hami.io/gpu-uuid-include", "GPU-a"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a"}}},
		"UUIDs by NVIDIA's name":      {[]string{"nvidia.com/use-gpuuuid", "GPU-a"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a"}}},
		"UUIDs excluded":              {[]string{"heteroflow.io/gpu-uuid-exclude", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"... by HAMi's name too":      {[]string{"hami.io/gpu-uuid-exclude", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"... and by NVIDIA's":         {[]string{"nvidia.com/nouse-gpuuuid", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"NUMA node 0":                 {[]string{"heteroflow.io/numa", "0"}, gpu.Request{NUMA: 0}},
		"NUMA by HAMi's name":         {[]string{"hami.io/numa-hint", "1"}, gpu.Request{NUMA: 1}},
		"node policy":                 {[]string{"heteroflow.io/node-policy", "binpack"}, gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: gpu.Binpack}},
		"... of HAMi":                 {[]string{"hami.io/node-scheduler-policy", "spread"}, gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: gpu.Spread}},
		"card policy":                 {[]string{"heteroflow.io/card-policy", "spread"}, gpu.Request{NUMA: gpu.NoNUMA, CardPolicy: gpu.Spread}},
		"topology-aware":              {[]string{"heteroflow.io/node-policy", "topology-aware", "hami.io/gpu-scheduler-policy", "topology-aware"}, gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: gpu.TopologyAware, CardPolicy: gpu.TopologyAware}},
		"HAMi's empty lists":          {[]string{"nvidia.com/use-gpuuuid", "", "hami.io/gpu-type", " ", "hami.io/numa-hint", ""}, gpu.Request{NUMA: gpu.NoNUMA}},
		"an empty one beside ours":    {[]string{"heteroflow.io/gpu-model", "A100", "hami.io/gpu-type", ""}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"an empty one beside another": {[]string{"hami.io/gpu-type", "", "nvidia.com/use-gputype", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"what is only checked": {
			[]string{
				"heteroflow.io/priority", "100", "heteroflow.io/preemptible", "false", "heteroflow.io/borrow", "true", "heteroflow.io/preempt-signal", "SIGUSR1", "heteroflow.io/model", "m",
			},
			gpu.Request{NUMA: gpu.NoNUMA},
		},
		"wishes that exclude each other, of a pod that was let in": {
			[]string{"heteroflow.io/task-type", "training", "heteroflow.io/preemptible", "true"}, gpu.Request{NUMA: gpu.NoNUMA, Type: gpu.Training},
		},
		"a place": {
			[]string{"heteroflow.io/region", "eu", "heteroflow.io/zone", " eu-1 ", "heteroflow.io/rack", "r.7"},
			gpu.Request{NUMA: gpu.NoNUMA, Region: "eu", Zone: "eu-1", Rack: "r.7"},
		},
		"RDMA required":       {[]string{"heteroflow.io/rdma", "required"}, gpu.Request{NUMA: gpu.NoNUMA, RDMA: gpu.Required}},
		"RDMA preferred":      {[]string{"heteroflow.io/rdma", "preferred"}, gpu.Request{NUMA: gpu.NoNUMA, RDMA: gpu.Preferred}},
		"training":            {[]string{"heteroflow.io/task-type", "training"}, gpu.Request{NUMA: gpu.NoNUMA, Type: gpu.Training}},
		"inference":           {[]string{"heteroflow.io/task-type", "inference"}, gpu.Request{NUMA: gpu.NoNUMA, Type: gpu.Inference}},
		"card policy of HAMi": {[]string{"hami.io/gpu-scheduler-policy", "binpack"}, gpu.Request{NUMA: gpu.NoNUMA, CardPolicy: gpu.Binpack}},
		"the scheduler's own, on a copy of a bound pod": {
			[]string{
				"heteroflow.io/allocation", "{}", "heteroflow.io/epoch", "0", "heteroflow.io/port", "8000", "heteroflow.io/preempt-count", "1",
				"heteroflow.io/visible-devices-0", "GPU-a", "heteroflow.io/mem-limit-12", "1", "heteroflow.io/core-limit-0", "1", "hami.io/bind-node", "n1",
			},
			gpu.Request{NUMA: gpu.NoNUMA},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(app("main", "heteroflow.io/gpu", "1"), annotated(tc.annotations...))
			tc.want.Pod, tc.want.Namespace, tc.want.Name = "7d9c", "team-a", "train-0"
			tc.want.Asks = []gpu.Ask{{Container: "main", Count: 1, Whole: true}}
			got, err := Request(pod, untimed())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnnotationsRefused(t *testing.T) {
	const vendors = "musa, hygon, cambricon, biren, ascend, kunlun, iluvatar, nvidia, metax, enflame"
	tests := map[string]struct {
		annotations []string
		want        []string
	}{
		"a node's key":              {[]string{"heteroflow.io/devices", "{}"}, []string{"unknown annotation heteroflow.io/devices"}},
		"not quite the scheduler's": {[]string{"heteroflow.io/visible-devices-main", "GPU-a"}, []string{"unknown annotation heteroflow.io/visible-devices-main"}},
		"no number at all":          {[]string{"heteroflow.io/mem-limit-", "1"}, []string{"unknown annotation heteroflow.io/mem-limit-"}},
		"the prefix alone":          {[]string{"heteroflow.io/", "1"}, []string{"unknown annotation heteroflow.io/"}},
		"no vendor":                 {[]string{"heteroflow.io/gpu-type", "amd"}, []string{`annotation heteroflow.io/gpu-type: "amd" is not a vendor; the vendors are ` + vendors}},
		"another vendor":            {[]string{"heteroflow.io/gpu-type", "ascend"}, []string{`annotation heteroflow.io/gpu-type: "ascend" contradicts container main, which asks for cards of nvidia`}},
		"no model":                  {[]string{"heteroflow.io/gpu-model", ""}, []string{`annotation heteroflow.io/gpu-model: "" has an empty item; write a comma list, or leave the annotation out`}},
		"an empty item":             {[]string{"heteroflow.io/gpu-uuid-exclude", "GPU-a,,GPU-b"}, []string{`annotation heteroflow.io/gpu-uuid-exclude: "GPU-a,,GPU-b" has an empty item; write a comma list, or leave the annotation out`}},
		"HAMi's of empty items":     {[]string{"nvidia.com/nouse-gpuuuid", ", ,"}, []string{`annotation nvidia.com/nouse-gpuuuid: ", ," has an empty item; write a comma list, or leave the annotation out`}},
		"too many items":            {[]string{"heteroflow.io/gpu-model", strings.Repeat("zq,", 256) + "zq"}, []string{`annotation heteroflow.io/gpu-model: "` + strings.Repeat("zq,", 26) + `zq"... (770 bytes) has more than 256 items`}},
		"too many by another name":  {[]string{"nvidia.com/nouse-gputype", strings.Repeat("zq,", 300)}, []string{`annotation nvidia.com/nouse-gputype: "` + strings.Repeat("zq,", 26) + `zq"... (899 bytes) has more than 256 items`}},
		"too long an item":          {[]string{"heteroflow.io/gpu-uuid-include", "a," + strings.Repeat("x", 257)}, []string{`annotation heteroflow.io/gpu-uuid-include: item "` + strings.Repeat("x", 80) + `"... (257 bytes) is longer than 256 bytes`}},
		"a long text":               {[]string{"heteroflow.io/rdma", "a" + strings.Repeat("\u2026", 100)}, []string{`annotation heteroflow.io/rdma: "a` + strings.Repeat("\u2026", 26) + `"... (301 bytes) is not one of required, preferred`}},
		"no NUMA node":              {[]string{"heteroflow.io/numa", "-1"}, []string{`annotation heteroflow.io/numa: "-1" is not the number of a NUMA node, 0..1023`}},
		"a signed NUMA node":        {[]string{"hami.io/numa-hint", "+1"}, []string{`annotation hami.io/numa-hint: "+1" is not the number of a NUMA node, 0..1023`}},
		"a high NUMA node":          {[]string{"heteroflow.io/numa", "1024"}, []string{`annotation heteroflow.io/numa: "1024" is not the number of a NUMA node, 0..1023`}},
		"no NUMA node of any int":   {[]string{"heteroflow.io/numa", "99999999999999999999"}, []string{`annotation heteroflow.io/numa: "99999999999999999999" is not the number of a NUMA node, 0..1023`}},
		"one NUMA node":             {[]string{"heteroflow.io/numa-bind", "yes"}, []string{`annotation heteroflow.io/numa-bind: "yes" is not one of true, false`}},
		"policy":                    {[]string{"heteroflow.io/node-policy", "binpacking"}, []string{`annotation heteroflow.io/node-policy: "binpacking" is not one of binpack, spread, topology-aware`}},
		"policy in another case":    {[]string{"heteroflow.io/card-policy", "Spread"}, []string{`annotation heteroflow.io/card-policy: "Spread" is not one of binpack, spread, topology-aware`}},
		"HAMi's cards for one":      {[]string{"hami.io/gpu-scheduler-policy", "mutex"}, []string{`annotation hami.io/gpu-scheduler-policy: "mutex" is not handled; for cards with nobody else on them ask for whole cards`}},
		"HAMi's NUMA policy":        {[]string{"hami.io/gpu-scheduler-policy", "numa"}, []string{`annotation hami.io/gpu-scheduler-policy: "numa" is not handled; for cards of one NUMA node write heteroflow.io/numa-bind: true`}},
		"several policies of HAMi":  {[]string{"hami.io/gpu-scheduler-policy", "binpack,numa"}, []string{`annotation hami.io/gpu-scheduler-policy: "binpack,numa" is not one of binpack, spread, topology-aware`}},
		"ours empty beside HAMi's":  {[]string{"heteroflow.io/gpu-model", "", "hami.io/gpu-type", "A100"}, []string{`annotation heteroflow.io/gpu-model: "" differs from hami.io/gpu-type, which means the same and is "A100"`}},
		"a typo in a policy":        {[]string{"heteroflow.io/node-policy", "binpak"}, []string{`annotation heteroflow.io/node-policy: "binpak" is not one of binpack, spread, topology-aware`}},
		"too high a priority":       {[]string{"heteroflow.io/priority", "101"}, []string{`annotation heteroflow.io/priority: "101" is not a whole number, 0..100`}},
		"a duration in words":       {[]string{"heteroflow.io/max-runtime", "2 hours"}, []string{`annotation heteroflow.io/max-runtime: "2 hours" is not a duration above 0; write it as 45s, 90m or 2h30m`}},
		"a signal that kills":       {[]string{"heteroflow.io/preempt-signal", "SIGKILL"}, []string{`annotation heteroflow.io/preempt-signal: "SIGKILL" leaves a task no time to save its state; write one of SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2`}},
		"no label value":            {[]string{"heteroflow.io/zone", "a b"}, []string{`annotation heteroflow.io/zone: "a b" is not a label value: 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at each end`}},
		"no name of a group":        {[]string{"heteroflow.io/task-group", "Train"}, []string{`annotation heteroflow.io/task-group: "Train" is not the name of a TaskGroup: up to 253 small letters, digits, '-' and '.', with a letter or digit at each end and beside each '.'`}},
		"no name of a model":        {[]string{"heteroflow.io/model", "a\x00b"}, []string{`annotation heteroflow.io/model: "a\x00b" is not the name of a model: 1 to 253 printable characters`}},
		"two names, two values": {
			[]string{"heteroflow.io/gpu-model", "A100", "hami.io/gpu-type", "H100"},
			[]string{`annotation heteroflow.io/gpu-model: "A100" differs from hami.io/gpu-type, which means the same and is "H100"`},
		},
		"two aliases, two values": {
			[]string{"hami.io/gpu-uuid-include", "GPU-a", "nvidia.com/use-gpuuuid", "GPU-b"},
			[]string{`annotation hami.io/gpu-uuid-include: "GPU-a" differs from nvidia.com/use-gpuuuid, which means the same and is "GPU-b"`},
		},
		"all at once": {
			[]string{"heteroflow.io/x", "", "heteroflow.io/numa", "x", "heteroflow.io/node-policy", "x"},
			[]string{
				"unknown annotation heteroflow.io/x",
				`annotation heteroflow.io/numa: "x" is not the number of a NUMA node, 0..1023`,
				`annotation heteroflow.io/node-policy: "x" is not one of binpack, spread, topology-aware`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Request(podWith(app("main", "nvidia.com/gpu", "1"), annotated(tc.annotations...)), policy.Default())
			sameFaults(t, err, tc.want...)
		})
	}
}
