package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// counter is a ledger of claims alone: a pod has one, and a node takes any number until
// it is told otherwise.
type counter struct {
	mu      sync.Mutex
	full    map[gpu.NodeID]bool       // guarded by mu
	bound   map[gpu.PodID]bool        // guarded by mu
	claimed map[gpu.PodID]gpu.NodeID  // guarded by mu
	victims map[gpu.PodID][]gpu.PodID // guarded by mu
}

func newCounter() *counter {
	return &counter{full: map[gpu.NodeID]bool{}, bound: map[gpu.PodID]bool{}, claimed: map[gpu.PodID]gpu.NodeID{}, victims: map[gpu.PodID][]gpu.PodID{}}
}

func (k *counter) Claim(p gpu.Placement, victims []gpu.PodID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	node, has := k.claimed[p.Pod]
	switch {
	case k.bound[p.Pod]:
		return fmt.Errorf("claim for %s: %w", p.Pod, ledger.ErrIllegal)
	case has && node != p.Node:
		return fmt.Errorf("claim for %s: %w", p.Pod, ledger.ErrHeldElsewhere)
	case !has && k.full[p.Node]:
		return fmt.Errorf("claim for %s: %w", p.Pod, ledger.ErrNoRoom)
	}
	k.claimed[p.Pod], k.victims[p.Pod] = p.Node, victims
	return nil
}

func (k *counter) Unclaim(pod gpu.PodID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.claimed, pod)
	delete(k.victims, pod)
}

func (k *counter) fill(node gpu.NodeID, full bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.full[node] = full
}

func (k *counter) now() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for pod, node := range k.claimed {
		all = append(all, fmt.Sprintf("%s on %s", pod, node))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// forPod is a preemption by which the pod gets the node.
func forPod(t testing.TB, name, pod, node string, phase v1alpha1.PreemptionPhase, victims ...string) *v1alpha1.Preemption {
	t.Helper()
	p := &v1alpha1.Preemption{}
	p.Name, p.UID, p.ResourceVersion = name, types.UID("uid-"+name), "7"
	place := whole(pod, "GPU-a", 0)
	text, err := codec.EncodeClaim(&place)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec = v1alpha1.PreemptionSpec{Preemptor: v1alpha1.PreemptionPod{Namespace: "ns", Name: pod, UID: types.UID(place.Pod)}, Node: node, Allocation: text}
	for _, v := range victims {
		p.Spec.Victims = append(p.Spec.Victims, v1alpha1.Victim{PreemptionPod: v1alpha1.PreemptionPod{UID: types.UID(v)}})
	}
	p.Status.Phase = phase
	return p
}

func said(into *[]string) logr.Logger {
	return funcr.New(func(_, text string) { *into = append(*into, text) }, funcr.Options{})
}

// What is kept is what preemptions that have not ended keep.
func TestClaims(t *testing.T) {
	type step struct {
		do   func(c *claims, k *counter)
		want string
	}
	const planned, draining, held, over = v1alpha1.PreemptionPlanned, v1alpha1.PreemptionDraining, v1alpha1.PreemptionHeld, v1alpha1.PreemptionRolledBack
	sees := func(name, pod, node string, phase v1alpha1.PreemptionPhase) func(*claims, *counter) {
		return func(c *claims, _ *counter) { c.seen(forPod(t, name, pod, node, phase, "v1", "v2")) }
	}
	loses := func(name, pod, node string) func(*claims, *counter) {
		return func(c *claims, _ *counter) { c.gone(forPod(t, name, pod, node, held)) }
	}
	full := func(node gpu.NodeID, is bool) func(*claims, *counter) {
		return func(_ *claims, k *counter) { k.fill(node, is) }
	}
	again := func(c *claims, _ *counter) { c.retry() }
	tests := map[string][]step{
		"from the plan to the end": {
			{sees("a-1", "a", "n1", ""), "uid-a on n1"}, {sees("a-1", "a", "n1", planned), "uid-a on n1"}, {sees("a-1", "a", "n1", draining), "uid-a on n1"},
			{sees("a-1", "a", "n1", held), "uid-a on n1"}, {sees("a-1", "a", "n1", v1alpha1.PreemptionBound), ""},
		},
		"given up":               {{sees("a-1", "a", "n1", draining), "uid-a on n1"}, {sees("a-1", "a", "n1", over), ""}, {again, ""}},
		"expired":                {{sees("a-1", "a", "n1", held), "uid-a on n1"}, {sees("a-1", "a", "n1", v1alpha1.PreemptionExpired), ""}},
		"deleted":                {{sees("a-1", "a", "n1", held), "uid-a on n1"}, {loses("a-1", "a", "n1"), ""}, {again, ""}},
		"seen when it has ended": {{sees("a-1", "a", "n1", over), ""}, {again, ""}},
		"two pods": {{sees("a-1", "a", "n1", held), "uid-a on n1"}, {sees("b-1", "b", "n2", held), "uid-a on n1, uid-b on n2"},
			{sees("a-1", "a", "n1", over), "uid-b on n2"}},
		"a later one of the pod": {{sees("a-1", "a", "n1", draining), "uid-a on n1"}, {sees("a-2", "a", "n2", planned), "uid-a on n1"},
			{sees("a-1", "a", "n1", over), "uid-a on n2"}, {loses("a-1", "a", "n1"), "uid-a on n2"}},
		"the later one ends first": {{sees("a-1", "a", "n1", draining), "uid-a on n1"}, {sees("a-2", "a", "n2", planned), "uid-a on n1"},
			{sees("a-2", "a", "n2", over), "uid-a on n1"}, {loses("a-2", "a", "n2"), "uid-a on n1"}},
		"refused, then free":              {{full("n1", true), ""}, {sees("a-1", "a", "n1", held), ""}, {again, ""}, {full("n1", false), ""}, {again, "uid-a on n1"}},
		"refused to the end":              {{full("n1", true), ""}, {sees("a-1", "a", "n1", held), ""}, {sees("a-1", "a", "n1", over), ""}, {full("n1", false), ""}, {again, ""}},
		"the end of what nobody has seen": {{loses("a-1", "a", "n1"), ""}},
		"what was given back by others stays so": {{sees("a-1", "a", "n1", held), "uid-a on n1"},
			{func(_ *claims, k *counter) { k.Unclaim("uid-a") }, ""}, {again, ""}, {sees("a-1", "a", "n1", held), ""}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			k := newCounter()
			c := newClaims(k, newShelf().Logger)
			c.started = true
			for i, s := range steps {
				s.do(c, k)
				if got := k.now(); got != s.want {
					t.Fatalf("after step %d: %q, want %q", i, got, s.want)
				}
			}
		})
	}
}

