package kube

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// register is a ledger of services alone.
type register struct {
	mu    sync.Mutex
	known map[gpu.GroupID]ledger.Service // guarded by mu
}

func newRegister() *register { return &register{known: map[gpu.GroupID]ledger.Service{}} }

func (k *register) SetService(s ledger.Service) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[s.Group] = s
}

func (k *register) DropService(g gpu.GroupID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, g)
}

// now lists the services and on which nodes something is kept of them.
func (k *register) now() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, s := range k.known {
		text := s.Name
		for i := range s.Kept {
			text += " keeps " + string(s.Kept[i].Node)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// aGroup is a TaskGroup of namespace ns that keeps what a member had on each of the nodes.
func aGroup(t testing.TB, name, uid string, version int, nodes ...string) *v1alpha1.TaskGroup {
	t.Helper()
	g := &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version), Generation: 1,
	}, Spec: v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference}}
	if len(nodes) == 0 {
		return g
	}
	g.Status.Kept = &v1alpha1.TaskGroupKept{From: metav1.NewTime(start().Add(time.Hour))}
	for i, node := range nodes {
		had := whole(fmt.Sprintf("%s-%d", name, i), "GPU-a", 0)
		had.Group = codec.GroupOf("ns", name)
		text, err := codec.EncodeClaim(&had)
		if err != nil {
			t.Fatal(err)
		}
		g.Status.Kept.Members = append(g.Status.Kept.Members, v1alpha1.TaskGroupMember{UID: types.UID(had.Pod), Node: node, Allocation: text})
	}
	return g
}

