package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// dump is both books for people: what the ledger holds, card by card, and where
// the API server's pods differed when they were last compared.
type dump struct {
	Nodes       []dumpedNode `json:"nodes"`
	Differences []string     `json:"differences"`
}

type dumpedNode struct {
	Node      gpu.NodeID   `json:"node"`
	Dedicated string       `json:"dedicated"` // the label that keeps it for a tenant, or ""
	Cards     []dumpedCard `json:"cards"`
	Holds     []dumpedHold `json:"holds"`
}

type dumpedCard struct {
	UUID      gpu.CardID     `json:"uuid"`
	UsableMiB gpu.MiB        `json:"usableMiB"`
	Healthy   bool           `json:"healthy"`
	Cordoned  bool           `json:"cordoned"`
	Closed    bool           `json:"closed"`  // for a pod whose cards cannot be named
	Fenced    bool           `json:"fenced"`  // the books disagree about it
	Divided   bool           `json:"divided"` // two are on it that may not be together any more
	Holders   []dumpedHolder `json:"holders"`
}

type dumpedHolder struct {
	PodUID    gpu.PodID    `json:"podUID"`
	Tenant    gpu.TenantID `json:"tenant"` // "" shares with nobody
	MemoryMiB gpu.MiB      `json:"memoryMiB"`
	Cores     gpu.Cores    `json:"cores"`
	Exclusive bool         `json:"exclusive"`
}

type dumpedHold struct {
	PodUID gpu.PodID `json:"podUID"`
	Pod    string    `json:"pod"`
	State  string    `json:"state"`
}

func (s *Server) dump(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	d := dump{Nodes: []dumpedNode{}, Differences: append([]string{}, s.cfg.Differences()...)}
	for _, n := range s.cfg.Ledger().Nodes() {
		d.Nodes = append(d.Nodes, dumped(n))
	}
	reply(w, d)
}

func dumped(n *ledger.Node) dumpedNode {
	d := dumpedNode{Node: n.ID, Dedicated: n.Dedicated, Cards: []dumpedCard{}, Holds: []dumpedHold{}}
	for i := range n.Cards {
		c := &n.Cards[i]
		card := dumpedCard{c.ID, c.Usable, c.Healthy, c.Cordoned, c.Closed, c.Fenced, c.Divided, []dumpedHolder{}}
		for _, h := range c.Holders {
			card.Holders = append(card.Holders, dumpedHolder{h.Pod, h.Tenant, h.Use.Memory, h.Use.Cores, h.Use.Exclusive})
		}
		d.Cards = append(d.Cards, card)
	}
	for _, h := range n.Holds {
		if len(h.Grants)+len(h.Foreign) > 0 {
			d.Holds = append(d.Holds, dumpedHold{h.Pod, h.Namespace + "/" + h.Name, h.State.String()})
		}
	}
	return d
}
