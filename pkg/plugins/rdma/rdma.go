// Package rdma is the plugin `rdma`: nodes with remote direct memory access are for
// the pods that can use it, which are those that ask for it, train, or belong to a
// group.
//
// To these it rates a node 70 that says it has RDMA, with a tenth of its speed in
// Gbps on top, 30 at most; 40 one that says it has none; and 10 more where members
// of the pod's group are already. A node that says nothing is 50. For other pods it
// does not count.
//
// It refuses with RDMAUnsupported, to a pod that requires RDMA, a node that says it
// has none; if its argument strict is true also one that says nothing. It does so
// where its score is switched off, too: a hard wish stays one.
package rdma

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "rdma"

// Args is the plugin's part of the policy.
type Args struct {
	// Strict refuses nodes that do not say whether they have RDMA to pods that
	// require it.
	Strict bool `json:"strict"`
}

// Plugin implements pipeline.Filter and pipeline.Score.
type Plugin struct{ Args Args }

var (
	_ pipeline.Filter    = Plugin{}
	_ pipeline.Score     = Plugin{}
	_ pipeline.Concerned = Plugin{}
)

// New reads the plugin's arguments.
func New(args []byte) (Plugin, error) {
	var p Plugin
	err := pipeline.ReadArgs(args, &p.Args)
	return p, err
}

// Name returns "rdma".
func (Plugin) Name() string { return Name }

// Filter refuses to those who require RDMA the nodes that have none.
func (p Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	node := &n.Node.RDMA
	if c.Request.RDMA != gpu.Required || node.Able || !node.Stated && !p.Args.Strict {
		return pipeline.Verdict{}
	}
	return pipeline.Verdict{Reason: gpu.RDMAUnsupported}
}

const (
	able     = 70
	unable   = 40
	fastest  = 30 // at most for the speed
	withPeer = 10
)

// Score is 40 to 100, which clamping sees to.
func (p Plugin) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	if !n.RDMA.Stated || !p.Concerns(c.Request) {
		return pipeline.Neutral
	}
	score := float64(unable)
	if n.RDMA.Able {
		score = able + min(fastest, float64(n.RDMA.Gbps)/10)
	}
	if c.Peers.On(n.ID) {
		score += withPeer
	}
	return score
}

// Concerns reports whether the pod can make use of RDMA.
func (Plugin) Concerns(r *gpu.Request) bool {
	return r.RDMA != "" || r.Type == gpu.Training || r.Group != ""
}
