package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func newTenant(name string, generation int64, groups []string, namespaces ...string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
		Spec:       v1alpha1.TenantSpec{SharingGroups: groups, Namespaces: v1alpha1.TenantNamespaces{Names: namespaces}},
	}
}

func newNamespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func newQuota(namespace, name, cards string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.heteroflow.io/gpu": resource.MustParse(cards)}},
	}
}

// statutes is rules over three little stores, and the laws that they have made.
type statutes struct {
	*Rules
	store map[string]cache.Indexer // by kind
	mu    sync.Mutex
	laws  []time.Time // guarded by mu; when each came into force
	// ledger goes by the laws.
	ledger *ledger.Ledger
}

func newStatutes(objects ...any) *statutes {
	s := &statutes{store: map[string]cache.Indexer{}, ledger: ledger.New((*tenancy.Directory)(nil))}
	for _, kind := range []string{"Tenant", "Namespace", "ResourceQuota"} {
		s.store[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	s.Rules = newRules(kindlisters.NewTenantLister(s.store["Tenant"]), corelisters.NewNamespaceLister(s.store["Namespace"]),
		corelisters.NewResourceQuotaLister(s.store["ResourceQuota"]), s, logr.Discard())
	for _, o := range objects {
		s.put(o)
	}
	return s
}

// Govern implements governed.
func (s *statutes) Govern(r ledger.Rules) {
	s.ledger.Govern(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.laws = append(s.laws, time.Now())
}

// PodsIn implements governed.
func (s *statutes) PodsIn(namespace string) []gpu.PodID { return s.ledger.PodsIn(namespace) }

// put writes the object, and has the rules look as their handlers would.
func (s *statutes) put(o any) {
	var kind string
	switch o.(type) {
	case *v1alpha1.Tenant:
		kind = "Tenant"
	case *corev1.Namespace:
		kind = "Namespace"
	case *corev1.ResourceQuota:
		kind = "ResourceQuota"
	}
	if err := s.store[kind].Add(o); err != nil {
		panic(err)
	}
	s.look()
}

func (s *statutes) made() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.laws)
}

// running has the rules run in a bubble, to the end of the test.
func running(t *testing.T, s *statutes, test func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.run(ctx) })
	synctest.Wait()
	test()
	stop()
	group.Wait()
}

// A rule is in force at once when it is written into quiet, and what is written in
// a flood is one law every 50 ms, the last word included.
func TestLawsAreMadeAtOnceAndNotTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatutes(newNamespace("ns", nil))
		running(t, s, func() {
			if n := len(s.made()); n != 1 {
				t.Fatalf("%d laws at the start, want 1", n)
			}
			time.Sleep(time.Minute)
			written := time.Now()
			s.put(newTenant("red", 1, nil, "ns"))
			synctest.Wait()
			if laws := s.made(); len(laws) != 2 || !laws[1].Equal(written) {
				t.Errorf("written at %v, in force at %v", written, laws[1:])
			}
			time.Sleep(time.Minute)
			before := len(s.made())
			for i := range 1000 { // one second
				s.put(newTenant("red", int64(i+2), []string{fmt.Sprintf("g%d", i)}, "ns"))
				time.Sleep(time.Millisecond)
			}
			time.Sleep(rulesPace)
			synctest.Wait()
			if n := len(s.made()) - before; n < 10 || n > 22 {
				t.Errorf("%d laws of a second's flood, want some 20", n)
			}
			if got := s.Law().Directory.Tenants()[0].Groups; !slices.Equal(got, []string{"g999"}) {
				t.Errorf("in force is %v, which is not the last word", got)
			}
		})
	})
}

