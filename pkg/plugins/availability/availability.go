// Package availability is the plugin `availability`: nodes that cannot run
// anything new are refused.
//
// It refuses with NodeUnavailable a node that is not ready or is cordoned. It has
// no arguments and cannot be disabled.
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

// Filter refuses nodes that cannot run anything new.
func (Plugin) Filter(_ *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	if n.Node.Unavailable {
		return pipeline.Verdict{Reason: gpu.NodeUnavailable}
	}
	return pipeline.Verdict{}
}
