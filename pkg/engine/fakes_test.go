package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// behaviour is what happens to a Binding on its way.
type behaviour int

const (
	works         behaviour = iota
	refuses                 // the API server says no
	losesAnswer             // it is written, and the connection breaks
	losesRequest            // the connection breaks before it is written
	hangs                   // nothing happens until the caller gives up
	hangsThenDone           // likewise, and it is written then
	saysNeither             // it is written, and the error is of no kind
	comesLate               // the connection breaks, and it arrives when let go
)

// apiServer is a little API server: pods that Bindings put onto nodes, under the
// rules that the real one has. It is the engine's Pods and its Binder.
type apiServer struct {
	mu      sync.Mutex
	pods    map[string]*stored // guarded by mu; namespace/name -> pod
	cache   map[string]Pod     // guarded by mu; what the informer has seen, where that is older
	down    bool               // guarded by mu; reads fail
	next    []behaviour        // guarded by mu; of the Bindings to come; then works
	binds   int                // guarded by mu; Bindings that have arrived
	said    map[string]string  // guarded by mu; what the pod had said of the last of them
	reads   int                // guarded by mu; reads past the cache
	busy    chan struct{}      // if not nil, each Binding waits for a token, after it has arrived
	late    []func()           // guarded by mu; Bindings that are still on their way
	touched []string           // guarded by mu; names
	// What is known of nominations.
	unsuited  map[gpu.NodeID]bool // guarded by mu; nodes that kube-scheduler lets nobody onto
	nominees  map[string]string   // guarded by mu; name -> node, as it is on the pod
	nominated []string            // guarded by mu; name@node, all there have been
	withdrawn []string            // guarded by mu; likewise
}

type stored struct {
	Pod
	version   int // grows with every change
	placement gpu.Placement
}

func newServer() *apiServer {
	return &apiServer{pods: map[string]*stored{}, cache: map[string]Pod{}, unsuited: map[gpu.NodeID]bool{}, nominees: map[string]string{}}
}

func key(namespace, name string) string { return namespace + "/" + name }

// create stores a pod of the name and UID of the request.
func (s *apiServer) create(r gpu.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[key(r.Namespace, r.Name)] = &stored{Pod: Pod{Request: r}}
}

// change edits a pod as somebody else would.
func (s *apiServer) change(name string, f func(*Pod)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.pods[key("ns", name)]
	f(&at.Pod)
	at.version++
}

// deliver lets the Bindings arrive that are still on their way.
func (s *apiServer) deliver() {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, arrive := range late {
		arrive()
	}
}

func (s *apiServer) Touch(ctx context.Context, t Target, _ string) (Pod, error) {
	return s.patch(ctx, t, func() { s.touched = append(s.touched, t.Name) })
}

// patch changes a pod's status.
func (s *apiServer) patch(ctx context.Context, t Target, change func()) (Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return Pod{}, fmt.Errorf("patch pod %s/%s: connection refused", t.Namespace, t.Name)
	}
	if err := ctx.Err(); err != nil {
		return Pod{}, err
	}
	at, ok := s.pods[key(t.Namespace, t.Name)]
	switch {
	case !ok:
		return Pod{}, ErrNoPod
	case at.Request.Pod != t.Pod:
		return Pod{}, fmt.Errorf("another UID")
	}
	change()
	at.version++
	return at.Pod, nil
}

func (s *apiServer) Suits(t Target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unsuited[t.Node]
}

func (s *apiServer) Nominate(ctx context.Context, t Target, _ string) (Pod, error) {
	return s.patch(ctx, t, func() {
		if s.pods[key(t.Namespace, t.Name)].Node == "" {
			s.nominees[t.Name] = string(t.Node)
			s.nominated = append(s.nominated, t.Name+"@"+string(t.Node))
		}
	})
}

func (s *apiServer) Withdraw(ctx context.Context, t Target) error {
	_, err := s.patch(ctx, t, func() {
		if s.nominees[t.Name] == string(t.Node) {
			delete(s.nominees, t.Name)
			s.withdrawn = append(s.withdrawn, t.Name+"@"+string(t.Node))
		}
	})
	return err
}

