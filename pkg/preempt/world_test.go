package preempt_test

import (
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/preempt"
)

var now = time.Unix(1_000_000, 0).UTC() // read only

// trial asks the pipeline of the default policy, quotas included, as the engine does.
type trial struct {
	pipe *pipeline.Pipeline
	r    *gpu.Request
}

func (t trial) Fits(in ledger.Snapshot, node gpu.NodeID) bool {
	_, ok := t.Place(in, node)
	return ok
}

func (t trial) Place(in ledger.Snapshot, node gpu.NodeID) (gpu.Placement, bool) {
	own := *t.r
	var closed gpu.Reason
	own.Tenant = ""
	if own.AsksForCards() {
		own.Tenant, closed = in.Owner(own.Namespace)
	}
	n, ok := in.Node(node)
	if !ok || closed != "" {
		return gpu.Placement{}, false
	}
	p, v := t.pipe.Assign(&pipeline.Cycle{Request: &own, Purse: in.Purse(own.Namespace)}, n)
	return p, v.OK()
}

// trials counts how often anybody asked.
func trials(asked *int) func(*gpu.Request, ledger.Snapshot) preempt.Trial {
	pipe := policy.Default().Pipeline()
	return func(r *gpu.Request, _ ledger.Snapshot) preempt.Trial { return counted{trial{pipe, r}, asked} }
}

type counted struct {
	trial
	asked *int
}

func (c counted) Fits(in ledger.Snapshot, node gpu.NodeID) bool {
	*c.asked++
	return c.trial.Fits(in, node)
}

// town are the tenants red, rose and blue: rose shares with each of the others, which
// do not share with each other. A namespace may hold so many devices.
type town struct{ devices map[string]int64 }

func (town) MayShare(a, b gpu.TenantID) bool {
	return a != "" && b != "" && (a == b || a == "rose" || b == "rose")
}
func (t town) Boundary() ledger.Boundary                       { return bounds{} }
func (town) Owner(namespace string) (gpu.TenantID, gpu.Reason) { return gpu.TenantID(namespace), "" }
func (t town) Accounts(namespace string) []gpu.Account {
	return []gpu.Account{gpu.NamespaceAccount(namespace)}
}

func (t town) Limits(a gpu.Account) []gpu.Limit {
	for namespace, most := range t.devices {
		if a == gpu.NamespaceAccount(namespace) {
			return []gpu.Limit{{Quota: "quota", Name: "cards", Measure: gpu.Devices, Most: most}}
		}
	}
	return nil
}

type bounds struct{}

func (bounds) MayShare(a, b gpu.TenantID) bool     { return town{}.MayShare(a, b) }
func (bounds) Dedicated(label string) gpu.TenantID { return gpu.TenantID(label) }
func (bounds) Equal(other ledger.Boundary) bool    { return other == ledger.Boundary(bounds{}) }

// facts is a node of so many cards of 10 MiB, of which slices may take 9 in 3 slots.
func facts(id gpu.NodeID, cards int) ledger.Facts {
	f := ledger.Facts{ID: id, CPU: 8000, Memory: 1 << 30}
	for i := range cards {
		f.Cards = append(f.Cards, gpu.Card{
			ID: cardID(id, i), Index: i, Vendor: gpu.Nvidia, Model: "A100", Memory: 10, Usable: 9, Cores: 100, UsableCores: 100,
			MaxSlices: 3, NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
		})
	}
	return f
}

func cardID(node gpu.NodeID, i int) gpu.CardID { return gpu.CardID(fmt.Sprintf("%s/%d", node, i)) }

// resident is a bound pod with what it holds.
type resident struct {
	preempt.Pod
	cpu    gpu.MilliCPU
	shares []gpu.Share
	lost   bool // nothing is known of its hold
}

