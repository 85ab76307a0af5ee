package window

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/window"
)

// world is a small true cluster: an API server with versions, what has been seen of it,
// deployments, an HPA and KEDA at work, and pods that have a card each. All is guarded by
// mu where more than one goroutine is.
type world struct {
	mu      sync.Mutex
	clock   time.Time
	version int
	groups  map[string]*v1alpha1.TaskGroup // name -> ; all are in namespace ns
	targets map[string]*object             // Deployments by name
	members map[string][]gpu.Placement     // of which group -> those that have a node
	feeds   map[string]string              // target -> the group of its pods
	seen    cache.Indexer
	news    chan struct{}

	inactive bool
	strike   func(at string)        // is called before and after each write
	refuse   func(at string) error  // an API server that says no
	meddle   func(at string) string // name of what somebody else changes just before a write; "": nothing
	writes   []string
	reads    int // of groups
	told     []string
	steps    map[string]int
	lags     []time.Duration
}

// object is a target with all that scales it.
type object struct {
	uid         types.UID
	version     int
	state       window.State
	hpa, scaled int // versions
	demand      int32
}

func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) } // a Monday

func newWorld() *world {
	return &world{
		clock: start(), groups: map[string]*v1alpha1.TaskGroup{}, targets: map[string]*object{}, members: map[string][]gpu.Placement{}, feeds: map[string]string{},
		seen: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), news: make(chan struct{}),
		strike: func(string) {}, refuse: func(string) error { return nil }, meddle: func(string) string { return "" }, steps: map[string]int{},
	}
}

// leader returns a controller that knows nothing yet.
func (w *world) leader() *Controller {
	return &Controller{
		Groups: kindlisters.NewTaskGroupLister(w.seen), Changed: w.changed, Client: groupServer{w}, Targets: targetServer{w},
		Group:   func(namespace, name string) gpu.GroupID { return gpu.GroupID(namespace + "/" + name) },
		Members: w.bound, Encode: codec.EncodeClaim, Decode: decodeMember, Inactive: func(string) bool { return w.isInactive() },
		Tell: w.tell, Meter: w, Now: w.now,
	}
}

func decodeMember(m *v1alpha1.TaskGroupMember) (gpu.Placement, error) {
	return codec.DecodeClaim(&v1alpha1.Preemption{Spec: v1alpha1.PreemptionSpec{Preemptor: v1alpha1.PreemptionPod{UID: m.UID}, Node: m.Node, Allocation: m.Allocation}})
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) isInactive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inactive
}

func (w *world) changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.news
}

func (w *world) next() int { w.version++; return w.version }

// WindowStep and WindowLag are the meter.
func (w *world) WindowStep(step metrics.WindowStep, outcome metrics.WindowOutcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[string(step)+" "+string(outcome)]++
}

func (w *world) WindowLag(lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lags = append(w.lags, lag)
}

func (w *world) tell(n kube.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := map[bool]string{true: "Warning", false: "Normal"}[n.Warning]
	w.told = append(w.told, fmt.Sprintf("%s %s %s: %s", n.About.Name, kind, n.Reason, n.Text))
}

func (w *world) bound(id gpu.GroupID) []gpu.Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.members[strings.TrimPrefix(string(id), "ns/")])
}

// group makes a TaskGroup, or edits its spec.
func (w *world) group(name string, change ...func(*v1alpha1.TaskGroup)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	if g == nil {
		n := w.next()
		g = &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("g%d", n)), CreationTimestamp: metav1.NewTime(w.clock.Add(time.Duration(n) * time.Second)),
		}}
		g.Spec.Type = v1alpha1.TaskGroupInference
	}
	g = g.DeepCopy()
	for _, c := range change {
		c(g)
	}
	g.Generation++
	w.store(g)
	w.see()
}

// store keeps the group as what the API server has; one that is deleted and has no
// finalizer goes.
func (w *world) store(g *v1alpha1.TaskGroup) *v1alpha1.TaskGroup {
	g.ResourceVersion = strconv.Itoa(w.next())
	text, err := json.Marshal(g) // as it is stored: times lose what is less than a second
	if err != nil {
		panic(err)
	}
	g = &v1alpha1.TaskGroup{}
	if err := json.Unmarshal(text, g); err != nil {
		panic(err)
	}
	w.groups[g.Name] = g
	if g.DeletionTimestamp != nil && len(g.Finalizers) == 0 {
		delete(w.groups, g.Name)
	}
	return g.DeepCopy()
}

// see has the cache be as the API server is.
func (w *world) see() {
	all := []any{}
	for _, g := range w.groups {
		all = append(all, g)
	}
	if err := w.seen.Replace(all, ""); err != nil {
		panic(err)
	}
	close(w.news)
	w.news = make(chan struct{})
}

// remove deletes the group.
func (w *world) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name].DeepCopy()
	at := metav1.NewTime(w.clock)
	g.DeletionTimestamp, g.Generation = &at, g.Generation+1
	w.store(g)
	w.see()
}

