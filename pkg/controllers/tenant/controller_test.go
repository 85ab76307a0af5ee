package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// office is an API server's Tenants, behind its HTTP interface: a little store that
// knows versions.
type office struct {
	mu      sync.Mutex
	tenants map[string]*v1alpha1.Tenant // guarded by mu
	writes  []string                    // guarded by mu; whose status was asked to be written, in order
	fault   map[string]int              // guarded by mu; Tenant -> the status to answer with instead
}

// RoundTrip updates a status.
func (o *office) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, isStatus := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/apis/heteroflow.io/v1alpha1/tenants/"), "/status")
	if r.Method != http.MethodPut || !isStatus {
		return nil, fmt.Errorf("%s %s is not expected", r.Method, r.URL.Path)
	}
	o.writes = append(o.writes, name)
	var given v1alpha1.Tenant
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		return nil, err
	}
	kept, there := o.tenants[name]
	switch {
	case o.fault[name] != 0:
		return refusal(o.fault[name], metav1.StatusReasonUnknown), nil
	case !there:
		return refusal(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	case given.ResourceVersion != kept.ResourceVersion:
		return refusal(http.StatusConflict, metav1.StatusReasonConflict), nil
	}
	next := kept.DeepCopy()
	next.Status, next.ResourceVersion = given.Status, kept.ResourceVersion+"+"
	o.tenants[name] = next
	return reply(http.StatusOK, next), nil
}

func refusal(code int, reason metav1.StatusReason) *http.Response {
	return reply(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
}

func reply(code int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}
}

// asked returns whose status was asked to be written since it was last asked.
func (o *office) asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	writes := o.writes
	o.writes = nil
	return writes
}

func (o *office) status(name string) v1alpha1.TenantStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenants[name].Status
}

// desk is a controller at its office, with what it has told.
type desk struct {
	Controller
	office  *office
	cache   cache.Indexer // of Tenants
	quotas  cache.Indexer
	books   *ledger.Ledger
	mu      sync.Mutex
	law     *kube.Law     // guarded by mu
	changed chan struct{} // guarded by mu
	told    []string      // guarded by mu
}

func newDesk(t *testing.T, tenants []*v1alpha1.Tenant, namespaces ...string) *desk {
	t.Helper()
	d := &desk{
		office: &office{tenants: map[string]*v1alpha1.Tenant{}, fault: map[string]int{}},
		cache:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		quotas: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		law:    law(tenants, nil, namespaces...), changed: make(chan struct{}),
	}
	for _, tenant := range tenants {
		d.office.tenants[tenant.Name] = tenant
	}
	d.see()
	d.books = cluster(d.law.Directory)
	client, err := versioned.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: d.office})
	if err != nil {
		t.Fatal(err)
	}
	d.Controller = Controller{
		Tenants: kindlisters.NewTenantLister(d.cache), Quotas: corelisters.NewResourceQuotaLister(d.quotas), Ledger: d.books.Snapshot,
		Law:     func() *kube.Law { d.mu.Lock(); defer d.mu.Unlock(); return d.law },
		Changed: func() <-chan struct{} { d.mu.Lock(); defer d.mu.Unlock(); return d.changed },
		Writer:  client.HeteroflowV1alpha1().Tenants(),
		Tell:    func(n kube.Notice) { d.mu.Lock(); defer d.mu.Unlock(); d.told = append(d.told, notice(n)) },
		Now:     start,
	}
	return d
}

// see has the cache as the office has it.
func (d *desk) see() {
	d.office.mu.Lock()
	defer d.office.mu.Unlock()
	for _, t := range d.office.tenants {
		if err := d.cache.Update(t); err != nil {
			panic(err)
		}
	}
}

// enact puts another law into force.
func (d *desk) enact(l *kube.Law) {
	d.books.Govern(l.Directory)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.law = l
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *desk) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

func many(n int) (tenants []*v1alpha1.Tenant) {
	for i := range n {
		tenants = append(tenants, object(fmt.Sprintf("t%03d", i)))
	}
	return tenants
}

