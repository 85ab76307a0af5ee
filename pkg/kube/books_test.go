package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// start is when tests begin.
func start() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// shelf is books with what they have been told to tell.
type shelf struct {
	Books
	inventoryErrors int
	topologyErrors  int
	settled, gone   []gpu.PodID
}

func newShelf() *shelf {
	s := &shelf{}
	s.Books = Books{
		Ledger:         ledger.New(tenancy.Separate{}),
		Settings:       policy.Default(),
		Linger:         time.Minute,
		Now:            start,
		Logger:         logr.Discard(),
		InventoryError: func() { s.inventoryErrors++ },
		TopologyError:  func() { s.topologyErrors++ },
		Settled:        func(pod gpu.PodID) { s.settled = append(s.settled, pod) },
		Gone:           func(pod gpu.PodID) { s.gone = append(s.gone, pod) },
	}
	return s
}

const devices = `{"version":1,"cards":[` +
	`{"uuid":"GPU-a","index":0,"vendor":"nvidia","model":"A100","memoryMiB":40960,"cores":100,"healthy":true,"mode":"slice","isolation":"driver"},` +
	`{"uuid":"GPU-b","index":1,"vendor":"nvidia","model":"A100","memoryMiB":40960,"cores":100,"healthy":true,"mode":"slice","isolation":"driver"}]}`

func newNode(name, inventory string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{codec.AnnotationDevices: inventory}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-1"},
		},
	}
}

// unbound asks for one whole card.
func unbound(name string) *corev1.Pod {
	one := corev1.ResourceList{codec.ResourceGPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Limits: one, Requests: one}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// whole is the placement of such a pod.
func whole(name string, card gpu.CardID, index int) gpu.Placement {
	return gpu.Placement{
		Pod: gpu.PodID("uid-" + name), Namespace: "ns", Name: name, Node: "n1", Tenant: "ns",
		Grants: []gpu.Grant{{Container: "main", Shares: []gpu.Share{{
			Card: card, Vendor: gpu.Nvidia, Index: index, Memory: 40960, Cores: 100, Exclusive: true, Isolation: gpu.IsolationExclusive,
		}}}},
	}
}

// boundPod runs on GPU-a of n1.
func boundPod(t testing.TB, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := unbound(name)
	annotations, err := codec.Annotations(whole(name, "GPU-a", 0), start(), 0)
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = annotations
	pod.Labels = map[string]string{codec.BoundByLabel: codec.BoundByValue}
	pod.Spec.NodeName = "n1"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
}

// collected is what pod garbage collection and a lost node leave behind: a
// phase, while the container's last known state is running.
func collected(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }

func terminating(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		now := metav1.NewTime(start())
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &seconds
	}
}

