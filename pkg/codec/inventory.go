package codec

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// inventory is a node's cards as one source names them.
type inventory struct {
	cards     []gpu.Card
	countOnly bool
}

// readInventory asks one source after the other; the first that knows anything
// of the node is believed, and no other.
func readInventory(node *corev1.Node) (inventory, error) {
	sources := []func(*corev1.Node) (inv inventory, found bool, err error){
		fromDevices, fromHAMi, fromAllocatable,
	}
	for _, read := range sources {
		if inv, found, err := read(node); found || err != nil {
			return inv, err
		}
	}
	return inventory{}, nil
}

// fromHAMi refuses a node whose cards HAMi's device plugin shares out: its
// allocatable count is that of shares, not of cards.
func fromHAMi(node *corev1.Node) (inventory, bool, error) {
	for i := range forms {
		key := forms[i].register
		if _, ok := node.Annotations[key]; ok && key != "" {
			return inventory{}, true, fmt.Errorf("annotation %s: inventories of HAMi's device plugin are not read; annotate the node with %s", key, AnnotationDevices)
		}
	}
	return inventory{}, false, nil
}

// fromAllocatable counts the cards that stock device plugins advertise. Which
// card is which is known to them alone.
func fromAllocatable(node *corev1.Node) (inventory, bool, error) {
	var cards []gpu.Card
	for i := range forms {
		if !forms[i].stock {
			continue // shares, or what nobody but the scheduler gives out
		}
		counted, err := forms[i].counted(node)
		if err != nil {
			return inventory{}, true, err
		}
		cards = append(cards, counted...)
	}
	return inventory{cards, true}, len(cards) > 0, nil
}

// counted returns the node's cards of one vendor.
func (f *form) counted(node *corev1.Node) ([]gpu.Card, error) {
	n, err := measure{name: f.count, most: mostNodeCards}.read(node.Status.Allocatable)
	if err != nil || n == 0 {
		return nil, err
	}
	if r := node.Labels[f.replicaLabel]; r != "" && r != "1" {
		return nil, fmt.Errorf("label %s: %q: the device plugin shares cards, so %s does not count whole ones", f.replicaLabel, r, f.count)
	}
	memory, err := labelMiB(node.Labels, f.memoryLabel)
	if err != nil {
		return nil, err
	}
	model := node.Labels[f.productLabel]
	mode := gpu.ModeWhole
	if strings.Contains(model, "-MIG-") {
		mode = gpu.ModeMIG // strategy "single": the plugin counts instances
	}
	cards := make([]gpu.Card, n)
	for i := range cards {
		cards[i] = gpu.Card{
			ID:        countedID(gpu.NodeID(node.Name), f.vendor, i),
			Index:     i,
			Vendor:    f.vendor,
			Model:     model,
			Memory:    memory,
			Cores:     defaultCores,
			MaxSlices: defaultSlices,
			NUMA:      gpu.NoNUMA,
			Healthy:   true, // the plugin takes the others off its count
			Mode:      mode,
			Isolation: gpu.IsolationNone,
		}
	}
	return cards, nil
}

// countedID is the name of a card that is known by its count alone.
func countedID(node gpu.NodeID, v gpu.Vendor, index int) gpu.CardID {
	return gpu.CardID(fmt.Sprintf("%s-%s-%d", node, v, index))
}

// labelMiB reads a label; 0 where it is absent: unknown.
func labelMiB(labels map[string]string, key string) (gpu.MiB, error) {
	text := labels[key]
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > gpu.MostMemory {
		return 0, fmt.Errorf("label %s: %q is outside 0..%d MiB", key, text, gpu.MostMemory)
	}
	return gpu.MiB(v), nil
}
