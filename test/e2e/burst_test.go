package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// TestBurstFillsTheCluster throws 300 mixed pods of two tenants at 20 unequal
// nodes with too few cards for them. In the end nothing is oversold, nobody
// waits who would fit, and who waits knows why. Room that is given back is used.
func TestBurstFillsTheCluster(t *testing.T) {
	s := begin(t, defaults)
	other := s.ns + "-other"
	s.must("namespace", s.Namespace(s.ctx, other))
	s.add(unequalNodes()...)
	burst := slices.Concat(
		many(50, s.ns, "whole", nil, amount{wholeCards, 1}),
		many(20, other, "whole", nil, amount{wholeCards, 1}),
		many(15, s.ns, "pair", nil, amount{wholeCards, 2}),
		many(10, other, "four", map[string]string{modelKey: "A100"}, amount{wholeCards, 4}),
		many(55, s.ns, "slice", nil, amount{sliceMemory, 20000}),
		many(40, other, "slice", nil, amount{sliceMemory, 12000}, amount{sliceCores, 40}),
		many(50, s.ns, "vendor", nil, amount{vendorCards, 1}, amount{vendorMemory, 7000}, amount{vendorCores, 30}),
		many(40, other, "vendor", nil, amount{vendorCards, 1}),
		many(20, s.ns, "large", nil, amount{sliceMemory, 55000}),
	)
	if len(burst) != 300 {
		t.Fatalf("the burst has %d pods", len(burst))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("order by seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(burst), func(i, j int) { burst[i], burst[j] = burst[j], burst[i] })
	s.create(burst...)
	waiting := s.settles()
	s.verify()
	t.Logf("%d of %d pods run", len(burst)-len(waiting), len(burst))
	if len(waiting) == 0 {
		t.Fatal("the cluster was to be too small")
	}
	s.toldReasons(waiting)

	for i, p := range s.pods() {
		if p.Spec.NodeName != "" && i%4 == 0 {
			s.must("delete", s.Client.CoreV1().Pods(p.Namespace).Delete(s.ctx, p.Name, noOptions))
		}
	}
	s.eventually("a waiting pod to run", func() error {
		for _, p := range s.pods() {
			if p.Spec.NodeName != "" && slices.ContainsFunc(waiting, func(w corev1.Pod) bool { return w.UID == p.UID }) {
				return nil
			}
		}
		return fmt.Errorf("none of %d does", len(waiting))
	})
	s.settles()
	s.verify()
}

// unequalNodes are 20 nodes with 88 cards.
func unequalNodes() []simnode.Spec {
	var specs []simnode.Spec
	add := func(n int, kind string, cards int, vendor, model string, memory int64) {
		for i := range n {
			name := fmt.Sprintf("burst-%s-%d", kind, i)
			specs = append(specs, simnode.Spec{Name: name, Cards: simnode.Cards(name, cards, vendor, model, memory)})
		}
	}
	add(5, "a100", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
	add(4, "t4", 2, "nvidia", "Tesla-T4", 15360)
	add(3, "ascend", 8, "ascend", "910B3", 65536)
	add(4, "musa", 2, "musa", "MTT-S4000", 49152)
	add(2, "mlu", 1, "cambricon", "MLU370-X8", 49152)
	for i := range 2 {
		specs = append(specs, simnode.Spec{
			Name: fmt.Sprintf("burst-plain-%d", i), CPU: "32", Memory: "128Gi",
			Plain: &simnode.Plain{Count: 3, Product: "Tesla-V100-SXM2-32GB", MemoryMiB: 32768},
		})
	}
	return specs
}

// settles waits until no pod waits that would fit somewhere, as an exhaustive
// search sees it, and returns those that wait.
func (s *scene) settles() []corev1.Pod {
	s.Helper()
	var waiting []corev1.Pod
	s.eventually("all pods to run that fit", func() error {
		nodes, pods := s.nodeList(), s.pods()
		waiting = nil
		tried := map[string]bool{} // pods of one kind differ in their numbers only
		for i := range pods {
			p := &pods[i]
			if p.Spec.NodeName != "" {
				continue
			}
			waiting = append(waiting, *p)
			kind := fmt.Sprint(p.Namespace, p.Annotations, p.Spec.Containers[0].Resources.Limits)
			if tried[kind] {
				continue
			}
			tried[kind] = true
			if room := oracle.Room(nodes, pods, p); len(room) > 0 {
				return fmt.Errorf("%s/%s would fit on %v", p.Namespace, p.Name, room)
			}
		}
		return nil
	})
	return waiting
}
