package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// board is where events are written: name -> event, as the API server keeps
// them.
type board struct {
	mu     sync.Mutex
	events map[string]corev1.Event // guarded by mu
	fault  int                     // guarded by mu: answer with this instead
}

func (b *board) set(fault int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// RoundTrip creates and patches.
func (b *board) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if b.fault != 0 {
		return answers(b.fault, "out of order"), nil
	}
	var ev corev1.Event
	if r.Method == http.MethodPatch {
		ev = b.events[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
	}
	if err := json.Unmarshal(body, &ev); err != nil {
		return nil, err
	}
	if _, there := b.events[ev.Name]; there && r.Method == http.MethodPost {
		response := answers(http.StatusConflict, "exists")
		response.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`))
		return response, nil
	}
	b.events[ev.Name] = ev
	response := answers(http.StatusCreated, "")
	response.Body = io.NopCloser(strings.NewReader(`{"kind":"Event","apiVersion":"v1"}`))
	return response, nil
}

// read returns "type reason xcount: message" of each event.
func (b *board) read() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := map[string]int{}
	for _, ev := range b.events {
		lines[fmt.Sprintf("%s %s %s: %s", ev.InvolvedObject.Name, ev.Type, ev.Reason, ev.Message)] = int(ev.Count)
	}
	return lines
}

// desk is events being written onto a board, in a bubble with its own time.
type desk struct {
	*Events
	*board
	dropped func() int
	stop    func() error
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	b := &board{events: map[string]corev1.Event{}}
	client, err := newClient("http://api", b)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	drops := 0
	e := NewEvents(client, time.Now, func() { mu.Lock(); defer mu.Unlock(); drops++ })
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	return &desk{
		Events: e, board: b,
		dropped: func() int { mu.Lock(); defer mu.Unlock(); return drops },
		stop:    func() error { stop(); return <-ran },
	}
}

func (d *desk) refuse(pod, codes, text string) {
	d.Refused(&gpu.Request{Pod: gpu.PodID("uid-" + pod), Namespace: "ns", Name: pod}, gpu.Reason(codes[:1]), codes, text)
	synctest.Wait()
}

func (d *desk) want(t *testing.T, want map[string]int) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, d.read()); diff != "" {
		t.Errorf("events and their counts (-want +got):\n%s", diff)
	}
}

// bubble runs the test with virtual time and stops the desk at its end.
func bubble(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		test(t, d)
		if err := d.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	})
}

func TestOneEventPerChange(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		for i := range 50 { // figures change, the set does not
			d.refuse("p", "A,B", fmt.Sprintf("0/5 nodes: %d A", i))
		}
		d.want(t, map[string]int{"p Warning A: 0/5 nodes: 0 A": 1})
		d.refuse("p", "B", "0/5 nodes: 5 B")
		d.refuse("q", "A,B", "0/5 nodes: 1 A")
		d.want(t, map[string]int{"p Warning A: 0/5 nodes: 0 A": 1, "p Warning B: 0/5 nodes: 5 B": 1, "q Warning A: 0/5 nodes: 1 A": 1})
		d.refuse("p", "A,B", "0/5 nodes: 99 A") // told before: the same event again, up to date
		d.want(t, map[string]int{"p Warning A: 0/5 nodes: 99 A": 2, "p Warning B: 0/5 nodes: 5 B": 1, "q Warning A: 0/5 nodes: 1 A": 1})
	})
}

// client-go would put the eleventh and later into one "combined" event.
func TestDistinctSetsAreNotDropped(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		want := map[string]int{}
		for i := range 30 {
			d.refuse("p", fmt.Sprintf("A,%d", i), fmt.Sprintf("text %d", i))
			want[fmt.Sprintf("p Warning A: text %d", i)] = 1
			time.Sleep(time.Minute)
		}
		d.want(t, want)
		if n := d.dropped(); n != 0 {
			t.Errorf("%d dropped", n)
		}
	})
}

// A pod whose sets change all the time does not flood the API server, and is
// told what is the case in the end.
func TestFlappingIsThinnedOut(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		for i := range 1000 {
			d.refuse("p", fmt.Sprintf("A,%d", i), "text")
		}
		synctest.Wait()
		if n := len(d.board.events); n != burst {
			t.Errorf("%d events at once, want %d", n, burst)
		}
		time.Sleep(time.Minute)
		d.refuse("p", "B", "the end")
		if d.read()["p Warning B: the end"] != 1 {
			t.Error("the last state was not told")
		}
	})
}

func TestWhatStillHoldsIsToldAgain(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.refuse("p", "A", "text")
		time.Sleep(retell - time.Second)
		d.refuse("p", "A", "text")
		d.want(t, map[string]int{"p Warning A: text": 1})
		time.Sleep(time.Second)
		d.refuse("p", "A", "text")
		d.want(t, map[string]int{"p Warning A: text": 2})
	})
}

func TestForgottenPodsAreNews(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.refuse("p", "A", "first")
		d.Forget("uid-p")
		d.refuse("p", "A", "second")
		d.want(t, map[string]int{"p Warning A: second": 1})
	})
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	for i := range mostPods + 5 {
		m.refusal(gpu.PodID(fmt.Sprint(i)), "A", start())
	}
	if n := m.pods.Len(); n != mostPods {
		t.Errorf("%d pods remembered, want %d", n, mostPods)
	}
	for i := range 10 * mostSets {
		m.refusal("p", fmt.Sprint(i), start().Add(time.Duration(i)*time.Hour))
	}
	if n := len(m.of("p").times); n > mostSets {
		t.Errorf("%d sets remembered, want at most %d", n, mostSets)
	}
}

func TestFailedWritesAreCountedAndToldLater(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.set(http.StatusInternalServerError)
		d.refuse("p", "A", "lost")
		d.want(t, map[string]int{})
		if n := d.dropped(); n != 1 {
			t.Errorf("%d dropped, want 1", n)
		}
		d.set(0)
		d.refuse("p", "A", "told")
		d.want(t, map[string]int{"p Warning A: told": 2})
	})
}

// Nobody writes: the queue fills, and a request is still not held up.
func TestFullQueueDropsAndNeverBlocks(t *testing.T) {
	drops := 0
	e := NewEvents(nil, start, func() { drops++ })
	for i := range mostQueued + 7 {
		name := fmt.Sprint(i)
		e.Refused(&gpu.Request{Pod: gpu.PodID(name), Namespace: "ns", Name: name}, "A", "A", "text")
	}
	if drops != 7 {
		t.Errorf("%d dropped, want 7", drops)
	}
}

func TestQueuedEventsAreWrittenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{events: map[string]corev1.Event{}}
		client, err := newClient("http://api", b)
		if err != nil {
			t.Fatal(err)
		}
		e := NewEvents(client, time.Now, func() { t.Error("dropped") })
		for i := range 100 {
			name := fmt.Sprint(i)
			e.Refused(&gpu.Request{Pod: gpu.PodID(name), Namespace: "ns", Name: name}, "A", "A", "text")
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		if n := len(b.read()); n != 100 {
			t.Errorf("%d written, want 100", n)
		}
	})
}

func TestBoundEvent(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.Bound(engine.Bound{Placement: whole("p", "GPU-a", 0), Decision: engine.Decision{
			Asked: 20, Feasible: 12, Best: []engine.Scored{{Node: "n1", Total: 87.5}, {Node: "n2", Total: 80}}}})
		d.Bound(engine.Bound{Placement: gpu.Placement{Pod: "uid-q", Namespace: "ns", Name: "q", Node: "n2", Grants: []gpu.Grant{
			{Container: "a", Shares: []gpu.Share{{Card: "GPU-b", Vendor: gpu.Nvidia, Memory: 4096, Cores: 30}, {Card: "GPU-c", Vendor: gpu.Nvidia, Memory: 4096}}},
			{Container: "b", Shares: []gpu.Share{{Card: "X", Vendor: gpu.Musa, Memory: 1, Cores: 1}}},
		}}})
		d.Bound(engine.Bound{Placement: gpu.Placement{Pod: "uid-cpu", Namespace: "ns", Name: "cpu", Node: "n2"}}) // no cards, no event
		d.want(t, map[string]int{
			"p Normal CardsAllocated: on n1: main: nvidia GPU-a whole, 40960 MiB 100 %; 12 of 20 nodes fit; best scores n1 87.5, n2 80.0": 1,
			"q Normal CardsAllocated: on n2: a: nvidia GPU-b 4096 MiB 30 % + nvidia GPU-c 4096 MiB; b: musa X 1 MiB 1 %":                  1,
		})
	})
}

func TestEvent(t *testing.T) {
	pod := about{"uid", "ns", strings.Repeat("long-name.", 25)}
	got := event(pod, corev1.EventTypeWarning, "Reason", "A", strings.Repeat("ü", 600), 3)
	if n := len(got.Name); n > 253 {
		t.Errorf("name has %d characters", n)
	}
	if n := len(got.Message); n > mostMessage || !strings.HasSuffix(got.Message, "ü ...") {
		t.Errorf("message of %d bytes ends %q", n, got.Message[len(got.Message)-10:])
	}
	if got.InvolvedObject.UID != "uid" || got.InvolvedObject.Kind != "Pod" || got.Namespace != "ns" || got.Source.Component != "heteroflow-scheduler" {
		t.Errorf("event %+v", got)
	}
	if other := event(pod, corev1.EventTypeWarning, "Reason", "B", "", 1); other.Name == got.Name {
		t.Error("another set has the same name")
	}
	if same := event(pod, corev1.EventTypeWarning, "Reason", "A", "other figures", 1); same.Name != got.Name {
		t.Error("the same set has another name")
	}
}

// For -race.
func TestEventsConcurrently(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for j := range 50 {
					name := fmt.Sprint(j)
					d.Refused(&gpu.Request{Pod: gpu.PodID(name), Namespace: "ns", Name: name}, "A", fmt.Sprint(i), "text")
					d.Bound(engine.Bound{Placement: whole(name, "GPU-a", 0)})
					d.Forget(gpu.PodID(name))
				}
			})
		}
		group.Wait()
	})
}

// What is wrong with the books is told on the node, once for each text.
func TestMismatchIsToldOnTheNode(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.Mismatch("n1", "pod ns/p runs, and is not held")
		d.Mismatch("n1", "pod ns/p runs, and is not held")
		d.want(t, map[string]int{"n1 Warning LedgerMismatch: pod ns/p runs, and is not held": 1})
	})
}

// What keeps the leader from deciding is told on the Lease, where kubectl describe
// looks for its UID. It is one event whatever it says: what an API server that
// comes and goes has it say differs each time.
func TestHinderedLeaders(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "system", Name: LeaseName, UID: "u-1"}
		for _, why := range []string{"read tcp 10.0.0.1:40001: reset", "read tcp 10.0.0.1:40002: reset", "the fence is not in force", "the fence is not in force"} {
			d.Hindered(lease, Holder{Host: "pod-1", Address: "10.0.0.1:9444", Process: "x"}, why)
			synctest.Wait()
		}
		d.want(t, map[string]int{"heteroflow-scheduler Warning LeaderHindered: pod-1 holds the lease and does not decide: the fence is not in force": 1})
		for _, e := range d.board.events {
			if e.Namespace != "system" || e.InvolvedObject != lease {
				t.Errorf("event in %q about %+v", e.Namespace, e.InvolvedObject)
			}
		}
	})
}

// The event is written even when the Lease cannot be read.
func TestLeaseReference(t *testing.T) {
	want := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "system", Name: LeaseName}
	for uid, found := range map[types.UID]http.HandlerFunc{
		"": notFound("leases"),
		"u-1": func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.URL.Path != "GET /apis/coordination.k8s.io/v1/namespaces/system/leases/heteroflow-scheduler" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			answer(w, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}})
		},
	} {
		server := newAPIServer(t, func(s *apiServer) { s.other = found })
		want.UID = uid
		if got := LeaseReference(t.Context(), server.client(t), "system"); got != want {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	}
}
