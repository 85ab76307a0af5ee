package codec

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// The names come from the documents of HAMi and of this project, not from the
// code: kube-scheduler's configuration and users' manifests rely on them.
func TestManagedResources(t *testing.T) {
	want := []corev1.ResourceName{
		"heteroflow.io/gpu", "heteroflow.io/gpu-memory", "heteroflow.io/gpu-cores",
		"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/cores",
		"mthreads.com/vgpu", "mthreads.com/sgpu-memory", "mthreads.com/sgpu-core",
		"hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores",
		"cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory", "cambricon.com/mlu.smlu.vcore",
		"birentech.com/gpu",
		"huawei.com/Ascend910A", "huawei.com/Ascend910A-memory", "huawei.com/Ascend910A-core",
		"huawei.com/Ascend910B2", "huawei.com/Ascend910B2-memory", "huawei.com/Ascend910B2-core",
		"huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", "huawei.com/Ascend910B3-core",
		"huawei.com/Ascend910B4", "huawei.com/Ascend910B4-memory", "huawei.com/Ascend910B4-core",
		"huawei.com/Ascend910B4-1", "huawei.com/Ascend910B4-1-memory", "huawei.com/Ascend910B4-1-core",
		"huawei.com/Ascend910C", "huawei.com/Ascend910C-memory", "huawei.com/Ascend910C-core",
		"huawei.com/Ascend310P", "huawei.com/Ascend310P-memory", "huawei.com/Ascend310P-core",
		"kunlunxin.com/xpu", "kunlunxin.com/vxpu", "kunlunxin.com/vxpu-memory",
		"iluvatar.ai/MR-V100-vgpu", "iluvatar.ai/MR-V100.vMem", "iluvatar.ai/MR-V100.vCore",
		"iluvatar.ai/MR-V50-vgpu", "iluvatar.ai/MR-V50.vMem", "iluvatar.ai/MR-V50.vCore",
		"iluvatar.ai/BI-V150-vgpu", "iluvatar.ai/BI-V150.vMem", "iluvatar.ai/BI-V150.vCore",
		"iluvatar.ai/BI-V100-vgpu", "iluvatar.ai/BI-V100.vMem", "iluvatar.ai/BI-V100.vCore",
		"metax-tech.com/gpu", "metax-tech.com/sgpu", "metax-tech.com/vmemory", "metax-tech.com/vcore",
		"enflame.com/gcu", "enflame.com/drs-gcu", "enflame.com/gcu-memory", "enflame.com/gcu-core",
	}
	if diff := cmp.Diff(want, ManagedResources()); diff != "" {
		t.Errorf("managed resources (-want +got):\n%s", diff)
	}
}

