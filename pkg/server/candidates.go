package server

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// candidates are the nodes that kube-scheduler asks about, in one of its two
// forms: names alone (nodeCacheCapable: true), or whole nodes. The answer has
// the form of the question.
type candidates struct {
	ids   []gpu.NodeID
	nodes []corev1.Node // in step with ids; nil in the form of names
}

// question reads what /filter and /score are asked.
func question(w http.ResponseWriter, r *http.Request) (*corev1.Pod, candidates, error) {
	var args extender.ExtenderArgs
	if err := decode(w, r, &args); err != nil {
		return nil, candidates{}, err
	}
	nodes, err := candidatesOf(&args)
	return args.Pod, nodes, err
}

func candidatesOf(args *extender.ExtenderArgs) (candidates, error) {
	switch {
	case args.Pod == nil:
		return candidates{}, bad("Pod: is missing or null")
	case args.NodeNames != nil:
		return byName(*args.NodeNames), nil
	case args.Nodes != nil:
		return byObject(args.Nodes.Items), nil
	}
	return candidates{}, bad("Nodes, NodeNames: both are missing or null")
}

func byName(names []string) candidates {
	c := candidates{ids: make([]gpu.NodeID, len(names))}
	for i, name := range names {
		c.ids[i] = gpu.NodeID(name)
	}
	return c
}

func byObject(nodes []corev1.Node) candidates {
	c := candidates{ids: make([]gpu.NodeID, len(nodes)), nodes: nodes}
	if c.nodes == nil {
		c.nodes = []corev1.Node{}
	}
	for i := range nodes {
		c.ids[i] = gpu.NodeID(nodes[i].Name)
	}
	return c
}

// answer returns those that keep accepts, some most of them, in the order asked. Going through the
// question, not through the decision, means that no name can get in that was not
// asked about: one such name would fail kube-scheduler's whole cycle.
func (c *candidates) answer(most int, keep func(gpu.NodeID) bool) extender.ExtenderFilterResult {
	names := make([]string, 0, most)
	nodes := make([]corev1.Node, 0, min(most, len(c.nodes)))
	for i, id := range c.ids {
		switch {
		case !keep(id):
		case c.nodes != nil:
			nodes = append(nodes, c.nodes[i])
		default:
			names = append(names, string(id))
		}
	}
	if c.nodes != nil {
		return extender.ExtenderFilterResult{Nodes: &corev1.NodeList{Items: nodes}}
	}
	return extender.ExtenderFilterResult{NodeNames: &names}
}

// all keeps every node, none keeps no node.
func all(gpu.NodeID) bool  { return true }
func none(gpu.NodeID) bool { return false }

// failed gives all these nodes the same text.
func failed(ids []gpu.NodeID, text gpu.Reason) extender.FailedNodesMap {
	m := make(extender.FailedNodesMap, len(ids))
	for _, id := range ids {
		m[string(id)] = string(text)
	}
	return m
}