// A list that a new leader reads may be older than what has been seen meanwhile: what it
// says of one that has ended, nobody would take back.
func TestAListIsOlderThanTheEnd(t *testing.T) {
	for name, end := range map[string]func(*claims, *v1alpha1.Preemption){
		"deleted": func(c *claims, p *v1alpha1.Preemption) { c.gone(p) },
		"ended": func(c *claims, _ *v1alpha1.Preemption) {
			c.seen(forPod(t, "a-1", "a", "n1", v1alpha1.PreemptionRolledBack))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCounter()
			c := newClaims(k, newShelf().Logger)
			listed := forPod(t, "a-1", "a", "n1", v1alpha1.PreemptionHeld)
			c.seen(listed)
			done := c.reading()
			end(c, listed)
			c.seen(listed)
			c.seen(forPod(t, "b-1", "b", "n2", v1alpha1.PreemptionHeld))
			done()
			if got := k.now(); got != "uid-b on n2" {
				t.Errorf("kept: %q, want that of b alone", got)
			}
		})
	}
}

// Whatever comes in whatever order, in the end what is kept is what the preemptions
// say that are left.
func TestClaimsFollow(t *testing.T) {
	phases := []v1alpha1.PreemptionPhase{"", v1alpha1.PreemptionPlanned, v1alpha1.PreemptionDraining, v1alpha1.PreemptionHeld, v1alpha1.PreemptionBound, v1alpha1.PreemptionRolledBack}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := newCounter()
		c := newClaims(k, newShelf().Logger)
		now := map[string]*v1alpha1.Preemption{}
		for range 40 {
			pod := []string{"a", "b", "c"}[r.IntN(3)]
			name := fmt.Sprintf("%s-%d", pod, r.IntN(2))
			node := fmt.Sprintf("n%d", len(name)+int(name[0])%2) // that of a name never changes
			switch p := now[name]; {
			case p != nil && r.IntN(4) == 0:
				c.gone(p)
				delete(now, name)
			case p == nil || p.Status.Phase.Active():
				now[name] = forPod(t, name, pod, node, phases[r.IntN(len(phases))])
				c.seen(now[name])
			}
			if r.IntN(5) == 0 {
				k.fill(gpu.NodeID(node), r.IntN(2) == 0)
			}
		}
		for _, p := range now {
			k.fill(gpu.NodeID(p.Spec.Node), false)
		}
		c.retry()
		want := map[gpu.PodID]bool{}
		for _, p := range now {
			if p.Status.Phase.Active() {
				want[gpu.PodID(p.Spec.Preemptor.UID)] = true
			}
		}
		got := map[gpu.PodID]bool{}
		for pod := range k.claimed {
			got[pod] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +kept):\n%s", seed, diff)
		}
	}
}