// What an amount stands for is typed from hami-protocol.md A.6 and vendors.md 5.1.
func TestAsksOfVendors(t *testing.T) {
	whole := func(v gpu.Vendor, model string, count int) gpu.Ask {
		return gpu.Ask{Vendor: v, Model: model, Count: count, Whole: true}
	}
	slice := func(v gpu.Vendor, model string, memory gpu.MiB, cores gpu.Cores) gpu.Ask {
		return gpu.Ask{Vendor: v, Model: model, Count: 1, Memory: memory, Cores: cores}
	}
	all := func(a gpu.Ask) gpu.Ask {
		a.MemoryPercent = 100
		return a
	}
	of := func(count int, a gpu.Ask) gpu.Ask {
		a.Count = count
		return a
	}
	least := func(memory gpu.MiB, a gpu.Ask) gpu.Ask {
		a.Memory = memory
		return a
	}
	tests := map[string]struct {
		limits []string
		want   gpu.Ask
	}{
		"musa: whole cards":                {[]string{"mthreads.com/vgpu", "2"}, whole(gpu.Musa, "", 2)},
		"musa: 512 MiB, sixteenths":        {[]string{"mthreads.com/vgpu", "1", "mthreads.com/sgpu-memory", "32", "mthreads.com/sgpu-core", "8"}, slice(gpu.Musa, "", 16384, 50)},
		"musa: the least":                  {[]string{"mthreads.com/sgpu-memory", "2", "mthreads.com/sgpu-core", "1"}, slice(gpu.Musa, "", 1024, 7)}, // 6.25 percent
		"musa: the most":                   {[]string{"mthreads.com/sgpu-memory", "96", "mthreads.com/sgpu-core", "15"}, slice(gpu.Musa, "", 49152, 94)},
		"musa: 16 is a whole card":         {[]string{"mthreads.com/vgpu", "1", "mthreads.com/sgpu-core", "16"}, whole(gpu.Musa, "", 1)},
		"musa: whole cards of a size":      {[]string{"mthreads.com/vgpu", "2", "mthreads.com/sgpu-memory", "64", "mthreads.com/sgpu-core", "16"}, least(32768, whole(gpu.Musa, "", 2))},
		"musa: compute alone":              {[]string{"mthreads.com/vgpu", "1", "mthreads.com/sgpu-core", "4"}, all(slice(gpu.Musa, "", 0, 25))},
		"hygon: whole cards":               {[]string{"hygon.com/dcunum", "3"}, whole(gpu.Hygon, "", 3)},
		"hygon: MiB, percent":              {[]string{"hygon.com/dcunum", "1", "hygon.com/dcumem", "2000", "hygon.com/dcucores", "60"}, slice(gpu.Hygon, "", 2000, 60)},
		"cambricon: whole cards":           {[]string{"cambricon.com/vmlu", "1"}, whole(gpu.Cambricon, "", 1)},
		"cambricon: 256 MiB, percent":      {[]string{"cambricon.com/vmlu", "1", "cambricon.com/mlu.smlu.vmemory", "20", "cambricon.com/mlu.smlu.vcore", "10"}, slice(gpu.Cambricon, "", 5120, 10)},
		"biren: whole cards":               {[]string{"birentech.com/gpu", "8"}, whole(gpu.Biren, "", 8)},
		"ascend: whole cards":              {[]string{"huawei.com/Ascend910B3", "8"}, whole(gpu.Ascend, "910B3", 8)},
		"ascend: MiB":                      {[]string{"huawei.com/Ascend910B3", "1", "huawei.com/Ascend910B3-memory", "16384"}, slice(gpu.Ascend, "910B3", 16384, 0)},
		"ascend: MiB, percent":             {[]string{"huawei.com/Ascend310P", "1", "huawei.com/Ascend310P-memory", "3072", "huawei.com/Ascend310P-core", "25"}, slice(gpu.Ascend, "310P", 3072, 25)},
		"ascend: a longer name":            {[]string{"huawei.com/Ascend910B4-1", "2"}, whole(gpu.Ascend, "910B4-1", 2)},
		"ascend: memory of the shorter":    {[]string{"huawei.com/Ascend910B4-memory", "8192"}, slice(gpu.Ascend, "910B4", 8192, 0)},
		"ascend: pairs":                    {[]string{"huawei.com/Ascend910C", "4"}, whole(gpu.Ascend, "910C", 4)},
		"ascend: the first":                {[]string{"huawei.com/Ascend910A", "1"}, whole(gpu.Ascend, "910A", 1)},
		"ascend: 910B2":                    {[]string{"huawei.com/Ascend910B2", "1"}, whole(gpu.Ascend, "910B2", 1)},
		"kunlun: whole cards":              {[]string{"kunlunxin.com/xpu", "2"}, whole(gpu.Kunlun, "", 2)},
		"kunlun: shares of several cards":  {[]string{"kunlunxin.com/vxpu", "6", "kunlunxin.com/vxpu-memory", "24576"}, of(6, slice(gpu.Kunlun, "", 24576, 0))},
		"iluvatar: whole cards":            {[]string{"iluvatar.ai/BI-V150-vgpu", "2"}, whole(gpu.Iluvatar, "BI-V150", 2)},
		"iluvatar: 256 MiB, percent":       {[]string{"iluvatar.ai/MR-V100-vgpu", "1", "iluvatar.ai/MR-V100.vMem", "64", "iluvatar.ai/MR-V100.vCore", "50"}, slice(gpu.Iluvatar, "MR-V100", 16384, 50)},
		"iluvatar: MR-V50":                 {[]string{"iluvatar.ai/MR-V50.vMem", "1"}, slice(gpu.Iluvatar, "MR-V50", 256, 0)},
		"iluvatar: BI-V100":                {[]string{"iluvatar.ai/BI-V100.vMem", "4"}, slice(gpu.Iluvatar, "BI-V100", 1024, 0)},
		"metax: whole cards":               {[]string{"metax-tech.com/gpu", "4"}, whole(gpu.Metax, "", 4)},
		"metax: whole cards by shares":     {[]string{"metax-tech.com/sgpu", "1"}, whole(gpu.Metax, "", 1)},
		"metax: GiB, percent":              {[]string{"metax-tech.com/sgpu", "2", "metax-tech.com/vmemory", "4", "metax-tech.com/vcore", "60"}, of(2, slice(gpu.Metax, "", 4096, 60))},
		"enflame: whole cards":             {[]string{"enflame.com/gcu", "1"}, whole(gpu.Enflame, "", 1)},
		"enflame: MiB, percent":            {[]string{"enflame.com/gcu-memory", "20480", "enflame.com/gcu-core", "40"}, slice(gpu.Enflame, "", 20480, 40)},
		"enflame: ... with the slice's 1":  {[]string{"enflame.com/drs-gcu", "1", "enflame.com/gcu-memory", "20480"}, slice(gpu.Enflame, "", 20480, 0)},
		"enflame: 100 percent is a card":   {[]string{"enflame.com/gcu-core", "100"}, whole(gpu.Enflame, "", 1)},
		"a count of 0 of the vendor's too": {[]string{"metax-tech.com/gpu", "1", "metax-tech.com/sgpu", "0"}, whole(gpu.Metax, "", 1)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Request(podWith(app("main", tc.limits...)), policy.Default())
			sameFaults(t, err)
			tc.want.Container, tc.want.Plugin = "main", pluginOf(tc.limits)
			if diff := cmp.Diff([]gpu.Ask{tc.want}, got.Asks); diff != "" {
				t.Errorf("asks (-want +got):\n%s", diff)
			}
		})
	}
}