func (s *apiServer) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, key("ns", name))
}

// freeze lets the cache show pods as they are now, whatever happens to them.
func (s *apiServer) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, p := range s.pods {
		s.cache[k] = p.Pod
	}
}

// asked returns how many reads went past the cache.
func (s *apiServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *apiServer) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *apiServer) Pod(_ context.Context, namespace, name string) (Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.cache[key(namespace, name)]; ok {
		return p, nil
	}
	return s.read(namespace, name)
}

func (s *apiServer) Live(ctx context.Context, namespace, name string) (Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.down {
		return Pod{}, fmt.Errorf("get pod %s/%s: connection refused", namespace, name)
	}
	if err := ctx.Err(); err != nil {
		return Pod{}, err
	}
	return s.read(namespace, name)
}

// read is called with mu held.
func (s *apiServer) read(namespace, name string) (Pod, error) {
	if p, ok := s.pods[key(namespace, name)]; ok {
		return p.Pod, nil
	}
	return Pod{}, fmt.Errorf("get pod %s/%s: %w", namespace, name, ErrNoPod)
}

func (s *apiServer) Bind(ctx context.Context, p gpu.Placement, said map[string]string) error {
	how, version := s.arrive(p, said)
	if s.busy != nil {
		select {
		case <-s.busy:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
		}
	}
	switch how {
	case refuses:
		return fmt.Errorf("quota: %w", ErrRefused)
	case losesRequest:
		return fmt.Errorf("connection reset: %w", ErrUnknown)
	case hangs:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	case hangsThenDone:
		<-ctx.Done()
		_ = s.write(p, version)
		return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	case losesAnswer:
		_ = s.write(p, version)
		return fmt.Errorf("connection reset: %w", ErrUnknown)
	case saysNeither:
		_ = s.write(p, version)
		return fmt.Errorf("something else")
	case comesLate:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, func() { _ = s.write(p, version) })
		return fmt.Errorf("connection reset: %w", ErrUnknown)
	}
	return s.write(p, version)
}

// arrive counts a Binding, and says for which version of the pod it is.
func (s *apiServer) arrive(p gpu.Placement, said map[string]string) (how behaviour, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.binds++
	s.said = said
	if at, ok := s.pods[key(p.Namespace, p.Name)]; ok {
		version = at.version
	}
	if len(s.next) == 0 {
		return works, version
	}
	how = s.next[0]
	s.next = s.next[1:]
	return how, version
}

// write does what the API server does with a Binding: UID and version must be
// right, and the pod must be neither bound nor being deleted.
func (s *apiServer) write(p gpu.Placement, version int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.pods[key(p.Namespace, p.Name)]
	switch {
	case !ok || at.Request.Pod != p.Pod:
		return fmt.Errorf("no pod of that UID: %w", ErrRefused)
	case at.Node != "" || at.Gone:
		return fmt.Errorf("pod is assigned to %q: %w", at.Node, ErrRefused)
	case at.version != version:
		return fmt.Errorf("version %d is not %d: %w", version, at.version, ErrRefused)
	}
	at.version++
	at.Node, at.Ours, at.placement = p.Node, true, p
	return nil
}

// bound returns what Bindings of ours have put where, by pod.
func (s *apiServer) bound() map[gpu.PodID]gpu.Placement {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[gpu.PodID]gpu.Placement{}
	for _, p := range s.pods {
		if p.Ours {
			out[p.Request.Pod] = p.placement
		}
	}
	return out
}

// mustNotOversell proves from the pods alone that no whole card has two holders
// and no other has more than fits.
func (s *apiServer) mustNotOversell(t testing.TB, usable gpu.MiB) {
	t.Helper()
	type sum struct {
		whole, pods int
		memory      gpu.MiB
	}
	cards := map[gpu.CardID]*sum{}
	for _, p := range s.bound() {
		for _, u := range p.Uses() {
			c := cards[u.Card]
			if c == nil {
				c = &sum{}
				cards[u.Card] = c
			}
			c.pods++
			if u.Use.Exclusive {
				c.whole++
			} else {
				c.memory += u.Use.Memory
			}
		}
	}
	for id, c := range cards {
		if c.whole > 0 && c.pods > 1 || c.memory > usable {
			t.Errorf("card %s has %d pods, %d of them whole, and %d MiB", id, c.pods, c.whole, c.memory)
		}
	}
}