// Who goes for the claim is told to the ledger, and a pod that has its node is asked for
// no more.
func TestClaimsTellTheLedger(t *testing.T) {
	k := newCounter()
	c := newClaims(k, newShelf().Logger)
	c.seen(forPod(t, "a-1", "a", "n1", "", "v1", "v2"))
	if diff := cmp.Diff([]gpu.PodID{"v1", "v2"}, k.victims["uid-a"]); diff != "" {
		t.Errorf("victims (-want +got):\n%s", diff)
	}
	k.bound["uid-b"] = true
	c.seen(forPod(t, "b-1", "b", "n1", v1alpha1.PreemptionHeld))
	k.bound["uid-b"] = false
	c.retry()
	if got := k.now(); got != "uid-a on n1" {
		t.Errorf("kept: %q", got)
	}
}

func TestClaimsSayWhatIsWrongOnce(t *testing.T) {
	var lines []string
	k := newCounter()
	c := newClaims(k, said(&lines))
	k.fill("n1", true)
	broken := forPod(t, "b-1", "b", "n1", "")
	broken.Spec.Allocation = "{"
	c.seen(forPod(t, "a-1", "a", "n1", ""))
	if len(lines) > 0 {
		t.Errorf("said before everything is here: %q", lines)
	}
	c.started = true
	for range 3 {
		c.retry()
		c.seen(forPod(t, "a-1", "a", "n1", ""))
	}
	c.seen(broken)
	if len(lines) != 2 || !strings.Contains(lines[0], "is not free") || !strings.Contains(lines[0], `"preemption"="a-1"`) || !strings.Contains(lines[1], "cannot be read") {
		t.Errorf("said: %q", lines)
	}
	if got := k.now(); got != "" {
		t.Errorf("kept: %q", got)
	}
}

// A replica is not ready before what its predecessors keep is kept, and follows it.
func TestClusterKeepsClaims(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams %t", streams), func(t *testing.T) {
			server := newAPIServer(t, func(s *apiServer) {
				s.streams = streams
				s.preemptions = []v1alpha1.Preemption{*forPod(t, "a-1", "a", "n1", v1alpha1.PreemptionDraining), *forPod(t, "b-1", "b", "n1", v1alpha1.PreemptionBound)}
			})
			k := newCounter()
			c, err := NewCluster(server.client(t), server.own(t), &newShelf().Books)
			if err != nil {
				t.Fatal(err)
			}
			c.claims.ledger = k
			runs(t, c)
			until(c.Ready)
			if got := k.now(); got != "uid-a on n1" {
				t.Errorf("ready with %q kept", got)
			}
			news := server.written["preemptions"]
			news <- watchEvent("ADDED", v1alpha1.PreemptionKind, forPod(t, "c-1", "c", "n2", ""))
			until(func() bool { return k.now() == "uid-a on n1, uid-c on n2" })
			news <- watchEvent("MODIFIED", v1alpha1.PreemptionKind, forPod(t, "a-1", "a", "n1", v1alpha1.PreemptionRolledBack))
			until(func() bool { return k.now() == "uid-c on n2" })
			news <- watchEvent("DELETED", v1alpha1.PreemptionKind, forPod(t, "c-1", "c", "n2", ""))
			until(func() bool { return k.now() == "" })
			if _, err := c.Preemptions().Get("b-1"); err != nil {
				t.Error(err)
			}
		})
	}
}

func runs(t *testing.T, c *Cluster) {
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { stop(); group.Wait() })
}

