package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// A large cluster: each card has one pod.
const (
	manyNodes = 5000
	cardsEach = 8
)

func cardOf(node, card int) gpu.CardID { return gpu.CardID(fmt.Sprintf("GPU-%05d-%d", node, card)) }

func largeNode(i int) *corev1.Node {
	var cards []string
	for j := range cardsEach {
		cards = append(cards, fmt.Sprintf(`{"uuid":%q,"index":%d,"vendor":"nvidia","model":"NVIDIA-A100-SXM4-80GB","memoryMiB":81920,"cores":100,"numa":%d,"pciBusID":"0000:%02x:00.0","healthy":true,"mode":"slice","maxSlices":10,"isolation":"soft"}`,
			cardOf(i, j), j, j/4, j))
	}
	node := richNode(nodeOf(i), `{"version":1,"cards":[`+strings.Join(cards, ",")+`]}`)
	for j := range 40 {
		node.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-%d", j)] = "true"
	}
	return node
}

func nodeOf(i int) string { return fmt.Sprintf("gpu-%05d", i) }

func largePod(b testing.TB, node, card int) *corev1.Pod {
	name := fmt.Sprintf("train-%05d-%d", node, card)
	pod := richPod(b, name, cardOf(node, card), card)
	p := whole(name, cardOf(node, card), card)
	p.Node = gpu.NodeID(nodeOf(node))
	annotations, err := codec.Annotations(p, start(), 0)
	if err != nil {
		b.Fatal(err)
	}
	pod.Annotations, pod.Spec.NodeName = annotations, nodeOf(node)
	return pod
}

// large is the books of such a cluster, and what the informers keep beside them.
func large(b *testing.B, s *shelf) (nodes, pods cache.Indexer) {
	b.Helper()
	transform := cache.WithTransformer(newSlimmer().slim)
	nodes = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}, transform)
	pods = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, transform)
	for i := range manyNodes {
		node := &corev1.Node{}
		received(b, largeNode(i), node)
		_ = nodes.Add(node)
		s.NodeSeen(node)
		for j := range cardsEach {
			pod := &corev1.Pod{}
			received(b, largePod(b, i, j), pod)
			_ = pods.Add(pod)
			s.PodSeen(pod)
		}
	}
	return nodes, pods
}

// received makes into what comes over the wire: strings of its own.
func received(b *testing.B, object interface{ Marshal() ([]byte, error) }, into interface{ Unmarshal([]byte) error }) {
	b.Helper()
	text, err := object.Marshal()
	if err == nil {
		err = into.Unmarshal(text)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLargeCluster is what a cluster of 5,000 nodes and 40,000 pods keeps in
// memory. As Go collects when the heap has doubled, at most twice that is resident.
func BenchmarkLargeCluster(b *testing.B) {
	for b.Loop() {
		before := heap()
		s := newShelf()
		nodes, pods := large(b, s)
		kept := heap() - before
		b.ReportMetric(float64(kept)/(1<<20), "MiB")
		runtime.KeepAlive(nodes)
		runtime.KeepAlive(pods)
		runtime.KeepAlive(s.Ledger)
	}
}

// BenchmarkEvents is what one event costs in such a cluster, once it is decoded:
// transformed, compared, and told.
func BenchmarkEvents(b *testing.B) {
	s := newShelf()
	large(b, s)
	transform := newSlimmer()
	node, pod := largeNode(7), largePod(b, 7, 3)
	follow := map[string]func(i int){}
	nodes := func(name string, change func(*corev1.Node, int)) {
		was := node.DeepCopy()
		_, _ = transform.slim(was)
		follow[name] = func(i int) {
			is := *node // the transform edits nothing that is in it
			change(&is, i)
			_, _ = transform.slim(&is)
			s.NodeChanged(was, &is)
			was = &is
		}
	}
	pods := func(name string, change func(*corev1.Pod, int)) {
		was := pod.DeepCopy()
		_, _ = transform.slim(was)
		follow[name] = func(i int) {
			is := *pod
			change(&is, i)
			_, _ = transform.slim(&is)
			s.PodChanged(was, &is)
			was = &is
		}
	}
	nodes("node-heartbeat", func(n *corev1.Node, i int) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(start().Add(time.Duration(i)))}}
	})
	nodes("node-cordoned", func(n *corev1.Node, i int) { n.Spec.Unschedulable = i%2 == 0 })
	pods("pod-status", func(p *corev1.Pod, i int) { p.Status.PodIP = fmt.Sprint(i) })
	pods("pod-resized", func(p *corev1.Pod, i int) {
		p.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+i%2), resource.DecimalSI)}
		p.Status.Resources = &corev1.ResourceRequirements{Requests: p.Status.AllocatedResources}
	})
	for _, name := range []string{"node-heartbeat", "node-cordoned", "pod-status", "pod-resized"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				follow[name](i)
			}
		})
	}
}
