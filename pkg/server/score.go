package server

import (
	"net/http"

	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// score rates the nodes, for who asks for no card too: the processors it takes may be
// those that somebody with cards will need. kube-scheduler asks about such pods only
// where its configuration has them sent here, and has its answer at all times.
func (s *Server) score(w http.ResponseWriter, r *http.Request, t turn) {
	pod, nodes, err := question(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	request, err := s.cfg.Decode(pod)
	switch {
	case err != nil, t.not != "" && !request.AsksForCards():
		reply(w, indifferent(nodes.ids))
	case t.not != "":
		// The answer has no field for an error, and saying that all nodes are
		// alike would be one.
		http.Error(w, t.not, http.StatusServiceUnavailable)
	default:
		scored := s.cfg.Engine.Score(&request, nodes.ids)
		logScored(r.Context(), &request, scored)
		list := make(extender.HostPriorityList, len(scored))
		for i := range scored {
			list[i] = extender.HostPriority{Host: string(scored[i].Node), Score: scored[i].Score}
		}
		reply(w, list)
	}
}

// indifferent leaves the choice to kube-scheduler.
func indifferent(ids []gpu.NodeID) extender.HostPriorityList {
	list := make(extender.HostPriorityList, len(ids))
	for i, id := range ids {
		list[i].Host = string(id)
	}
	return list
}