// target makes a Deployment, anew if there is one.
func (w *world) target(name string, s window.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.next()
	w.targets[name] = &object{uid: types.UID(fmt.Sprintf("t%d", n)), version: n, hpa: n, scaled: n, state: s, demand: s.Replicas}
	w.follow()
}

// edit changes a target by hand.
func (w *world) edit(name string, change func(*window.State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.targets[name]
	change(&o.state)
	o.version, o.hpa, o.scaled = w.next(), w.next(), w.next()
	w.follow()
}

func (w *world) is(name string) window.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.targets[name].state
}

func (w *world) status(name string) v1alpha1.TaskGroupStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[name]; g != nil {
		return g.Status
	}
	return v1alpha1.TaskGroupStatus{}
}

// written returns what has been written so far, in order.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

func (w *world) exists(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups[name] != nil
}

// follow has each target's pods be as many as it asks for: a new one takes the first card
// that is free.
func (w *world) follow() {
	for _, name := range slices.Sorted(maps.Keys(w.targets)) {
		group, fed := w.feeds[name]
		if !fed {
			continue
		}
		want, pods := int(w.targets[name].state.Replicas), w.members[group]
		pods = pods[:min(len(pods), want)]
		for len(pods) < want {
			pods = append(pods, w.pod(pods))
		}
		w.members[group] = pods
	}
}

func (w *world) pod(others []gpu.Placement) gpu.Placement {
	for i := 0; ; i++ {
		node, card := gpu.NodeID(fmt.Sprintf("n%d", i/4)), gpu.CardID(fmt.Sprintf("GPU-%d", i%4))
		if !slices.ContainsFunc(others, func(o gpu.Placement) bool { return o.Node == node && o.Grants[0].Shares[0].Card == card }) {
			return placed(gpu.PodID(fmt.Sprintf("p%d", w.next())), node, card)
		}
	}
}

// placed is a pod with a whole card.
func placed(id gpu.PodID, node gpu.NodeID, cards ...gpu.CardID) gpu.Placement {
	p := gpu.Placement{Pod: id, Namespace: "ns", Name: string(id), Node: node, Group: "ns/chat", Grants: []gpu.Grant{{Container: "main"}}}
	for _, c := range cards {
		p.Grants[0].Shares = append(p.Grants[0].Shares, gpu.Share{Card: c, Vendor: gpu.Nvidia, Memory: 1000, Cores: 100, Exclusive: true, Isolation: gpu.IsolationExclusive})
	}
	return p
}

// autoscale is what an HPA or KEDA does: the HPA nothing at 0.
func (w *world) autoscale() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.targets {
		n := o.state.Replicas
		switch s := &o.state; {
		case s.KEDA != nil && *s.KEDA != "":
			paused, err := strconv.Atoi(*s.KEDA)
			if err != nil {
				panic(err)
			}
			n = int32(paused)
		case s.KEDA != nil:
			n = o.demand
		case s.HPA != nil && n != 0:
			n = min(max(o.demand, s.HPA.Min), s.HPA.Max)
		}
		if n != o.state.Replicas {
			o.state.Replicas, o.version = n, w.next()
		}
	}
	w.follow()
}

func missing(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func conflict(kind, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kind}, name, fmt.Errorf("another version"))
}

// write is one write: somebody may die before or after it, another change come before it,
// or the API server refuse it.
func (w *world) write(at string, do func() error) error {
	w.strike("before " + at)
	w.mu.Lock()
	err := w.refuse(at)
	if name := w.meddle(at); name != "" {
		if g := w.groups[name]; g != nil {
			w.store(g.DeepCopy())
		}
		if o := w.targets[name]; o != nil {
			o.version, o.hpa, o.scaled = w.next(), w.next(), w.next()
		}
	}
	if err == nil {
		err = do()
	}
	if err == nil {
		w.writes = append(w.writes, at)
		w.follow()
	}
	w.mu.Unlock()
	if err == nil {
		w.strike("after " + at)
	}
	return err
}

// groupServer is the API server's TaskGroups.
type groupServer struct{ *world }

func (s groupServer) Get(_ context.Context, namespace, name string) (*v1alpha1.TaskGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if g := s.groups[name]; g != nil && namespace == g.Namespace {
		return g.DeepCopy(), nil
	}
	return &v1alpha1.TaskGroup{}, missing("taskgroups", name) // as the client does
}

// same returns the group that is stored, if it is of that version.
func (s groupServer) same(g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error) {
	now := s.groups[g.Name]
	switch {
	case now == nil:
		return nil, missing("taskgroups", g.Name)
	case now.UID != g.UID || now.ResourceVersion != g.ResourceVersion:
		return nil, conflict("taskgroups", g.Name)
	}
	return now.DeepCopy(), nil
}

