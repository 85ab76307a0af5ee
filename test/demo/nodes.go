package main

import (
	"slices"
	"strings"

	"heteroflow.io/heteroflow/test/simnode"
)

// inventory is the demo's cluster: several vendors, models and sizes, one node
// with two vendors, one with a single card, one with a stock device plugin.
func inventory() []simnode.Spec {
	node := func(name string, cards ...[]simnode.Card) simnode.Spec {
		return simnode.Spec{Name: name, Cards: slices.Concat(cards...)}
	}
	a100 := func(name string) simnode.Spec {
		return node(name, simnode.Cards(name, 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920))
	}
	mixed := "mixed-1"
	second := simnode.Cards(mixed, 2, "nvidia", "NVIDIA-L40S", 46068)
	for i := range second {
		second[i].Index += 2
	}
	return []simnode.Spec{
		a100("a100-1"),
		a100("a100-2"),
		a100("a100-3"),
		a100("a100-4"),
		node("h100-1", simnode.Cards("h100-1", 8, "nvidia", "NVIDIA-H100-80GB-HBM3", 81559)),
		node("t4-1", simnode.Cards("t4-1", 4, "nvidia", "Tesla-T4", 15360)),
		node("ascend-1", simnode.Cards("ascend-1", 8, "ascend", "910B3", 65536)),
		node("ascend-2", simnode.Cards("ascend-2", 8, "ascend", "910B3", 65536)),
		node("ascend-3", simnode.Cards("ascend-3", 8, "ascend", "910B3", 65536)),
		node("hygon-1", simnode.Cards("hygon-1", 4, "hygon", "K100-AI", 65520)),
		node("metax-1", simnode.Cards("metax-1", 8, "metax", "MXC500", 65536)),
		node("musa-1", simnode.Cards("musa-1", 8, "musa", "MTT-S4000", 49152)),
		node(mixed, simnode.Cards(mixed, 2, "cambricon", "MLU590", 81920), second),
		node("kunlun-1", simnode.Cards("kunlun-1", 8, "kunlun", "P800", 98304)),
		node("l20-1", simnode.Cards("l20-1", 1, "nvidia", "NVIDIA-L20", 49140)), // for the tenants
		node("a30-1", simnode.Cards("a30-1", 2, "nvidia", "NVIDIA-A30", 24576)), // for who is ended for another
		node("a16-1", simnode.Cards("a16-1", 2, "nvidia", "NVIDIA-A16", 15356)), // for who sleeps at night
		{Name: "plugin-1", Plain: &simnode.Plain{Count: 4, Product: "NVIDIA-A10", MemoryMiB: 23028}},
	}
}

func cardCount() (n int) {
	for _, spec := range inventory() {
		n += len(spec.Cards)
		if spec.Plain != nil {
			n += spec.Plain.Count
		}
	}
	return n
}

// vendors lists those whose cards are there, in the order of appearance.
func vendors() string {
	var all []string
	for _, spec := range inventory() {
		for _, card := range spec.Cards {
			if !slices.Contains(all, card.Vendor) {
				all = append(all, card.Vendor)
			}
		}
	}
	return strings.Join(all, ", ")
}
