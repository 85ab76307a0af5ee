package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// errGone is what a connection that breaks leaves.
var errGone = errors.New("connection reset")

// stored is a pod at the API server.
type stored struct {
	engine.Pod
	version int // grows with every change
	p       gpu.Placement
	foreign bool
}

// server is a little API server with the pods of a run. It is the engine's Pods
// and its Binder, and tells what happens to pods in the order in which it does.
type server struct {
	truth *truth

	mu    sync.Mutex
	rnd   *rand.Rand            // guarded by mu; what goes wrong
	pods  map[string]*stored    // guarded by mu; name -> pod
	seen  map[string]engine.Pod // guarded by mu; as the informer has them
	news  []event               // guarded by mu; not told yet
	late  []func()              // guarded by mu; Bindings that are still on their way
	down  bool                  // guarded by mu; it answers no reads
	calm  bool                  // guarded by mu; nothing goes wrong any more
	bound int64                 // guarded by mu; Bindings that have come to pass
}

var (
	_ engine.Pods   = (*server)(nil)
	_ engine.Binder = (*server)(nil)
)

// what has happened to a pod.
type what int

const (
	created what = iota
	gotNode
	stopping
	ended
	removed  // while it was not bound
	orphaned // the object has gone, the containers perhaps not
)

type event struct {
	what
	pod stored // as it is since then
}

func newServer(t *truth, rnd *rand.Rand) *server {
	return &server{truth: t, rnd: rnd, pods: map[string]*stored{}, seen: map[string]engine.Pod{}}
}

// tell notes news. It is called with mu held.
func (s *server) tell(w what, at *stored) {
	s.news = append(s.news, event{w, *at})
}

// create stores a pod.
func (s *server) create(r gpu.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &stored{Pod: engine.Pod{Request: r}}
	s.pods[r.Name] = at
	s.tell(created, at)
}

// force stores a pod that somebody else has bound.
func (s *server) force(r gpu.Request, p gpu.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &stored{Pod: engine.Pod{Request: r, Node: p.Node}, p: p, foreign: true}
	s.pods[r.Name] = at
	b := newBody(p)
	b.forced = true
	s.truth.enter(b)
	s.tell(gotNode, at)
}

// stop marks a pod as being deleted.
func (s *server) stop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.pods[name]; at != nil && !at.Gone && at.Node != "" {
		at.Gone = true
		at.version++
		s.tell(stopping, at)
	}
}

// end ends a pod in the ordinary way: its containers first.
func (s *server) end(name string) { s.take(name, ended, s.truth.leave) }

// remove deletes the object by force; the containers have ended by then.
func (s *server) remove(name string, until time.Time) {
	s.take(name, orphaned, func(pod gpu.PodID) { s.truth.orphan(pod, until) })
}

// take takes the pod out, if there is one. Of one that is bound it tells that, once
// the truth knows.
func (s *server) take(name string, w what, know func(gpu.PodID)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.pods[name]
	if at == nil {
		return
	}
	if at.Node == "" {
		w = removed
	} else {
		know(at.Request.Pod)
	}
	s.tell(w, at)
	delete(s.pods, name)
}

// next takes the oldest news, false when there is none.
func (s *server) next() (event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.news) == 0 {
		return event{}, false
	}
	e := s.news[0]
	s.news = s.news[1:]
	switch e.what {
	case created, gotNode, stopping:
		s.seen[e.pod.Request.Name] = e.pod.Pod
	case ended, removed, orphaned:
		delete(s.seen, e.pod.Request.Name)
	}
	return e, true
}

// Pod implements engine.Pods: as the informer has it.
func (s *server) Pod(ctx context.Context, namespace, name string) (engine.Pod, error) {
	s.mu.Lock()
	p, ok := s.seen[name]
	s.mu.Unlock()
	if ok {
		return p, nil
	}
	return s.Live(ctx, namespace, name)
}

// Live implements engine.Pods.
func (s *server) Live(ctx context.Context, namespace, name string) (engine.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.get(ctx, namespace, name)
	if err != nil {
		return engine.Pod{}, err
	}
	return at.Pod, nil
}