// What is written again the same costs the ledger nothing, and a change that it
// does not go by is told to those who show it.
func TestOnlyAnotherWorldIsALaw(t *testing.T) {
	tests := map[string]struct {
		put     any
		another bool // law
		changed bool // for those who look
	}{
		"the same Tenant again":             {newTenant("red", 1, []string{"g"}, "ns"), false, false},
		"another generation, alike":         {newTenant("red", 2, []string{"g"}, "ns"), false, true},
		"another group":                     {newTenant("red", 2, []string{"h"}, "ns"), true, true},
		"a Tenant more":                     {newTenant("blue", 1, nil), true, true},
		"the same namespace again":          {newNamespace("ns", map[string]string{"team": "a"}), false, false},
		"a label that nobody selects by":    {newNamespace("ns", map[string]string{"team": "b"}), false, false},
		"a label that claims":               {newNamespace("ns", map[string]string{codec.TenantLabel: "blue"}), true, true},
		"a namespace more":                  {newNamespace("ns2", nil), true, true},
		"the same quota again":              {newQuota("ns", "q", "2"), false, false},
		"another amount":                    {newQuota("ns", "q", "3"), true, true},
		"a quota more, not about cards":     {&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pods"}}, false, false},
		"a quota that can not be counted":   {percentQuota(), false, true},
		"a Tenant that has become inactive": {inactive(newTenant("red", 2, []string{"g"}, "ns")), true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStatutes(newTenant("red", 1, []string{"g"}, "ns"), newNamespace("ns", map[string]string{"team": "a"}), newQuota("ns", "q", "2"))
				running(t, s, func() {
					time.Sleep(time.Second)
					before := s.Changed()
					s.put(tc.put)
					synctest.Wait()
					if another := len(s.made()) > 1; another != tc.another {
						t.Errorf("another law: %v, want %v", another, tc.another)
					}
					if changed := closed(before); changed != tc.changed {
						t.Errorf("changed: %v, want %v", changed, tc.changed)
					}
				})
			})
		})
	}
}

func inactive(t *v1alpha1.Tenant) *v1alpha1.Tenant {
	t.Spec.Active = new(false)
	return t
}

func percentQuota() *corev1.ResourceQuota {
	q := newQuota("ns", "percent", "1")
	q.Spec.Hard = corev1.ResourceList{"requests.nvidia.com/gpumem-percentage": resource.MustParse("50")}
	return q
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Figures in a status change with every pod. Not even a look is taken for those.
func TestChangesOfAStatusAreNotLookedAt(t *testing.T) {
	tenant, namespace, quota := newTenant("red", 3, []string{"g"}, "ns"), newNamespace("ns", map[string]string{"a": "b"}), newQuota("ns", "q", "2")
	tests := map[string]struct {
		handler                 func(*Rules) cache.ResourceEventHandler
		was                     any
		meaningless, meaningful any
	}{
		"Tenant": {func(r *Rules) cache.ResourceEventHandler { return rulesHandler(r, sameTenant) }, tenant,
			changed(tenant, func(t *v1alpha1.Tenant) { t.Status.NamespaceCount, t.ResourceVersion = 4, "8" }),
			changed(tenant, func(t *v1alpha1.Tenant) { t.Spec.SharingGroups = nil })},
		"namespace": {func(r *Rules) cache.ResourceEventHandler { return rulesHandler(r, sameNamespace) }, namespace,
			changed(namespace, func(n *corev1.Namespace) { n.Status.Phase, n.ResourceVersion = corev1.NamespaceTerminating, "8" }),
			changed(namespace, func(n *corev1.Namespace) { n.Labels = map[string]string{"a": "c"} })},
		"ResourceQuota": {func(r *Rules) cache.ResourceEventHandler { return rulesHandler(r, sameQuota) }, quota,
			changed(quota, func(q *corev1.ResourceQuota) {
				q.Status.Used, q.ResourceVersion = corev1.ResourceList{"pods": resource.MustParse("9")}, "8"
			}),
			changed(quota, func(q *corev1.ResourceQuota) {
				q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newStatutes().Rules
			h := tc.handler(r)
			looks := func(what string, tell func(), want bool) {
				t.Helper()
				tell()
				select {
				case <-r.news:
					if !want {
						t.Errorf("%s: looked at", what)
					}
				default:
					if want {
						t.Errorf("%s: not looked at", what)
					}
				}
			}
			looks("added", func() { h.OnAdd(tc.was, true) }, true)
			looks("status", func() { h.OnUpdate(tc.was, tc.meaningless) }, false)
			looks("spec", func() { h.OnUpdate(tc.was, tc.meaningful) }, true)
			looks("deleted", func() { h.OnDelete(tc.was) }, true)
			looks("found out to be gone", func() { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: tc.was}) }, true)
		})
	}
}

