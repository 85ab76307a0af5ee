package quality

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"heteroflow.io/heteroflow/pkg/simulate"
)

// fate is what becomes of a pod: refused at first or not, and bound after that time or
// never.
type fate struct {
	refused bool
	bound   time.Duration // 0: never
}

// server is an API server with a scheduler that goes by fates, by the order in which
// pods come.
type server struct {
	fates []fate
	watch chan watch.Event

	mu    sync.Mutex
	there map[string]bool // guarded by mu; pods that were not deleted
	all   sync.WaitGroup
}

func newServer(fates ...fate) *server {
	return &server{fates: fates, watch: make(chan watch.Event), there: map[string]bool{}}
}

func (s *server) Create(ctx context.Context, p *corev1.Pod) (types.UID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = p.DeepCopy()
	p.UID = types.UID("uid-" + p.Name)
	s.there[p.Name] = true
	next := s.fates[0]
	s.fates = s.fates[1:]
	s.all.Go(func() { s.schedule(ctx, p, next) })
	return p.UID, nil
}

func (s *server) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.there[name] {
		return errors.New("there is no such pod")
	}
	delete(s.there, name)
	return nil
}

// schedule tells of the pod what a watch does: of each of its versions.
func (s *server) schedule(ctx context.Context, p *corev1.Pod, f fate) {
	tell := func(change func(*corev1.Pod)) {
		p = p.DeepCopy()
		change(p)
		select {
		case s.watch <- watch.Event{Type: watch.Modified, Object: p}:
		case <-ctx.Done():
		}
	}
	tell(func(*corev1.Pod) {})
	if f.refused {
		tell(func(p *corev1.Pod) { condition(p, "Unschedulable") })
	}
	if f.bound > 0 {
		time.Sleep(f.bound)
		tell(func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	}
}

func condition(p *corev1.Pod, reason string) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason}}
}

func TestPlace(t *testing.T) {
	const soon = 10 * time.Millisecond
	half, whole := simulate.Shape{Cards: 1, Milli: 500}, simulate.Shape{Cards: 1, Milli: 1000}
	type result struct {
		placed                       []bool
		bound, second, missed, asked int
		took                         time.Duration
	}
	tests := map[string]struct {
		fates  []fate
		shapes []simulate.Shape
		room   bool
		want   result
	}{
		"bound one after the other": {
			[]fate{{bound: soon}, {bound: soon}}, []simulate.Shape{half, whole}, false,
			result{placed: []bool{true, true}, bound: 2, took: 2 * soon},
		},
		"refused, and there is no room": {
			[]fate{{refused: true}}, []simulate.Shape{half}, false,
			result{placed: []bool{false}, asked: 1},
		},
		"where there was no room there is none": {
			[]fate{{refused: true}, {refused: true}, {refused: true}}, []simulate.Shape{half, whole, half}, false,
			result{placed: []bool{false, false, false}, asked: 2},
		},
		"refused, and bound once a node is nominated": {
			[]fate{{refused: true, bound: 3 * time.Second}, {bound: soon}}, []simulate.Shape{half, half}, true,
			result{placed: []bool{true, true}, bound: 2, second: 1, asked: 1, took: 3*time.Second + soon},
		},
		"refused, and nobody nominates a node": {
			[]fate{{refused: true}}, []simulate.Shape{half}, true,
			result{placed: []bool{false}, missed: 1, asked: 1, took: nomination},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				s := newServer(tc.fates...)
				got := result{}
				room := func([]corev1.Pod, *corev1.Pod) bool { got.asked++; return tc.room }
				d := &driver{pods: s, watch: s.watch, room: room, full: map[simulate.Shape]bool{}}
				began := time.Now()
				for i, shape := range tc.shapes {
					placed, err := d.place(ctx, i, shape)
					if err != nil {
						t.Fatal(err)
					}
					if got.placed = append(got.placed, placed); s.has(podName(i)) != placed {
						t.Errorf("pod %d is there: %t, placed: %t", i, s.has(podName(i)), placed)
					}
				}
				got.bound, got.second, got.missed, got.took = len(d.bound), d.second, d.missed, time.Since(began)
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				stop()
				s.all.Wait()
			})
		})
	}
}

func (s *server) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.there[name]
}

// A pod of which nothing is heard is no pod without room: the run would count it as one.
func TestPlaceFails(t *testing.T) {
	tests := map[string]struct {
		spoil func(s *server, stop context.CancelFunc)
		want  string
	}{
		"nothing is heard of it": {func(*server, context.CancelFunc) {}, "pod pod-00000: neither bound nor refused: nothing was seen"},
		"the watch ends":         {func(s *server, _ context.CancelFunc) { close(s.watch) }, "the watch of pods has ended"},
		"the run is over":        {func(_ *server, stop context.CancelFunc) { stop() }, "context canceled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				s := &silent{server: newServer()}
				d := &driver{pods: s, watch: s.watch, full: map[simulate.Shape]bool{}}
				tc.spoil(s.server, stop)
				if _, err := d.place(ctx, 0, simulate.Shape{}); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			})
		})
	}
}

// silent is a server whose scheduler does nothing.
type silent struct{ *server }

func (*silent) Create(context.Context, *corev1.Pod) (types.UID, error) { return "u", nil }

func TestRefused(t *testing.T) {
	tests := map[string]struct {
		reason string
		status corev1.ConditionStatus
		want   bool
	}{
		"no node does":           {"Unschedulable", corev1.ConditionFalse, true},
		"the extender is away":   {"SchedulerError", corev1.ConditionFalse, false}, // it is tried again
		"a condition of success": {"Unschedulable", corev1.ConditionTrue, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := pod(0, simulate.Shape{})
			if refused(p) {
				t.Fatal("a new pod is refused")
			}
			condition(p, tc.reason)
			p.Status.Conditions[0].Status = tc.status
			if got := refused(p); got != tc.want {
				t.Errorf("refused = %t", got)
			}
		})
	}
}
