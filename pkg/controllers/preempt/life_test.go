package preempt

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// pod adds a pod with a need of cards; more is what else there is to it.
func (w *world) pod(name string, priority int32, cards int, more ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"cards": fmt.Sprint(cards)}}, Spec: corev1.PodSpec{Priority: &priority}}
	for _, m := range more {
		m(p)
	}
	p = w.put(p)
	w.hold(p)
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func noted(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func preemptible(p *corev1.Pod) { noted("heteroflow.io/preemptible", "true")(p) }

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
	}
}

func refused(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

// job adds a Job of so many pods, which runs.
func (w *world) job(name string, pods int32) {
	w.jobs[key("ns", name)] = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: w.next()},
		Spec: batchv1.JobSpec{Parallelism: &pods, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cards": "1", "heteroflow.io/preemptible": "true"}}}}}
}

// sorted returns all pods, the most important first, and of equals the oldest.
func (w *world) sorted() []*corev1.Pod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(*b.Spec.Priority, *a.Spec.Priority), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// live lets some time go by: containers end, owners and the scheduler do their work.
func (w *world) live(rng *rand.Rand) {
	w.now = w.now.Add(time.Duration(1+rng.IntN(4000)) * time.Millisecond)
	for _, pod := range w.sorted() {
		stuck := pod.Labels["stuck"] != ""
		if pod.DeletionTimestamp != nil && !stuck && (pod.Spec.NodeName == "" || rng.IntN(3) == 0 || w.now.After(pod.DeletionTimestamp.Time)) {
			w.drop(pod, w.now.Add(time.Duration(rng.IntN(3))*time.Second))
		}
	}
	for id, until := range w.lingers {
		if !w.now.Before(until) {
			delete(w.lingers, id)
			delete(w.holds, id)
		}
	}
	w.replace()
	w.schedule()
}

// replace has owners make what is missing of their pods: those with the label "of"
// say how many there are to be.
func (w *world) replace() {
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[name]
		n := int(*j.Spec.Parallelism)
		if suspended(j) {
			n = 0
		}
		w.own("Job", name[len("ns/"):], n, j.Spec.Template.Annotations)
	}
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		w.own("ReplicaSet", name, w.sets[name], map[string]string{"cards": "1", "heteroflow.io/preemptible": "true"})
	}
}

// own has there be n pods of the owner.
func (w *world) own(kind, name string, n int, annotations map[string]string) {
	var mine []*corev1.Pod
	for _, pod := range w.sorted() {
		if o := metav1.GetControllerOf(pod); o != nil && o.Name == name && pod.DeletionTimestamp == nil {
			mine = append(mine, pod)
		}
	}
	for _, pod := range mine[min(n, len(mine)):] {
		w.end(pod, 30*time.Second)
	}
	for range n - len(mine) {
		w.pod(fmt.Sprintf("%s-%s", name, w.next()), 1, 1, ownedBy(kind, name), func(p *corev1.Pod) { maps.Copy(p.Annotations, annotations) })
	}
}

// schedule binds who fits, and refuses the others. A pod that room is kept for goes
// there, and nowhere else.
func (w *world) schedule() {
	for _, pod := range w.sorted() {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		node := w.room(need(pod.Annotations))
		if h, has := w.holds[gpu.PodID(pod.UID)]; has {
			if node = h.Node; w.used(node, h.Pod)+need(pod.Annotations) > w.cards[node] {
				node = ""
			}
		}
		if node == "" || pod.Labels["elsewhere"] != "" { // kube-scheduler has reasons of its own
			w.edit(pod, refused)
			continue
		}
		pod = w.edit(pod, on(string(node)))
		w.holds[gpu.PodID(pod.UID)] = ledger.Hold{Placement: placement(pod, string(node)), State: ledger.Bound}
	}
}
