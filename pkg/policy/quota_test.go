package policy

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// limited are rules under which every namespace has these limits.
type limited struct {
	tenancy.Separate
	limits []gpu.Limit
}

func (l limited) Accounts(namespace string) []gpu.Account {
	return []gpu.Account{gpu.NamespaceAccount(namespace)}
}

func (l limited) Limits(gpu.Account) []gpu.Limit { return l.limits }

func drawLimit(t *rapid.T) gpu.Limit {
	l := gpu.Limit{
		Measure: pick(t, "measure", gpu.Devices, gpu.WholeCards, gpu.Memory, gpu.Compute),
		Vendor:  pick(t, "limited vendor", "", gpu.Nvidia, gpu.Ascend), Resource: pick(t, "limited resource", "", "", "count", "shares"),
	}
	switch l.Measure {
	case gpu.Memory:
		l.Most = int64(rapid.IntRange(0, 40).Draw(t, "most MiB"))
	case gpu.Compute:
		l.Most = int64(10 * rapid.IntRange(0, 40).Draw(t, "most percent"))
	default:
		l.Most = int64(rapid.IntRange(0, 4).Draw(t, "most"))
	}
	return l
}

// quotaWorld is a node under limits, and a request of its own.
type quotaWorld struct {
	books *ledger.Ledger
	r     *gpu.Request
	n     *ledger.Node
	cycle *pipeline.Cycle
}

func drawQuotaWorld(t *rapid.T) quotaWorld {
	w, r := drawWorld(t), drawRequest(t)
	w.facts.Unavailable, r.Models = false, nil // what other tests are about
	for i := range w.facts.Cards {
		c := &w.facts.Cards[i]
		c.Healthy, c.Cordoned, c.Mode, c.Isolation = true, false, gpu.ModeSlice, gpu.IsolationSoft
		c.Memory = pick[gpu.MiB](t, "size", 4, 8, 10)
		c.Usable = c.Memory - pick[gpu.MiB](t, "reserve", 0, 1)
	}
	var rules limited
	for range rapid.IntRange(1, 3).Draw(t, "limits") {
		rules.limits = append(rules.limits, drawLimit(t))
	}
	for i := range r.Asks { // figures in percent of the card, too
		if a := &r.Asks[i]; !a.Whole && pick(t, "percentage", false, true) {
			a.Memory, a.MemoryPercent = 0, pick(t, "percent", 10, 50)
			a.ProportionalCores = a.Cores == 0
		}
	}
	l := w.books()
	l.Govern(rules)
	s := l.Snapshot()
	r.Tenant, _ = s.Owner(r.Namespace)
	n, _ := s.Node("n1")
	return quotaWorld{l, r, n, &pipeline.Cycle{Request: r, Purse: s.Purse(r.Namespace)}}
}

// What filter says of quotas bind says too, the ledger takes what bind chose, and
// what is said of a request without looking at cards is true of any.
func TestChainUnderQuotas(t *testing.T) {
	moreChecks(t)
	var yes, no, over int
	rapid.Check(t, func(t *rapid.T) {
		w := drawQuotaWorld(t)
		pipe := Default().Pipeline()
		var scratch pipeline.Scratch
		judged := pipe.Judge(w.cycle, w.n, &scratch)
		if judged.OK() && w.r.AsksForCards() {
			prices := pipe.Prices(w.cycle, w.n, &scratch)
			mustLieBetween(t, w.r, prices)
			judged = pipeline.Afford(w.cycle.Purse, prices...)
		}
		p, assigned := pipe.Assign(w.cycle, w.n)
		if judged != assigned {
			t.Fatalf("judged %+v, assigned %+v", judged, assigned)
		}
		switch {
		case assigned.OK():
			yes++
			if err := w.books.Reserve(p); err != nil {
				t.Fatal(err)
			}
		case assigned.Reason == gpu.QuotaExceeded:
			over++
			unlimited := *w.cycle
			unlimited.Purse = ledger.Purse{}
			p, _ := pipe.Assign(&unlimited, w.n)
			if err := w.books.Reserve(p); !errors.Is(err, ledger.ErrQuota) {
				t.Fatalf("the ledger takes %+v: %v", p, err)
			}
		default:
			no++
		}
	})
	t.Logf("%d fit, %d do not, %d pass a quota", yes, no, over)
	if yes+no+over > 1000 && min(yes, no, over) < 50 { // a run with -rapid.seed may be short
		t.Error("one of the answers is hardly tried")
	}
}

// mustLieBetween checks what is said of any card: no price is below Least or above
// Most in anything that a limit can count, and all are Least where that is Fixed.
func mustLieBetween(t *rapid.T, r *gpu.Request, prices []gpu.Spending) {
	least := pipeline.Least(r)
	if len(prices) == 0 {
		t.Fatal("it fits, at no price")
	}
	for _, price := range prices {
		if pipeline.Fixed(r) && !slices.Equal(price, least) {
			t.Fatalf("fixed price %+v is %+v", least, price)
		}
		for _, m := range []gpu.Measure{gpu.Devices, gpu.WholeCards, gpu.Memory, gpu.Compute} {
			for _, v := range append(gpu.Vendors(), "") {
				l := gpu.Limit{Measure: m, Vendor: v}
				var most int64
				for _, on := range gpu.Vendors() {
					most = max(most, l.Of(pipeline.Most(r, on)))
				}
				if got := l.Of(price); got < l.Of(least) || got > most {
					t.Fatalf("%d of %+v, want %d to %d", got, l, l.Of(least), most)
				}
			}
		}
	}
}

// Of one container nothing is refused for a quota that any choice of cards would
// keep to.
func TestQuotaRefusesNoOneContainerThatFits(t *testing.T) {
	moreChecks(t)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawQuotaWorld(t)
		if len(w.r.Asks) != 1 {
			return
		}
		pipe := Default().Pipeline()
		if _, v := pipe.Assign(w.cycle, w.n); v.Reason != gpu.QuotaExceeded {
			return
		}
		refused++
		a := &w.r.Asks[0]
		for set := range 1 << len(w.n.Cards) {
			var grant gpu.Grant
			grant.Resource = a.Plugin
			only := *w.r
			for i := range w.n.Cards {
				if set>>i&1 == 1 {
					c := &w.n.Cards[i]
					u := a.On(&c.Card)
					grant.Shares = append(grant.Shares, gpu.Share{Card: c.ID, Vendor: c.Vendor, Memory: u.Memory, Cores: u.Cores, Exclusive: u.Exclusive})
				} else {
					only.NotCards = append(only.NotCards, w.n.Cards[i].ID)
				}
			}
			p := gpu.Placement{Grants: []gpu.Grant{grant}}
			if _, over := w.cycle.Purse.Check(p.Spending()); over || len(grant.Shares) != a.Count {
				continue
			}
			if v := pipe.Judge(&pipeline.Cycle{Request: &only}, w.n, &pipeline.Scratch{}); v.OK() {
				t.Fatalf("refused, though %+v would do", grant)
			}
		}
	})
	if t.Logf("%d refused", refused); refused < atLeast(15) {
		t.Error("hardly anything is tried")
	}
}
