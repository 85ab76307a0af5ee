package codec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// form is one set of resource names in which a container can ask for cards, and
// what the vendor's own components call the same things on a node. A name that a
// form does not have is empty.
type form struct {
	vendor gpu.Vendor // "" for the neutral form
	model  string     // of the cards, where the names are those of one model
	count  corev1.ResourceName
	// stock says that the vendor's own device plugin gives out whole cards by
	// count. Other counts are of shares, or of what only HAMi knows.
	stock bool
	// bare says that the device plugin registers no cards, and has memory and
	// compute allocatable instead of the count.
	bare    bool
	memory  corev1.ResourceName
	unit    gpu.MiB // what 1 of memory stands for
	legal   []int64 // the only amounts of memory that there are; nil: any
	percent corev1.ResourceName
	cores   []corev1.ResourceName // the name, then others that mean the same
	full    int64                 // what a whole card is in cores; 0: 100
	rules   []rule

	// Labels of feature discovery, for nodes whose only inventory is the
	// allocatable count.
	productLabel string
	memoryLabel  string // MiB
	replicaLabel string // how many of count one card is advertised as
	// register is the annotation with which the device plugin that HAMi uses
	// reports the cards that it shares out, list reads it (nil: nobody can), and
	// modes says how a card is offered that stands there with a mode.
	register string
	list     func(text string) ([]listed, error)
	modes    map[string]offer
}

// offer is what a card can be given out as, and what bounds a slice of it.
type offer struct {
	mode      gpu.Mode
	isolation gpu.Isolation
}

// sliced are the modes of cards that are given out in slices, or whole. Device
// plugins that know but one way of sharing name none, or HAMi's.
func sliced(by gpu.Isolation) map[string]offer {
	return map[string]offer{"": {gpu.ModeSlice, by}, "hami-core": {gpu.ModeSlice, by}}
}

// The modes of the others; read only.
var (
	// modesNvidia: hami-protocol.md A.2. The bounds are kept by a library that is
	// loaded before all others, by the MPS daemon, or by partitions (vendors.md 7).
	modesNvidia = map[string]offer{
		"":          {gpu.ModeSlice, gpu.IsolationSoft},
		"hami-core": {gpu.ModeSlice, gpu.IsolationSoft},
		"mps":       {gpu.ModeSlice, gpu.IsolationDriver},
		"mig":       {gpu.ModeMIG, gpu.IsolationNone},
	}
	// wholeOnly is for what is never shared (Biren), and for what is shared by
	// templates: vNPUs of Ascend, vXPUs of Kunlunxin. The device plugin rounds
	// an amount up to a template, so what is asked for is not what is taken.
	wholeOnly = map[string]offer{"": {gpu.ModeWhole, gpu.IsolationNone}, "hami-core": {gpu.ModeWhole, gpu.IsolationNone}}
)

// rule is what a vendor wants of a request beyond its units.
type rule struct {
	says   string // after the name of the count
	broken func(amounts) bool
}

var (
	// oneSlice: docs/mthreads-support.md ("device sharing for multi-cards is not
	// supported"), ascend910b-support.md and hygon-dcu-support.md of HAMi;
	// hami-protocol.md A.6 for Cambricon and Enflame, whose pod annotations have
	// place for one slice. For Iluvatar HAMi turns several into whole cards.
	oneSlice = rule{"a slice is of one device, several devices are whole cards", func(a amounts) bool { return a.count > 1 && !a.whole() }}
	// inPairs: vendors.md 7, "requested in pairs of chips". HAMi makes 1 into 2
	// and refuses other odd numbers; nobody here gets what was not asked for.
	inPairs = rule{"devices come in pairs: write an even number", func(a amounts) bool { return max(1, a.count)%2 != 0 }}
	// sized: hami-protocol.md lists enflame.com/drs-gcu as a count, HAMi's
	// enflame-vgcu-support.md as the size of a slice. 1 beside a size is both.
	sized = rule{"is one slice: write 1 and its memory or compute", func(a amounts) bool { return a.count > 1 || a.memory == 0 && a.cores == 0 }}
)

