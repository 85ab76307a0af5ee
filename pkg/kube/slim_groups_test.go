package kube

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// inJob is a bound pod of a job, by its owner or by a label too.
func inJob(t testing.TB, name string, job int, label bool) *corev1.Pod {
	t.Helper()
	pod := richPod(t, name, "GPU-a", 0)
	rules, uid := true, fmt.Sprintf("00000000-0000-0000-0000-%012d", job)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train-" + uid, UID: types.UID(uid), Controller: &rules}}
	if label {
		pod.Labels[codec.LabelJobID] = "job-" + uid
	}
	return pod
}

// Pods of one job keep one copy of what says so, and of different jobs their own.
func TestSlimSharesWhatIsOfOneJob(t *testing.T) {
	for _, label := range []bool{false, true} {
		s := newSlimmer()
		var slim []*corev1.Pod
		for i, job := range []int{1, 1, 2} {
			pod := inJob(t, fmt.Sprintf("p-%d", i), job, label)
			want := codec.Placement(pod).Group
			if _, err := s.slim(pod); err != nil {
				t.Fatal(err)
			}
			if got := codec.Placement(pod).Group; got != want || want == "" {
				t.Errorf("group %q, want %q", got, want)
			}
			slim = append(slim, pod)
		}
		same := func(a, b *corev1.Pod) bool {
			if label {
				return reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer()
			}
			return &a.OwnerReferences[0] == &b.OwnerReferences[0]
		}
		if !same(slim[0], slim[1]) || same(slim[0], slim[2]) {
			t.Errorf("label %t: pods of one job share nothing, or those of two do", label)
		}
		if label && slim[0].OwnerReferences != nil {
			t.Error("an owner is kept that is not read")
		}
	}
}

// What is kept for jobs is bounded, and none is taken for another past the bound.
func TestMarkedIsBounded(t *testing.T) {
	var m marked
	for i := range 3 * mostMarked {
		uid := types.UID(fmt.Sprint(i))
		if got := m.owners(&metav1.OwnerReference{Kind: "Job", UID: uid}); got[0].UID != uid {
			t.Fatalf("owner %s for %s", got[0].UID, uid)
		}
		if got := m.labels(string(uid)); got[codec.LabelJobID] != string(uid) {
			t.Fatalf("labels %v for %s", got, uid)
		}
		if len(m.byJob) > mostMarked || len(m.byUID) > mostMarked {
			t.Fatalf("%d and %d are kept", len(m.byJob), len(m.byUID))
		}
	}
	if diff := cmp.Diff([]metav1.OwnerReference(nil), m.owners(nil)); diff != "" {
		t.Errorf("owners of none (-want +got):\n%s", diff)
	}
}

// To know with whom a pod works costs next to nothing where hundreds work together.
func TestBytesOfAPodInAJob(t *testing.T) {
	const pods, jobs, most = 2000, 20, 150
	bytes := func(build func(i int) *corev1.Pod) int64 {
		s := newSlimmer()
		kept := make([]*corev1.Pod, 0, pods)
		before := heap()
		for i := range pods {
			text, err := build(i).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			if err := pod.Unmarshal(text); err != nil {
				t.Fatal(err)
			}
			_, _ = s.slim(pod)
			kept = append(kept, pod)
		}
		used := int64(heap()-before) / pods
		runtime.KeepAlive(kept)
		return used
	}
	name := func(i int) string { return fmt.Sprintf("p-%05d", i) }
	lone := func(i int) *corev1.Pod { return richPod(t, name(i), "GPU-a", 0) }
	bytes(lone) // what all tests share is kept from here on
	alone := bytes(lone)
	for _, label := range []bool{false, true} {
		more := bytes(func(i int) *corev1.Pod { return inJob(t, name(i), i%jobs, label) }) - alone
		t.Logf("label %t: %d bytes more than the %d of a pod alone", label, more, alone)
		if more > most {
			t.Errorf("label %t: %d bytes more, at most %d", label, more, most)
		}
	}
}

// Of a TaskGroup nothing is kept that nothing reads: a user may make thousands, and write a
// quarter of a megabyte into each.
func TestSlimTaskGroups(t *testing.T) {
	g := aGroup(t, "chat", "u1", 7, "n1")
	g.Generation, g.Finalizers = 3, []string{v1alpha1.TaskGroupFinalizer}
	g.Spec.ScaleTargetRef = &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	want := g.DeepCopy()
	g.Annotations, g.Labels = map[string]string{"of": "its user"}, map[string]string{"app": "chat"}
	g.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	slim, err := newSlimmer().slim(g)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, slim); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
