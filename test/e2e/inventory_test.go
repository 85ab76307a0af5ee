package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

const uuidKey = ours + "gpu-uuid-include"

// TestNodeWhoseCardsChange has a node lose the cards of one vendor while a pod
// runs on one of them, and get others of that vendor. What may still be in use
// is given to nobody.
func TestNodeWhoseCardsChange(t *testing.T) {
	s := begin(t, defaults)
	const node = "changes"
	others := simnode.Cards(node, 1, "cambricon", "MLU370-X8", 49152)
	first := simnode.Cards(node, 1, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
	s.add(simnode.Spec{Name: node, Cards: slices.Concat(first, others)})
	s.create(podFor("early", amount{vendorCards, 1}))
	s.runs("early")
	s.verify()

	s.must("lose the vendor", s.nodes.SetCards(s.ctx, node, others))
	s.create(podFor("between", amount{vendorCards, 1}))
	s.refusedFor("between", "DeviceTypeMismatch")
	s.create(podFor("beside", amount{"cambricon.com/vmlu", 1}))
	s.runs("beside")

	second := simnode.Cards(node+"-new", 2, "nvidia", "NVIDIA-H100-80GB", 81559)
	s.must("get other cards", s.nodes.SetCards(s.ctx, node, slices.Concat(second, others)))
	s.runs("between")
	s.create(podFor("late", amount{vendorCards, 1}))
	s.refusedFor("late", "InsufficientGPUCount") // of two cards one stands for the one that was lost
	s.remove("early", false)
	s.runs("late")
	s.verify()
}

// TestCardWhoseHealthChanges: who runs on a card that has fallen ill runs on, and
// nobody new comes until it is well.
func TestCardWhoseHealthChanges(t *testing.T) {
	s := begin(t, defaults)
	const node = "ill"
	cards := simnode.Cards(node, 2, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
	s.add(simnode.Spec{Name: node, Cards: cards})
	on := func(name string) *corev1.Pod {
		return with(podFor(name, amount{sliceMemory, 10000}), uuidKey, cards[0].UUID)
	}
	s.create(on("patient"))
	s.runs("patient")
	sick := slices.Clone(cards)
	sick[0].Healthy = false
	s.must("fall ill", s.nodes.SetCards(s.ctx, node, sick))
	s.create(on("visitor"), podFor("neighbour", amount{wholeCards, 1}))
	if got := cardsByContainer(t, s.runs("neighbour"))["main"]; !slices.Equal(got, []string{cards[1].UUID}) {
		t.Errorf("the neighbour has %v", got)
	}
	s.refusedFor("visitor", "DeviceUnhealthy")
	if p := s.pod("patient"); p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
		t.Errorf("the patient is %s", p.Status.Phase)
	}
	s.verify()
	s.must("get well", s.nodes.SetCards(s.ctx, node, cards))
	s.runs("visitor")
	s.verify()
}

// refusedFor waits until the pod has been refused with the code, and no other.
func (s *scene) refusedFor(pod, code string) {
	s.Helper()
	s.eventually("a refusal of "+pod, func() error {
		if got := codesIn(condition(s.pod(pod))); !slices.Equal(got, []string{code}) {
			return fmt.Errorf("its condition names %v: %q", got, s.told(s.pod(pod)))
		}
		return nil
	})
	s.check("a refusal of "+pod, s.waits(pod))
}

// got is what a container has of one card.
type got struct {
	Card   string
	Memory int64
	Cores  int64
	Whole  bool
}

// has lists what a pod of one container has.
func (s *scene) has(p *corev1.Pod) []got {
	s.Helper()
	var a struct {
		Containers []struct {
			Cards []struct {
				UUID             string
				MemoryMiB, Cores int64
				Exclusive        bool
			}
		}
	}
	s.must("allocation", json.Unmarshal([]byte(p.Annotations[allocationOf]), &a))
	var all []got
	for _, c := range a.Containers {
		for _, card := range c.Cards {
			all = append(all, got{card.UUID, card.MemoryMiB, card.Cores, card.Exclusive})
		}
	}
	return all
}

// TestCardsOfOtherPlugins places pods on nodes whose cards are known from what
// HAMi's device plugins register, in both encodings, and from what plugins
// without a register advertise. The sizes are those registered: nothing is kept
// back or scaled again. A card that does not say that it is healthy is not.
func TestCardsOfOtherPlugins(t *testing.T) {
	s := begin(t, defaults)
	s.add(
		simnode.Spec{Name: "plugins-json", Resources: map[corev1.ResourceName]int64{vendorCards: 30}, Annotations: map[string]string{
			"hami.io/node-nvidia-register": `[` +
				`{"id":"GPU-j0","count":10,"devmem":16376,"devcore":100,"type":"NVIDIA-NVIDIA RTX A4000","mode":"hami-core","health":true},` +
				`{"id":"GPU-j1","index":1,"count":10,"devmem":32752,"devcore":100,"type":"NVIDIA-NVIDIA RTX A5000","numa":1,"mode":"hami-core","health":true},` +
				`{"id":"GPU-j2","index":2,"count":10,"devmem":16376,"devcore":100,"type":"NVIDIA-NVIDIA RTX A4000","mode":"hami-core"}]`}},
		simnode.Spec{Name: "plugins-text", Resources: map[corev1.ResourceName]int64{"hygon.com/dcunum": 8}, Annotations: map[string]string{
			"hami.io/node-dcu-register": "DCU-t0,4,65520,100,DCU-K100_AI,0,true:DCU-t1,4,65520,100,DCU-K100_AI,1,false:"}},
		simnode.Spec{Name: "plugins-size", Resources: map[corev1.ResourceName]int64{
			"cambricon.com/mlu.smlu.vcore": 200, "cambricon.com/mlu.smlu.vmemory": 192}}, // two cards of 24 GiB
	)
	tests := []struct {
		pod  *corev1.Pod
		want got
	}{
		{podFor("all-of-the-memory", amount{vendorCards, 1}, amount{vendorMemory, 16376}), got{"GPU-j0", 16376, 0, false}},
		{with(podFor("half", amount{vendorCards, 1}, amount{"nvidia.com/gpumem-percentage", 50}, amount{vendorCores, 30}), modelKey, "A5000"), got{"GPU-j1", 16376, 30, false}},
		{podFor("dcu", amount{"hygon.com/dcunum", 1}, amount{"hygon.com/dcumem", 65520}, amount{"hygon.com/dcucores", 60}), got{"DCU-t0", 65520, 60, false}},
		{podFor("mlu", amount{"cambricon.com/vmlu", 1}, amount{"cambricon.com/mlu.smlu.vmemory", 96}, amount{"cambricon.com/mlu.smlu.vcore", 10}), got{"plugins-size-cambricon-0", 24576, 10, false}},
		{podFor("whole-mlu", amount{"cambricon.com/vmlu", 1}), got{"plugins-size-cambricon-1", 24576, 100, true}},
	}
	for _, tc := range tests {
		s.part(tc.pod.Name, func(s *scene) {
			s.create(tc.pod)
			if diff := cmp.Diff([]got{tc.want}, s.has(s.runs(tc.pod.Name))); diff != "" {
				s.Errorf("its cards (-want +got):\n%s", diff)
			}
			s.verify()
		})
	}
	// What is left is only a card that is not healthy, or cards that a plugin
	// gives nobody who does not name it.
	s.create(podFor("no-healthy-card", amount{vendorCards, 1}), podFor("another-dcu", amount{"hygon.com/dcunum", 1}), podFor("neutral", amount{sliceMemory, 100}))
	s.refusedFor("neutral", "DeviceTypeMismatch")
	s.eventually("two refusals", func() error {
		for _, name := range []string{"no-healthy-card", "another-dcu"} {
			if len(codesIn(condition(s.pod(name)))) == 0 {
				return fmt.Errorf("%s is not refused", name)
			}
			if err := s.waits(name); err != nil {
				return err
			}
		}
		return nil
	})
	s.verify()
}