// pluginOf is the count that a container names, since its vendor's device plugin
// goes by that alone. For Moore Threads and Cambricon it is what the plugin goes
// by, memory and compute, that a container cannot but name.
func pluginOf(limits []string) string {
	for name, always := range map[string]bool{
		"mthreads.com/vgpu": true, "cambricon.com/vmlu": true, "hygon.com/dcunum": false, "birentech.com/gpu": false,
		"kunlunxin.com/xpu": false, "kunlunxin.com/vxpu": false, "metax-tech.com/gpu": false, "metax-tech.com/sgpu": false,
		"enflame.com/gcu": false, "enflame.com/drs-gcu": false,
		"huawei.com/Ascend910A": false, "huawei.com/Ascend910B2": false, "huawei.com/Ascend910B3": false, "huawei.com/Ascend910B4-1": false,
		"huawei.com/Ascend910C": false, "huawei.com/Ascend310P": false, "iluvatar.ai/BI-V150-vgpu": false, "iluvatar.ai/MR-V100-vgpu": false,
	} {
		domain, _, _ := strings.Cut(name, "/")
		if at := slices.Index(limits, name); at >= 0 && limits[at+1] != "0" || always && strings.HasPrefix(limits[0], domain) {
			return name
		}
	}
	return ""
}

func TestAsksOfVendorsRefused(t *testing.T) {
	const counts = "huawei.com/Ascend910A, huawei.com/Ascend910B2, huawei.com/Ascend910B3, huawei.com/Ascend910B4, huawei.com/Ascend910B4-1, huawei.com/Ascend910C, huawei.com/Ascend310P"
	tests := map[string]struct {
		limits []string
		want   []string
	}{
		"musa: an amount between":        {[]string{"mthreads.com/vgpu", "1", "mthreads.com/sgpu-memory", "3"}, []string{"mthreads.com/sgpu-memory: 3 is not one of 2, 4, 8, 16, 32, 64, 96 (in units of 512 MiB)"}},
		"musa: more than all compute":    {[]string{"mthreads.com/sgpu-core", "17"}, []string{"mthreads.com/sgpu-core: 17 is outside 1..16"}},
		"musa: bytes":                    {[]string{"mthreads.com/sgpu-memory", "16Gi"}, []string{"mthreads.com/sgpu-memory: 17179869184 is outside 1..2048 (in units of 512 MiB) (16Gi is a quantity in bytes; write 32)"}},
		"musa: slices of two":            {[]string{"mthreads.com/vgpu", "2", "mthreads.com/sgpu-memory", "32"}, []string{"mthreads.com/vgpu: a slice is of one device, several devices are whole cards"}},
		"hygon: slices of two":           {[]string{"hygon.com/dcunum", "2", "hygon.com/dcucores", "99"}, []string{"hygon.com/dcunum: a slice is of one device, several devices are whole cards"}},
		"hygon: more than all compute":   {[]string{"hygon.com/dcucores", "101"}, []string{"hygon.com/dcucores: 101 is outside 1..100"}},
		"cambricon: slices of two":       {[]string{"cambricon.com/vmlu", "2", "cambricon.com/mlu.smlu.vmemory", "4"}, []string{"cambricon.com/vmlu: a slice is of one device, several devices are whole cards"}},
		"cambricon: a unit too much":     {[]string{"cambricon.com/mlu.smlu.vmemory", "4097"}, []string{"cambricon.com/mlu.smlu.vmemory: 4097 is outside 1..4096 (in units of 256 MiB)"}},
		"ascend: slices of two":          {[]string{"huawei.com/Ascend910B3", "2", "huawei.com/Ascend910B3-memory", "16384"}, []string{"huawei.com/Ascend910B3: a slice is of one device, several devices are whole cards"}},
		"ascend: half a pair":            {[]string{"huawei.com/Ascend910C", "1"}, []string{"huawei.com/Ascend910C: devices come in pairs: write an even number"}},
		"ascend: a pair and a half":      {[]string{"huawei.com/Ascend910C", "3"}, []string{"huawei.com/Ascend910C: devices come in pairs: write an even number"}},
		"ascend: a slice of half a pair": {[]string{"huawei.com/Ascend910C-memory", "100"}, []string{"huawei.com/Ascend910C: devices come in pairs: write an even number"}},
		"ascend: slices of a pair":       {[]string{"huawei.com/Ascend910C", "2", "huawei.com/Ascend910C-memory", "100"}, []string{"huawei.com/Ascend910C: a slice is of one device, several devices are whole cards"}},
		"ascend: two models":             {[]string{"huawei.com/Ascend910B3", "1", "huawei.com/Ascend910B4", "1"}, []string{"asks by huawei.com/Ascend910B3 and huawei.com/Ascend910B4; use the names of one form only"}},
		"iluvatar: slices of two":        {[]string{"iluvatar.ai/MR-V50-vgpu", "2", "iluvatar.ai/MR-V50.vCore", "50"}, []string{"iluvatar.ai/MR-V50-vgpu: a slice is of one device, several devices are whole cards"}},
		"iluvatar: another model's":      {[]string{"iluvatar.ai/MR-V50-vgpu", "1", "iluvatar.ai/MR-V100.vMem", "4"}, []string{"asks by iluvatar.ai/MR-V100.vMem and iluvatar.ai/MR-V50-vgpu; use the names of one form only"}},
		"kunlun: two forms":              {[]string{"kunlunxin.com/xpu", "1", "kunlunxin.com/vxpu-memory", "100"}, []string{"asks by kunlunxin.com/xpu and kunlunxin.com/vxpu-memory; use the names of one form only"}},
		"metax: two forms":               {[]string{"metax-tech.com/gpu", "1", "metax-tech.com/sgpu", "1"}, []string{"asks by metax-tech.com/gpu and metax-tech.com/sgpu; use the names of one form only"}},
		"metax: bytes":                   {[]string{"metax-tech.com/vmemory", "4Gi"}, []string{"metax-tech.com/vmemory: 4294967296 is outside 1..1024 (in units of 1024 MiB) (4Gi is a quantity in bytes; write 4)"}},
		"enflame: two forms":             {[]string{"enflame.com/gcu", "1", "enflame.com/gcu-core", "10"}, []string{"asks by enflame.com/gcu and enflame.com/gcu-core; use the names of one form only"}},
		"enflame: a slice's size":        {[]string{"enflame.com/drs-gcu", "3"}, []string{"enflame.com/drs-gcu: is one slice: write 1 and its memory or compute"}},
		"enflame: a slice of no size":    {[]string{"enflame.com/drs-gcu", "1"}, []string{"enflame.com/drs-gcu: is one slice: write 1 and its memory or compute"}},
		"two vendors":                    {[]string{"birentech.com/gpu", "1", "hygon.com/dcunum", "1"}, []string{"asks by hygon.com/dcunum and birentech.com/gpu; use the names of one form only"}},
		"neutral and a vendor's":         {[]string{"heteroflow.io/gpu", "1", "hygon.com/dcumem", "100"}, []string{"asks by heteroflow.io/gpu and hygon.com/dcumem; use the names of one form only"}},

		"plain: a vendor's whole cards": {[]string{"heteroflow.io/gpu", "1", "huawei.com/Ascend910", "1"}, []string{"huawei.com/Ascend910: is given out by the vendor's own device plugin alone; for whole cards write heteroflow.io/gpu, or one of " + counts}},
		"plain: a vNPU":                 {[]string{"huawei.com/Ascend910B3", "1", "huawei.com/Ascend910-2c", "1"}, []string{"huawei.com/Ascend910-2c: is not handled; ask by one of " + counts}},
		"plain: MIG":                    {[]string{"nvidia.com/gpu", "1", "nvidia.com/mig-1g.5gb", "2"}, []string{"nvidia.com/mig-1g.5gb: is not handled; ask by one of nvidia.com/gpu"}},
		"plain: several":                {[]string{"nvidia.com/gpu", "1", "enflame.com/vgcu", "1", "birentech.com/1-2-gpu", "1"}, []string{"birentech.com/1-2-gpu: is not handled; ask by one of birentech.com/gpu", "enflame.com/vgcu: is not handled; ask by one of enflame.com/gcu, enflame.com/drs-gcu"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Request(podWith(app("main", tc.limits...)), policy.Default())
			for i := range tc.want {
				tc.want[i] = "containers[main]: " + tc.want[i]
			}
			sameFaults(t, err, tc.want...)
			if got.AsksForCards() {
				t.Errorf("an invalid request has asks: %v", got.Asks)
			}
		})
	}
}

