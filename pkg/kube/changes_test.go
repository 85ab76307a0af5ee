package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// updated tells the books of a change as the informer does: after the transform.
func updated[T corev1.Pod | corev1.Node](s *shelf, was, is *T) {
	transform := newSlimmer()
	_, _ = transform.slim(was)
	_, _ = transform.slim(is)
	switch is := any(is).(type) {
	case *corev1.Pod:
		podHandler(&s.Books).OnUpdate(was, is)
	case *corev1.Node:
		nodeHandler(&s.Books).OnUpdate(was, is)
	}
}

// Whatever changes of a running pod that counts is counted.
func TestPodChanges(t *testing.T) {
	text := func(p *corev1.Pod) string { return p.Annotations[codec.AnnotationAllocation] }
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   string // state of the hold
		told   string // part of what is logged
	}{
		"a status": {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.9" }, "bound", ""},
		"the record": {func(p *corev1.Pod) {
			p.Annotations[codec.AnnotationAllocation] = strings.ReplaceAll(text(p), "GPU-a", "GPU-b")
		}, "bound", "was changed after it was bound"},
		"the record goes":       {func(p *corev1.Pod) { delete(p.Annotations, codec.AnnotationAllocation) }, "bound", "was changed after it was bound"},
		"it fails":              {func(p *corev1.Pod) { p.Status.Phase, p.Status.ContainerStatuses = corev1.PodFailed, nil }, "none", ""},
		"it fails, and runs on": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "bound", ""},
		"it is another pod":     {func(p *corev1.Pod) { p.UID = "another" }, "lingering 1m30s", ""},
		"it is being deleted":   {func(p *corev1.Pod) { now := metav1.NewTime(start()); p.DeletionTimestamp = &now }, "bound", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			s := newShelf()
			s.Logger = funcr.New(func(_, text string) { log.WriteString(text) }, funcr.Options{})
			s.NodeSeen(newNode("n1", devices))
			was := richPod(t, "p", "GPU-a", 0)
			s.PodSeen(was)
			is := was.DeepCopy()
			tc.change(is)
			updated(s, was, is)
			if got := standing(s.Ledger, "uid-p"); got != tc.want {
				t.Errorf("the pod is %s, want %s", got, tc.want)
			}
			if h, held := s.Ledger.Hold("uid-p"); held && (len(h.Grants) != 1 || h.Grants[0].Shares[0].Card != "GPU-a") {
				t.Errorf("it holds %v, want GPU-a as before", h.Grants)
			}
			if tc.told == "" != (log.Len() == 0) || !strings.Contains(log.String(), tc.told) {
				t.Errorf("logged %q, want %q", log.String(), tc.told)
			}
			if !slices.Contains(s.settled, "uid-p") {
				t.Error("it waits for a node for all that is known")
			}
		})
	}
}

// What a pod takes of the node is counted anew when it is resized.
func TestResizeIsCounted(t *testing.T) {
	s := newShelf()
	s.NodeSeen(newNode("n1", devices))
	was := richPod(t, "p", "GPU-a", 0)
	s.PodSeen(was)
	is := was.DeepCopy()
	is.Spec.Containers[0].Resources.Requests = corev1.ResourceList{codec.ResourceGPU: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("3")}
	updated(s, was, is)
	if h, _ := s.Ledger.Hold("uid-p"); h.CPU != gpu.MilliCPU(3000) {
		t.Errorf("%d milli of processors are counted, want 3000", h.CPU)
	}
}

// A pod of which nothing is new is news all the same where the ledger has lost it.
func TestUnchangedPodComesBack(t *testing.T) {
	for name, lose := range map[string]func(*shelf){
		"released":  func(s *shelf) { s.Ledger.Release("uid-p") },
		"lingering": func(s *shelf) { s.Ledger.Linger("uid-p", start()) },
		"elsewhere": func(s *shelf) {
			p := whole("p", "GPU-a", 0)
			p.Node = "n2"
			s.Ledger.Confirm(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			was := richPod(t, "p", "GPU-a", 0)
			s.PodSeen(was)
			lose(s)
			updated(s, was, was.DeepCopy())
			if h, held := s.Ledger.Hold("uid-p"); !held || h.Node != "n1" || standing(s.Ledger, "uid-p") != "bound" {
				t.Errorf("the pod is %s on %s, want bound on n1", standing(s.Ledger, "uid-p"), h.Node)
			}
		})
	}
}

// A heartbeat makes no new state of a node, which all that is remembered of it
// would have to be worked out for anew; what counts does.
func TestNodeChanges(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		news   bool
	}{
		"heartbeat": {func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions[1].LastHeartbeatTime = metav1.Now()
			n.Annotations["hami.io/node-handshake"] = "Requesting"
		}, false},
		"not ready": {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true},
		"cordoned":  {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"tainted": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, true},
		"card cordoned": {func(n *corev1.Node) { n.Annotations[codec.AnnotationCordon] = "GPU-a" }, true},
		"inventory": {func(n *corev1.Node) {
			n.Annotations[codec.AnnotationDevices] = strings.Replace(devices, "true", "false", 1)
		}, true},
		"rebooted": {func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-2" }, true},
		"memory": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			was := richNode("n1", devices)
			s.NodeSeen(was)
			before, _ := s.Ledger.Snapshot().Node("n1")
			is := was.DeepCopy()
			tc.change(is)
			updated(s, was, is)
			if after, _ := s.Ledger.Snapshot().Node("n1"); (before.Version != after.Version) != tc.news {
				t.Errorf("from state %d to %d, want a new one: %t", before.Version, after.Version, tc.news)
			}
		})
	}
}

// Lists that are alike are one; those that differ in anything are not.
func TestLists(t *testing.T) {
	var l lists
	list := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	first := l.one(list("1"))
	if !same(first, l.one(list("1"))) {
		t.Error("equal lists are kept twice")
	}
	for _, other := range []corev1.ResourceList{list("2"), list("1Ki"), {corev1.ResourceMemory: resource.MustParse("1")}} {
		if same(first, l.one(other)) {
			t.Errorf("%v is taken for %v", other, first)
		}
	}
	if l.one(nil) != nil {
		t.Error("no list is one")
	}
	for i := range 2 * mostLists {
		l.one(corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(i), resource.DecimalSI)})
		if len(l.kept) > mostLists {
			t.Fatalf("%d lists are kept", len(l.kept))
		}
	}
}
