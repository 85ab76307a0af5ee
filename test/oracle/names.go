package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// names are the resource names of one form and what its amounts mean. A name
// that a form does not have is empty.
type names struct {
	vendor, model                             string // model: the cards' that the names are for, "" for any
	count, memory, percent, cores, coresAlias string

	unit  int64   // MiB that 1 of memory stands for; 0: 1
	legal []int64 // the only amounts of memory there are; nil: any
	full  int64   // what a whole card is in cores; 0: 100

	always bool // the device plugin goes by the amounts too, and needs no count
	single bool // a slice is of one device
	pairs  bool // devices come in pairs
	sized  bool // is always one slice of a stated size
}

// The forms; read only.
var (
	neutralNames = names{count: prefix + "gpu", memory: prefix + "gpu-memory", cores: prefix + "gpu-cores"}
	vendorNames  = []names{
		{
			vendor: "nvidia", count: "nvidia.com/gpu", memory: "nvidia.com/gpumem", percent: "nvidia.com/gpumem-percentage",
			cores: "nvidia.com/gpucores", coresAlias: "nvidia.com/cores",
		},
		{
			vendor: "musa", count: "mthreads.com/vgpu", memory: "mthreads.com/sgpu-memory", unit: 512,
			legal: []int64{2, 4, 8, 16, 32, 64, 96}, cores: "mthreads.com/sgpu-core", full: 16, single: true, always: true,
		},
		{vendor: "hygon", count: "hygon.com/dcunum", memory: "hygon.com/dcumem", cores: "hygon.com/dcucores", single: true},
		{
			vendor: "cambricon", count: "cambricon.com/vmlu", memory: "cambricon.com/mlu.smlu.vmemory", unit: 256,
			cores: "cambricon.com/mlu.smlu.vcore", single: true, always: true,
		},
		{vendor: "biren", count: "birentech.com/gpu"},
		ascendNames("910A", false), ascendNames("910B2", false), ascendNames("910B3", false), ascendNames("910B4", false),
		ascendNames("910B4-1", false), ascendNames("910C", true), ascendNames("310P", false),
		{vendor: "kunlun", count: "kunlunxin.com/xpu"},
		{vendor: "kunlun", count: "kunlunxin.com/vxpu", memory: "kunlunxin.com/vxpu-memory"},
		iluvatarNames("MR-V100"), iluvatarNames("MR-V50"), iluvatarNames("BI-V150"), iluvatarNames("BI-V100"),
		{vendor: "metax", count: "metax-tech.com/gpu"},
		{vendor: "metax", count: "metax-tech.com/sgpu", memory: "metax-tech.com/vmemory", unit: 1024, cores: "metax-tech.com/vcore"},
		{vendor: "enflame", count: "enflame.com/gcu"},
		{vendor: "enflame", count: "enflame.com/drs-gcu", memory: "enflame.com/gcu-memory", cores: "enflame.com/gcu-core", sized: true},
	}
)

func ascendNames(model string, pairs bool) names {
	count := "huawei.com/Ascend" + model
	return names{vendor: "ascend", model: model, count: count, memory: count + "-memory", cores: count + "-core", single: true, pairs: pairs}
}

func iluvatarNames(model string) names {
	word := "iluvatar.ai/" + model
	return names{vendor: "iluvatar", model: model, count: word + "-vgpu", memory: word + ".vMem", unit: 256, cores: word + ".vCore", single: true}
}

// forbids says what a vendor's form does not allow about a request that has
// legal amounts; nil if nothing is wrong with it.
func (n names) forbids(a ask, count, units int64) error {
	switch {
	case a.memory > 0 && a.percent > 0:
		return fmt.Errorf("%s with %s", n.percent, n.memory)
	case n.legal != nil && units > 0 && !slices.Contains(n.legal, units):
		return fmt.Errorf("%s: %d is none of %v", n.memory, units, n.legal)
	case n.single && !a.whole && count > 1:
		return fmt.Errorf("%s: a slice of %d devices", n.count, count)
	case n.pairs && a.count%2 != 0:
		return fmt.Errorf("%s: %d is odd", n.count, a.count)
	case n.sized && (count > 1 || a.memory == 0 && a.cores == 0):
		return fmt.Errorf("%s: %d without one size", n.count, count)
	}
	return nil
}

// ofModel reports whether a card's model is the one that a form is for. What
// stands before the name does not matter, a digit may follow, a letter or a
// hyphen makes it another model.
func ofModel(model, wanted string) bool {
	model, wanted = strings.ToLower(model), strings.ToLower(wanted)
	for wanted != "" {
		_, after, found := strings.Cut(model, wanted)
		if !found {
			return false
		}
		if after == "" || after[0] != '-' && (after[0] < 'a' || after[0] > 'z') {
			return true
		}
		model = model[strings.Index(model, wanted)+1:]
	}
	return true
}