// A status is written when it says something else than what is there, once.
func TestStatusIsWrittenWhenItDiffers(t *testing.T) {
	d := newDesk(t, []*v1alpha1.Tenant{object("blue", owns("b")), object("red", owns("r"))}, "b", "r")
	rounds := func(what string, want ...string) {
		t.Helper()
		d.round(t.Context())
		if diff := cmp.Diff(want, d.office.asked()); diff != "" {
			t.Errorf("%s: written (-want +got):\n%s", what, diff)
		}
	}
	rounds("first", "blue", "red")
	rounds("before the cache has seen it", "blue", "red") // which conflicts, and does no harm
	d.see()
	rounds("with nothing new")
	runs(d.books, "r", "p", "n1", 0)
	rounds("a pod", "red")
	d.see()
	if got := d.office.status("red").Used.Cards; got != 1 {
		t.Errorf("red has %d cards, want 1", got)
	}
	d.books.Release("uid-r-p")
	rounds("it ends", "red")
	d.see()
	rounds("with nothing new")
}

// What is newer than what it was found by is not written over.
func TestConflictsWaitForTheNextRound(t *testing.T) {
	d := newDesk(t, []*v1alpha1.Tenant{object("red")})
	d.office.tenants["red"] = object("red", func(t *v1alpha1.Tenant) { t.ResourceVersion, t.Status.NamespaceCount = "2", 7 })
	d.round(t.Context())
	if got := d.office.status("red").NamespaceCount; got != 7 {
		t.Errorf("written over what is newer: %d namespaces", got)
	}
	d.see()
	d.round(t.Context())
	if got := d.office.status("red"); got.NamespaceCount != 0 || len(got.Conditions) != 3 {
		t.Errorf("not written in the next round: %+v", got)
	}
}

// What is found by the law of one spec is not written as being of another.
func TestASpecThatIsNotInForceYetWaits(t *testing.T) {
	d := newDesk(t, []*v1alpha1.Tenant{object("red", cardLimit(0), func(t *v1alpha1.Tenant) { t.Generation = 2 })})
	d.law.Generations["red"] = 1
	d.round(t.Context())
	if got := d.office.asked(); got != nil {
		t.Errorf("written: %v", got)
	}
	delete(d.law.Generations, "red") // it has just been made
	d.round(t.Context())
	if got := d.office.asked(); got != nil {
		t.Errorf("written: %v", got)
	}
	d.enact(law([]*v1alpha1.Tenant{d.office.tenants["red"]}, nil))
	d.round(t.Context())
	if got := d.office.status("red").ObservedGeneration; got != 2 {
		t.Errorf("observed generation %d, want 2", got)
	}
}

// A round ends after so many writes, and the next goes on where it has ended.
func TestARoundIsBounded(t *testing.T) {
	const tenants = 2*mostWrites + 50
	d := newDesk(t, many(tenants))
	var all []string
	for _, want := range []int{mostWrites, mostWrites, 50, 0} {
		d.round(t.Context())
		asked := d.office.asked()
		if len(asked) != want {
			t.Errorf("%d writes in a round, want %d", len(asked), want)
		}
		all = append(all, asked...)
		d.see()
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != tenants {
		t.Errorf("%d of %d were written", n, tenants)
	}
}

// Statuses that differ again at once do not keep the others from their turn.
func TestEverybodyIsWrittenInTurn(t *testing.T) {
	const tenants = mostWrites + 10
	d := newDesk(t, many(tenants))
	written := map[string]bool{}
	for range 2 {
		d.round(t.Context()) // the cache does not follow: all of them differ for ever
		for _, name := range d.office.asked() {
			written[name] = true
		}
	}
	if len(written) != tenants {
		t.Errorf("%d of %d had their turn in two rounds", len(written), tenants)
	}
}

// A no to one Tenant is one no; an API server that is out of order is let alone
// until the next round.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fault int
		want  int // writes of one round
	}{
		"gone":             {http.StatusNotFound, 3},
		"not as it should": {http.StatusUnprocessableEntity, 3},
		"may not":          {http.StatusForbidden, 3},
		"out of order":     {http.StatusInternalServerError, 1},
		"too busy":         {http.StatusTooManyRequests, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, many(3))
			if delete(d.office.fault, "t000"); tc.fault != http.StatusNotFound {
				d.office.fault["t000"] = tc.fault
			} else {
				delete(d.office.tenants, "t000")
			}
			d.round(t.Context())
			if got := d.office.asked(); len(slices.Compact(got)) != tc.want {
				t.Errorf("written: %v, want %d", got, tc.want)
			}
			d.round(t.Context())
			if got := d.office.status("t002").Conditions; len(got) != 3 {
				t.Error("the others were not written in the next round")
			}
		})
	}
}

