package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// upheaval is a small cluster in which anything may change: who holds what, which
// nodes there are, the rules, and what a service keeps for itself.
type upheaval struct {
	cluster
	*rand.Rand
	seen    int                    // touches that have been answered
	waiters map[string]gpu.Request // pods that have no node yet
}

func (u *upheaval) card() gpu.CardID {
	return gpu.CardID(fmt.Sprintf("n%d-d%d", 1+u.IntN(3), u.IntN(2)))
}

func (u *upheaval) step() {
	name, node := fmt.Sprintf("holder-%d", u.IntN(6)), gpu.NodeID(fmt.Sprintf("n%d", 1+u.IntN(3)))
	switch u.IntN(10) {
	case 0, 1:
		share := []gpu.Share{alone, {Memory: 300, Cores: 30}, {Memory: 900, Cores: 10}}[u.IntN(3)]
		u.ledger.Release(gpu.PodID(name))
		u.joins(name, []string{"ns", "two", "other"}[u.IntN(3)], u.card(), share)
	case 2, 3, 4:
		u.ledger.Release(gpu.PodID(name))
	case 5:
		u.ledger.SetNode(sized(node, []gpu.MiB{1000, 600, 1000}[u.IntN(2):][:2]...))
	case 6:
		u.ledger.RemoveNode(node)
	case 7:
		r := rules{tenants: map[string]gpu.TenantID{"two": []gpu.TenantID{"ns", "two", ""}[u.IntN(3)]}}
		if u.IntN(2) == 0 {
			r.groups = [][]gpu.TenantID{{"ns", "other"}}
		}
		if u.IntN(4) == 0 {
			r.closed = []string{"ns"}
		}
		limits := []gpu.Limit{cardLimit(int64(u.IntN(4))), memoryLimit(int64(250 * u.IntN(9))), coreLimit(int64(50 * u.IntN(6)))}
		u.ledger.Govern(r.limiting("ns", limits[u.IntN(3):]...))
	case 8:
		u.keeps("chat", time.Now().Add(time.Duration(1+u.IntN(100))*time.Second), []gpu.CardID{u.card(), u.card(), u.card()}[:u.IntN(4)]...)
	case 9:
		u.ledger.DropService("chat")
	}
}

// answer has kube-scheduler come with those who have been woken. Who fits waits no
// more.
func (u *upheaval) answer() {
	u.server.mu.Lock()
	woken := slices.Clone(u.server.touched[u.seen:])
	u.server.mu.Unlock()
	u.seen += len(woken)
	for _, name := range woken {
		if r, waits := u.waiters[name]; waits && u.Filter(&r, u.all()).Fit > 0 {
			delete(u.waiters, name)
		}
	}
}

// Whatever has changed in between, who fits in the end does not wait any more.
func TestNobodyWhoFitsIsForgotten(t *testing.T) {
	asks := []gpu.Ask{whole(1), whole(2), slice(300), percent(50), {Count: 1, Cores: 40}, {Count: 1, Whole: true, Memory: 700}}
	waited := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			u := &upheaval{cluster: newCluster(2, 2, 2), Rand: rand.New(rand.NewPCG(seed, 7)), waiters: map[string]gpu.Request{}}
			u.ledger.Govern(rules{}.limiting("ns", cardLimit(1)))
			u.joins("holder-0", "ns", "n1-d0", alone)
			for i, ask := range asks {
				r := pod(fmt.Sprintf("waiter-%d", i), ask)
				switch u.IntN(3) {
				case 0:
					r = memberOf("chat", r)
				case 1:
					r = lasting(time.Duration(u.IntN(100))*time.Second, r)
				}
				u.server.create(r)
				if u.Filter(&r, u.all()).Fit == 0 {
					u.waiters[r.Name] = r
				}
			}
			u.wakes(t)
			for range 40 {
				u.step()
				time.Sleep(time.Duration(u.IntN(900)) * time.Millisecond)
				synctest.Wait()
				u.answer()
			}
			for range 150 {
				time.Sleep(time.Second)
				synctest.Wait()
				u.answer()
			}
			for _, name := range slices.Sorted(maps.Keys(u.waiters)) {
				probe := u.waiters[name]
				probe.Pod, probe.Name = gpu.PodID("probe-"+name), "probe-"+name
				if f := u.Filter(&probe, u.all()); f.Fit > 0 {
					t.Errorf("seed %d: %s fits %v and has not been woken", seed, name, f.Feasible)
				}
				waited++
			}
		})
	}
	if waited < 100 {
		t.Errorf("only %d pods had to wait to the end", waited)
	}
}
