package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// BenchmarkFilterHTTPMixed is the decision in a /filter of 1,213 nodes, above what
// decoding and encoding take, where pods of so many kinds come in turn, and one node
// has changed between two of them.
func BenchmarkFilterHTTPMixed(b *testing.B) {
	const nodes = 1213
	for _, kinds := range []int{10, 100, 200, 400} {
		b.Run(fmt.Sprintf("kinds=%d", kinds), func(b *testing.B) {
			books := everything(b, nodes)
			filter := extenderOf(books)
			var questions [][]byte
			for i := range kinds {
				questions = append(questions, mixed(b, i, nodes))
				answer(b, filter, "/filter", questions[i])
			}
			codec := codecOnly(ask(b, filter, questions[0]))
			var spent [2]time.Duration
			answers := 0
			b.ResetTimer()
			for range b.N {
				for _, body := range questions {
					change(books, answers)
					answers++
					before := processor(b)
					answer(b, filter, "/filter", body)
					between := processor(b)
					answer(b, codec, "/filter", body)
					spent[0] += between - before
					spent[1] += processor(b) - between
				}
			}
			b.ReportMetric(float64(spent[0]-spent[1])/float64(answers), "decision-cpu-ns/answer")
		})
	}
}

// mixed asks about the ith kind of pod.
func mixed(b *testing.B, i, nodes int) []byte {
	b.Helper()
	pod := podOf("slice")
	limits := corev1.ResourceList{
		"nvidia.com/gpumem": *resource.NewQuantity(int64(1000+100*i), resource.DecimalSI), "nvidia.com/gpucores": resource.MustParse("10"),
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits}
	names := allNames(nodes)
	return encoded(b, extender.ExtenderArgs{Pod: pod, NodeNames: &names})
}

// change has somebody come to, or leave, a node.
func change(books *ledger.Ledger, i int) {
	id := nodeName(i * 7 % 1213)
	if p := holder(id, 1, 20, few); i/1213%2 == 0 {
		books.Confirm(p)
	} else {
		books.Release(gpu.PodID(p.Pod))
	}
}