// Something that is not counted is told of where it is written.
func TestUncountedIsTold(t *testing.T) {
	d := newDesk(t, nil)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpus", UID: "uid-q"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpumem-percentage": resource.MustParse("100")}}}
	gone := q.DeepCopy()
	gone.Name = "gone"
	if err := d.quotas.Add(q); err != nil {
		t.Fatal(err)
	}
	d.enact(law(nil, []*corev1.ResourceQuota{q, gone}, "ml"))
	d.round(t.Context())
	want := []string{"ResourceQuota ml/gpus Warning QuotaUnsupported: not counted for cards: " +
		"spec.hard[requests.nvidia.com/gpumem-percentage]: percentages of unlike cards have no sum; write nvidia.com/gpumem"}
	if diff := cmp.Diff(want, d.heard()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Before anything is known there is nothing to say.
func TestNothingIsSaidBeforeThereIsALaw(t *testing.T) {
	d := newDesk(t, many(1))
	d.law = &kube.Law{}
	d.round(t.Context())
	if got := d.office.asked(); got != nil || d.heard() != nil {
		t.Errorf("written: %v, told: %v", got, d.heard())
	}
}

// A group that is removed while two share a card is told of within a second, and
// so is its end; nobody is killed. What is held is looked at every five.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := []*v1alpha1.Tenant{object("blue", owns("b"), shares("g")), object("red", owns("r"), shares("g"))}
		d := newDesk(t, group, "b", "r")
		runs(d.books, "b", "p", "n1", 0)
		runs(d.books, "r", "q", "n1", 0)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- d.Run(ctx) }()
		after := func(wait time.Duration, what string, told int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			d.see()
			if got := d.heard(); len(got) != told {
				t.Errorf("%s: told %d times, want %d: %q", what, len(got), told, got)
			}
		}
		after(10*time.Minute, "together", 0)
		alone := []*v1alpha1.Tenant{object("blue", owns("b")), object("red", owns("r"))}
		d.enact(law(alone, nil, "b", "r"))
		after(time.Second, "the group is removed", 1)
		after(5*time.Second, "and stays so", 1)
		if got := conditionOf(t, d.office.status("red"), v1alpha1.TenantCardsSeparated); !strings.HasPrefix(got, "False") {
			t.Errorf("condition %s", got)
		}
		if got := len(d.books.Pods()); got != 2 {
			t.Errorf("%d pods are left, want both", got)
		}
		d.books.Release("uid-r-q")
		after(5*time.Second, "one has ended", 2)
		after(10*time.Minute, "and stays so", 2)
		if got := conditionOf(t, d.office.status("red"), v1alpha1.TenantCardsSeparated); !strings.HasPrefix(got, "True") {
			t.Errorf("condition %s", got)
		}
		d.office.asked()
		for range 1000 { // a flood of laws is not one of rounds
			d.enact(law([]*v1alpha1.Tenant{object("blue"), object("red")}, nil))
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(d.office.asked()); n > 2*11 {
			t.Errorf("%d writes in ten seconds of two Tenants", n)
		}
		stop()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	})
}
