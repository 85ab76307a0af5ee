package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// everything is the world of n nodes that tell all that a plugin can go by: links,
// places, RDMA and readings, with members of the asking pod's group here and there.
func everything(b *testing.B, n int) *ledger.Ledger {
	b.Helper()
	books := linked(b, n, machines["cubemesh"])
	i := 0
	for id, node := range books.Snapshot().Nodes() {
		f := node.Facts
		f.Location = topology.Location{Region: "r", Zone: fmt.Sprint("z", i%3), Rack: fmt.Sprint("rack", i/8), Switch: fmt.Sprint("leaf", i/16)}
		f.RDMA = ledger.RDMA{Stated: true, Able: i%2 == 0, Gbps: 100}
		books.SetNode(f)
		books.SetReadings(id, measured(f.Cards, int64(i)))
		if i%100 == 1 {
			member := holder(string(id), 1, 9, few)
			member.Group = "bench/ai.training/job-id=job"
			books.Confirm(member)
		}
		i++
	}
	return books
}

// measured is what telemetry would say of a node: below all thresholds, and different
// from node to node.
func measured(cards []gpu.Card, i int64) ledger.Readings {
	known := gpu.Measured
	r := ledger.Readings{CPU: known(10 + i%50), Memory: known(20 + i%40), Cards: map[gpu.CardID]gpu.Reading{}}
	for k, c := range cards {
		r.Cards[c.ID] = gpu.Reading{
			MemoryUsed: known(0), Utilisation: known(i % 90), Temperature: known(40 + (i+int64(k))%38),
			Power: known(100 + i%200), PowerLimit: known(400),
		}
	}
	return r
}

// BenchmarkFilterHTTPAllPlugins is the decision in a /filter of 1,213 nodes, above what
// decoding and encoding take: warm, as for a pod like one that was asked about before,
// and cold, after something has changed on every node. Wanted: at most 2 ms warm.
func BenchmarkFilterHTTPAllPlugins(b *testing.B) {
	const nodes = 1213
	for kind, limits := range map[string]corev1.ResourceList{
		"slice": pods["slice"], "whole8": pods["whole8"], "whole1": {"heteroflow.io/gpu": resource.MustParse("1")},
	} {
		for _, group := range []string{"", "job"} {
			books := everything(b, nodes)
			pod := podOf(kind)
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits}
			pod.Annotations = map[string]string{"heteroflow.io/zone": "z1", "heteroflow.io/rdma": "preferred"}
			if group != "" {
				pod.Labels = map[string]string{"ai.training/job-id": group}
			}
			names := allNames(nodes)
			body := encoded(b, extender.ExtenderArgs{Pod: pod, NodeNames: &names})
			for name, between := range map[string]func(int){"warm": func(int) {}, "cold": func(i int) { stir(books, int64(i)) }} {
				b.Run(fmt.Sprintf("pod=%s/group=%t/%s", kind, group != "", name), func(b *testing.B) {
					decision(b, extenderOf(books), body, between)
				})
			}
		}
	}
}

// stir changes a figure of each node that moves no pod.
func stir(books *ledger.Ledger, i int64) {
	for id, node := range books.Snapshot().Nodes() {
		books.SetReadings(id, measured(node.Facts.Cards, i))
	}
}

// decision reports the processor time of an answer without that of its decoding and
// encoding, in turns with it; before each, between is done at nobody's cost.
func decision(b *testing.B, filter http.Handler, body []byte, between func(i int)) {
	b.Helper()
	codec := codecOnly(ask(b, filter, body))
	var spent [2]time.Duration
	const each = 10 // the clock of processes is coarse
	for n := range b.N {
		for k := range each {
			between(n*each + k)
			for i, h := range []http.Handler{filter, codec} {
				before := processor(b)
				answer(b, h, "/filter", body)
				spent[i] += processor(b) - before
			}
		}
	}
	answers := float64(each * b.N)
	b.ReportMetric(float64(spent[0])/answers, "filter-cpu-ns/answer")
	b.ReportMetric(float64(spent[1])/answers, "codec-cpu-ns/answer")
	b.ReportMetric(float64(spent[0]-spent[1])/answers, "decision-cpu-ns/answer")
}