// Cards that a device plugin gives a pod of ours would be on no record, whichever
// container has them. Of a pod that is not ours the plugin may give what it wants.
func TestPlainResources(t *testing.T) {
	const fault = "mthreads.com/gpu: is given out by the vendor's own device plugin alone; for whole cards write heteroflow.io/gpu, or one of mthreads.com/vgpu"
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"in another container":        {podWith(app("main", "heteroflow.io/gpu", "1"), app("side", "mthreads.com/gpu", "1")), []string{"containers[side]: " + fault}},
		"in an init container":        {podWith(initContainer("warm", "mthreads.com/gpu", "1"), app("main", "heteroflow.io/gpu", "1")), []string{"initContainers[warm]: " + fault}},
		"in requests":                 {podWith(app("main", "heteroflow.io/gpu", "1"), app("side"), requesting("mthreads.com/gpu", "1")), []string{"containers[side]: " + fault}},
		"none of it":                  {podWith(app("main", "heteroflow.io/gpu", "1", "mthreads.com/gpu", "0")), nil},
		"a pod that asks for nothing": {podWith(app("main", "mthreads.com/gpu", "1", "nvidia.com/mig-1g.5gb", "1")), nil},
		"a network card of NVIDIA's":  {podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/hostdev", "1")), nil},
		"a network card of Huawei's":  {podWith(app("main", "heteroflow.io/gpu", "1", "huawei.com/roce", "1")), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Request(tc.pod, policy.Default())
			sameFaults(t, err, tc.want...)
		})
	}
}

