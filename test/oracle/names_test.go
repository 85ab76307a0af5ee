package oracle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestAsksOfEveryVendor has a slice, whole cards and what is refused of each form.
func TestAsksOfEveryVendor(t *testing.T) {
	tests := map[string]struct {
		limits corev1.ResourceList
		want   ask
	}{
		"nvidia":                   {limits("nvidia.com/gpu", 2, "nvidia.com/gpumem", 3000, "nvidia.com/gpucores", 30), ask{vendor: "nvidia", plugin: "nvidia.com/gpu", count: 2, memory: 3000, cores: 30}},
		"nvidia by the other name": {limits("nvidia.com/cores", 30), ask{vendor: "nvidia", count: 1, percent: 100, cores: 30}},
		"nvidia in percent":        {limits("nvidia.com/gpumem-percentage", 20), ask{vendor: "nvidia", count: 1, percent: 20}},
		"musa":                     {limits("mthreads.com/vgpu", 1, "mthreads.com/sgpu-memory", 32, "mthreads.com/sgpu-core", 1), ask{vendor: "musa", plugin: "mthreads.com/vgpu", count: 1, memory: 16384, cores: 7}},
		"musa by all its compute":  {limits("mthreads.com/vgpu", 3, "mthreads.com/sgpu-core", 16), ask{vendor: "musa", plugin: "mthreads.com/vgpu", count: 3, whole: true, cores: 100}},
		"hygon":                    {limits("hygon.com/dcunum", 1, "hygon.com/dcumem", 8000, "hygon.com/dcucores", 60), ask{vendor: "hygon", plugin: "hygon.com/dcunum", count: 1, memory: 8000, cores: 60}},
		"cambricon":                {limits("cambricon.com/mlu.smlu.vmemory", 20, "cambricon.com/mlu.smlu.vcore", 10), ask{vendor: "cambricon", plugin: "cambricon.com/vmlu", count: 1, memory: 5120, cores: 10}},
		"cambricon whole":          {limits("cambricon.com/vmlu", 2), ask{vendor: "cambricon", plugin: "cambricon.com/vmlu", count: 2, whole: true}},
		"biren":                    {limits("birentech.com/gpu", 2), ask{vendor: "biren", plugin: "birentech.com/gpu", count: 2, whole: true}},
		"ascend":                   {limits("huawei.com/Ascend910B4-1-memory", 900), ask{vendor: "ascend", model: "910B4-1", count: 1, memory: 900}},
		"ascend 310P":              {limits("huawei.com/Ascend310P", 3), ask{vendor: "ascend", model: "310P", plugin: "huawei.com/Ascend310P", count: 3, whole: true}},
		"ascend in pairs":          {limits("huawei.com/Ascend910C", 4), ask{vendor: "ascend", model: "910C", plugin: "huawei.com/Ascend910C", count: 4, whole: true}},
		"kunlun whole":             {limits("kunlunxin.com/xpu", 1), ask{vendor: "kunlun", plugin: "kunlunxin.com/xpu", count: 1, whole: true}},
		"kunlun":                   {limits("kunlunxin.com/vxpu", 2, "kunlunxin.com/vxpu-memory", 24576), ask{vendor: "kunlun", plugin: "kunlunxin.com/vxpu", count: 2, memory: 24576}},
		"iluvatar":                 {limits("iluvatar.ai/BI-V150-vgpu", 1, "iluvatar.ai/BI-V150.vMem", 64, "iluvatar.ai/BI-V150.vCore", 50), ask{vendor: "iluvatar", model: "BI-V150", plugin: "iluvatar.ai/BI-V150-vgpu", count: 1, memory: 16384, cores: 50}},
		"metax whole":              {limits("metax-tech.com/gpu", 8), ask{vendor: "metax", plugin: "metax-tech.com/gpu", count: 8, whole: true}},
		"metax":                    {limits("metax-tech.com/sgpu", 2, "metax-tech.com/vmemory", 4, "metax-tech.com/vcore", 60), ask{vendor: "metax", plugin: "metax-tech.com/sgpu", count: 2, memory: 4096, cores: 60}},
		"enflame whole":            {limits("enflame.com/gcu", 1), ask{vendor: "enflame", plugin: "enflame.com/gcu", count: 1, whole: true}},
		"enflame":                  {limits("enflame.com/gcu-memory", 20480, "enflame.com/gcu-core", 40), ask{vendor: "enflame", count: 1, memory: 20480, cores: 40}},
		"nothing":                  {limits("nvidia.com/gpu", 0, "hugepages-2Mi", 4), ask{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := askOf(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: tc.limits}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(ask{})); diff != "" {
				t.Errorf("ask (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAsksRefuses(t *testing.T) {
	tests := map[string]struct {
		limits corev1.ResourceList
		want   string // the name of what is at fault
	}{
		"two amounts of memory":      {limits("nvidia.com/gpumem", 1, "nvidia.com/gpumem-percentage", 1), "nvidia.com/gpumem-percentage"},
		"two names that differ":      {limits("nvidia.com/gpucores", 1, "nvidia.com/cores", 2), "nvidia.com/cores"},
		"memory that is not to have": {limits("mthreads.com/sgpu-memory", 3), "mthreads.com/sgpu-memory"},
		"17 of 16":                   {limits("mthreads.com/sgpu-core", 17), "mthreads.com/sgpu-core"},
		"slices of two devices":      {limits("hygon.com/dcunum", 2, "hygon.com/dcumem", 1), "hygon.com/dcunum"},
		"ascend slices of two":       {limits("huawei.com/Ascend910A", 2, "huawei.com/Ascend910A-core", 10), "huawei.com/Ascend910A"},
		"iluvatar slices of two":     {limits("iluvatar.ai/MR-V50-vgpu", 2, "iluvatar.ai/MR-V50.vMem", 1), "iluvatar.ai/MR-V50-vgpu"},
		"cambricon slices of two":    {limits("cambricon.com/vmlu", 2, "cambricon.com/mlu.smlu.vcore", 10), "cambricon.com/vmlu"},
		"half a pair":                {limits("huawei.com/Ascend910C", 1), "huawei.com/Ascend910C"},
		"a slice of half a pair":     {limits("huawei.com/Ascend910C-memory", 100), "huawei.com/Ascend910C"},
		"a slice without a size":     {limits("enflame.com/drs-gcu", 1), "enflame.com/drs-gcu"},
		"two sized slices":           {limits("enflame.com/drs-gcu", 2, "enflame.com/gcu-core", 1), "enflame.com/drs-gcu"},
		"1 TiB and a unit":           {limits("cambricon.com/mlu.smlu.vmemory", 4097), "cambricon.com/mlu.smlu.vmemory"},
		"two vendors":                {limits("hygon.com/dcunum", 1, "metax-tech.com/gpu", 1), "metax-tech.com/gpu"},
		"two forms of a vendor":      {limits("metax-tech.com/sgpu", 1, "metax-tech.com/gpu", 1), "metax-tech.com/sgpu"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := askOf(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: tc.limits}})
			if err == nil || !strings.HasPrefix(err.Error(), tc.want+": ") && !strings.HasPrefix(err.Error(), tc.want+" ") {
				t.Errorf("askOf = %+v, %v, want a fault of %s", got, err, tc.want)
			}
		})
	}
}

// A name that is for one model gives no other.
func TestOfModel(t *testing.T) {
	tests := []struct {
		model, wanted string
		want          bool
	}{
		{"910B3", "910B3", true},
		{"Ascend 910B3", "910B3", true},
		{"ascend910b3", "910B3", true},
		{"910B2", "910B3", false},
		{"310P3", "310P", true},
		{"910B4-1", "910B4", false},
		{"910B4-1", "910B4-1", true},
		{"910B2C", "910B2", false},
		{"910B2C-910B2", "910B2", true},
		{"Iluvatar MR-V100", "MR-V100", true},
		{"Iluvatar MR-V100", "BI-V100", false},
		{"anything", "", true},
	}
	for _, tc := range tests {
		if got := ofModel(tc.model, tc.wanted); got != tc.want {
			t.Errorf("ofModel(%q, %q) = %t", tc.model, tc.wanted, got)
		}
	}
}