// The ledger knows the services that there are, and what they keep.
func TestServices(t *testing.T) {
	type step struct {
		do   func(*services)
		want string
	}
	group := func(name, uid string, version int, nodes ...string) *v1alpha1.TaskGroup {
		return aGroup(t, name, uid, version, nodes...)
	}
	sees := func(g *v1alpha1.TaskGroup) func(*services) { return func(s *services) { s.seen(g, false) } }
	lists := func(g *v1alpha1.TaskGroup) func(*services) { return func(s *services) { s.seen(g, true) } }
	loses := func(g *v1alpha1.TaskGroup) func(*services) { return func(s *services) { s.gone(g) } }
	gang, broken, lost := group("chat", "a", 9), group("chat", "a", 8, "n1"), group("chat", "b", 3, "n2")
	gang.Spec.Type = "training"
	broken.Status.Kept.Members[0].Allocation = "{"
	lost.ResourceVersion = "?"
	tests := map[string][]step{
		"from day to night to day": {{sees(group("chat", "a", 1)), "ns/chat"}, {sees(group("chat", "a", 2, "n1", "n2")), "ns/chat keeps n1 keeps n2"},
			{sees(group("chat", "a", 3, "n2")), "ns/chat keeps n2"}, {sees(group("chat", "a", 4)), "ns/chat"}, {loses(group("chat", "a", 5)), ""}},
		"two":                               {{sees(group("chat", "a", 1, "n1")), "ns/chat keeps n1"}, {sees(group("search", "b", 2)), "ns/chat keeps n1, ns/search"}, {loses(group("chat", "a", 3)), "ns/search"}},
		"another of its name":               {{sees(group("chat", "a", 1, "n1")), "ns/chat keeps n1"}, {sees(group("chat", "b", 3)), "ns/chat"}, {loses(group("chat", "b", 4)), ""}},
		"the end of what nobody has seen":   {{loses(group("chat", "a", 1)), ""}},
		"the end of one before it":          {{sees(group("chat", "b", 3, "n1")), "ns/chat keeps n1"}, {loses(group("chat", "a", 2)), "ns/chat keeps n1"}},
		"of a kind that is placed together": {{sees(group("chat", "a", 1)), "ns/chat"}, {sees(gang), ""}, {loses(gang), ""}},
		"what cannot be read any more":      {{sees(group("chat", "a", 1, "n1")), "ns/chat keeps n1"}, {sees(broken), "ns/chat"}, {sees(group("chat", "a", 9, "n1")), "ns/chat keeps n1"}},
		"a watch behind the list": {{lists(group("chat", "a", 5, "n1")), "ns/chat keeps n1"}, {sees(group("chat", "a", 3)), "ns/chat keeps n1"}, {sees(group("chat", "a", 5, "n1")), "ns/chat keeps n1"},
			{sees(group("chat", "a", 6)), "ns/chat"}},
		"a watch far behind the list":      {{lists(group("chat", "b", 10, "n1")), "ns/chat keeps n1"}, {sees(group("chat", "a", 9, "n2")), "ns/chat keeps n1"}, {loses(group("chat", "a", 9)), "ns/chat keeps n1"}},
		"a list behind the watch":          {{sees(group("chat", "a", 10, "n1")), "ns/chat keeps n1"}, {lists(group("chat", "a", 9)), "ns/chat keeps n1"}, {lists(group("chat", "a", 11)), "ns/chat"}},
		"versions that begin anew":         {{sees(group("chat", "a", 500, "n1")), "ns/chat keeps n1"}, {sees(group("chat", "a", 20)), "ns/chat"}},
		"versions that cannot be compared": {{lists(group("chat", "b", 5)), "ns/chat"}, {sees(lost), "ns/chat keeps n2"}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			k := newRegister()
			s := newServices(k, newShelf().Logger)
			for i, step := range steps {
				step.do(s)
				if got := k.now(); got != step.want {
					t.Fatalf("after step %d: %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// A list that a new leader reads may be older than what has been seen meanwhile: what it
// says of one that has gone, nobody would take back.
func TestAListIsOlderThanTheEndOfATaskGroup(t *testing.T) {
	k := newRegister()
	s := newServices(k, newShelf().Logger)
	listed := aGroup(t, "chat", "a", 1, "n1")
	s.seen(listed, false)
	done := s.reading()
	s.gone(listed)
	s.seen(listed, true)
	s.seen(aGroup(t, "search", "b", 2), true)
	done()
	if got := k.now(); got != "ns/search" {
		t.Errorf("known: %q, want search alone", got)
	}
	s.seen(aGroup(t, "chat", "c", 4, "n2"), false)
	if got := k.now(); got != "ns/chat keeps n2, ns/search" {
		t.Errorf("another of its name: %q", got)
	}
}

// world is an API server's TaskGroups, with a watch that is behind.
type world struct {
	t       *testing.T
	r       *rand.Rand
	of      *services
	version int
	now     map[string]*v1alpha1.TaskGroup // as the API server has it
	news    []func()                       // what the watch has not told of yet
	ended   map[types.UID]bool             // those that the watch has told the end of
}

// change creates, edits or deletes one.
func (w *world) change() {
	w.version++
	name := []string{"a", "b", "c"}[w.r.IntN(3)]
	was, uid := w.now[name], fmt.Sprint("uid-", w.version)
	if was != nil {
		uid = string(was.UID)
	}
	if was != nil && w.r.IntN(3) == 0 {
		delete(w.now, name)
		w.news = append(w.news, func() { w.ended[was.UID] = true; w.of.gone(was) })
		return
	}
	is := aGroup(w.t, name, uid, w.version, []string{"n1", "n2"}[:w.r.IntN(3)]...)
	w.now[name] = is
	w.news = append(w.news, func() { w.of.seen(is, false) })
}

// tell has the watch tell of so many changes at most.
func (w *world) tell(most int) {
	for ; len(w.news) > 0 && most > 0; most-- {
		w.news[0]()
		w.news = w.news[1:]
	}
}

// list reads all as they are now, and hands them over while it all goes on.
func (w *world) list() []*v1alpha1.TaskGroup {
	defer w.of.reading()()
	all := slices.Collect(maps.Values(w.now))
	for _, g := range all {
		if w.r.IntN(2) == 0 {
			w.change()
		}
		w.tell(w.r.IntN(4))
		w.of.seen(g, true)
	}
	return all
}

// However the watch and the lists of new leaders interleave, each in its order, the ledger
// knows nothing older than the last list, and in the end what there is.
func TestServicesFollow(t *testing.T) {
	for seed := range uint64(500) {
		k := newRegister()
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 2)), of: newServices(k, newShelf().Logger), now: map[string]*v1alpha1.TaskGroup{}, ended: map[types.UID]bool{}}
		var listed []*v1alpha1.TaskGroup
		for w.version < 60 {
			w.change()
			w.tell(w.r.IntN(3))
			if w.r.IntN(6) == 0 {
				listed = w.list()
			}
			for _, g := range listed {
				is := w.of.known[codec.GroupOf(g.Namespace, g.Name)]
				if !w.ended[g.UID] && (is.uid == "" || older(is.version, g.ResourceVersion)) {
					t.Fatalf("seed %d: %s is known as of %q, was listed as of %s", seed, g.Name, is.version, g.ResourceVersion)
				}
			}
		}
		w.tell(len(w.news))
		want := newRegister()
		for _, g := range w.now {
			of, err := codec.Service(g)
			if err != nil {
				t.Fatal(err)
			}
			want.SetService(of)
		}
		if diff := cmp.Diff(want.known, k.known); diff != "" {
			t.Fatalf("seed %d (-want +known):\n%s", seed, diff)
		}
	}
}

func TestServicesSayWhatIsWrongOnce(t *testing.T) {
	var lines []string
	s := newServices(newRegister(), said(&lines))
	broken := aGroup(t, "chat", "a", 1, "n1")
	broken.Status.Kept.Members[0].Allocation = "{"
	otherwise := broken.DeepCopy()
	otherwise.Status.Kept.Members[0].Node = ""
	for range 3 {
		s.seen(broken, false)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "is not gone by") || !strings.Contains(lines[0], "status.kept.members[0].allocation") || !strings.Contains(lines[0], `"chat"`) {
		t.Errorf("said: %q", lines)
	}
	s.seen(otherwise, false)
	s.seen(aGroup(t, "chat", "a", 2, "n1"), false)
	s.seen(otherwise, false)
	if len(lines) != 3 {
		t.Errorf("said %d times, want another fault and its coming back: %q", len(lines), lines)
	}
}

// A replica is not ready before it knows the services that there are, and follows them.
func TestClusterFollowsTaskGroups(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams %t", streams), func(t *testing.T) {
			server := newAPIServer(t, func(s *apiServer) {
				s.streams = streams
				s.groups = []v1alpha1.TaskGroup{*aGroup(t, "chat", "a", 7, "n1"), *aGroup(t, "search", "b", 8)}
			})
			k := newRegister()
			c, err := NewCluster(server.client(t), server.own(t), &newShelf().Books)
			if err != nil {
				t.Fatal(err)
			}
			c.services.ledger = k
			runs(t, c)
			until(c.Ready)
			if got := k.now(); got != "ns/chat keeps n1, ns/search" {
				t.Errorf("ready with %q known", got)
			}
			news := server.written["taskgroups"]
			news <- watchEvent("MODIFIED", v1alpha1.TaskGroupKind, aGroup(t, "search", "b", 101, "n2"))
			until(func() bool { return k.now() == "ns/chat keeps n1, ns/search keeps n2" })
			news <- watchEvent("DELETED", v1alpha1.TaskGroupKind, aGroup(t, "chat", "a", 102))
			until(func() bool { return k.now() == "ns/search keeps n2" })
			news <- watchEvent("ADDED", v1alpha1.TaskGroupKind, aGroup(t, "chat", "c", 103))
			until(func() bool { return k.now() == "ns/chat, ns/search keeps n2" })
			if g, err := c.TaskGroups().TaskGroups("ns").Get("search"); err != nil || g.Status.Kept == nil {
				t.Errorf("the lister has %+v, %v", g, err)
			}
		})
	}
}

