package simulate

import (
	"fmt"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// One namespace has all pods: the trace has no tenants.
const namespace = "trace"

// facts tells a node of the trace in the ledger's words.
func facts(n *Node, rank int) ledger.Facts {
	id := nodeID(rank)
	f := ledger.Facts{ID: id, CPU: n.CPU, Memory: bytes(n.Memory), Cards: make([]gpu.Card, n.Cards)}
	for i := range f.Cards {
		f.Cards[i] = gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("%s-%d", id, i)), Index: i, Vendor: gpu.Nvidia, Model: n.Model,
			Memory: wholeCard, Usable: wholeCard, Cores: gpu.MostCores, UsableCores: gpu.MostCores, MaxSlices: wholeCard,
			NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
		}
	}
	return f
}

// nodeID names a node so that names come in the order of ranks.
func nodeID(rank int) gpu.NodeID { return gpu.NodeID(fmt.Sprintf("node-%06d", rank)) }

// request tells a shape in the pipeline's words. Who asks is left open.
func request(s Shape) gpu.Request {
	r := gpu.Request{
		Namespace: namespace, Tenant: namespace,
		CPU: s.CPU, Memory: bytes(s.Memory), Models: s.models(), NUMA: gpu.NoNUMA,
	}
	switch {
	case s.Cards == 0:
	case s.Milli == wholeCard:
		r.Asks = []gpu.Ask{{Container: "main", Count: s.Cards, Whole: true}}
	default:
		r.Asks = []gpu.Ask{{Container: "main", Count: s.Cards, Memory: gpu.MiB(s.Milli)}}
	}
	return r
}

func bytes(m gpu.MiB) gpu.Bytes { return gpu.Bytes(m) << 20 }

// fits is kube-scheduler's part: CPU and main memory.
func fits(r *gpu.Request, n *ledger.Node) bool {
	return n.UsedCPU+r.CPU <= n.CPU && n.UsedMemory+r.Memory <= n.Memory
}