func graceful(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// standing is how a pod stands in the ledger.
func standing(l *ledger.Ledger, pod gpu.PodID) string {
	h, ok := l.Hold(pod)
	switch {
	case !ok:
		return "none"
	case h.State == ledger.Lingering:
		return fmt.Sprintf("lingering %v", h.Until.Sub(start()))
	}
	return h.State.String()
}

// Every way in which a pod can come to its end, and what it then still holds.
func TestHowPodsEnd(t *testing.T) {
	type tell func(b *Books)
	seen := func(pod *corev1.Pod) tell { return func(b *Books) { b.PodSeen(pod) } }
	gone := func(pod *corev1.Pod) tell { return func(b *Books) { b.PodGone(pod, true) } }
	missed := func(pod *corev1.Pod) tell { return func(b *Books) { b.PodGone(pod, false) } }
	reserve := func(b *Books) {
		if err := b.Ledger.Reserve(whole("p", "GPU-a", 0)); err != nil {
			t.Error(err)
		}
	}
	running := boundPod(t, "p")
	sidecar := boundPod(t, "p", ended(corev1.PodFailed), func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})

	tests := map[string]struct {
		told []tell
		want string
	}{
		"not bound, never asked":                  {[]tell{seen(unbound("p"))}, "none"},
		"not bound, a bind in flight":             {[]tell{seen(unbound("p")), reserve, seen(unbound("p"))}, "held"},
		"bound":                                   {[]tell{reserve, seen(running)}, "bound"},
		"bound by a predecessor":                  {[]tell{seen(running)}, "bound"},
		"terminating, containers run":             {[]tell{seen(running), seen(boundPod(t, "p", terminating(30)))}, "bound"},
		"succeeded, object stays":                 {[]tell{seen(running), seen(boundPod(t, "p", ended(corev1.PodSucceeded)))}, "none"},
		"failed, object stays":                    {[]tell{seen(running), seen(boundPod(t, "p", ended(corev1.PodFailed)))}, "none"},
		"called failed, container runs":           {[]tell{seen(running), seen(boundPod(t, "p", collected))}, "bound"},
		"called failed, sidecar runs":             {[]tell{seen(running), seen(sidecar)}, "bound"},
		"ended, then deleted":                     {[]tell{seen(running), gone(boundPod(t, "p", ended(corev1.PodFailed), terminating(30)))}, "none"},
		"ended, deletion missed":                  {[]tell{seen(running), missed(boundPod(t, "p", ended(corev1.PodFailed)))}, "none"},
		"deleted by force":                        {[]tell{seen(running), gone(boundPod(t, "p", terminating(0)))}, "lingering 1m30s"},
		"collected with its node":                 {[]tell{seen(running), gone(boundPod(t, "p", collected))}, "lingering 1m30s"},
		"deletion missed":                         {[]tell{seen(running), missed(running)}, "lingering 1m30s"},
		"bound, never seen to run, gone":          {[]tell{seen(running), gone(boundPod(t, "p", func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }))}, "lingering 1m30s"},
		"a long grace":                            {[]tell{seen(running), gone(boundPod(t, "p", graceful(600)))}, "lingering 11m0s"},
		"no grace":                                {[]tell{seen(running), gone(boundPod(t, "p", graceful(0)))}, "lingering 1m0s"},
		"the deletion gave longer":                {[]tell{seen(running), gone(boundPod(t, "p", graceful(5), terminating(120)))}, "lingering 3m0s"},
		"a grace that would wrap":                 {[]tell{seen(running), gone(boundPod(t, "p", graceful(1<<62)))}, "lingering 8760h1m0s"},
		"a negative grace":                        {[]tell{seen(running), gone(boundPod(t, "p", graceful(-1<<62)))}, "lingering 1m0s"},
		"deleted before it was bound":             {[]tell{reserve, gone(unbound("p"))}, "none"},
		"deleted unbound, nothing held":           {[]tell{gone(unbound("p"))}, "none"},
		"unbound when last seen, deletion missed": {[]tell{reserve, missed(unbound("p"))}, "lingering 1m30s"},
		"unbound, deletion missed, nothing held":  {[]tell{missed(unbound("p"))}, "none"},
		"unbound deletion overtaken by its bind":  {[]tell{reserve, seen(running), gone(unbound("p"))}, "bound"},
		"lingering, but there after all":          {[]tell{seen(running), missed(running), seen(running)}, "bound"},
		"deleted by somebody who never saw it":    {[]tell{gone(running)}, "none"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			for _, tell := range tc.told {
				tell(&s.Books)
			}
			if got := standing(s.Ledger, "uid-p"); got != tc.want {
				t.Errorf("the pod's hold: %s, want %s", got, tc.want)
			}
		})
	}
}

// Who is bound without cards of ours, or with a record that cannot be read, is
// never free room.
func TestUnreadablePodsCloseCards(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Pod)
		free   int
	}{
		"bound by hand":         {func(p *corev1.Pod) { p.Annotations = nil }, 0},
		"record cannot be read": {func(p *corev1.Pod) { p.Annotations[codec.AnnotationAllocation] = "{" }, 0},
		"ours":                  {func(*corev1.Pod) {}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.PodSeen(boundPod(t, "p", tc.change)) // pods may be told of before their node is
			s.NodeSeen(newNode("n1", devices))
			n, _ := s.Ledger.Snapshot().Node("n1")
			free := 0
			for i := range n.Cards {
				if n.Cards[i].Free() {
					free++
				}
			}
			if free != tc.free {
				t.Errorf("%d cards free, want %d", free, tc.free)
			}
		})
	}
}

// What a bound pod has does not change because somebody edits the record of it.
func TestAnEditedRecordIsIgnored(t *testing.T) {
	edits := map[string]func(*corev1.Pod){
		"another card": func(p *corev1.Pod) {
			text := p.Annotations[codec.AnnotationAllocation]
			p.Annotations[codec.AnnotationAllocation] = strings.ReplaceAll(text, "GPU-a", "GPU-z")
		},
		"gone":          func(p *corev1.Pod) { delete(p.Annotations, codec.AnnotationAllocation) },
		"not readable":  func(p *corev1.Pod) { p.Annotations[codec.AnnotationAllocation] = "{" },
		"label is gone": func(p *corev1.Pod) { p.Labels = nil },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			s.PodSeen(boundPod(t, "p"))
			s.PodSeen(boundPod(t, "p", edit))
			n, _ := s.Ledger.Snapshot().Node("n1")
			if a, b := &n.Cards[0], &n.Cards[1]; len(a.Holders) != 1 || !b.Free() {
				t.Errorf("GPU-a has %d holders, GPU-b free %t; want 1, true", len(a.Holders), b.Free())
			}
		})
	}
}