// changed returns a copy that differs.
func changed[T interface{ DeepCopy() T }](of T, how func(T)) T {
	next := of.DeepCopy()
	how(next)
	return next
}

// Ready means that the ledger goes by what is written: before, nobody gets
// anything, and a pod that was bound long ago has no tenant yet.
func TestReadyWithTheRules(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) {
		s.nodes = []corev1.Node{*newNode("n1", devices)}
		s.pods = []corev1.Pod{*boundPod(t, "p")}
		s.namespaces = []corev1.Namespace{*newNamespace("ns", nil), *newNamespace("other", map[string]string{codec.TenantLabel: "red"})}
		s.tenants = []v1alpha1.Tenant{*newTenant("red", 1, []string{"g"}), *newTenant("blue", 1, []string{"g"}, "ns")}
		s.quotas = []corev1.ResourceQuota{*newQuota("ns", "q", "2")}
	})
	s := newShelf()
	c := follow(t, server, &s.Books)
	until(c.Ready)
	h, _ := s.Ledger.Hold("uid-p")
	if h.Tenant != "blue" {
		t.Errorf("when ready, the pod is of tenant %q, want blue", h.Tenant)
	}
	n, _ := s.Ledger.Snapshot().Node("n1")
	owner, _ := s.Ledger.Snapshot().Owner("other")
	third, _ := s.Ledger.Snapshot().Purse("ns").Check(gpu.Spending{{Vendor: gpu.Nvidia, Devices: 3, Whole: 3}})
	if owner != "red" || !n.Boundary.MayShare("red", "blue") || third.Limit == nil || third.Limit.Most != 2 {
		t.Errorf("when ready, other is of %q, and the boundary is %+v", owner, n.Boundary)
	}

	server.written["tenants"] <- watchEvent("MODIFIED", v1alpha1.TenantKind, newTenant("red", 2, nil))
	until(func() bool { n, _ := s.Ledger.Snapshot().Node("n1"); return !n.Boundary.MayShare("red", "blue") })
	server.written["namespaces"] <- watchEvent("ADDED", "Namespace", newNamespace("new", nil))
	until(func() bool { _, shut := s.Ledger.Snapshot().Owner("new"); return shut == "" })
	server.written["resourcequotas"] <- watchEvent("DELETED", "ResourceQuota", newQuota("ns", "q", "2"))
	until(func() bool { return !s.Ledger.Snapshot().Purse("ns").Limited() })
}

// registry is an API server's kind Tenant, which may not be installed. It has none.
type registry struct{ installed atomic.Bool }

func (r *registry) RoundTrip(q *http.Request) (*http.Response, error) {
	reply := func(code int, body io.Reader) *http.Response {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), Request: q}
	}
	switch {
	case !r.installed.Load():
		return reply(http.StatusNotFound, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)), nil
	case q.URL.Query().Get("sendInitialEvents") != "":
		return reply(http.StatusUnprocessableEntity, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)), nil
	case q.URL.Query().Get("watch") != "":
		silent, end := io.Pipe()
		context.AfterFunc(q.Context(), func() { _ = end.Close() })
		return reply(http.StatusOK, silent), nil
	}
	return reply(http.StatusOK, strings.NewReader(`{"kind":"TenantList","apiVersion":"heteroflow.io/v1alpha1","metadata":{"resourceVersion":"5"},"items":[]}`)), nil
}

// Unknown is not free: without the kind Tenant nothing is decided, and it is said
// why, every 30 seconds. Once it is installed nobody has to start anything anew.
func TestWithoutTheKindTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		var said atomic.Int64
		s.Logger = funcr.New(func(_, text string) {
			if strings.Contains(text, "the API server knows no tenants.heteroflow.io: install the chart's CRDs") {
				said.Add(1)
			}
		}, funcr.Options{})
		complaints := said.Load
		kinds := &registry{}
		c, err := NewCluster(fake.NewClientset(newNode("n1", devices)), newKinds(t, "http://api", kinds), &s.Books)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- c.Run(ctx) }()
		synctest.Wait()
		if n := complaints(); n != 1 {
			t.Errorf("said %d times at once, want once", n)
		}
		time.Sleep(10*time.Minute + time.Second)
		if c.Ready() {
			t.Error("ready without the kind Tenant")
		}
		if n := complaints(); n < 20 || n > 22 {
			t.Errorf("said %d times in 10 minutes, want every 30 s", n)
		}
		kinds.installed.Store(true)
		time.Sleep(time.Minute + time.Second) // the longest between two tries
		synctest.Wait()
		if !c.Ready() {
			t.Error("not ready with the kind Tenant")
		}
		stop()
		<-ran
	})
}

