package codec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestNumbers(t *testing.T) {
	tests := map[string]struct {
		asking string // the container that asks for a card; "": none does
		inits  []string
		apps   []string
		record string
		want   string
	}{
		"nobody asks":                   {"", nil, []string{"a"}, `{"a":3}`, ""},
		"places":                        {"b", []string{"a"}, []string{"b", "c"}, "", `{"a":0,"b":1,"c":2}`},
		"kept":                          {"b", nil, []string{"b"}, `{"b":7}`, `{"b":7}`},
		"kept, the largest":             {"b", nil, []string{"b"}, `{"b":9999}`, `{"b":9999}`},
		"the lowest free ones":          {"a", []string{"x"}, []string{"y", "a", "z"}, `{"a":1}`, `{"a":1,"x":0,"y":2,"z":3}`},
		"one that has gone is free":     {"a", nil, []string{"n", "a"}, `{"a":1,"gone":0}`, `{"a":1,"n":0}`},
		"one record in another writing": {"a", nil, []string{"a"}, ` { "a" : 2 } `, `{"a":2}`},
		"two of one number":             {"a", nil, []string{"a", "b"}, `{"a":4,"b":4}`, `{"a":0,"b":1}`},
		"too large":                     {"a", nil, []string{"a"}, `{"a":10000}`, `{"a":0}`},
		"negative":                      {"a", nil, []string{"a"}, `{"a":-1}`, `{"a":0}`},
		"no number":                     {"a", nil, []string{"a"}, `{"a":"1"}`, `{"a":0}`},
		"no record":                     {"a", nil, []string{"a"}, `null`, `{"a":0}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if tc.record != "" {
				pod.Annotations = map[string]string{AnnotationContainers: tc.record}
			}
			pod.Spec.InitContainers, pod.Spec.Containers = someAsking(tc.inits, tc.asking), someAsking(tc.apps, tc.asking)
			if got := Numbers(pod); got != tc.want {
				t.Errorf("Numbers = %s, want %s", got, tc.want)
			}
		})
	}
}

// someAsking are containers of which one asks for a card.
func someAsking(names []string, asking string) (all []corev1.Container) {
	for _, name := range names {
		c := corev1.Container{Name: name}
		if name == asking {
			c.Resources.Limits = quantities("heteroflow.io/gpu", "1")
		}
		all = append(all, c)
	}
	return all
}

func TestAsksForCards(t *testing.T) {
	tests := map[string]struct {
		limits, requests corev1.ResourceList
		want             bool
	}{
		"nothing":                   {nil, nil, false},
		"processors":                {quantities("cpu", "1", "example.com/fpga", "1"), nil, false},
		"a form":                    {quantities("cpu", "1", "mthreads.com/sgpu-memory", "2"), nil, true},
		"in requests alone":         {nil, quantities("nvidia.com/gpu", "1"), true},
		"none of it":                {quantities("nvidia.com/gpu", "0"), quantities("nvidia.com/gpu", "0"), false},
		"a name that nobody has":    {quantities("heteroflow.io/gpus", "0"), nil, true},
		"with a quota's prefix":     {quantities("requests.nvidia.com/gpu", "1"), nil, true},
		"such a prefix of others":   {quantities("limits.example.com/fpga", "1"), nil, false},
		"a device plugin's own":     {quantities("nvidia.com/mig-1g.5gb", "1"), nil, false},
		"a domain that is not ours": {quantities("heteroflow.io.example.com/gpu", "1"), nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: tc.limits, Requests: tc.requests}}
			for _, spec := range []corev1.PodSpec{{Containers: []corev1.Container{{}, c}}, {InitContainers: []corev1.Container{c}}} {
				pod := &corev1.Pod{Spec: spec}
				if got := AsksForCards(pod); got != tc.want || Concerns(pod) != tc.want {
					t.Errorf("AsksForCards = %t, Concerns = %t, want %t", got, Concerns(pod), tc.want)
				}
			}
		})
	}
}

func TestCarried(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{
		AnnotationAllocation: "", AnnotationEpoch: "", AnnotationPort: "", AnnotationPreemptCount: "", AnnotationContainers: "", AnnotationGPUType: "",
		"heteroflow.io/visible-devices-12": "", "heteroflow.io/mem-limit-0": "", "heteroflow.io/core-limit-0": "", "heteroflow.io/core-limit-x": "",
		AnnotationHAMiNode: "", AnnotationHAMiAllocated: "", "hami.io/vgpu-devices-allocated": "", "hami.io/gpu-type": "", "a/b": "",
	}
	pod.Labels = map[string]string{BoundByLabel: "x", "app": ""}
	annotations, labels := Carried(pod)
	want := []string{
		"hami.io/bind-node", "hami.io/device-allocated", "hami.io/vgpu-devices-allocated", "heteroflow.io/allocation", "heteroflow.io/core-limit-0", "heteroflow.io/epoch",
		"heteroflow.io/mem-limit-0", "heteroflow.io/port", "heteroflow.io/preempt-count", "heteroflow.io/visible-devices-12",
	}
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"heteroflow.io/bound-by"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// The variables are typed here from vendors.md, and from the documentation of
// Hygon's container toolkit.
func TestEveryVendorHasAVariable(t *testing.T) {
	want := map[gpu.Vendor]string{
		gpu.Musa: "MTHREADS_VISIBLE_DEVICES", gpu.Hygon: "DCU_VISIBLE_DEVICES", gpu.Cambricon: "CAMBRICON_VISIBLE_DEVICES",
		gpu.Biren: "BIREN_VISIBLE_DEVICES", gpu.Ascend: "ASCEND_VISIBLE_DEVICES", gpu.Kunlun: "XPU_VISIBLE_DEVICES",
		gpu.Iluvatar: "IX_VISIBLE_DEVICES", gpu.Nvidia: "NVIDIA_VISIBLE_DEVICES", gpu.Metax: "CUDA_VISIBLE_DEVICES", gpu.Enflame: "ENFLAME_VISIBLE_DEVICES",
	}
	got := map[gpu.Vendor]string{}
	document, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range gpu.Vendors() {
		vars, err := Variables(gpu.Ask{Count: 1, Whole: true}, v)
		if err != nil || len(vars) != 1 {
			t.Fatalf("%s: %v, %v", v, vars, err)
		}
		got[v] = vars[0].Name
		if row := fmt.Sprintf("| `%s` | `%s`", v, vars[0].Name); !strings.Contains(string(document), row) {
			t.Errorf("docs/operations.md lacks %q", row)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// A container sees no NVIDIA card unless it asks for one.
func TestHidden(t *testing.T) {
	void := []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "void"}}
	for _, v := range append(gpu.Vendors(), "") {
		want := void
		if v == gpu.Nvidia {
			want = nil
		}
		if diff := cmp.Diff(want, Hidden(v)); diff != "" {
			t.Errorf("hidden beside %q (-want +got):\n%s", v, diff)
		}
	}
}

func TestChangedWishes(t *testing.T) {
	tests := map[string]struct {
		before, after change
		want          []string
	}{
		"as before":                {annotated(AnnotationNUMA, "1"), annotated(AnnotationNUMA, "1"), nil},
		"new, another, gone":       {annotated(AnnotationNUMA, "1", AnnotationZone, "a"), annotated(AnnotationNUMA, "2", AnnotationModel, ""), []string{AnnotationModel, AnnotationNUMA, AnnotationZone}},
		"the scheduler's":          {annotated(AnnotationEpoch, "1"), annotated(AnnotationPort, "1"), nil},
		"HAMi's and unknown names": {annotated(), annotated("hami.io/gpu-type", "A100", "heteroflow.io/x", "", "a/b", ""), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Wishes(podWith(tc.before), podWith(tc.after))); diff != "" {
				t.Errorf("wishes (-want +got):\n%s", diff)
			}
		})
	}
}

// Each wish is about the place, or is one of these.
func TestPlaces(t *testing.T) {
	later := map[string]bool{
		AnnotationPriority: true, AnnotationTaskType: true, AnnotationPreemptible: true, AnnotationMaxRuntime: true,
		AnnotationBorrow: true, AnnotationPreemptSignal: true, AnnotationPreemptMode: true, AnnotationServedModel: true,
	}
	for i := range wishes {
		if key := wishes[i].key; Places(key) == later[key] {
			t.Errorf("Places(%s) = %t", key, later[key])
		}
	}
}

// A variable that a library reads in the container is the author's to set: it
// chooses among the cards that the container has got.
func TestShowsCards(t *testing.T) {
	for variable, want := range map[string]bool{"NVIDIA_VISIBLE_DEVICES": true, "DCU_VISIBLE_DEVICES": true, "HYGON_VISIBLE_DEVICES": true, "CUDA_VISIBLE_DEVICES": false, "XPU_VISIBLE_DEVICES": false, "PATH": false} {
		if got := ShowsCards(variable); got != want {
			t.Errorf("ShowsCards(%s) = %t", variable, got)
		}
	}
}

// The classes are those of PriorityClass and no others, however alike.
func TestClassPriority(t *testing.T) {
	for n := range mostPriority + 1 {
		if got, ok := ClassPriority(PriorityClass(n)); !ok || got != n {
			t.Errorf("ClassPriority(%s) = %d, %t", PriorityClass(n), got, ok)
		}
	}
	for _, class := range []string{"", "50", "heteroflow-", "heteroflow-101", "heteroflow--1", "heteroflow-050", "heteroflow-+5", "heteroflow-5 ", "Heteroflow-5", "heteroflow-heteroflow-5", "mine"} {
		if got, ok := ClassPriority(class); ok || got != 0 {
			t.Errorf("ClassPriority(%q) = %d, %t", class, got, ok)
		}
	}
}
