package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

const binpackPolicy = `apiVersion: heteroflow.io/v1alpha1
kind: SchedulerPolicy
metadata:
  name: default
spec:
  plugins:
  - name: binpack
    enabled: true
`

// TestReplicaSetPacksUnderBinpack asks the extender which node it likes best for
// a slice, and then sees ten of them go there and nowhere else.
func TestReplicaSetPacksUnderBinpack(t *testing.T) {
	s := begin(t, cluster.Extender{Policy: binpackPolicy, Linger: linger, Verbosity: 2})
	s.add(
		simnode.Spec{Name: "pack-a", Cards: simnode.Cards("pack-a", 4, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)},
		simnode.Spec{Name: "pack-b", Cards: simnode.Cards("pack-b", 8, "nvidia", "NVIDIA-H100-80GB", 81559)},
		simnode.Spec{Name: "pack-c", Cards: simnode.Cards("pack-c", 8, "ascend", "910B3", 65536)},
		simnode.Spec{Name: "pack-d", Cards: simnode.Cards("pack-d", 2, "nvidia", "NVIDIA-L40S", 46068)},
	)
	// One card in use makes its node the fullest.
	s.create(with(podFor("first", amount{wholeCards, 1}), modelKey, "H100"))
	s.runs("first")

	slice := podFor("slice", amount{sliceMemory, 8000}, amount{sliceCores, 10})
	best := s.best(slice, "pack-a", "pack-b", "pack-c", "pack-d")
	t.Logf("the score names %s", best)
	const replicas = 10
	s.replicaSet(slice, replicas)
	s.eventually("all replicas", func() error { return s.bound(1 + replicas) })
	for _, p := range s.pods() {
		if p.Name != "first" && p.Spec.NodeName != best {
			t.Errorf("%s is on %s, want %s", p.Name, p.Spec.NodeName, best)
		}
	}
	s.verify()
}

// best asks the extender to score the nodes and returns the one it names first.
func (s *scene) best(pod *corev1.Pod, nodes ...string) string {
	s.Helper()
	asked := pod.DeepCopy()
	asked.Namespace, asked.UID = s.ns, types.UID(newUID())
	body, err := json.Marshal(extender.ExtenderArgs{Pod: asked, NodeNames: &nodes})
	s.must("score", err)
	response, err := http.Post(s.ExtenderURL()+"/score", "application/json", bytes.NewReader(body))
	s.must("score", err)
	defer response.Body.Close()
	var scores extender.HostPriorityList
	s.must("score", json.NewDecoder(response.Body).Decode(&scores))
	var first, second extender.HostPriority
	for _, h := range scores {
		if first.Host == "" || h.Score > first.Score {
			first, second = h, first
		} else if second.Host == "" || h.Score > second.Score {
			second = h
		}
	}
	if len(scores) != len(nodes) || first.Score <= second.Score {
		s.Fatalf("score answers %s and %v", response.Status, scores)
	}
	return first.Host
}

// replicaSet makes a set of copies of the pod.
func (s *scene) replicaSet(pod *corev1.Pod, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": pod.Name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways // a set takes no other
	_, err := s.Client.AppsV1().ReplicaSets(s.ns).Create(s.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	s.must("create replica set", err)
}
