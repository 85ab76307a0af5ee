package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	controller "heteroflow.io/heteroflow/pkg/controllers/preempt"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// preemption is what has pods ended for others.
func (p *program) preemption(cfg config, c clients, counts *metrics.Metrics) *controller.Controller {
	pods := p.finder(cfg, c, counts)
	pods.Client = c.deeds
	room := controller.Room{
		Ledger: p.books.Ledger.Snapshot, Trial: p.engine.Trial, Suits: pods.Takes,
		Request: func(pod *corev1.Pod) (gpu.Request, error) { return codec.Request(pod, cfg.settings) },
	}
	rules := cfg.settings.Preempt()
	rules.Bare = rules.Bare && cfg.preemptBare
	planner, volumes := &preempt.Planner{}, &kube.Volumes{Client: c.deeds, Now: time.Now}
	return &controller.Controller{
		PodLister: p.cluster.Pods(), Preemptions: p.cluster.Preemptions(),
		Pods:    kube.PodAPI{Client: c.deeds},
		Plans:   c.kinds.HeteroflowV1alpha1().Preemptions(),
		Jobs:    kube.JobAPI{Client: c.deeds},
		Ledger:  p.books.Ledger,
		Planner: controller.Planner{Plan: planner.Plan, Certify: preempt.Certify},
		Codec: controller.Codec{
			Bound: codec.Bound, Manifest: codec.Manifest, Allocation: codec.EncodeClaim, Claim: codec.DecodeClaim,
			Asking: func(pod *corev1.Pod) (preempt.Asker, bool) {
				return codec.Asking(pod, cfg.settings, volumes.Anywhere)
			},
		},
		Base: func() preempt.World {
			return preempt.World{
				Rules: rules, Trial: p.engine.Trial, Policy: p.engine, // which has one policy for as long as it lives
				Suits: func(a *preempt.Asker, node gpu.NodeID) bool {
					return pods.Suits(engine.Target{Pod: a.Pod, Namespace: a.Namespace, Name: a.Name, Node: node})
				},
			}
		},
		Nominate: pods.Nominate, Withdraw: pods.Withdraw, Resume: room.For,
		Tell: p.events.Tell, Meter: counts, Now: time.Now,
		Ended: func(phase v1alpha1.PreemptionPhase, took time.Duration) { counts.PreemptionEnded(outcome(phase), took) },
	}
}

// finder finds pods for who decides about them.
func (p *program) finder(cfg config, c clients, counts *metrics.Metrics) *kube.Pods {
	return &kube.Pods{Client: c.work, Lister: p.cluster.Pods(), Nodes: p.cluster.Nodes(), Settings: cfg.settings, Now: time.Now,
		Touched: counts.PodTouched, Nominated: counts.PodNominated}
}

// outcome is that of a preemption that has come to an end.
func outcome(of v1alpha1.PreemptionPhase) metrics.PreemptionOutcome {
	switch of {
	case v1alpha1.PreemptionBound:
		return metrics.PreemptionBound
	case v1alpha1.PreemptionExpired:
		return metrics.PreemptionExpired
	}
	return metrics.PreemptionRolledBack
}
