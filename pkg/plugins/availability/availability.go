// Package availability is the plugin `availability`: nodes that cannot run
// anything new are refused, and all nodes where nobody can vouch for a hard wish.
//
// It refuses with NodeUnavailable a node that is not ready or is cordoned. Any
// other node it refuses to a pod with a hard wish that no node can be shown to
// meet, with the reason of that wish: what is unknown does not count as met. It
// has no arguments and cannot be disabled.
// Taints are kube-scheduler's business and are not looked at here.
package availability

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "availability"

// Plugin implements pipeline.Filter.
type Plugin struct{}

var _ pipeline.Filter = Plugin{}

// Name returns "availability".
func (Plugin) Name() string { return Name }

// Filter refuses nodes that cannot run anything new, or not this.
func (Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	if n.Node.Unavailable {
		return pipeline.Verdict{Reason: gpu.NodeUnavailable}
	}
	return pipeline.Verdict{Reason: c.Request.Unmet}
}
