package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/test/simnode"
)

// TestFewNodesOfMany: of 2,000 nodes, of which kube-scheduler looks at a third at
// a time, five have what 50 pods ask for, and they are neighbours: most looks
// miss all of them.
func TestFewNodesOfMany(t *testing.T) {
	const nodes, roomy, cards, pods = 2000, 5, 12, 50
	s := begin(t, defaults)
	s.add(otherNodes(nodes - roomy)...)
	for i := range roomy {
		s.add(ofNvidia(fmt.Sprintf("roomy-%d", i), cards))
	}
	asks := map[string]string{typeKey: "nvidia"}
	calls, nominations := s.filterCalls(), s.nominations()
	s.create(many(pods, s.ns, "p", asks, amount{wholeCards, 1})...)
	created := time.Now()
	s.eventually("all pods", func() error { return s.bound(pods) })
	took := time.Since(created)
	t.Logf("%d pods on %d of %d nodes %.2f s after the last was created, by %d filter calls and %d nominations",
		pods, roomy, nodes, took.Seconds(), s.filterCalls()-calls, s.nominations()-nominations)
	if took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	s.verify()
}

// TestNominationsOfNodes has just more nodes than kube-scheduler looks at, and
// one with room. Whoever cannot use it for a reason of kube-scheduler's own is
// not pointed to it; where that reason cannot be told from outside, the
// nomination is gone afterwards.
func TestNominationsOfNodes(t *testing.T) {
	s := begin(t, defaults)
	roomy := ofNvidia("roomy", 4)
	roomy.Taints = []corev1.Taint{{Key: "team", Value: "red", Effect: corev1.TaintEffectNoSchedule}}
	s.add(otherNodes(120)...)
	s.add(roomy)
	red := corev1.Toleration{Key: "team", Value: "red", Effect: corev1.TaintEffectNoSchedule}
	want := func(name string) *corev1.Pod {
		p := with(podFor(name, amount{wholeCards, 1}), typeKey, "nvidia")
		p.Spec.Tolerations = []corev1.Toleration{red}
		return p
	}
	s.part("not what is tainted or not selected", func(s *scene) {
		tainted, selects := want("tainted"), want("selects")
		tainted.Spec.Tolerations = nil
		selects.Spec.NodeSelector = map[string]string{"zone": "elsewhere"}
		selects.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		s.create(tainted, selects)
		s.refusedFor("tainted", "DeviceTypeMismatch")
		before := s.nominations()
		s.meanwhile(4*time.Second, "pods that cannot use the node", func() error { return errors.Join(s.waits("tainted"), s.waits("selects")) })
		if n := s.nominations() - before; n != 0 {
			s.Errorf("%d nominations", n)
		}
	})
	s.part("one in vain is gone", func(s *scene) {
		before := s.nominations()
		there := podOf("there", container("main"))
		there.Labels = map[string]string{"app": "lonely"}
		there.Spec.Tolerations = []corev1.Toleration{red}
		there.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "roomy"}
		s.create(there)
		s.runs("there")
		apart := want("apart")
		apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "lonely"}}}}}}
		s.create(apart)
		s.eventually("a nomination", func() error {
			if s.nominations() == before {
				return errors.New("there is none")
			}
			return nil
		})
		s.meanwhile(4*time.Second, "one state of the node", func() error {
			if n := s.nominations() - before; n > 2 { // the first may have met with an attempt
				return fmt.Errorf("%d nominations", n)
			}
			return s.waits("apart")
		})
		s.isNotNominated("apart")
		s.remove("there", true)
		s.runs("apart")
	})
	s.part("a cordoned one is passed over", func(s *scene) {
		s.must("cordon", s.nodes.Cordon(s.ctx, "roomy", true))
		s.create(want("late"))
		s.refusedFor("late", "DeviceTypeMismatch")
		s.nominate("late", "roomy")
		s.isNotNominated("late")
		s.must("uncordon", s.nodes.Cordon(s.ctx, "roomy", false))
		s.runs("late")
	})
	s.verify()
}

// TestNominationsAsTheAPIServerTakesThem: it refuses one of a pod that has been
// bound meanwhile, which is no fault, and takes back only what is there.
func TestNominationsAsTheAPIServerTakesThem(t *testing.T) {
	s := begin(t, defaults)
	s.add(ofNvidia("taken", 1))
	s.create(podFor("bound", amount{wholeCards, 1}))
	s.runs("bound")
	waits := podFor("waits", amount{wholeCards, 1})
	waits.Spec.SchedulerName = "nobody"
	s.create(waits)
	seen := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	pods := &kube.Pods{Client: s.Client, Lister: corelisters.NewPodLister(seen), Settings: policy.Default(), Now: time.Now, Touched: func() {}, Nominated: func() {}}
	at := func(name, node string) engine.Target {
		return engine.Target{Pod: gpu.PodID(s.pod(name).UID), Namespace: s.ns, Name: name, Node: gpu.NodeID(node)}
	}

	got, err := pods.Nominate(s.ctx, at("bound", "elsewhere"), "room")
	if err != nil || got.Node != "taken" {
		t.Errorf("nominate for a bound pod: %+v, %v", got, err)
	}
	_, err = pods.Nominate(s.ctx, at("waits", "taken"), "room")
	s.must("nominate", err)
	if node := s.pod("waits").Status.NominatedNodeName; node != "taken" {
		t.Errorf("nominated %q", node)
	}
	s.must("see", seen.Add(s.pod("waits")))
	s.nominate("waits", "another") // which has not been seen yet
	s.check("withdraw what has changed", pods.Withdraw(s.ctx, at("waits", "taken")))
	if node := s.pod("waits").Status.NominatedNodeName; node != "another" {
		t.Errorf("another's nomination is %q now", node)
	}
	s.must("see", seen.Update(s.pod("waits")))
	s.check("withdraw", pods.Withdraw(s.ctx, at("waits", "another")))
	if node := s.pod("waits").Status.NominatedNodeName; node != "" {
		t.Errorf("nomination of %s stands", node)
	}
}

// nominate points a pod to a node as anybody may.
func (s *scene) nominate(pod, node string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, node)
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must("nominate", err)
}

// isNotNominated waits until the pod waits without a nomination, and sees that it
// stays so.
func (s *scene) isNotNominated(pod string) {
	s.Helper()
	check := func() error {
		if node := s.pod(pod).Status.NominatedNodeName; node != "" {
			return fmt.Errorf("%s is nominated for %s", node, pod)
		}
		return s.waits(pod)
	}
	s.eventually("the nomination to end", check)
	s.meanwhile(2*time.Second, "a pod without a nomination", check)
}

// otherNodes are n nodes of another vendor.
func otherNodes(n int) []simnode.Spec {
	specs := make([]simnode.Spec, n)
	for i := range specs {
		name := fmt.Sprintf("other-%04d", i)
		specs[i] = simnode.Spec{Name: name, Cards: simnode.Cards(name, 1, "ascend", "910B3", 65536)}
	}
	return specs
}

func ofNvidia(name string, cards int) simnode.Spec {
	return simnode.Spec{Name: name, Cards: simnode.Cards(name, cards, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)}
}

// nominations asks the extender how many nodes it has nominated.
func (s *scene) nominations() int {
	s.Helper()
	response, err := http.Get(s.MetricsURL())
	s.must("metrics", err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must("metrics", err)
	_, rest, found := strings.Cut(string(text), "\nheteroflow_pods_nominated_total ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if !found || err != nil {
		s.Fatalf("no count of nominations: %v", err)
	}
	return n
}
