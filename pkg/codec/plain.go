package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// plain is a resource by which only a vendor's own device plugin gives out
// cards, or parts of them. The scheduler never answers for one. It counts what
// they hold, and refuses them in a pod that it is to place: their cards would
// be on no record.
type plain struct {
	name       string // with a * at its end, the beginning of names
	vendor     gpu.Vendor
	wholeCards bool // 1 is one whole card
}

// plains is read only; the first that matches counts. What is no form's is one
// of these (vendors.md 5.1 and 7). A vendor who makes nothing else has all of
// the domain; those of NVIDIA and Huawei have network cards too.
var plains = [...]plain{
	{"nvidia.com/gpu.shared", gpu.Nvidia, false},
	{"nvidia.com/mig-*", gpu.Nvidia, false},
	{"mthreads.com/gpu", gpu.Musa, true},
	{"mthreads.com/*", gpu.Musa, false},
	{"hygon.com/dcu", gpu.Hygon, true},
	{"hygon.com/*", gpu.Hygon, false},
	{"cambricon.com/mlu", gpu.Cambricon, true},
	{"cambricon.com/*", gpu.Cambricon, false}, // mlu.share, mlu.mim-2m.8gb, mlu370
	{"birentech.com/*", gpu.Biren, false},     // 1-2-gpu, 1-4-gpu
	{"huawei.com/Ascend910", gpu.Ascend, true},
	{"huawei.com/Ascend310", gpu.Ascend, true},
	{"huawei.com/npu", gpu.Ascend, true},
	{"huawei.com/Ascend*", gpu.Ascend, false}, // Ascend910-2c and other vNPUs
	{"huawei.com/npu*", gpu.Ascend, false},    // npu-core
	{"kunlunxin.com/*", gpu.Kunlun, false},
	{"iluvatar.com/gpu", gpu.Iluvatar, true},
	{"iluvatar.com/*", gpu.Iluvatar, false},
	{"iluvatar.ai/*", gpu.Iluvatar, false},
	{"metax-tech.com/*", gpu.Metax, false},
	{"enflame.com/*", gpu.Enflame, false}, // shared-gcu, gcu-count, vgcu
}

// plainOf returns the plain resource of this name, nil if it is none.
func plainOf(name corev1.ResourceName) *plain {
	if formOf(name) != nil {
		return nil
	}
	for i := range plains {
		beginning, many := strings.CutSuffix(plains[i].name, "*")
		if many && strings.HasPrefix(string(name), beginning) || string(name) == plains[i].name {
			return &plains[i]
		}
	}
	return nil
}

// vendorOf returns whose cards are asked for by the resource, "" standing for
// any vendor's; false if it is for no card.
func vendorOf(name corev1.ResourceName) (gpu.Vendor, bool) {
	if f := formOf(name); f != nil {
		return f.vendor, true
	}
	if p := plainOf(name); p != nil {
		return p.vendor, true
	}
	return "", false
}

// plainFaults names the container's plain resources.
func (c container) plainFaults() (faults []error) {
	all := c.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, q := plainOf(name), all[name]
		switch {
		case p == nil || q.IsZero():
		case p.wholeCards:
			faults = append(faults, fmt.Errorf("%s: is given out by the vendor's own device plugin alone; for whole cards write %s, or one of %s",
				name, ResourceGPU, join(countsOf(p.vendor))))
		default:
			faults = append(faults, fmt.Errorf("%s: is not handled; ask by one of %s", name, join(countsOf(p.vendor))))
		}
	}
	return faults
}

// countsOf lists the resources by which cards of the vendor can be asked for.
func countsOf(v gpu.Vendor) (names []corev1.ResourceName) {
	for i := range forms {
		if forms[i].vendor == v {
			names = append(names, forms[i].count)
		}
	}
	return names
}

// plainAsks returns what the pod's containers ask device plugins for by plain
// names, with a count of 0 where it does not say how many cards that may be.
func plainAsks(pod *corev1.Pod) (asks []gpu.Ask) {
	for _, c := range containers(pod) {
		for name, q := range c.all() {
			p := plainOf(name)
			if p == nil || q.IsZero() {
				continue
			}
			ask := gpu.Ask{Container: c.Name, Role: c.role, Vendor: p.vendor}
			if p.wholeCards {
				n, err := measure{name: name, most: gpu.MostCards}.read(c.Resources.Limits)
				if err == nil {
					ask.Count = int(n)
				}
			}
			asks = append(asks, ask)
		}
	}
	return asks
}