func (s groupServer) UpdateStatus(_ context.Context, g *v1alpha1.TaskGroup) (out *v1alpha1.TaskGroup, err error) {
	err = s.write("status", func() error {
		now, err := s.same(g)
		if err == nil {
			now.Status = *g.Status.DeepCopy()
			out = s.store(now)
		}
		return err
	})
	return out, err
}

func (s groupServer) SetFinalizers(_ context.Context, g *v1alpha1.TaskGroup, finalizers []string) (out *v1alpha1.TaskGroup, err error) {
	err = s.write("finalizers", func() error {
		now, err := s.same(g)
		if err == nil {
			now.Finalizers = slices.Clone(finalizers)
			out = s.store(now)
		}
		return err
	})
	return out, err
}

// targetServer is the API server's Deployments, HorizontalPodAutoscalers and
// ScaledObjects.
type targetServer struct{ *world }

// read is a target with the versions of all that was read.
func (s targetServer) Get(_ context.Context, namespace string, ref v1alpha1.TaskGroupTarget) (*Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse("read"); err != nil {
		return nil, err
	}
	o := s.targets[ref.Name]
	if o == nil || ref.Kind != "Deployment" {
		return &Target{Namespace: namespace, Missing: fmt.Sprintf("there is no %s %s", ref.Kind, ref.Name)}, nil
	}
	state := o.state
	if state.HPA != nil {
		state.HPA = &window.Bounds{Min: state.HPA.Min, Max: state.HPA.Max}
	}
	return &Target{
		Namespace: namespace, UID: o.uid, State: state,
		hpa: version{ref.Name, strconv.Itoa(o.hpa), o.uid}, scaled: version{ref.Name, strconv.Itoa(o.scaled), o.uid},
		kind: schema.GroupVersionResource{Resource: ref.Name, Version: strconv.Itoa(o.version)},
	}, nil
}

func (s targetServer) set(at string, t *Target, read string, now func(*object) *int, do func(*object)) error {
	return s.write(at, func() error {
		o := s.targets[t.hpa.name]
		switch {
		case o == nil:
			return missing("deployments", t.hpa.name)
		case o.uid != t.UID || strconv.Itoa(*now(o)) != read:
			return conflict("deployments", t.hpa.name)
		}
		do(o)
		*now(o) = s.next()
		return nil
	})
}

func (s targetServer) SetReplicas(_ context.Context, t *Target, n int32) error {
	return s.set("replicas", t, t.kind.Version, func(o *object) *int { return &o.version }, func(o *object) { o.state.Replicas = n })
}

func (s targetServer) SetHPA(_ context.Context, t *Target, b window.Bounds) error {
	return s.set("hpa", t, t.hpa.resource, func(o *object) *int { return &o.hpa }, func(o *object) { o.state.HPA = &b })
}

func (s targetServer) SetKEDA(_ context.Context, t *Target, paused string) error {
	return s.set("keda", t, t.scaled.resource, func(o *object) *int { return &o.scaled }, func(o *object) { o.state.KEDA = &paused })
}

// struck is what a leader dies of.
type struck struct{ at string }

// lead lets the controller have a round, and reports whether it has outlived it.
func (w *world) lead(c *Controller) (outlived bool) {
	defer func() {
		if why := recover(); why != nil {
			if _, dead := why.(struck); !dead {
				panic(why)
			}
		}
	}()
	c.round(klog.NewContext(context.Background(), klog.Logger{})) // which tells nobody
	return true
}

// pass goes on to that time of the clock, and has a round there.
func (w *world) at(c *Controller, at time.Time) {
	w.mu.Lock()
	w.clock = at
	w.see()
	w.mu.Unlock()
	w.lead(c)
}

// run goes on for so long, with a round each second that has something to do.
func (w *world) run(c *Controller, d time.Duration) {
	for until := w.now().Add(d); w.now().Before(until); {
		w.at(c, w.now().Add(time.Second))
	}
}

// The groups.

// dayNight is awake from 08:00 to 22:00 in Berlin.
func dayNight(action v1alpha1.TaskGroupAction) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		g.Spec.Windows, g.Spec.WindowAction, g.Spec.Replicas = []v1alpha1.TaskGroupWindow{{From: "08:00", To: "22:00", TimeZone: "Europe/Berlin"}}, action, nil
	}
}

func scaledTo(n int32) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		dayNight(v1alpha1.TaskGroupScale)(g)
		g.Spec.Replicas = &n
	}
}

func of(deployment string) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		g.Spec.ScaleTargetRef = &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}
	}
}

// withReplicas is an edit by hand.
func withReplicas(n int32) func(*window.State) {
	return func(s *window.State) { s.Replicas = n }
}

func scaled(n int32) window.State { return window.State{Replicas: n} }

func withHPA(n, least, most int32) window.State {
	return window.State{Replicas: n, HPA: &window.Bounds{Min: least, Max: most}}
}

func withKEDA(n int32, paused string) window.State { return window.State{Replicas: n, KEDA: &paused} }

// closed and opened are when the windows close and open next, in Berlin.
func closed() time.Time { return time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC) }
func opened() time.Time { return time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC) }
