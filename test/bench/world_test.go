package bench

import (
	"fmt"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// load is what runs on the cards that are in use.
type load struct {
	pods   int // a card
	memory gpu.MiB
	cores  gpu.Cores
	slots  int // a card takes
}

// The loads: two pods a card, and ten times as many that take the same together.
var (
	few  = load{pods: 2, memory: 10000, cores: 30, slots: 10}
	many = load{pods: 20, memory: 1000, cores: 3, slots: 32}
)

const cardsPerNode = 8

// world is n nodes of eight cards: every fifth is empty, on the others every
// other card carries the load.
func world(n int, l load) *ledger.Ledger {
	books := ledger.New(tenancy.Separate{})
	for i := range n {
		id := nodeName(i)
		books.SetNode(ledger.Facts{ID: gpu.NodeID(id), Cards: cards(id, l.slots), CPU: 128000, Memory: 1 << 40})
		if i%5 == 0 {
			continue
		}
		for card := 0; card < cardsPerNode; card += 2 {
			for k := range l.pods {
				books.Confirm(holder(id, card, k, l))
			}
		}
	}
	return books
}

func nodeName(i int) string { return fmt.Sprintf("gpu-%05d", i) }

func cardName(node string, i int) gpu.CardID { return gpu.CardID(fmt.Sprintf("GPU-%s-%d", node, i)) }

func cards(node string, slots int) []gpu.Card {
	all := make([]gpu.Card, cardsPerNode)
	for i := range all {
		all[i] = gpu.Card{
			ID: cardName(node, i), Index: i, Vendor: gpu.Nvidia, Model: "NVIDIA-A100-SXM4-80GB",
			Memory: 81920, Usable: 73728, Cores: 100, UsableCores: 100, MaxSlices: slots,
			NUMA: i / 4, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
		}
	}
	return all
}

func holder(node string, card, k int, l load) gpu.Placement {
	name := fmt.Sprintf("%s-%d-%d", node, card, k)
	return gpu.Placement{
		Pod: gpu.PodID(name), Namespace: "bench", Name: name, Node: gpu.NodeID(node), Tenant: "bench", CPU: 100, Memory: 1 << 20,
		Grants: []gpu.Grant{{Container: "main", Shares: []gpu.Share{{
			Card: cardName(node, card), Vendor: gpu.Nvidia, Index: card, Memory: l.memory, Cores: l.cores, Isolation: gpu.IsolationSoft,
		}}}},
	}
}
