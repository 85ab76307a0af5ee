package codec

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

func TestAsks(t *testing.T) {
	one := func(a gpu.Ask) []gpu.Ask {
		a.Container = "main"
		return []gpu.Ask{a}
	}
	nvidia := gpu.Nvidia
	tests := map[string]struct {
		pod   *corev1.Pod
		cores policy.SliceCores
		want  []gpu.Ask
	}{
		"nothing":                 {pod: podWith(app("main", "cpu", "1"))},
		"no resources at all":     {pod: podWith(app("main"))},
		"a count of 0 is absent":  {pod: podWith(app("main", "heteroflow.io/gpu", "0", "nvidia.com/gpu", "0"))},
		"somebody else's devices": {pod: podWith(app("main", "amd.com/gpu", "1", "requests.amd.com/gpu", "1"))},

		"neutral: whole cards":             {pod: podWith(app("main", "heteroflow.io/gpu", "4")), want: one(gpu.Ask{Count: 4, Whole: true})},
		"neutral: the most cards":          {pod: podWith(app("main", "heteroflow.io/gpu", "64")), want: one(gpu.Ask{Count: 64, Whole: true})},
		"neutral: whole cards of a size":   {pod: podWith(app("main", "heteroflow.io/gpu", "2", "heteroflow.io/gpu-memory", "40960")), want: one(gpu.Ask{Count: 2, Whole: true, Memory: 40960})},
		"neutral: memory alone is a slice": {pod: podWith(app("main", "heteroflow.io/gpu-memory", "8192")), want: one(gpu.Ask{Count: 1, Memory: 8192, ProportionalCores: true})},
		"neutral: cores alone is a slice":  {pod: podWith(app("main", "heteroflow.io/gpu-cores", "30")), want: one(gpu.Ask{Count: 1, Cores: 30, ProportionalCores: true})},
		"neutral: all cores is a slice":    {pod: podWith(app("main", "heteroflow.io/gpu-cores", "100")), want: one(gpu.Ask{Count: 1, Cores: 100, ProportionalCores: true})},
		"neutral: memory and cores":        {pod: podWith(app("main", "heteroflow.io/gpu-memory", "8192", "heteroflow.io/gpu-cores", "30")), want: one(gpu.Ask{Count: 1, Memory: 8192, Cores: 30, ProportionalCores: true})},
		"neutral: cores are 0":             {pod: podWith(app("main", "heteroflow.io/gpu", "1", "heteroflow.io/gpu-cores", "0")), want: one(gpu.Ask{Count: 1, Whole: true})},
		"neutral: policy none":             {pod: podWith(app("main", "heteroflow.io/gpu-memory", "8192")), cores: policy.SliceCoresNone, want: one(gpu.Ask{Count: 1, Memory: 8192})},
		"neutral: the most memory":         {pod: podWith(app("main", "heteroflow.io/gpu-memory", "1048576")), want: one(gpu.Ask{Count: 1, Memory: 1 << 20, ProportionalCores: true})},
		"a suffix is a quantity too":       {pod: podWith(app("main", "heteroflow.io/gpu-memory", "8k")), want: one(gpu.Ask{Count: 1, Memory: 8000, ProportionalCores: true})},
		"whole thousandths":                {pod: podWith(app("main", "heteroflow.io/gpu", "2000m")), want: one(gpu.Ask{Count: 2, Whole: true})},

		"vendor: whole cards":               {pod: podWith(app("main", "nvidia.com/gpu", "2")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 2, Whole: true})},
		"vendor: policy spares whole cards": {pod: podWith(app("main", "nvidia.com/gpu", "2")), cores: policy.SliceCoresProportional, want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 2, Whole: true})},
		"vendor: slices":                    {pod: podWith(app("main", "nvidia.com/gpu", "2", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "30")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 2, Memory: 3000, Cores: 30})},
		"vendor: memory without a count":    {pod: podWith(app("main", "nvidia.com/gpumem", "3000")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, Memory: 3000})},
		"vendor: cores without a count":     {pod: podWith(app("main", "nvidia.com/gpucores", "30")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, MemoryPercent: 100, Cores: 30})},
		"vendor: percent without a count":   {pod: podWith(app("main", "nvidia.com/gpumem-percentage", "50")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, MemoryPercent: 50})},
		"vendor: all cores is whole":        {pod: podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpucores", "100")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true})},
		"vendor: whole of a size":           {pod: podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "100")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true, Memory: 3000})},
		"vendor: whole, percent of it":      {pod: podWith(app("main", "nvidia.com/gpumem-percentage", "50", "nvidia.com/gpucores", "100")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, Whole: true})},
		"vendor: 99 cores is a slice":       {pod: podWith(app("main", "nvidia.com/gpucores", "99")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, MemoryPercent: 100, Cores: 99})},
		"vendor: a count, all memory":       {pod: podWith(app("main", "nvidia.com/gpu", "2", "nvidia.com/gpumem-percentage", "100")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 2, Whole: true})},
		"vendor: ... less one percent":      {pod: podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpumem-percentage", "99")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, MemoryPercent: 99})},
		"vendor: ... and some compute":      {pod: podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpumem-percentage", "100", "nvidia.com/gpucores", "30")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, MemoryPercent: 100, Cores: 30})},
		"vendor: all memory is a slice":     {pod: podWith(app("main", "nvidia.com/gpumem-percentage", "100")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, MemoryPercent: 100})},
		"vendor: cores by the other name":   {pod: podWith(app("main", "nvidia.com/gpumem", "3000", "nvidia.com/cores", "30")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, Memory: 3000, Cores: 30})},
		"vendor: cores by both names":       {pod: podWith(app("main", "nvidia.com/gpucores", "30", "nvidia.com/cores", "30")), want: one(gpu.Ask{Vendor: nvidia, Count: 1, MemoryPercent: 100, Cores: 30})},
		"vendor: policy proportional":       {pod: podWith(app("main", "nvidia.com/gpumem", "3000")), cores: policy.SliceCoresProportional, want: one(gpu.Ask{Vendor: nvidia, Count: 1, Memory: 3000, ProportionalCores: true})},

		"requests equal to limits": {pod: podWith(app("main", "nvidia.com/gpu", "1"), requesting("nvidia.com/gpu", "1")), want: one(gpu.Ask{Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true})},
		"init containers come first, numbers count all": {
			pod: podWith(
				app("plain"), app("slice", "heteroflow.io/gpu-memory", "100"), app("main", "nvidia.com/gpu", "1"),
				initContainer("fetch"), initContainer("warm", "heteroflow.io/gpu", "1"), sidecar("proxy", "nvidia.com/gpumem", "10"),
			),
			want: []gpu.Ask{
				{Container: "warm", Number: 1, Role: gpu.Init, Count: 1, Whole: true},
				{Container: "proxy", Number: 2, Role: gpu.Sidecar, Vendor: nvidia, Count: 1, Memory: 10},
				{Container: "slice", Number: 4, Count: 1, Memory: 100, ProportionalCores: true},
				{Container: "main", Number: 5, Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true},
			},
		},
		"numbers from the record": {
			pod: podWith(app("injected"), app("a", "nvidia.com/gpu", "1"), app("b", "nvidia.com/gpu", "1"),
				annotated(AnnotationContainers, `{"b":0,"a":7,"gone":3}`)),
			want: []gpu.Ask{
				{Container: "a", Number: 7, Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true},
				{Container: "b", Number: 0, Vendor: nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Request(tc.pod, policy.Settings{SliceCores: tc.cores})
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, got.Asks); diff != "" {
				t.Errorf("asks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAsksRefused(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"a fraction": {
			podWith(app("main", "nvidia.com/gpu", "1500m")),
			[]string{"containers[main]: nvidia.com/gpu: 1500m is not a whole number"},
		},
		"the smallest fraction": {
			podWith(app("main", "heteroflow.io/gpu-cores", "1n")),
			[]string{"containers[main]: heteroflow.io/gpu-cores: 1n is not a whole number"},
		},
		"negative": {
			podWith(app("main", "heteroflow.io/gpu", "-1")),
			[]string{"containers[main]: heteroflow.io/gpu: -1 is outside 1..64"},
		},
		"too many cards": {
			podWith(app("main", "heteroflow.io/gpu", "65")),
			[]string{"containers[main]: heteroflow.io/gpu: 65 is outside 1..64"},
		},
		"too many of a vendor's": {
			podWith(app("main", "nvidia.com/gpu", "65")),
			[]string{"containers[main]: nvidia.com/gpu: 65 is outside 1..64"},
		},
		"a MiB too much": {
			podWith(app("main", "nvidia.com/gpumem", "1048577")),
			[]string{"containers[main]: nvidia.com/gpumem: 1048577 is outside 1..1048576 MiB"},
		},
		"bytes": {
			podWith(app("main", "heteroflow.io/gpu-memory", "16Gi")),
			[]string{"containers[main]: heteroflow.io/gpu-memory: 17179869184 is outside 1..1048576 MiB (16Gi is a quantity in bytes; write 16384)"},
		},
		"decimal bytes": {
			podWith(app("main", "nvidia.com/gpumem", "16G")),
			[]string{"containers[main]: nvidia.com/gpumem: 16000000000 is outside 1..1048576 MiB (16G is a quantity in bytes; write 15258)"},
		},
		"more bytes than a card can have": {
			podWith(app("main", "heteroflow.io/gpu-memory", "2Ei")),
			[]string{"containers[main]: heteroflow.io/gpu-memory: 2305843009213693952 is outside 1..1048576 MiB"},
		},
		"past int64": {
			podWith(app("main", "nvidia.com/gpumem", "9223372036854775808")),
			[]string{"containers[main]: nvidia.com/gpumem: 9223372036854775808 is outside 1..1048576 MiB"},
		},
		"huge": {
			podWith(app("main", "heteroflow.io/gpu", "1e30")),
			[]string{"containers[main]: heteroflow.io/gpu: 1000000000000000000000000000000 is outside 1..64"},
		},
		"hugely negative": {
			podWith(app("main", "heteroflow.io/gpu", "-1e30")),
			[]string{"containers[main]: heteroflow.io/gpu: -1000000000000000000000000000000 is outside 1..64"},
		},
		"vast": {
			podWith(app("main", "heteroflow.io/gpu-memory", "1e1999999998"), requesting("heteroflow.io/gpu-memory", "1")),
			[]string{"containers[main]: heteroflow.io/gpu-memory: 1e1999999998 is outside 1..1048576 MiB"},
		},
		"vast in requests": {
			podWith(app("main", "heteroflow.io/gpu-memory", "1"), requesting("heteroflow.io/gpu-memory", "1e1999999998")),
			[]string{"containers[main]: heteroflow.io/gpu-memory: requests has 1e1999999998 but limits has 1; they have to be equal"},
		},
		"percentage": {
			podWith(app("main", "nvidia.com/gpumem-percentage", "101")),
			[]string{"containers[main]: nvidia.com/gpumem-percentage: 101 is outside 1..100"},
		},
		"cores": {
			podWith(app("main", "nvidia.com/gpucores", "101")),
			[]string{"containers[main]: nvidia.com/gpucores: 101 is outside 1..100"},
		},
		"cores by the other name": {
			podWith(app("main", "nvidia.com/cores", "-5")),
			[]string{"containers[main]: nvidia.com/cores: -5 is outside 1..100"},
		},
		"two forms": {
			podWith(app("main", "heteroflow.io/gpu", "1", "nvidia.com/gpu", "1")),
			[]string{"containers[main]: asks by heteroflow.io/gpu and nvidia.com/gpu; use the names of one form only"},
		},
		"two forms for one slice": {
			podWith(app("main", "nvidia.com/gpu", "1", "heteroflow.io/gpu-memory", "8192")),
			[]string{"containers[main]: asks by heteroflow.io/gpu-memory and nvidia.com/gpu; use the names of one form only"},
		},
		"neutral: count and cores": {
			podWith(app("main", "heteroflow.io/gpu", "1", "heteroflow.io/gpu-cores", "50")),
			[]string{"containers[main]: heteroflow.io/gpu-cores: does not go with heteroflow.io/gpu, which takes whole cards"},
		},
		"vendor: memory twice": {
			podWith(app("main", "nvidia.com/gpumem", "1000", "nvidia.com/gpumem-percentage", "50")),
			[]string{"containers[main]: nvidia.com/gpumem and nvidia.com/gpumem-percentage exclude each other"},
		},
		"vendor: memory twice on a whole card": {
			podWith(app("main", "nvidia.com/gpumem", "1000", "nvidia.com/gpumem-percentage", "50", "nvidia.com/gpucores", "100")),
			[]string{"containers[main]: nvidia.com/gpumem and nvidia.com/gpumem-percentage exclude each other"},
		},
		"vendor: cores twice": {
			podWith(app("main", "nvidia.com/gpucores", "30", "nvidia.com/cores", "40")),
			[]string{"containers[main]: nvidia.com/cores: 40 differs from nvidia.com/gpucores, which is 30; write one of them"},
		},
		"requests alone": {
			podWith(app("main"), requesting("nvidia.com/gpu", "1")),
			[]string{"containers[main]: nvidia.com/gpu: stands in requests but not in limits"},
		},
		"requests differ": {
			podWith(app("main", "heteroflow.io/gpu-memory", "8192"), requesting("heteroflow.io/gpu-memory", "4096")),
			[]string{"containers[main]: heteroflow.io/gpu-memory: requests has 4096 but limits has 8192; they have to be equal"},
		},
		"unknown resource": {
			podWith(app("main", "heteroflow.io/gpus", "1")),
			[]string{"containers[main]: unknown resource heteroflow.io/gpus"},
		},
		"unknown resource of no amount, in requests": {
			podWith(app("main"), requesting("heteroflow.io/vgpu", "0")),
			[]string{"containers[main]: unknown resource heteroflow.io/vgpu"},
		},
		"quota's names": {
			podWith(app("main", "limits.nvidia.com/gpu", "1", "requests.heteroflow.io/whatever", "1")),
			[]string{
				"containers[main]: limits.nvidia.com/gpu: is not a resource; write nvidia.com/gpu under resources.limits",
				"containers[main]: requests.heteroflow.io/whatever: is not a resource; write heteroflow.io/whatever under resources.limits",
			},
		},
		"every fault of every container": {
			podWith(
				initContainer("fetch", "heteroflow.io/gpu", "-1", "heteroflow.io/gpu-memory", "0.5"),
				sidecar("proxy", "nvidia.com/gpumem", "16Gi"),
				app("good", "nvidia.com/gpu", "1"),
				app("main", "heteroflow.io/gpu-kores", "3", "nvidia.com/gpu", "1e3", "nvidia.com/gpucores", "101"),
				annotated("heteroflow.io/numa", "x"),
			),
			[]string{
				"initContainers[fetch]: heteroflow.io/gpu: -1 is outside 1..64",
				"initContainers[fetch]: heteroflow.io/gpu-memory: 500m is not a whole number",
				"initContainers[proxy]: nvidia.com/gpumem: 17179869184 is outside 1..1048576 MiB (16Gi is a quantity in bytes; write 16384)",
				"containers[main]: unknown resource heteroflow.io/gpu-kores",
				"containers[main]: nvidia.com/gpu: 1000 is outside 1..64",
				"containers[main]: nvidia.com/gpucores: 101 is outside 1..100",
				`annotation heteroflow.io/numa: "x" is not the number of a NUMA node, 0..1023`,
			},
		},
		"the record misses a container": {
			podWith(app("main", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"other":0}`)),
			[]string{"annotation heteroflow.io/containers: container main asks for cards and is not named"},
		},
		"the record gives a number twice": {
			podWith(app("a", "nvidia.com/gpu", "1"), app("b", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"a":1,"b":1}`)),
			[]string{"annotation heteroflow.io/containers: a and b both have number 1"},
		},
		"the record gives no number": {
			podWith(app("a", "nvidia.com/gpu", "1"), app("b", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"a":-1,"b":10000}`)),
			[]string{
				"annotation heteroflow.io/containers: a: -1 is outside 0..9999",
				"annotation heteroflow.io/containers: b: 10000 is outside 0..9999",
			},
		},
		"the record names a container twice": {
			podWith(app("a", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `{"a":0,"a":1}`)),
			[]string{`annotation heteroflow.io/containers: "{\"a\":0,\"a\":1}" is not an object of container names and numbers: duplicate field "a"`},
		},
		"the record is no object": {
			podWith(app("a", "nvidia.com/gpu", "1"), annotated(AnnotationContainers, `[0]`)),
			[]string{`annotation heteroflow.io/containers: "[0]" is not an object of container names and numbers: json: cannot unmarshal array into Go value of type map[string]int`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Request(tc.pod, policy.Default())
			sameFaults(t, err, tc.want...)
			if got.AsksForCards() {
				t.Errorf("an invalid request has asks: %v", got.Asks)
			}
		})
	}
}

// A vendor whose memory is counted in larger units.
func TestMemoryUnit(t *testing.T) {
	f := form{vendor: gpu.Iluvatar, count: "x/vgpu", memory: "x/vMem", unit: 256, cores: []corev1.ResourceName{"x/vCore"}}
	tests := map[string]struct {
		limits corev1.ResourceList
		want   amounts
		fault  []string
	}{
		"units":          {limits: quantities("x/vgpu", "1", "x/vMem", "64"), want: amounts{count: 1, memory: 16384}},
		"the most":       {limits: quantities("x/vMem", "4096"), want: amounts{memory: 1 << 20}},
		"one too many":   {limits: quantities("x/vMem", "4097"), fault: []string{"x/vMem: 4097 is outside 1..4096 (in units of 256 MiB)"}},
		"bytes":          {limits: quantities("x/vMem", "16Gi"), fault: []string{"x/vMem: 17179869184 is outside 1..4096 (in units of 256 MiB) (16Gi is a quantity in bytes; write 64)"}},
		"has no percent": {limits: quantities("", "5"), want: amounts{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := f.read(tc.limits)
			sameFaults(t, errors.Join(errs...), tc.fault...)
			if len(errs) == 0 && got != tc.want {
				t.Errorf("read = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestWholeNumber(t *testing.T) {
	beyond := resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	beyond.Add(*beyond)
	below := resource.MustParse("1.5")
	below.Sub(resource.MustParse("3"))
	tests := map[string]struct {
		q     resource.Quantity
		want  string
		whole bool
	}{
		"beyond int64 does not wrap": {*beyond, "18446744073709551614", true},
		"a negative fraction":        {below, "-1", false},
		"thousandths that are whole": {resource.MustParse("3000m"), "3", true},
		"the smallest":               {resource.MustParse("1n"), "0", false},
		"the zero Quantity":          {resource.Quantity{}, "0", true},
		"a positive scale":           {*resource.NewScaledQuantity(5, resource.Exa), "5000000000000000000", true},
		"a scale past int64":         {*resource.NewScaledQuantity(50, resource.Exa), "50000000000000000000", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v, whole := wholeNumber(tc.q)
			if v.String() != tc.want || whole != tc.whole {
				t.Errorf("wholeNumber(%s) = %s, %t; want %s, %t", tc.q.String(), v, whole, tc.want, tc.whole)
			}
		})
	}
}