// get is called with mu held.
func (s *server) get(ctx context.Context, namespace, name string) (*stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.down {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, errGone)
	}
	at, ok := s.pods[name]
	if !ok {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, engine.ErrNoPod)
	}
	return at, nil
}

// Touch implements engine.Pods.
func (s *server) Touch(ctx context.Context, t engine.Target, _ string) (engine.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.get(ctx, t.Namespace, t.Name)
	if err != nil {
		return engine.Pod{}, err
	}
	at.version++
	return at.Pod, nil
}

// Suits implements engine.Nominator: kube-scheduler has nothing against any node.
func (s *server) Suits(engine.Target) bool { return true }

// Nominate implements engine.Nominator.
func (s *server) Nominate(ctx context.Context, t engine.Target, why string) (engine.Pod, error) {
	return s.Touch(ctx, t, why)
}

// Withdraw implements engine.Nominator.
func (s *server) Withdraw(ctx context.Context, t engine.Target) error {
	_, err := s.Touch(ctx, t, "")
	return err
}

// attempt is where the context of a bind has its body.
type attempt struct{}

// trouble is what becomes of a Binding.
type trouble int

const (
	refused     trouble = iota
	lostRequest         // the connection breaks before it is written
	lostAnswer          // it is written, and the connection breaks
	unclear             // likewise, and the error is of no kind
	underway            // the connection breaks, and it arrives later
	hangs               // nothing happens until the caller gives up
	noTrouble
)

// Bind implements engine.Binder: most Bindings come to pass.
func (s *server) Bind(ctx context.Context, p gpu.Placement, _ map[string]string) error {
	b := s.truth.decided(ctx.Value(attempt{}).(body), p)
	how, version := s.arrive(p.Name)
	unknown := fmt.Errorf("%w: %w", errGone, engine.ErrUnknown)
	switch how {
	case refused:
		return fmt.Errorf("admission: %w", engine.ErrRefused)
	case lostRequest:
		return unknown
	case lostAnswer:
		_ = s.write(b, version)
		return unknown
	case unclear:
		_ = s.write(b, version)
		return errGone
	case underway:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, func() { _ = s.write(b, version) })
		return unknown
	case hangs:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", ctx.Err(), engine.ErrUnknown)
	case noTrouble:
	}
	return s.write(b, version)
}

// arrive says what becomes of a Binding, and for which version of the pod it is.
func (s *server) arrive(name string) (how trouble, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.pods[name]; at != nil {
		version = at.version
	}
	const seldom = 200 // of as many Bindings one goes wrong in each of the ways
	how = min(trouble(s.rnd.IntN(seldom)), noTrouble)
	if s.calm || how == hangs && s.rnd.IntN(10) > 0 { // waiting costs time
		how = noTrouble
	}
	return how, version
}

// write does what the API server does with a Binding.
func (s *server) write(b body, version int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.pods[b.p.Name]
	switch {
	case !ok || at.Request.Pod != b.p.Pod:
		return fmt.Errorf("no pod of that UID: %w", engine.ErrRefused)
	case at.Node != "" || at.Gone:
		return fmt.Errorf("pod is assigned: %w", engine.ErrRefused)
	case at.version != version:
		return fmt.Errorf("version %d is not %d: %w", version, at.version, engine.ErrRefused)
	}
	at.version++
	at.Node, at.Ours, at.p = b.p.Node, true, b.p
	s.bound++
	s.truth.enter(b)
	s.tell(gotNode, at)
	return nil
}

// deliver lets the Bindings arrive that are still on their way.
func (s *server) deliver() {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, arrive := range late {
		arrive()
	}
}

// isBound reports whether the pod has a node, or is no more.
func (s *server) isBound(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.pods[name]
	return !ok || at.Node != ""
}

// setDown lets reads fail, or work again.
func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down && !s.calm
}

// settle ends all that goes wrong.
func (s *server) settle(calm bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm, s.down = calm, false
}
