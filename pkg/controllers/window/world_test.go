package window

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
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
	groups  map[string]*v1alpha1.TaskGroup // name -> ; they are in namespace ns if nothing else is said
	targets map[string]*object             // Deployments by name
	members map[string][]gpu.Placement     // of which group -> those that have a node
	feeds   map[string]string              // target -> the group of its pods
	seen    cache.Indexer
	news    chan struct{}

	inactive bool
	budget   budget
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
		Budget: func() ledger.Budget { return &w.budget },
		Tell:   w.tell, Meter: w, Now: w.now,
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
	_, name, _ := strings.Cut(string(id), "/")
	return slices.Clone(w.members[name])
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
