package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/controllers/rebuild"
	"heteroflow.io/heteroflow/pkg/controllers/runtime"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// rebuilder is what replaces members of services on nodes that are lost; nil where the
// policy leaves that to Kubernetes.
func (p *program) rebuilder(cfg config, c clients, counts *metrics.Metrics) *rebuild.Controller {
	rules, enabled := cfg.settings.Rebuild()
	if !enabled {
		return nil
	}
	return &rebuild.Controller{
		PodLister: p.cluster.Pods(), NodeLister: p.cluster.Nodes(), Groups: p.cluster.TaskGroups(),
		Pods: kube.PodAPI{Client: c.deeds}, Nodes: kube.NodeAPI{Client: c.deeds},
		Rules: rebuild.Rules{Grace: rules.Grace, AtOnce: rules.AtOnce},
		Tell:  p.events.Tell, Meter: counts, Now: time.Now,
	}
}

// limiter is what ends pods that have run for as long as they may.
func (p *program) limiter(cfg config, c clients, counts *metrics.Metrics) *runtime.Controller {
	limit, enforced := cfg.settings.TaskTimeout()
	return &runtime.Controller{
		PodLister: p.cluster.Pods(),
		Pods:      kube.PodAPI{Client: c.deeds}, Jobs: kube.JobAPI{Client: c.deeds},
		Max: codec.MaxRuntime, Default: limit, Enforced: enforced,
		Inference: p.serves,
		Ours: func(pod *corev1.Pod) bool {
			h, held := p.books.Ledger.Hold(gpu.PodID(pod.UID))
			return held && len(h.Grants) > 0 // of who was bound by others it is not known which they are
		},
		Tell: p.events.Tell, Meter: counts, Now: time.Now,
	}
}

// serves reports whether the pod is a service's: it says so, or is a member of one.
func (p *program) serves(pod *corev1.Pod) bool {
	if codec.Inference(pod) {
		return true
	}
	h, _ := p.books.Ledger.Hold(gpu.PodID(pod.UID))
	_, known := p.books.Ledger.Snapshot().Service(h.Group)
	return known
}
