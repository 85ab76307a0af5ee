package codec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// readInventory asks the node agent's annotation first; whoever has one is
// believed in it and in nothing else. On other nodes each vendor's device plugin
// speaks for its own cards: by a register, or by what it has allocatable.
func readInventory(node *corev1.Node) ([]gpu.Card, error) {
	if cards, found, err := fromDevices(node); found || err != nil {
		return cards, err
	}
	cards, registered, err := fromHAMi(node)
	if err != nil {
		return nil, err
	}
	for i := range forms {
		more, err := forms[i].allocatable(node, registered)
		if err != nil {
			return nil, err
		}
		cards = append(cards, more...)
	}
	return cards, twice(cards)
}

// allocatable returns the cards that are known by what a device plugin has
// allocatable. Where the vendor has a register, its count is one of shares, or
// may be of the same cards once more: MetaX switches whole nodes between sgpu
// and gpu, and what was registered stays behind.
func (f *form) allocatable(node *corev1.Node, registered map[gpu.Vendor]string) ([]gpu.Card, error) {
	switch {
	case f.bare:
		return f.divided(node)
	case f.stock && registered[f.vendor] == "":
		return f.counted(node)
	}
	return nil, nil // shares, or what nobody but the scheduler gives out
}

// twice finds cards of two sources that have one name.
func twice(cards []gpu.Card) error {
	seen := map[gpu.CardID]*gpu.Card{}
	for i := range cards {
		c := &cards[i]
		if other := seen[c.ID]; other != nil {
			return fmt.Errorf("card %s: is given out by %s and by %s", c.ID, other.Plugin, c.Plugin)
		}
		seen[c.ID] = c
	}
	return nil
}

// counted returns the cards of which a stock device plugin advertises the
// number. Which card is which is known to it alone.
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
	model := cmp.Or(node.Labels[f.productLabel], f.model)
	mode := gpu.ModeWhole
	if strings.Contains(model, "-MIG-") {
		mode = gpu.ModeMIG // strategy "single": the plugin counts instances
	}
	return f.alike(node, n, gpu.Card{Model: model, Memory: memory, MaxSlices: defaultSlices, Mode: mode, Isolation: gpu.IsolationNone}), nil
}

// divided returns the cards whose device plugin advertises what all of them have
// together, for slices. They are taken to be equal, as HAMi takes them
// (pkg/device/mthreads, pkg/device/cambricon): nothing says more. Its plugins
// keep up to 100 containers on a card.
func (f *form) divided(node *corev1.Node) ([]gpu.Card, error) {
	const together = 100
	full := cmp.Or(f.full, gpu.MostCores)
	cores, err := measure{name: f.cores[0], most: mostNodeCards * full}.read(node.Status.Allocatable)
	if err != nil {
		return nil, err
	}
	memory, err := measure{name: f.memory, most: mostNodeCards * gpu.MostMemory / int64(f.unit), unit: f.unit}.read(node.Status.Allocatable)
	n := cores / full
	switch {
	case err != nil || cores == 0 && memory == 0:
		return nil, err
	case n == 0 || cores%full != 0:
		return nil, fmt.Errorf("%s: %d is not the compute of whole cards, %d each", f.cores[0], cores, full)
	case memory == 0 || memory%n != 0 || memory/n > gpu.MostMemory/int64(f.unit):
		return nil, fmt.Errorf("%s: %d is not the memory of %d equal cards", f.memory, memory, n)
	}
	size := gpu.MiB(memory/n) * f.unit
	return f.alike(node, n, gpu.Card{
		Memory: size, MaxSlices: together, Mode: gpu.ModeSlice,
		Isolation: gpu.IsolationDriver, // sgpu and smlu: vendors.md 7
	}), nil
}

// alike returns n cards of the form's device plugin that differ in their numbers
// alone: nothing more is known of them.
func (f *form) alike(node *corev1.Node, n int64, card gpu.Card) []gpu.Card {
	card.Vendor, card.Plugin, card.Counted = f.vendor, string(f.count), true
	card.Usable, card.Cores, card.UsableCores = card.Memory, defaultCores, defaultCores
	card.NUMA = gpu.NoNUMA
	card.Healthy = true // the plugin takes the others off what is allocatable
	cards := make([]gpu.Card, n)
	for i := range cards {
		cards[i] = card
		cards[i].ID, cards[i].Index = countedID(gpu.NodeID(node.Name), f.vendor, i), i
	}
	return cards
}

// countedID is the name of a card that is known by its count alone.
func countedID(node gpu.NodeID, v gpu.Vendor, index int) gpu.CardID {
	return gpu.CardID(fmt.Sprintf("%s-%s-%d", node, v, index))
}

// hamiWords are HAMi's in the names of such cards, where they are not ours; read
// only (hami-protocol.md A.6).
var hamiWords = map[gpu.Vendor]gpu.Vendor{gpu.Musa: "mthreads", gpu.Cambricon: "cambricon-mlu", gpu.Enflame: "GCU"}

// called reports whether the card goes by this name, in our words or in HAMi's.
func called(c *gpu.Card, node gpu.NodeID, name gpu.CardID) bool {
	return c.ID == name || c.Counted && name == countedID(node, cmp.Or(hamiWords[c.Vendor], c.Vendor), c.Index)
}

// named refuses UUIDs that are such names: Annotations tells counted cards by
// them. The fault names the list and its field.
func named(cards []gpu.Card, node *corev1.Node, list, uuid string) error {
	for i := range cards {
		if c := &cards[i]; c.ID == countedID(gpu.NodeID(node.Name), c.Vendor, c.Index) {
			return fmt.Errorf("%s[%d].%s: %q is what a card without a known UUID is called", list, i, uuid, c.ID)
		}
	}
	return nil
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