// What the ledger is told is what the engine goes by.
func TestTaskGroupsReachTheLedger(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) { s.groups = []v1alpha1.TaskGroup{*aGroup(t, "chat", "a", 7, "n1")} })
	shelf := newShelf()
	c := follow(t, server, &shelf.Books)
	until(c.Ready)
	if of, known := shelf.Ledger.Snapshot().Service(codec.GroupOf("ns", "chat")); !known || len(of.Kept) != 1 || of.Kept[0].Node != "n1" {
		t.Errorf("known %t: %+v", known, of)
	}
	server.written["taskgroups"] <- watchEvent("DELETED", v1alpha1.TaskGroupKind, aGroup(t, "chat", "a", 102))
	until(func() bool {
		_, known := shelf.Ledger.Snapshot().Service(codec.GroupOf("ns", "chat"))
		return !known
	})
}

// Who looks at TaskGroups after they have changed sees what has changed.
func TestTaskGroupsChanged(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) { s.groups = []v1alpha1.TaskGroup{*aGroup(t, "chat", "a", 7)} })
	c, err := NewCluster(server.client(t), server.own(t), &newShelf().Books)
	if err != nil {
		t.Fatal(err)
	}
	changed := c.TaskGroupsChanged()
	runs(t, c)
	<-changed // the first list
	until(c.Ready)
	edited := aGroup(t, "chat", "a", 103)
	edited.Generation = 2
	news := server.written["taskgroups"]
	for _, step := range []struct {
		event   string
		group   *v1alpha1.TaskGroup
		version string
	}{{"MODIFIED", edited, "103"}, {"DELETED", edited, ""}, {"ADDED", aGroup(t, "chat", "b", 106), "106"}} {
		changed := c.TaskGroupsChanged()
		news <- watchEvent(step.event, v1alpha1.TaskGroupKind, step.group)
		<-changed
		got := ""
		if g, err := c.TaskGroups().TaskGroups("ns").Get("chat"); err == nil {
			got = g.ResourceVersion
		}
		if got != step.version {
			t.Errorf("%s: woken, version %q is there, want %q", step.event, got, step.version)
		}
	}
}

