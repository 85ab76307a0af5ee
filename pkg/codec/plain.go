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
	// idle says why a resource that gives out nothing is refused all the same.
	idle string
}

// plains is read only; the first that matches counts. What is no form's is one
// of these (vendors.md 5.1 and 7). A vendor who makes nothing else has all of
// the domain; those of NVIDIA and Huawei have network cards too.
var plains = [...]plain{
	{name: "nvidia.com/gpu.shared", vendor: gpu.Nvidia},
	{name: "nvidia.com/mig-*", vendor: gpu.Nvidia},
	// 0 is a priority too: the higher of HAMi's two.
	{name: "nvidia.com/priority", vendor: gpu.Nvidia, idle: "is a rank among the tasks on one card, which HAMi's own device plugin alone knows; leave it out"},
	{name: "mthreads.com/gpu", vendor: gpu.Musa, wholeCards: true},
	{name: "mthreads.com/*", vendor: gpu.Musa},
	{name: "hygon.com/dcu", vendor: gpu.Hygon, wholeCards: true},
	{name: "hygon.com/*", vendor: gpu.Hygon},
	{name: "cambricon.com/mlu", vendor: gpu.Cambricon, wholeCards: true},
	{name: "cambricon.com/*", vendor: gpu.Cambricon}, // mlu.share, mlu.mim-2m.8gb, mlu370
	{name: "birentech.com/*", vendor: gpu.Biren},     // 1-2-gpu, 1-4-gpu
	{name: "huawei.com/Ascend910", vendor: gpu.Ascend, wholeCards: true},
	{name: "huawei.com/Ascend310", vendor: gpu.Ascend, wholeCards: true},
	{name: "huawei.com/npu", vendor: gpu.Ascend, wholeCards: true},
	{name: "huawei.com/Ascend*", vendor: gpu.Ascend}, // Ascend910-2c and other vNPUs
	{name: "huawei.com/npu*", vendor: gpu.Ascend},    // npu-core
	{name: "kunlunxin.com/*", vendor: gpu.Kunlun},
	{name: "iluvatar.com/gpu", vendor: gpu.Iluvatar, wholeCards: true},
	{name: "iluvatar.com/*", vendor: gpu.Iluvatar},
	{name: "iluvatar.ai/*", vendor: gpu.Iluvatar},
	{name: "metax-tech.com/*", vendor: gpu.Metax},
	{name: "enflame.com/*", vendor: gpu.Enflame}, // shared-gcu, gcu-count, vgcu
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
	if p := plainOf(name); p != nil && p.idle == "" {
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
		case p == nil || p.idle != "" || q.IsZero():
		case p.wholeCards:
			faults = append(faults, fmt.Errorf("%s: is given out by the vendor's own device plugin alone; for whole cards write %s, or one of %s",
				name, ResourceGPU, join(countsOf(p.vendor))))
		default:
			faults = append(faults, fmt.Errorf("%s: is not handled; ask by one of %s", name, join(countsOf(p.vendor))))
		}
	}
	return faults
}

// idleFaults names the pod's resources that give out nothing and would be
// ignored. They make nothing uncertain: what a pod holds does not depend on them.
func idleFaults(pod *corev1.Pod) (faults []error) {
	for _, c := range containers(pod) {
		for _, name := range slices.Sorted(maps.Keys(c.all())) {
			if p := plainOf(name); p != nil && p.idle != "" {
				faults = append(faults, fmt.Errorf("%s: %s: %s", c.field, name, p.idle))
			}
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
			if p == nil || p.idle != "" || q.IsZero() {
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
