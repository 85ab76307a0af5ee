package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Facts reads what a node says of itself. A node without any inventory has no
// cards; one whose inventory cannot be read has none either, and an error. One
// whose topology cannot be read has its cards, and ErrTopology.
func Facts(node *corev1.Node, s policy.Settings) (ledger.Facts, error) {
	f := ledger.Facts{
		ID:               gpu.NodeID(node.Name),
		Unavailable:      node.Spec.Unschedulable || !ready(node),
		PreferNoSchedule: slices.ContainsFunc(node.Spec.Taints, preferNoSchedule),
		CPU:              gpu.MilliCPU(milli(node.Status.Allocatable[corev1.ResourceCPU])),
		Memory:           gpu.Bytes(value(node.Status.Allocatable[corev1.ResourceMemory])),
		Pods:             int(value(node.Status.Allocatable[corev1.ResourcePods])),
		BootID:           node.Status.NodeInfo.BootID,
		Dedicated:        node.Labels[TenantLabel],
		Location:         topology.Location{Region: node.Labels[LabelRegion], Zone: node.Labels[LabelZone], Rack: node.Labels[LabelRack]},
		RDMA:             remoteMemory(node.Labels),
	}
	cards, err := readInventory(node)
	if err == nil {
		err = concealed(cards, s.Injection)
	}
	if err != nil {
		return f, fmt.Errorf("inventory of node %s: %w", node.Name, err)
	}
	f.Cards = cards
	size(&f, s)
	cordon(&f, node.Annotations[AnnotationCordon])
	cordon(&f, node.Annotations[AnnotationHAMiCordon])
	if err := connect(&f, node); err != nil {
		return f, fmt.Errorf("%w of node %s: %w", ErrTopology, node.Name, err)
	}
	return f, nil
}

func ready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func preferNoSchedule(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }

// remoteMemory reads what the labels say of RDMA. What cannot be read says nothing,
// and neither does a speed alone.
func remoteMemory(labels map[string]string) (r ledger.RDMA) {
	said := ours(labels, LabelRDMA)
	able, err := strconv.ParseBool(said)
	if err != nil {
		return r
	}
	r.Stated, r.Able = true, able
	if gbps, err := wholeUpTo(ours(labels, LabelRDMASpeed), mostGbps); able && err == nil {
		r.Gbps = gbps
	}
	return r
}

// mostGbps is far beyond any link; a speed in Mbps may stand there by mistake.
const mostGbps = 10000

// ours returns the label of that key, or of the same without our prefix.
func ours(labels map[string]string, key string) string {
	return cmp.Or(labels[key], labels[strings.TrimPrefix(key, own)])
}

// size works out what slices may take of each card. Those that a device plugin
// gives out stay as they are: HAMi has kept back and overcommitted before it
// registers them.
func size(f *ledger.Facts, s policy.Settings) {
	physical := 0
	for i := range f.Cards {
		if f.Cards[i].Parent == "" {
			physical++
		}
	}
	for i := range f.Cards {
		c := &f.Cards[i]
		if c.Plugin != "" {
			continue
		}
		c.Usable = max(0, c.Memory-reserve(c.Memory, s.Reserve, max(1, physical)))
		c.UsableCores = c.Cores
		if c.TakesWhole() { // a partition cannot be overcommitted
			c.Usable = c.Usable * gpu.MiB(s.MemoryScale) / gpu.MiB(policy.One)
			c.UsableCores = c.Cores * gpu.Cores(s.CoreScale) / gpu.Cores(policy.One)
		}
	}
}

// reserve is what slices never get of a card with that much memory, on a node
// with so many cards.
func reserve(memory gpu.MiB, r policy.Reserve, cards int) gpu.MiB {
	return max(ceil(memory*gpu.MiB(r.Percent), 100), ceil(r.Fixed, gpu.MiB(cards)))
}

func ceil(a, b gpu.MiB) gpu.MiB { return (a + b - 1) / b }

// cordon takes the cards out that are in the comma list. A UUID that is not here
// is harmless: cards are cordoned before they are pulled.
func cordon(f *ledger.Facts, list string) {
	for name := range strings.SplitSeq(list, ",") {
		name := gpu.CardID(strings.TrimSpace(name))
		for i := range f.Cards {
			c := &f.Cards[i]
			c.Cordoned = c.Cordoned || called(c, f.ID, name)
		}
	}
}

// concealed refuses cards that a device plugin picks where admission shows
// containers their cards itself: its variables, which know none of these, would
// hide the cards that the plugin gives.
func concealed(cards []gpu.Card, i policy.Injection) error {
	for k := range cards {
		if c := &cards[k]; i == policy.InjectionDownwardAPI && c.Counted {
			return fmt.Errorf("%s: the policy's injection would hide the cards that this device plugin gives; annotate the node with %s and take the plugin off it",
				c.Plugin, AnnotationDevices)
		}
	}
	return nil
}
