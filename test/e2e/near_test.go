package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

const (
	rackKey = ours + "rack"
	rdmaKey = ours + "rdma"
	jobID   = "ai.training/job-id"
)

// inRacks are two nodes of two cards in each of three racks, of which the last has
// no RDMA, and says so.
func inRacks() (specs []simnode.Spec) {
	for rack := range 3 {
		for i := range 2 {
			name := fmt.Sprintf("near-%c%d", 'a'+rack, i)
			labels := map[string]string{corev1.LabelTopologyZone: "z1", rackKey: fmt.Sprintf("rack-%d", rack), rdmaKey: fmt.Sprint(rack < 2)}
			specs = append(specs, simnode.Spec{Name: name, Labels: labels, Cards: simnode.Cards(name, 2, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
		}
	}
	return specs
}

// jobOf is a Job of n pods at once, each with a card of its own.
func jobOf(n int32, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: &n, Completions: &n,
			Template: corev1.PodTemplateSpec{Spec: podFor("", amount{wholeCards, 1}).Spec},
		},
	}
}

// TestJobsStayInOneRack binds the pods of jobs in bursts: those of one go to one
// rack, by whatever it is known that they work together. RDMA that is required is
// refused where there is none, and a rack that is preferred is taken.
func TestJobsStayInOneRack(t *testing.T) {
	s := begin(t, defaults)
	s.add(inRacks()...)
	racks := map[string]string{}
	for _, n := range s.nodeList() {
		racks[n.Name] = n.Labels[rackKey]
	}

	s.create(with(podFor("wish", amount{sliceMemory, 1000}), rackKey, "rack-2"))
	if got := racks[s.runs("wish").Spec.NodeName]; got != "rack-2" {
		t.Errorf("who would rather be in rack-2 is in %s", got)
	}

	labelled := many(4, s.ns, "labelled", nil, amount{wholeCards, 1})
	for _, p := range labelled {
		p.Labels = map[string]string{jobID: "llm"}
	}
	s.create(labelled...)
	s.inOneRack(racks, jobID+"=llm", 4)
	_, err := s.Client.BatchV1().Jobs(s.ns).Create(s.ctx, jobOf(4, "train"), metav1.CreateOptions{})
	s.must("create job", err)
	s.inOneRack(racks, batchv1.JobNameLabel+"=train", 4)

	s.create(with(podFor("remote", amount{wholeCards, 1}), rdmaKey, "required"))
	s.eventually("the event", func() error {
		if all := fmt.Sprint(s.told(s.pod("remote"))); !strings.Contains(all, "2 RDMAUnsupported") {
			return errors.New(all)
		}
		return nil
	})
	s.must("remote", s.waits("remote"))
	s.verify()
}

// inOneRack waits until n pods of that label run, and wants them all in one rack.
func (s *scene) inOneRack(racks map[string]string, label string, n int) {
	s.Helper()
	in := map[string]int{}
	s.eventually(label, func() error {
		clear(in)
		pods, err := s.Client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
				in[racks[p.Spec.NodeName]]++
			}
		}
		if running != n {
			return fmt.Errorf("%d run", running)
		}
		return nil
	})
	if len(in) != 1 {
		s.Errorf("%s: pods by rack are %v", label, in)
	}
}

// TestCardsAreChosenByLinks has pods of two cards on a node of two bridged pairs and
// two single cards: each gets a pair. Who requires links waits while there is none, and
// runs once one is free again; the single cards do not do.
func TestCardsAreChosenByLinks(t *testing.T) {
	s := begin(t, defaults)
	cards := simnode.Cards("linked", 6, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
	pairs := map[string]string{cards[0].UUID: cards[4].UUID, cards[1].UUID: cards[5].UUID}
	var links []string
	for a, b := range pairs {
		links = append(links, fmt.Sprintf("[%q,%q,\"NV12\"]", a, b))
	}
	s.add(simnode.Spec{Name: "linked", Cards: cards, Annotations: map[string]string{ours + "gpu-topology": `{"links":[` + strings.Join(links, ",") + "]}"}})

	for _, name := range []string{"first", "second"} {
		s.create(podFor(name, amount{wholeCards, 2}))
		got := cardsByContainer(t, s.runs(name))["main"]
		if len(got) != 2 || pairs[got[0]] != got[1] && pairs[got[1]] != got[0] {
			t.Errorf("%s has %v, which are no pair of %v", name, got, pairs)
		}
	}
	s.create(with(podFor("strict", amount{wholeCards, 2}), ours+"nvlink", "required"))
	s.eventually("the event", func() error {
		if all := fmt.Sprint(s.told(s.pod("strict"))); !strings.Contains(all, "NVLinkUnsatisfied") {
			return errors.New(all)
		}
		return nil
	})
	s.must("strict", s.waits("strict"))
	s.create(podFor("modest", amount{wholeCards, 1})) // the single cards are free all the while
	s.runs("modest")
	s.must("strict", s.waits("strict"))

	freed := cardsByContainer(t, s.pod("second"))["main"]
	s.remove("second", false)
	got := cardsByContainer(t, s.runs("strict"))["main"]
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(freed))) {
		t.Errorf("strict has %v, and %v were free", got, freed)
	}
	s.verify()
}
