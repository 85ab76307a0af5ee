package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// cluster is a little engine of its own: nodes with free cards, and pods bound.
type cluster struct {
	mu    sync.Mutex
	free  map[gpu.NodeID]int       // guarded by mu; node -> cards left
	bound map[gpu.PodID]gpu.NodeID // guarded by mu
	// shortlist is how many feasible nodes an answer names at most; 0: all.
	shortlist int
	// before runs at the start of each bind, outside the lock.
	before func(context.Context) error
}

func newCluster(free map[gpu.NodeID]int) *cluster {
	return &cluster{free: free, bound: map[gpu.PodID]gpu.NodeID{}}
}

func (c *cluster) Filter(r *gpu.Request, nodes []gpu.NodeID) engine.Filtered {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := engine.Filtered{Reason: gpu.InsufficientGPUCount}
	for _, id := range nodes {
		free, known := c.free[id]
		switch {
		case !known:
			f.Refused = append(f.Refused, engine.Refused{Node: id, Verdict: pipeline.Verdict{Reason: gpu.NodeNotRegistered}})
		case free < r.Asks[0].Count:
			f.Refused = append(f.Refused, engine.Refused{Node: id, Verdict: pipeline.Verdict{
				Reason: gpu.InsufficientGPUCount, Have: int64(free), Want: int64(r.Asks[0].Count)}})
		default:
			f.Fit++
			if c.shortlist == 0 || len(f.Feasible) < c.shortlist {
				f.Feasible = append(f.Feasible, id)
			}
		}
	}
	if len(f.Feasible) == 0 {
		f.Summary = engine.Summary{Nodes: len(nodes), Counts: []engine.Count{{Reason: gpu.InsufficientGPUCount, Nodes: len(nodes)}}}
	}
	return f
}

func (c *cluster) Score(_ *gpu.Request, nodes []gpu.NodeID) []engine.Scored {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]engine.Scored, len(nodes))
	for i, id := range nodes {
		out[i] = engine.Scored{Node: id, Score: int64(100 * c.free[id])}
	}
	return out
}

func (c *cluster) Bind(ctx context.Context, t engine.Target) (engine.Bound, error) {
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return engine.Bound{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if on, ok := c.bound[t.Pod]; ok && on == t.Node {
		return engine.Bound{Already: true}, nil
	}
	if c.free[t.Node] == 0 {
		return engine.Bound{}, &engine.Refusal{Reason: gpu.InsufficientGPUCount, Detail: "node no longer fits"}
	}
	c.free[t.Node]--
	c.bound[t.Pod] = t.Node
	return engine.Bound{Placement: gpu.Placement{Pod: t.Pod, Namespace: t.Namespace, Name: t.Name, Node: t.Node}}, nil
}

func (c *cluster) on(pod gpu.PodID) gpu.NodeID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound[pod]
}

// untouchable is an engine that must not be asked.
type untouchable struct{}

func (untouchable) Filter(*gpu.Request, []gpu.NodeID) engine.Filtered { panic("Filter was asked") }
func (untouchable) Score(*gpu.Request, []gpu.NodeID) []engine.Scored  { panic("Score was asked") }
func (untouchable) Bind(context.Context, engine.Target) (engine.Bound, error) {
	panic("Bind was asked")
}

// notebook keeps what owners were told.
type notebook struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (n *notebook) Refused(r *gpu.Request, dominant gpu.Reason, codes, text string) {
	n.note("%s/%s refused %s [%s] %s", r.Namespace, r.Name, dominant, codes, text)
}

func (n *notebook) Bound(b engine.Bound) {
	n.note("%s/%s bound to %s", b.Placement.Namespace, b.Placement.Name, b.Placement.Node)
}

func (n *notebook) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notebook) read() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

const cardResource = "heteroflow.io/gpu"

// decodePod knows one resource and one annotation.
func decodePod(pod *corev1.Pod) (gpu.Request, error) {
	if _, ok := pod.Annotations["heteroflow.io/bad"]; ok {
		return gpu.Request{}, errors.New("unknown annotation heteroflow.io/bad, value 42")
	}
	r := gpu.Request{Pod: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
	for _, c := range pod.Spec.Containers {
		if q, ok := c.Resources.Limits[cardResource]; ok {
			r.Asks = append(r.Asks, gpu.Ask{Container: c.Name, Count: int(q.Value()), Whole: true})
		}
	}
	return r, nil
}

// rig is a server with all that it needs.
type rig struct {
	server   *Server
	extender http.Handler
	public   http.Handler
	notes    *notebook
}

func newRig(e Engine, change ...func(*Config)) *rig {
	notes := &notebook{}
	books := ledger.New(tenancy.Separate{})
	cfg := Config{
		Engine: e, Reporter: notes, Decode: decodePod,
		Ready:       func() bool { return true },
		Ledger:      books.Snapshot,
		BindTimeout: 20 * time.Second,
	}
	for _, c := range change {
		c(&cfg)
	}
	cfg.Metrics = metrics.New(metrics.View{Ledger: books.Snapshot, Ready: cfg.Ready})
	s := New(cfg)
	return &rig{server: s, extender: s.Extender(), public: s.Public(), notes: notes}
}

func unready(c *Config) { c.Ready = func() bool { return false } }

func newPod(name string, cards int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
	if cards > 0 {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{cardResource: *resource.NewQuantity(int64(cards), resource.DecimalSI)}
	}
	return pod
}

// names is a list of names, empty but not null where there is none.
func names(ns ...string) *[]string {
	ns = append([]string{}, ns...)
	return &ns
}

func nodeList(ns ...string) *corev1.NodeList {
	list := &corev1.NodeList{Items: []corev1.Node{}}
	for _, n := range ns {
		list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"of": n}}})
	}
	return list
}

// post sends body, JSON unless it is a string, and returns status and text.
func post(t testing.TB, h http.Handler, path string, body any) (int, string) {
	t.Helper()
	raw, ok := body.(string)
	if !ok {
		raw = jsonOf(t, body)
	}
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(raw)).WithContext(context.Background())
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// ask posts and decodes an answer that has to be 200.
func ask[T any](t testing.TB, h http.Handler, path string, body any) T {
	t.Helper()
	code, text := post(t, h, path, body)
	if code != http.StatusOK {
		t.Fatalf("POST %s = %d %s", path, code, text)
	}
	var out T
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("POST %s: %v in %s", path, err, text)
	}
	return out
}

func askFilter(t testing.TB, r *rig, args extender.ExtenderArgs) extender.ExtenderFilterResult {
	t.Helper()
	return ask[extender.ExtenderFilterResult](t, r.extender, "/filter", args)
}

func (r *rig) scrape(t testing.TB) string {
	t.Helper()
	answer := httptest.NewRecorder()
	r.public.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

func (r *rig) wantMetric(t testing.TB, line string) {
	t.Helper()
	if !strings.Contains(r.scrape(t), line+"\n") {
		t.Errorf("/metrics lacks %q", line)
	}
}