func TestNodes(t *testing.T) {
	cards := func(s *shelf) int {
		n, ok := s.Ledger.Snapshot().Node("n1")
		if !ok {
			return -1
		}
		return len(n.Cards)
	}
	s := newShelf()
	s.NodeSeen(newNode("n1", devices))
	if got := cards(s); got != 2 {
		t.Fatalf("%d cards, want 2", got)
	}
	for range 3 { // heartbeats
		s.NodeSeen(newNode("n1", "{"))
	}
	if got := cards(s); got != 0 || s.inventoryErrors != 1 {
		t.Errorf("unreadable: %d cards and %d errors, want 0 and 1", got, s.inventoryErrors)
	}
	s.NodeSeen(newNode("n1", devices))
	if got := cards(s); got != 2 {
		t.Errorf("mended: %d cards, want 2", got)
	}
	s.NodeSeen(newNode("n1", "{"))
	if s.inventoryErrors != 2 {
		t.Errorf("broken again: %d errors, want 2", s.inventoryErrors)
	}
	s.NodeGone(newNode("n1", "{"))
	if got := cards(s); got != -1 {
		t.Errorf("gone: still there with %d cards", got)
	}
	s.NodeSeen(newNode("n1", "{"))
	if s.inventoryErrors != 3 {
		t.Errorf("back and broken: %d errors, want 3", s.inventoryErrors)
	}
}

// What lingers ends with its node, or with the node's next boot.
func TestLingeringEndsWithTheNode(t *testing.T) {
	for name, end := range map[string]func(*shelf){
		"removed": func(s *shelf) { s.NodeGone(newNode("n1", devices)) },
		"rebooted": func(s *shelf) {
			node := newNode("n1", devices)
			node.Status.NodeInfo.BootID = "boot-2"
			s.NodeSeen(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			s.PodSeen(boundPod(t, "p"))
			s.PodGone(boundPod(t, "p"), true)
			end(s)
			if got := standing(s.Ledger, "uid-p"); got != "none" {
				t.Errorf("the pod's hold: %s, want none", got)
			}
		})
	}
}

func TestHandlers(t *testing.T) {
	tombstone := func(o any) cache.DeletedFinalStateUnknown {
		return cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: o}
	}
	heir := boundPod(t, "p")
	heir.UID, heir.Spec.NodeName = "uid-heir", ""
	tests := map[string]struct {
		do   func(pods, nodes cache.ResourceEventHandler)
		want map[gpu.PodID]string
		gone []gpu.PodID
	}{
		"added": {
			func(pods, _ cache.ResourceEventHandler) {},
			map[gpu.PodID]string{"uid-p": "bound"}, nil,
		},
		"updated": {
			func(pods, _ cache.ResourceEventHandler) {
				pods.OnUpdate(boundPod(t, "p"), boundPod(t, "p", ended(corev1.PodSucceeded)))
			},
			map[gpu.PodID]string{"uid-p": "none"}, nil,
		},
		"replaced by another of its name, unseen": {
			func(pods, _ cache.ResourceEventHandler) { pods.OnUpdate(boundPod(t, "p"), heir) },
			map[gpu.PodID]string{"uid-p": "lingering 1m30s", "uid-heir": "none"}, []gpu.PodID{"uid-p"},
		},
		"deleted": {
			func(pods, _ cache.ResourceEventHandler) { pods.OnDelete(boundPod(t, "p", ended(corev1.PodFailed))) },
			map[gpu.PodID]string{"uid-p": "none"}, []gpu.PodID{"uid-p"},
		},
		"tombstone": {
			func(pods, _ cache.ResourceEventHandler) { pods.OnDelete(tombstone(boundPod(t, "p"))) },
			map[gpu.PodID]string{"uid-p": "lingering 1m30s"}, []gpu.PodID{"uid-p"},
		},
		"tombstone of nothing": {
			func(pods, nodes cache.ResourceEventHandler) {
				pods.OnDelete(tombstone(nil))
				nodes.OnDelete(tombstone(nil))
			},
			map[gpu.PodID]string{"uid-p": "bound"}, nil,
		},
		"tombstone of the node": {
			func(pods, nodes cache.ResourceEventHandler) {
				pods.OnDelete(tombstone(boundPod(t, "p")))
				nodes.OnDelete(tombstone(newNode("n1", devices)))
			},
			map[gpu.PodID]string{"uid-p": "none"}, []gpu.PodID{"uid-p"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			pods, nodes := podHandler(&s.Books), nodeHandler(&s.Books)
			nodes.OnAdd(newNode("n1", devices), true)
			pods.OnAdd(boundPod(t, "p"), true)
			tc.do(pods, nodes)
			got := map[gpu.PodID]string{}
			for pod := range tc.want {
				got[pod] = standing(s.Ledger, pod)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.gone, s.gone); diff != "" {
				t.Errorf("told as gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpire(t *testing.T) {
	s := newShelf()
	s.NodeSeen(newNode("n1", devices))
	s.PodSeen(boundPod(t, "p"))
	s.PodGone(boundPod(t, "p"), true)
	for _, step := range []struct {
		at   time.Duration
		want string
	}{{89 * time.Second, "lingering 1m30s"}, {90 * time.Second, "none"}} {
		s.Now = func() time.Time { return start().Add(step.at) }
		s.Expire()
		if got := standing(s.Ledger, "uid-p"); got != step.want {
			t.Errorf("after %v: %s, want %s", step.at, got, step.want)
		}
	}
	if err := s.Ledger.Reserve(whole("q", "GPU-a", 0)); errors.Is(err, ledger.ErrNoRoom) {
		t.Error("the card is still taken")
	}
}