// The names of vendors.md 5.1 and 7 that are not the scheduler's.
func TestPlainOf(t *testing.T) {
	type answer struct {
		Vendor gpu.Vendor
		Whole  bool
	}
	tests := map[corev1.ResourceName]answer{
		"mthreads.com/gpu":              {gpu.Musa, true},
		"hygon.com/dcu":                 {gpu.Hygon, true},
		"cambricon.com/mlu":             {gpu.Cambricon, true},
		"cambricon.com/mlu370":          {gpu.Cambricon, false},
		"cambricon.com/mlu.share":       {gpu.Cambricon, false},
		"cambricon.com/mlu.mim-2m.8gb":  {gpu.Cambricon, false},
		"birentech.com/1-2-gpu":         {gpu.Biren, false},
		"birentech.com/1-4-gpu":         {gpu.Biren, false},
		"huawei.com/Ascend910":          {gpu.Ascend, true},
		"huawei.com/Ascend310":          {gpu.Ascend, true},
		"huawei.com/npu":                {gpu.Ascend, true},
		"huawei.com/npu-core":           {gpu.Ascend, false},
		"huawei.com/Ascend910-2c":       {gpu.Ascend, false},
		"huawei.com/Ascend310P-4c.3cpu": {gpu.Ascend, false},
		"iluvatar.com/gpu":              {gpu.Iluvatar, true},
		"iluvatar.ai/gpu":               {gpu.Iluvatar, false},
		"nvidia.com/gpu.shared":         {gpu.Nvidia, false},
		"nvidia.com/mig-1g.10gb":        {gpu.Nvidia, false},
		"enflame.com/shared-gcu":        {gpu.Enflame, false},
		"enflame.com/gcu-count":         {gpu.Enflame, false},
		"enflame.com/vgcu":              {gpu.Enflame, false},
		"enflame.com/vgcu-percentage":   {gpu.Enflame, false},
		"amd.com/gpu":                   {},
		"nvidia.com/hostdev":            {},
		"cpu":                           {},
	}
	for name, want := range tests {
		var got answer
		if p := plainOf(name); p != nil {
			got = answer{p.vendor, p.wholeCards}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range ManagedResources() {
		if p := plainOf(name); p != nil {
			t.Errorf("%s is the scheduler's and plain, as %s", name, p.name)
		}
	}
}
