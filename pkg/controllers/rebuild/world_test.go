package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// start is when tests begin.
func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// world is a little API server, with what stands behind it: owners that make pods anew,
// a scheduler, and nodes that come and go. What the controller has seen of it is what
// there was at the last see.
type world struct {
	now     time.Time
	version int
	made    int
	pods    map[string]*corev1.Pod // namespace/name -> pod
	nodes   map[string]*corev1.Node
	groups  map[string]*v1alpha1.TaskGroup

	blocked bool   // a PodDisruptionBudget lets nobody go
	fail    error  // what every request ends with
	meddle  func() // between the last read and an eviction

	evicted []string
	told    []string
	counts  map[metrics.RebuildOutcome]int
	halted  int

	podStore, nodeStore, groupStore cache.Indexer
	c                               *Controller
}

func newWorld() *world {
	indexed := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	w := &world{
		now: start(), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, groups: map[string]*v1alpha1.TaskGroup{},
		counts: map[metrics.RebuildOutcome]int{}, podStore: indexed(), nodeStore: indexed(), groupStore: indexed(),
	}
	w.lead()
	return w
}

// lead has a new leader begin, which remembers nothing.
func (w *world) lead() {
	w.c = &Controller{
		PodLister: corelisters.NewPodLister(w.podStore), NodeLister: corelisters.NewNodeLister(w.nodeStore), Groups: kindlisters.NewTaskGroupLister(w.groupStore),
		Pods: podServer{w}, Nodes: nodeServer{w}, Rules: Rules{Grace: time.Minute, AtOnce: 1},
		Tell: func(n kube.Notice) {
			w.told = append(w.told, fmt.Sprintf("%s %s/%s %s: %s", n.About.Kind, n.About.Namespace, n.About.Name, n.Reason, n.Text))
		},
		Meter: w, Now: func() time.Time { return w.now },
	}
}

// Rebuilt implements Meter.
func (w *world) Rebuilt(o metrics.RebuildOutcome) { w.counts[o]++ }

// RebuildHalted implements Meter.
func (w *world) RebuildHalted(groups int) { w.halted = groups }

// group makes a TaskGroup.
func (w *world) group(name string) {
	w.groups["ns/"+name] = &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference}}
}

// node makes nodes that are ready.
func (w *world) node(names ...string) {
	for _, name := range names {
		w.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.turn(name, corev1.ConditionTrue)
	}
}

// turn has the node say another thing of itself, and what its pods say follows.
func (w *world) turn(name string, ready corev1.ConditionStatus) {
	w.nodes[name].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(w.now)}}
	for _, p := range w.pods {
		if p.Spec.NodeName == name && (ready == corev1.ConditionTrue || p.DeletionTimestamp == nil) {
			w.says(p, ready == corev1.ConditionTrue)
		}
	}
}

// remove takes nodes away.
func (w *world) remove(names ...string) {
	for _, name := range names {
		w.turn(name, corev1.ConditionUnknown)
		delete(w.nodes, name)
	}
}

// fails has nodes be not ready from now on.
func (w *world) fails(names ...string) {
	for _, name := range names {
		w.turn(name, corev1.ConditionUnknown)
	}
}

// says has the pod be ready or not.
func (w *world) says(p *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	w.write(p)
}

func (w *world) write(p *corev1.Pod) {
	w.version++
	p.ResourceVersion = fmt.Sprint(w.version)
}

// pod makes a member of the group on the node, "": on none, which a ReplicaSet owns.
func (w *world) pod(name, group, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.made++
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%d", name, w.made)), CreationTimestamp: metav1.NewTime(w.now),
			Annotations:     map[string]string{codec.AnnotationTaskGroup: group},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "uid-rs", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node},
	}
	w.says(p, node != "")
	for _, c := range change {
		c(p)
	}
	w.pods["ns/"+name] = p
	return p
}

// ownedBy has another kind own the pod; "": nobody does.
func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.OwnerReferences[0].Kind = kind; kind == "" {
			p.OwnerReferences = nil
		}
	}
}