// Who writes into their status, and puts a finalizer on them, is not woken by that. That
// one has gone and another has come while nobody was looking may be told as a change, and
// a deletion may be found out late.
func TestWhatIsAnnounced(t *testing.T) {
	now := metav1.NewTime(start())
	was := aGroup(t, "chat", "a", 7)
	with := func(change func(*v1alpha1.TaskGroup)) *v1alpha1.TaskGroup {
		is := aGroup(t, "chat", "a", 8)
		change(is)
		return is
	}
	for name, tc := range map[string]struct {
		happens func(cache.ResourceEventHandler)
		wakes   bool
		known   string
	}{
		"it comes":   {func(h cache.ResourceEventHandler) { h.OnAdd(aGroup(t, "search", "b", 8), false) }, true, "ns/chat, ns/search"},
		"its status": {func(h cache.ResourceEventHandler) { h.OnUpdate(was, aGroup(t, "chat", "a", 8, "n1")) }, false, "ns/chat keeps n1"},
		"a finalizer": {func(h cache.ResourceEventHandler) {
			h.OnUpdate(was, with(func(g *v1alpha1.TaskGroup) { g.Finalizers = []string{"f"} }))
		}, false, "ns/chat"},
		"its spec": {func(h cache.ResourceEventHandler) {
			h.OnUpdate(was, with(func(g *v1alpha1.TaskGroup) { g.Generation = 2 }))
		}, true, "ns/chat"},
		"it is to go": {func(h cache.ResourceEventHandler) {
			h.OnUpdate(was, with(func(g *v1alpha1.TaskGroup) { g.DeletionTimestamp = &now }))
		}, true, "ns/chat"},
		"another":     {func(h cache.ResourceEventHandler) { h.OnUpdate(was, aGroup(t, "chat", "b", 8, "n2")) }, true, "ns/chat keeps n2"},
		"it has gone": {func(h cache.ResourceEventHandler) { h.OnDelete(was) }, true, ""},
		"it went once": {func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/chat", Obj: was})
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRegister()
			s := newServices(k, newShelf().Logger)
			s.seen(was, false)
			changed := s.changed
			tc.happens(s.handler())
			if woken := changed != s.changed; woken != tc.wakes {
				t.Errorf("woken: %t", woken)
			}
			if got := k.now(); got != tc.known {
				t.Errorf("known: %q, want %q", got, tc.known)
			}
		})
	}
}

// Without the kind nobody knows what is kept, so nothing is decided.
func TestWithoutTheKindTaskGroup(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) { s.lacksGroups.Store(true) })
	var mu sync.Mutex
	told := false
	shelf := newShelf()
	shelf.Logger = funcr.New(func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		told = told || strings.Contains(text, "the API server knows no taskgroups.heteroflow.io: install the chart's CRDs")
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
	server.lacksGroups.Store(false)
	until(c.Ready)
}

// A new leader reads past its own cache who sleeps since a moment ago, and what is kept
// of it: it would give that away.
func TestCatchUpFindsWhatServicesKeep(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) {
		s.groups = []v1alpha1.TaskGroup{*aGroup(t, "chat", "a", 9, "n1"), *aGroup(t, "search", "b", 8)}
	})
	k := newRegister()
	c, err := NewCluster(server.client(t), server.own(t), &newShelf().Books)
	if err != nil {
		t.Fatal(err)
	}
	c.services.ledger = k
	changed := c.TaskGroupsChanged()
	c.services.seen(aGroup(t, "chat", "a", 7), false) // as the watch has it
	if err := c.CatchUp(t.Context(), server.client(t), server.own(t)); err != nil {
		t.Fatal(err)
	}
	if got := k.now(); got != "ns/chat keeps n1, ns/search" {
		t.Errorf("known: %q", got)
	}
	if diff := cmp.Diff([]string{"taskgroups list"}, server.questions("taskgroups")); diff != "" {
		t.Errorf("asked, which has to be for the newest state (-want +got):\n%s", diff)
	}
	select {
	case <-changed:
		t.Error("announced what the lister does not have")
	default:
	}
	c.services.seen(aGroup(t, "chat", "a", 8), false) // the watch goes on
	if got := k.now(); got != "ns/chat keeps n1, ns/search" {
		t.Errorf("the watch, which is behind, has taken back what was kept: %q", got)
	}
	server.lacksGroups.Store(true)
	if err := c.CatchUp(t.Context(), server.client(t), server.own(t)); err == nil || !strings.HasPrefix(err.Error(), "read what services keep: ") {
		t.Errorf("error %v", err)
	}
}