// on is a pod of priority 10 that may be ended, on these cards of the node, whole.
func on(node gpu.NodeID, id gpu.PodID, cards ...int) resident {
	r := resident{cpu: 1000, Pod: preempt.Pod{
		ID: id, Namespace: "red", Name: string(id), Node: node, Priority: 10, Created: now.Add(-time.Hour), Preemptible: true,
		Ours: true, Lineage: string(id), Phase: preempt.Running, Since: now.Add(-time.Hour),
	}}
	for _, c := range cards {
		r.shares = append(r.shares, gpu.Share{Card: cardID(node, c), Vendor: gpu.Nvidia, Memory: 10, Cores: 100, Exclusive: true})
	}
	return r
}

// sliceOn has so many MiB of a card.
func sliceOn(node gpu.NodeID, id gpu.PodID, c int, mib gpu.MiB) resident {
	r := on(node, id)
	r.shares = []gpu.Share{{Card: cardID(node, c), Vendor: gpu.Nvidia, Memory: mib, Cores: 10}}
	return r
}

func (r resident) but(change func(*resident)) resident { change(&r); return r }

func (r resident) priority(p int32) resident { r.Priority = p; return r }
func (r resident) unit(u string) resident    { r.Unit = u; return r }
func (r resident) ending() resident          { r.Phase = preempt.Ending; return r }

// age is for how many minutes it has been there.
func (r resident) age(m int) resident {
	r.Created = now.Add(-time.Duration(m) * time.Minute)
	return r
}

func (r resident) placement() gpu.Placement {
	p := gpu.Placement{Pod: r.ID, Namespace: r.Namespace, Name: r.Name, Node: r.Node, CPU: r.cpu, Memory: 1}
	if len(r.shares) > 0 {
		p.Grants = []gpu.Grant{{Container: "main", Shares: r.shares}}
	}
	return p
}

// cluster is who is where.
type cluster struct {
	nodes     []ledger.Facts
	residents []resident
	rules     town
}

func (c cluster) books() *ledger.Ledger {
	l := ledger.New(c.rules)
	for _, f := range c.nodes {
		l.SetNode(f)
	}
	for _, r := range c.residents {
		if !r.lost {
			l.Confirm(r.placement())
		}
	}
	return l
}

func (c cluster) pods() map[gpu.NodeID][]preempt.Pod {
	all := map[gpu.NodeID][]preempt.Pod{}
	for _, r := range c.residents {
		all[r.Node] = append(all[r.Node], r.Pod)
	}
	return all
}

// world is the cluster for one round, by a policy that lets all be ended who run.
func (c cluster) world(l *ledger.Ledger) *preempt.World {
	return &preempt.World{
		State: l.Snapshot(), Pods: c.pods(), Now: now, Trial: trials(new(int)), Policy: "default",
		Rules: preempt.Rules{Stage: preempt.OfRunning, Bare: true, Cooldown: 10 * time.Minute},
	}
}

// wholes asks for so many whole cards.
func wholes(cards int) preempt.Asker {
	return asking(gpu.Ask{Container: "main", Count: cards, Whole: true})
}

func slice(mib gpu.MiB) preempt.Asker {
	return asking(gpu.Ask{Container: "main", Count: 1, Memory: mib, Cores: 10})
}

func asking(asks ...gpu.Ask) preempt.Asker {
	return preempt.Asker{Lineage: "high", Created: now, Request: gpu.Request{
		Pod: "high", Namespace: "red", Name: "high", Priority: 50, Asks: asks, CPU: 1000, Memory: 1, NUMA: gpu.NoNUMA,
	}}
}

func ids(pods []preempt.Pod) []gpu.PodID {
	all := []gpu.PodID{}
	for i := range pods {
		all = append(all, pods[i].ID)
	}
	return all
}

// mustHold checks what every plan promises.
func mustHold(t interface {
	Helper()
	Fatal(...any)
}, w *preempt.World, p *preempt.Plan) {
	t.Helper()
	if err := preempt.Certify(w, p); err != nil {
		t.Fatal(err)
	}
}