// forms is read only. Its order is that of ManagedResources, and of documents.
//
// The names and factors of HAMi are those of hami-protocol.md A.6 and vendors.md
// 5.1; what bounds a slice is from vendors.md 7: sgpu of MetaX and vDCU are the
// driver's, Iluvatar shares in time. Amounts are taken as they are: HAMi rounds
// those of Ascend and of kunlunxin.com/vxpu-memory up to the partitions that its
// device plugins cut. Those cards are given out whole only; see wholeOnly.
var forms = slices.Concat(
	[]form{
		{
			count:  ResourceGPU,
			memory: ResourceMemory, unit: 1,
			cores: []corev1.ResourceName{ResourceCores},
		},
		{
			vendor: gpu.Nvidia,
			count:  "nvidia.com/gpu", stock: true,
			memory: "nvidia.com/gpumem", unit: 1,
			percent:      "nvidia.com/gpumem-percentage",
			cores:        []corev1.ResourceName{"nvidia.com/gpucores", "nvidia.com/cores"},
			productLabel: "nvidia.com/gpu.product",
			memoryLabel:  "nvidia.com/gpu.memory",
			replicaLabel: "nvidia.com/gpu.replicas",
			register:     "hami.io/node-nvidia-register", list: listHAMi, modes: modesNvidia,
		},
		{
			vendor: gpu.Musa,
			count:  "mthreads.com/vgpu", bare: true,
			memory: "mthreads.com/sgpu-memory", unit: 512, legal: []int64{2, 4, 8, 16, 32, 64, 96},
			cores: []corev1.ResourceName{"mthreads.com/sgpu-core"}, full: 16,
			rules: []rule{oneSlice},
		},
		{
			vendor: gpu.Hygon,
			count:  "hygon.com/dcunum",
			memory: "hygon.com/dcumem", unit: 1,
			cores:    []corev1.ResourceName{"hygon.com/dcucores"},
			rules:    []rule{oneSlice},
			register: "hami.io/node-dcu-register", list: listHAMi, modes: sliced(gpu.IsolationDriver),
		},
		{
			vendor: gpu.Cambricon,
			count:  "cambricon.com/vmlu", bare: true,
			memory: "cambricon.com/mlu.smlu.vmemory", unit: 256,
			cores: []corev1.ResourceName{"cambricon.com/mlu.smlu.vcore"},
			rules: []rule{oneSlice},
		},
		{
			vendor: gpu.Biren,
			count:  "birentech.com/gpu", stock: true,
			register: "hami.io/node-biren-register", list: listHAMi, modes: wholeOnly,
		},
	},
	[]form{
		ascend("910A"),
		ascend("910B2"),
		ascend("910B3"),
		ascend("910B4"),
		ascend("910B4-1"),
		ascend("910C", inPairs),
		ascend310P(),
	},
	[]form{
		{
			vendor: gpu.Kunlun,
			count:  "kunlunxin.com/xpu", stock: true,
		},
		{
			vendor: gpu.Kunlun,
			count:  "kunlunxin.com/vxpu",
			memory: "kunlunxin.com/vxpu-memory", unit: 1,
			register: "hami.io/node-register-xpu", list: listHAMi, modes: wholeOnly,
		},
		iluvatar("MR-V100"),
		iluvatar("MR-V50"),
		iluvatar("BI-V150"),
		iluvatar("BI-V100"),
		{
			vendor: gpu.Metax,
			count:  "metax-tech.com/gpu", stock: true,
		},
		{
			vendor: gpu.Metax,
			count:  "metax-tech.com/sgpu",
			memory: "metax-tech.com/vmemory", unit: 1024,
			cores:    []corev1.ResourceName{"metax-tech.com/vcore"},
			register: "metax-tech.com/node-gpu-devices", list: listMetax, modes: sliced(gpu.IsolationDriver),
		},
		{
			vendor: gpu.Enflame,
			count:  "enflame.com/gcu", stock: true,
			register: "enflame.com/gcu-shared-capacity",
		},
		{
			vendor: gpu.Enflame,
			count:  "enflame.com/drs-gcu",
			memory: "enflame.com/gcu-memory", unit: 1,
			cores:    []corev1.ResourceName{"enflame.com/gcu-core"},
			rules:    []rule{sized},
			register: "enflame.com/gcu-drs-capacity",
		},
	},
)

