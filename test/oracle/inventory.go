package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// card is one accelerator of a node's inventory.
type card struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Vendor    string `json:"vendor"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	Cores     int64  `json:"cores"`
	NUMA      *int   `json:"numa"`
	Healthy   bool   `json:"healthy"`
	Mode      string `json:"mode"`
	MaxSlices int    `json:"maxSlices"`
	Isolation string `json:"isolation"`

	usable int64  // MiB for all slices together
	plain  bool   // known by number or by size alone: the device plugin picks the card
	plugin string // the count by which a device plugin gives it out; "" if none does
}

const (
	devicesAnnotation = prefix + "devices"
	plainResource     = "nvidia.com/gpu"
	defaultSlices     = 10
)

// inventory returns a node's cards, from its annotation or else from what device
// plugins register and advertise.
func inventory(node *corev1.Node) ([]card, error) {
	text, found := node.Annotations[devicesAnnotation]
	if !found {
		return plugged(node)
	}
	var list struct{ Cards []card }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%s: %w", devicesAnnotation, err)
	}
	for i := range list.Cards {
		c := &list.Cards[i]
		if c.MaxSlices == 0 {
			c.MaxSlices = defaultSlices
		}
		c.usable = c.MemoryMiB - reserve(c.MemoryMiB, int64(len(list.Cards)))
	}
	return list.Cards, nil
}

// plugged returns the cards of all device plugins. What a vendor's plugin has
// registered for HAMi is not counted once more.
func plugged(node *corev1.Node) ([]card, error) {
	var cards []card
	known := map[string]bool{}
	for _, r := range registers() {
		text, found := node.Annotations[r.annotation]
		if !found {
			continue
		}
		more, err := r.read(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.annotation, err)
		}
		if r.left(node, more) {
			for i := range more {
				more[i].Healthy = false
			}
		}
		cards, known[r.vendor] = append(cards, more...), true
	}
	for _, stock := range []names{
		{vendor: "nvidia", count: plainResource}, {vendor: "biren", count: "birentech.com/gpu"},
		{vendor: "ascend", model: "310P", count: "huawei.com/Ascend310P"}, {vendor: "kunlun", count: "kunlunxin.com/xpu"},
		{vendor: "metax", count: "metax-tech.com/gpu"}, {vendor: "enflame", count: "enflame.com/gcu"},
	} {
		if !known[stock.vendor] {
			cards = append(cards, counted(node, stock)...)
		}
	}
	cards = append(cards, divided(node, "musa", "mthreads.com/vgpu", "mthreads.com/sgpu-core", 16, "mthreads.com/sgpu-memory", 512)...)
	return append(cards, divided(node, "cambricon", "cambricon.com/vmlu", "cambricon.com/mlu.smlu.vcore", 100, "cambricon.com/mlu.smlu.vmemory", 256)...), nil
}

// gives reports whether the card may go to who asks so: a device plugin gives
// nobody a card who does not name its count.
func (c *card) gives(a *ask) bool { return c.plugin == "" || c.plugin == a.plugin }

// counted are cards known by number alone.
func counted(node *corev1.Node, stock names) []card {
	room := node.Status.Allocatable[corev1.ResourceName(stock.count)]
	memory, _ := strconv.ParseInt(node.Labels[stock.vendor+".com/gpu.memory"], 10, 64) // absent: 0
	var cards []card
	for i := range int(room.Value()) {
		cards = append(cards, card{
			UUID: fmt.Sprintf("%s-%s-%d", node.Name, stock.vendor, i), Index: i, Vendor: stock.vendor,
			Model: cmp.Or(node.Labels[stock.vendor+".com/gpu.product"], stock.model), MemoryMiB: memory, Cores: 100, usable: memory,
			Healthy: true, Mode: "whole", MaxSlices: 1, plain: true, plugin: stock.count,
		})
	}
	return cards
}

// divided are equal cards known by what they have together: each of compute, and
// memory in units of so many MiB.
func divided(node *corev1.Node, vendor, count, compute string, each int64, memory string, unit int64) []card {
	all := node.Status.Allocatable[corev1.ResourceName(compute)]
	units := node.Status.Allocatable[corev1.ResourceName(memory)]
	n := all.Value() / each
	var cards []card
	for i := range int(n) {
		size := units.Value() / n * unit
		cards = append(cards, card{
			UUID: fmt.Sprintf("%s-%s-%d", node.Name, vendor, i), Index: i, Vendor: vendor, MemoryMiB: size, Cores: 100, usable: size,
			Healthy: true, Mode: "slice", MaxSlices: 100, Isolation: "driver", plain: true, plugin: count,
		})
	}
	return cards
}

// reserve is what slices leave to the driver: a tenth of the card, rounded up,
// and at least the card's part of 500 MiB a node, rounded up.
func reserve(memory, cards int64) int64 {
	return max((memory+9)/10, (500+cards-1)/cards)
}

// whole reports whether the card can be given out as one piece.
func (c *card) whole() bool { return c.Mode == "whole" || c.Mode == "slice" || c.Mode == "" }

// sliced reports whether something keeps slices of the card within bounds.
func (c *card) sliced() bool {
	return c.Mode == "slice" && c.Isolation != "" && c.Isolation != "none"
}