// Once the kind is there it is not said any more, whatever else is waited for.
func TestWhatIsMissingIsNotAlwaysTheKindTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		var said atomic.Int64
		s.Logger = funcr.New(func(_, text string) {
			if strings.Contains(text, "install the chart's CRDs") {
				said.Add(1)
			}
		}, funcr.Options{})
		client, kinds := fake.NewClientset(), &registry{}
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", errors.New("no such right"))
		client.PrependReactor("list", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		client.PrependWatchReactor("resourcequotas", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, forbidden })
		c, err := NewCluster(client, newKinds(t, "http://api", kinds), &s.Books)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		kinds.installed.Store(true)
		time.Sleep(2 * time.Minute) // the longest between two tries, and more
		before := said.Load()
		time.Sleep(10 * time.Minute)
		if n := said.Load() - before; before == 0 || n != 0 {
			t.Errorf("said %d times before, and %d times since it is there", before, n)
		}
		if c.Ready() {
			t.Error("ready without the ResourceQuotas")
		}
		stop()
		<-ran
	})
}

// A Tenant that cannot be read is told of once, until that changes.
func TestATenantThatCannotBeReadIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		broken := newTenant("red", 1, nil, "ns")
		broken.Spec.Namespaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		s := newStatutes(broken, newNamespace("ns", nil))
		s.logger = funcr.New(func(_, text string) { said = append(said, text) }, funcr.Options{})
		running(t, s, func() {
			s.put(newNamespace("ns2", nil))
			time.Sleep(time.Second)
			synctest.Wait()
			if len(said) != 1 || !strings.Contains(said[0], `"tenant"="red"`) || !strings.Contains(said[0], "spec.namespaces.selector") {
				t.Errorf("said %q", said)
			}
			if _, shut := s.Law().Directory.Owner("ns"); shut != gpu.TenantInactive {
				t.Errorf("its namespace is closed by %q, want %s", shut, gpu.TenantInactive)
			}
		})
	})
}

// The first pods of a namespace come with it: what its Tenant allows is waited for,
// unless nobody's pods are kept from any priority, and not for ever.
func TestMaxPriorityWaitsForANewNamespace(t *testing.T) {
	capped := newTenant("red", 1, nil, "new", "other")
	capped.Spec.MaxPriority = new(int32)
	*capped.Spec.MaxPriority = 40
	tests := map[string]struct {
		tenant *v1alpha1.Tenant
		made   time.Duration // when the namespace is seen; 0: never
		most   int
		known  bool
		took   time.Duration
	}{
		"it is seen soon":            {tenant: capped, made: 100 * time.Millisecond, most: 40, known: true, took: 100 * time.Millisecond},
		"it is never seen":           {tenant: capped, most: 40, took: rulesPatience},
		"nobody is kept from any":    {tenant: newTenant("red", 1, nil, "new"), most: 100},
		"another is seen meanwhile":  {tenant: capped, made: -100 * time.Millisecond, most: 40, took: rulesPatience},
		"it is seen when it is late": {tenant: capped, made: 2 * rulesPatience, most: 40, took: rulesPatience},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStatutes(tc.tenant)
				running(t, s, func() {
					time.Sleep(time.Minute)
					began := time.Now()
					switch {
					case tc.made > 0:
						time.AfterFunc(tc.made, func() { s.put(newNamespace("new", nil)) })
					case tc.made < 0:
						time.AfterFunc(-tc.made, func() { s.put(newNamespace("other", nil)) })
					}
					most, known := s.MaxPriority("new")
					if took := time.Since(began); most != tc.most || known != tc.known || took != tc.took {
						t.Errorf("%d, %t after %v, want %d, %t after %v", most, known, took, tc.most, tc.known, tc.took)
					}
					time.Sleep(time.Minute)
				})
			})
		})
	}
}