// ascend is the form of one model. Its word in all names is Ascend<model>; cards
// call themselves by either.
func ascend(model string, more ...rule) form {
	name := corev1.ResourceName("huawei.com/Ascend" + model)
	return form{
		vendor: gpu.Ascend, model: model,
		count:  name,
		memory: name + "-memory", unit: 1,
		cores:    []corev1.ResourceName{name + "-core"},
		rules:    append(more, oneSlice),
		register: "hami.io/node-register-Ascend" + model, list: listHAMi, modes: wholeOnly,
	}
}

// ascend310P is a name that Huawei's own device plugin has too, for whole cards
// (vendors.md 5.1).
func ascend310P() form {
	f := ascend("310P")
	f.stock = true
	return f
}

func iluvatar(model string) form {
	name := corev1.ResourceName("iluvatar.ai/" + model)
	return form{
		vendor: gpu.Iluvatar, model: model,
		count:  name + "-vgpu",
		memory: name + ".vMem", unit: 256,
		cores:    []corev1.ResourceName{name + ".vCore"},
		rules:    []rule{oneSlice},
		register: "hami.io/node-" + model + "-register", list: listHAMi, modes: sliced(gpu.IsolationSoft),
	}
}

// formByName is read only: resource -> place in forms.
var formByName = func() map[corev1.ResourceName]int {
	byName := map[corev1.ResourceName]int{}
	for i := range forms {
		for _, name := range forms[i].names() {
			byName[name] = i
		}
	}
	return byName
}()

// names returns the resources of the form, without the empty ones.
func (f *form) names() []corev1.ResourceName {
	all := append([]corev1.ResourceName{f.count, f.memory, f.percent}, f.cores...)
	return slices.DeleteFunc(all, func(n corev1.ResourceName) bool { return n == "" })
}

// ManagedResources returns every resource name that the scheduler answers for,
// in a fixed order: kube-scheduler has to be told to leave them to it.
func ManagedResources() []corev1.ResourceName {
	var all []corev1.ResourceName
	for i := range forms {
		all = append(all, forms[i].names()...)
	}
	return all
}

// formOf returns the form that has this resource, nil if none has.
func formOf(name corev1.ResourceName) *form {
	i, ok := formByName[name]
	if !ok {
		return nil
	}
	return &forms[i]
}

// formsIn returns the forms of which the list has a resource, in order.
func formsIn(list corev1.ResourceList) []*form {
	var places []int
	for name := range list {
		if i, ok := formByName[name]; ok {
			places = append(places, i)
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	found := make([]*form, len(places))
	for at, i := range places {
		found[at] = &forms[i]
	}
	return found
}

// misplaced returns the resource that was meant by one that is literally named
// limits.<resource> or requests.<resource>, as in a quota.
func misplaced(name corev1.ResourceName) (meant corev1.ResourceName, ok bool) {
	meant = unprefixed(name)
	return meant, meant != name && (formOf(meant) != nil || strings.HasPrefix(string(meant), own))
}

// seenByUUID reports whether the vendor's container runtime is told its cards by
// UUID. The others take the index that the vendor's tool shows.
//
// NVIDIA_VISIBLE_DEVICES takes UUIDs, and IX_VISIBLE_DEVICES is filled with UUIDs
// by Iluvatar's own device plugin (ix-device-plugin, pkg/dpm/plugin.go). For
// MTHREADS_, DCU_, CAMBRICON_, BIREN_, ASCEND_ and ENFLAME_VISIBLE_DEVICES,
// and for the frameworks' variables of Kunlunxin and MetaX, whose runtimes have
// none, the index is the one spelling that is sure to be understood.
func seenByUUID(v gpu.Vendor) bool { return v == gpu.Nvidia || v == gpu.Iluvatar }