// Without the kind nobody knows what is kept, so nothing is decided.
func TestWithoutTheKindPreemption(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) { s.lacksMore.Store(true) })
	var mu sync.Mutex
	told := false
	shelf := newShelf()
	shelf.Logger = funcr.New(func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		told = told || strings.Contains(text, "the API server knows no preemptions.heteroflow.io: install the chart's CRDs")
	}, funcr.Options{})
	c, err := NewCluster(server.client(t), server.own(t), &shelf.Books)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, c)
	until(func() bool { mu.Lock(); defer mu.Unlock(); return told })
	if c.Ready() {
		t.Error("ready without the kind")
	}
	server.lacksMore.Store(false)
	until(c.Ready)
}

// A new leader reads what the one before has written a moment ago past its own cache.
func TestCatchUpFindsWhatIsKept(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) {
		s.preemptions = []v1alpha1.Preemption{*forPod(t, "a-1", "a", "n1", ""), *forPod(t, "b-1", "b", "n1", v1alpha1.PreemptionExpired)}
	})
	k := newCounter()
	shelf := newShelf()
	c, err := NewCluster(server.client(t), server.own(t), &shelf.Books)
	if err != nil {
		t.Fatal(err)
	}
	c.claims.ledger = k
	c.claims.seen(forPod(t, "b-1", "b", "n1", v1alpha1.PreemptionHeld)) // as the watch has it
	if err := c.CatchUp(t.Context(), server.client(t), server.own(t)); err != nil {
		t.Fatal(err)
	}
	if got := k.now(); got != "uid-a on n1" {
		t.Errorf("kept: %q", got)
	}
	if diff := cmp.Diff([]string{"preemptions list"}, server.questions("preemptions")); diff != "" {
		t.Errorf("asked, which has to be for the newest state (-want +got):\n%s", diff)
	}
	server.lacksMore.Store(true)
	if err := c.CatchUp(t.Context(), server.client(t), server.own(t)); err == nil || !strings.HasPrefix(err.Error(), "read what preemptions keep: ") {
		t.Errorf("error %v", err)
	}
}

func TestSucceeds(t *testing.T) {
	owned := func(state v1alpha1.VictimState, owner types.UID, count int32, successor types.UID) *v1alpha1.Preemption {
		raw, _ := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%s-%d-%s", state, owner, count, successor)},
			"spec":     map[string]any{"victims": []any{map[string]any{"count": 1}, map[string]any{"count": count, "owner": map[string]any{"uid": owner, "kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "x"}}}},
			"status":   map[string]any{"victims": []any{map[string]any{"state": "Evicting"}, map[string]any{"state": state, "successor": successor}}},
		})
		p := &v1alpha1.Preemption{}
		if err := json.Unmarshal(raw, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	in := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{owedIndex: owed})
	fresh := owned(v1alpha1.VictimEvicting, "fresh", 1, "")
	fresh.Status = v1alpha1.PreemptionStatus{}
	for _, p := range []*v1alpha1.Preemption{
		owned(v1alpha1.VictimEvicting, "going", 1, ""), owned(v1alpha1.VictimGone, "gone", 1, ""), owned(v1alpha1.VictimGone, "gone", 3, ""),
		owned(v1alpha1.VictimChosen, "chosen", 1, ""), owned(v1alpha1.VictimSpared, "spared", 1, ""), owned(v1alpha1.VictimSucceeded, "met", 1, "new"),
		owned(v1alpha1.VictimGone, "seen", 1, "new"), owned(v1alpha1.VictimGone, "none", 0, ""), fresh,
	} {
		if err := in.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[types.UID]int{"going": 1, "gone": 3, "chosen": 0, "spared": 0, "met": 0, "seen": 0, "none": 1, "fresh": 0, "": 0, "nobody": 0} {
		count, ok := succeeds(in, owner)
		if count != want || ok != (want > 0) {
			t.Errorf("%s: %d, %t, want %d", owner, count, ok, want)
		}
	}
	if err := in.Update(owned(v1alpha1.VictimEvicting, "going", 1, "")); err != nil {
		t.Fatal(err)
	}
	met := owned(v1alpha1.VictimEvicting, "going", 1, "")
	met.Status.Victims[1].Successor = "new"
	if err := in.Update(met); err != nil {
		t.Fatal(err)
	}
	if _, ok := succeeds(in, "going"); ok {
		t.Error("what has been met is still owed")
	}
}