// serving has the pod be ready, whatever its node does.
func serving(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// see has the controller see what there is, as slim as it is kept.
func (w *world) see() {
	var pods, nodes, groups []any
	for _, p := range w.pods {
		pods = append(pods, slim(p))
	}
	for _, n := range w.nodes {
		nodes = append(nodes, n.DeepCopy())
	}
	for _, g := range w.groups {
		groups = append(groups, g.DeepCopy())
	}
	_ = w.podStore.Replace(pods, "")
	_ = w.nodeStore.Replace(nodes, "")
	_ = w.groupStore.Replace(groups, "")
}

// slim leaves of a pod what informers keep of it, whoever it is.
func slim(p *corev1.Pod) *corev1.Pod {
	q := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Annotations: p.Annotations,
		DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds}}
	q.Spec.NodeName, q.Status.Phase = p.Spec.NodeName, p.Status.Phase
	if p.Spec.NodeName == "" {
		q.CreationTimestamp = p.CreationTimestamp
	}
	return q
}

// round has the controller see all and take a round, some time later.
func (w *world) round(later time.Duration) {
	w.now = w.now.Add(later)
	w.see()
	w.c.round(quiet())
}

// quiet is a context of which nothing is logged.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// rounds has it take so many, one each period.
func (w *world) rounds(n int) {
	for range n {
		w.round(period)
	}
}

// remakes has the owner make another for each pod that is asked to go, and the scheduler
// place what waits on a node that is ready, if there is one and it places at all.
func (w *world) remakes(want int, group string, places bool) {
	there := 0
	for _, p := range w.pods {
		if p.DeletionTimestamp == nil && len(p.OwnerReferences) > 0 {
			there++
		}
	}
	for ; there < want; there++ {
		w.pod(fmt.Sprintf("new-%d", w.made), group, "")
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || !places {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(w.nodes)) {
			if ready, _ := readiness(w.nodes[node]); ready {
				p.Spec.NodeName = node
				w.says(p, true)
				break
			}
		}
	}
}

// want compares who was evicted.
func (w *world) want(t *testing.T, when string, names ...string) {
	t.Helper()
	if got := strings.Join(w.evicted, " "); got != strings.Join(names, " ") {
		t.Errorf("%s: evicted %q, want %q; told:\n%s", when, got, strings.Join(names, " "), strings.Join(w.told, "\n"))
	}
}

// tells returns what was told for the reason.
func (w *world) tells(reason string) (lines []string) {
	for _, line := range w.told {
		if strings.Contains(line, " "+reason+": ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func resource(name string) schema.GroupResource { return schema.GroupResource{Resource: name} }

type podServer struct{ *world }

func (s podServer) Get(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	if p := s.pods[namespace+"/"+name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("pods"), name)
}

func (s podServer) Evict(_ context.Context, pod *corev1.Pod, dryRun bool) error {
	if s.meddle != nil {
		s.meddle()
	}
	p := s.pods[pod.Namespace+"/"+pod.Name]
	switch {
	case dryRun:
		return errors.New("nobody asked for a trial")
	case s.fail != nil:
		return s.fail
	case p == nil:
		return apierrors.NewNotFound(resource("pods"), pod.Name)
	case p.UID != pod.UID || p.ResourceVersion != pod.ResourceVersion:
		return apierrors.NewConflict(resource("pods"), pod.Name, errors.New("it has changed"))
	case s.blocked:
		return fmt.Errorf("evict: %w: the budget", kube.ErrBlocked)
	}
	s.evicted = append(s.evicted, p.Name)
	s.asks(p)
	return nil
}

// asks asks the pod to go, which nobody hears on a lost node.
func (w *world) asks(p *corev1.Pod) {
	grace := int64(30)
	ends := metav1.NewTime(w.now.Add(30 * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &ends, &grace
	w.write(p)
}

type nodeServer struct{ *world }

func (s nodeServer) Get(_ context.Context, name string) (*corev1.Node, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	if n := s.nodes[name]; n != nil {
		return n.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("nodes"), name)
}