// mustAgree proves that the ledger holds exactly what the API server has bound.
func (s *apiServer) mustAgree(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	bound := s.bound()
	for id, p := range bound {
		h, ok := l.Hold(id)
		if !ok || h.Node != p.Node || fmt.Sprint(h.Uses()) != fmt.Sprint(p.Uses()) {
			t.Errorf("pod %s is bound to %s with %v, the ledger holds %s %v", id, p.Node, p.Uses(), h.Node, h.Uses())
		}
	}
	for _, id := range l.Pods() {
		if _, ok := bound[id]; !ok {
			h, _ := l.Hold(id)
			t.Errorf("the ledger holds %v on %s for pod %s, which is not bound", h.Uses(), h.Node, id)
		}
	}
}

// cards returns n cards named after their node, of 1000 MiB, of which slices
// may take 900.
func cards(node gpu.NodeID, n int) []gpu.Card {
	out := make([]gpu.Card, n)
	for i := range out {
		out[i] = gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("%s-d%d", node, i)), Index: i, Vendor: gpu.Nvidia, Model: "A100",
			Memory: 1000, Usable: 900, Cores: 100, UsableCores: 100, MaxSlices: 10,
			NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
		}
	}
	return out
}

// pod returns the request of the pod ns/name with the UID name.
func pod(name string, asks ...gpu.Ask) gpu.Request {
	r := gpu.Request{Pod: gpu.PodID(name), Namespace: "ns", Name: name, NUMA: gpu.NoNUMA, Asks: asks}
	for i := range r.Asks {
		r.Asks[i].Container, r.Asks[i].Number = fmt.Sprintf("c%d", i), i
	}
	return r
}

func whole(count int) gpu.Ask { return gpu.Ask{Count: count, Whole: true} }

func slice(memory gpu.MiB) gpu.Ask { return gpu.Ask{Count: 1, Memory: memory} }

func target(name string, node gpu.NodeID) Target {
	return Target{Pod: gpu.PodID(name), Namespace: "ns", Name: name, Node: node}
}

// cluster is an engine with what it works on.
type cluster struct {
	*Engine
	ledger *ledger.Ledger
	server *apiServer
}

// newCluster has the nodes n1 and on, with so many cards each.
func newCluster(perNode ...int) cluster {
	l, s := ledger.New(rules{}), newServer()
	for i, n := range perNode {
		id := gpu.NodeID(fmt.Sprintf("n%d", i+1))
		l.SetNode(ledger.Facts{ID: id, Cards: cards(id, n)})
	}
	settings := policy.Default()
	settings.Plugins = settings.Plugins[:2] // spread alone, so that totals can be worked out by hand
	pipe := settings.Pipeline()
	return cluster{
		Engine: New(Config{
			Ledger: l, Pipeline: func() *pipeline.Pipeline { return pipe }, Pods: s, Binder: s, Now: time.Now,
			Wait: 5 * time.Second, Readback: 5 * time.Second, Retry: 500 * time.Millisecond,
		}),
		ledger: l, server: s,
	}
}

// confirm is the informer: it sees all pods as they are, first in its cache, then
// in the ledger.
func (c cluster) confirm() {
	c.server.freeze()
	for _, p := range c.server.bound() {
		c.ledger.Confirm(p)
	}
}

// mustLeaveNoGate fails when somebody is still let in.
func (c cluster) mustLeaveNoGate(t testing.TB) {
	t.Helper()
	if n, m := len(c.pods.open), len(c.nodes.open); n+m > 0 {
		t.Errorf("%d gates of pods and %d of nodes are left", n, m)
	}
}
