package ledger_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// TestModel does the same random things to a ledger and to the naive one, and
// compares all they know after every step. The world is small and the sizes lie
// at the limits, so that every rule is met often.
func TestModel(t *testing.T) {
	seed(t)
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		r := &run{
			ledger: ledger.New(rules), naive: newNaive(rules), now: start,
			loose: map[gpu.CardID]bool{}, past: map[string]int64{}, split: map[gpu.CardID]int{},
			gauges: newGauges(),
		}
		r.before = take(r.ledger.Snapshot())
		for _, id := range nodeIDs() {
			r.setNode(facts(id, 0))
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve":       r.Reserve,
			"reserve 2":     r.Reserve, // the most frequent in life, too
			"reserve 3":     r.Reserve,
			"reserve 4":     r.Reserve,
			"reserve again": r.ReserveAgain,
			"unreserve":     r.Unreserve,
			"confirm":       r.Confirm,
			"force":         r.Force,
			"drain":         r.Drain,
			"linger":        r.Linger,
			"release":       r.Release,
			"expire":        r.Expire,
			"claim":         r.Claim,
			"claim 2":       r.Claim,
			"unclaim":       r.Unclaim,
			"set node":      r.SetNode,
			"remove node":   r.RemoveNode,
			"fence":         r.Fence,
			"plan":          r.Plan,
			"govern":        r.Govern,
			"set service":   r.SetService,
			"set service 2": r.SetService,
			"drop service":  r.DropService,
			"measure":       r.Measure,
			"measure 2":     r.Measure,
			"":              r.Check,
		})
		for _, p := range r.plans {
			p.mustBeAsTaken(t)
		}
		r.CheckRebuilt(t)
	})
}

// seed lets rapid start from a seed that is logged, so that a run can be done
// again with -rapid.seed. One given on the command line stands.
func seed(t *testing.T) {
	t.Helper()
	set := func(name, value string) {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
		}
	}
	set("rapid.seed", strconv.FormatUint(rand.Uint64()|1, 10))
	set("rapid.steps", "60") // enough to fill the cards
	t.Logf("-rapid.seed=%s", flag.Lookup("rapid.seed").Value)
}

func nodeIDs() []gpu.NodeID { return []gpu.NodeID{"n1", "n2"} }

func groups() []gpu.GroupID { return []gpu.GroupID{"g", "h"} }

func podIDs() []gpu.PodID { return []gpu.PodID{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"} }

// cardIDsOf returns the cards that a node has, or may have.
func cardIDsOf(node gpu.NodeID) []gpu.CardID {
	var ids []gpu.CardID
	for i := range 3 {
		ids = append(ids, gpu.CardID(fmt.Sprintf("%s-%d", node, i)))
	}
	return ids
}

func allCards() []gpu.CardID {
	var ids []gpu.CardID
	for _, n := range nodeIDs() {
		ids = append(ids, cardIDsOf(n)...)
	}
	return ids
}

// vendorOf is whose card it is by the record of who holds it, which may not say.
func vendorOf(id gpu.CardID) gpu.Vendor {
	switch id {
	case "n1-2", "n2-2":
		return gpu.Ascend
	case "n2-1":
		return ""
	}
	return gpu.Nvidia
}

// facts is a node in one of the ways that it may describe itself.
func facts(id gpu.NodeID, way int) ledger.Facts {
	f := ledger.Facts{ID: id, CPU: 1000, Memory: 1000, BootID: "first"}
	for i, c := range cardIDsOf(id) {
		f.Cards = append(f.Cards, card(c, i, []gpu.Vendor{gpu.Nvidia, gpu.Nvidia, gpu.Ascend}[i]))
		f.Cards[i].MaxSlices = []int{4, 2, 2}[i]
	}
	switch way {
	case 1: // rebooted
		f.BootID = "second"
	case 2: // does not say
		f.BootID, f.Unavailable = "", true
	case 3: // a card is gone
		f.Cards = f.Cards[:2]
	case 4: // more may be taken of one, less of another
		f.Cards[0].Usable, f.Cards[0].UsableCores = 180, 200
		f.Cards[1].Usable, f.Cards[1].MaxSlices = 40, 1
	case 5: // reported the other way round
		slices.Reverse(f.Cards)
	}
	return f
}

const ways = 6

// run is one random run.
type run struct {
	ledger *ledger.Ledger
	naive  *naive
	now    time.Time
	// loose are the cards about which a promise of Reserve has been overtaken:
	// the card shrank, or was away, under its holders.
	loose map[gpu.CardID]bool
	// forced says that the last step may have broken what Reserve keeps: past are
	// the limits that have been, with how much was used, and split the cards, with
	// how many are on them.
	forced bool
	past   map[string]int64
	split  map[gpu.CardID]int

	gauges *gauges

	before photo   // of the books before the last step
	plans  []photo // taken at some moments of the run
}

// photo is a snapshot and what it was when it was taken.
type photo struct {
	ledger.Snapshot
	text string
}

func take(s ledger.Snapshot) photo { return photo{s, freeze(s)} }

func (p photo) mustBeAsTaken(t *rapid.T) {
	if now := freeze(p.Snapshot); now != p.text {
		t.Fatalf("a snapshot has changed (-then +now):\n%s", cmp.Diff(p.text, now))
	}
}

func drawPod(t *rapid.T) gpu.PodID { return rapid.SampledFrom(podIDs()).Draw(t, "pod") }

func drawPlacement(t *rapid.T, pod gpu.PodID) gpu.Placement {
	p := gpu.Placement{
		Pod: pod, Node: rapid.SampledFrom(nodeIDs()).Draw(t, "node"), CPU: 1, Memory: 10,
		Namespace: rapid.SampledFrom(namespaces()).Draw(t, "namespace"),
		Tenant:    rapid.SampledFrom([]gpu.TenantID{"u", "v", "forged", ""}).Draw(t, "tenant"), // as the pod's author says
		Group:     rapid.SampledFrom(append(groups(), "")).Draw(t, "group"),
	}
	cards := cardIDsOf(p.Node)
	if rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		cards = allCards()
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "containers") {
		g := gpu.Grant{Number: i, Role: rapid.SampledFrom([]gpu.Role{gpu.App, gpu.App, gpu.Init, gpu.Sidecar}).Draw(t, "role")}
		g.Resource = rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "resource")
		for range rapid.IntRange(1, 2).Draw(t, "devices") {
			g.Shares = append(g.Shares, drawShare(t, cards))
		}
		p.Grants = append(p.Grants, g)
	}
	return p
}

func drawShare(t *rapid.T, cards []gpu.CardID) gpu.Share {
	s := gpu.Share{Card: rapid.SampledFrom(cards).Draw(t, "card")}
	s.Vendor = vendorOf(s.Card)
	if rapid.IntRange(0, 4).Draw(t, "whole") == 0 {
		s.Memory, s.Cores, s.Exclusive = rapid.SampledFrom([]gpu.MiB{100, 1}).Draw(t, "MiB"), 0, true
		return s
	}
	s.Memory = rapid.SampledFrom([]gpu.MiB{1, 1, 1, 44, 45, 46, 90, 91}).Draw(t, "MiB")
	s.Cores = rapid.SampledFrom([]gpu.Cores{0, 0, 0, 49, 50, 51, 100}).Draw(t, "cores")
	return s
}

// Reserve tries a random placement and holds every promise against the answer.
func (r *run) Reserve(t *rapid.T) {
	p := drawPlacement(t, drawPod(t))
	before, was := r.ledger.Snapshot(), r.naive.pods[p.Pod]
	newly := was == nil || was.state == ledger.Claimed && was.p.Node == p.Node
	elsewhere := was != nil && was.p.Node != p.Node
	plan, planned := before.With(p)
	err := r.ledger.Reserve(p)
	after := r.ledger.Snapshot()
	if was == nil {
		r.checkPurse(t, before, &p, err)
	}
	want := r.naive.reserve(p)

	if (err == nil) != (len(want) == 0) || err != nil && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("Reserve = %v, want one of %v", err, want)
	}
	if _, known := before.Node(p.Node); known && !elsewhere { // With looks nowhere else
		if fmt.Sprint(errors.Unwrap(planned)) != fmt.Sprint(errors.Unwrap(err)) {
			t.Fatalf("With = %v, Reserve = %v", planned, err)
		}
		if freeze(plan) != freeze(after) && newly {
			t.Fatalf("With and Reserve lead to different nodes:\n%s", cmp.Diff(freeze(plan), freeze(after)))
		}
	}
	if err != nil {
		if freeze(before) != freeze(after) {
			t.Fatalf("a refused Reserve changed the books:\n%s", cmp.Diff(freeze(before), freeze(after)))
		}
		return
	}
	if newly {
		r.checkKept(t, &p)
	}
	r.mustBeNoOp(t, p)
}

// checkKept looks at every card of a placement just accepted, whatever has been
// forced before: Reserve must not add to a wrong.
func (r *run) checkKept(t *rapid.T, p *gpu.Placement) {
	for _, c := range r.naive.nodes[p.Node].Cards {
		if _, ok := r.naive.use(p, c.ID); !ok {
			continue
		}
		holders := r.naive.holders(p.Node, c.ID)
		joint := append(slices.Clone(holders), ledger.Holder{Use: r.naive.claimed(p.Node, c.ID)})
		if over(&c, joint) || crowded(slices.Concat(holders, r.naive.claims(p.Node, c.ID))) || r.naive.closed(p.Node)[c.ID] {
			t.Fatalf("Reserve has given out too much of %s: %+v", c.ID, holders)
		}
		if r.naive.mixed(holders) {
			t.Fatalf("Reserve has put %s onto %s, where two are that may not be together: %+v", p.Pod, c.ID, holders)
		}
	}
}

func (r *run) mustBeNoOp(t *rapid.T, p gpu.Placement) {
	before := r.ledger.Snapshot()
	if err := r.ledger.Reserve(p); err != nil {
		t.Fatalf("Reserve again = %v", err)
	}
	for id, n := range r.ledger.Snapshot().Nodes() {
		if old, _ := before.Node(id); old != n {
			t.Fatalf("Reserve again has replaced node %s", id)
		}
	}
}

func (r *run) ReserveAgain(t *rapid.T) {
	pod := drawPod(t)
	h, ok := r.naive.pods[pod]
	if !ok || h.state == ledger.Lingering || h.state == ledger.Claimed {
		t.Skip("holds nothing to ask for again")
	}
	r.mustBeNoOp(t, h.p)
}

func (r *run) Unreserve(t *rapid.T) {
	pod := drawPod(t)
	r.ledger.Unreserve(pod)
	if h := r.naive.pods[pod]; h != nil && h.onClaim {
		h.state, h.onClaim = ledger.Claimed, false
		r.forced = true // as with a claim
		return
	}
	r.naive.endIf(func(h *naiveHold) bool { return h.p.Pod == pod && h.state == ledger.Held })
}

// Confirm is what follows a bind of ours.
func (r *run) Confirm(t *rapid.T) {
	h, ok := r.naive.pods[drawPod(t)]
	if !ok {
		t.Skip("holds nothing")
	}
	r.forced = r.forced || h.state == ledger.Claimed // else it changes nothing that Reserve keeps
	r.ledger.Confirm(h.p)
	r.naive.confirm(h.p)
}

// Force is a binding by somebody else: any cards, or cards that nobody can name.
func (r *run) Force(t *rapid.T) {
	p := drawPlacement(t, drawPod(t))
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "claims") {
		p.Foreign = append(p.Foreign, gpu.Foreign{
			Vendor: rapid.SampledFrom([]gpu.Vendor{"", gpu.Nvidia, gpu.Ascend}).Draw(t, "vendor"),
			Cards:  rapid.SampledFrom([]int{0, 1, 1, 1, 2, gpu.AllCards}).Draw(t, "cards"),
		})
	}
	r.ledger.Confirm(p)
	r.naive.confirm(p)
	r.forced = true
}

func (r *run) Drain(t *rapid.T) {
	pod := drawPod(t)
	h, ok := r.naive.pods[pod]
	legal := ok && (h.state == ledger.Bound || h.state == ledger.Draining)
	if err := r.ledger.Drain(pod); (err == nil) != legal || err != nil && !errors.Is(err, ledger.ErrIllegal) {
		t.Fatalf("Drain = %v, legal: %t", err, legal)
	}
	if legal {
		h.state = ledger.Draining
	}
}

func (r *run) Linger(t *rapid.T) {
	pod, until := drawPod(t), r.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "minutes"))*time.Minute)
	r.ledger.Linger(pod, until)
	h, ok := r.naive.pods[pod]
	switch {
	case !ok:
	case h.state == ledger.Claimed:
		delete(r.naive.pods, pod)
	default:
		h.state, h.until, h.onClaim, h.victims = ledger.Lingering, until, false, nil
	}
}

func (r *run) Release(t *rapid.T) {
	pod := drawPod(t)
	plan, seen := r.ledger.Snapshot(), true
	if h, ok := r.naive.pods[pod]; ok {
		plan = plan.Without(h.p.Node, pod)
		_, seen = plan.Node(h.p.Node)
	}
	r.ledger.Release(pod)
	delete(r.naive.pods, pod)
	if after := r.ledger.Snapshot(); seen && !sameButWhen(plan, after) {
		t.Fatalf("Without and Release lead to different nodes:\n%s", cmp.Diff(freeze(plan), freeze(after)))
	}
}

func (r *run) Expire(t *rapid.T) {
	r.now = r.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "minutes")) * time.Minute)
	if diff := cmp.Diff(r.naive.expire(r.now), r.ledger.Expire(r.now)); diff != "" {
		t.Fatalf("expired (-want +got):\n%s", diff)
	}
}

func (r *run) SetNode(t *rapid.T) {
	r.setNode(facts(rapid.SampledFrom(nodeIDs()).Draw(t, "node"), rapid.IntRange(0, ways-1).Draw(t, "way")))
}

func (r *run) setNode(f ledger.Facts) {
	r.ledger.SetNode(f)
	r.naive.setNode(f)
	r.forced = true // what has been forced while it was away is seen now
	for _, c := range cardIDsOf(f.ID) {
		if len(r.naive.holders(f.ID, c)) > 0 {
			r.loose[c] = true
		}
	}
}

func (r *run) RemoveNode(t *rapid.T) {
	id := rapid.SampledFrom(nodeIDs()).Draw(t, "node")
	r.ledger.RemoveNode(id)
	r.naive.removeNode(id)
}

func (r *run) Fence(t *rapid.T) {
	fences := map[gpu.NodeID][]gpu.CardID{}
	for range rapid.IntRange(0, 2).Draw(t, "fences") {
		node := rapid.SampledFrom(nodeIDs()).Draw(t, "node")
		fences[node] = append(fences[node], rapid.SampledFrom(cardIDsOf(node)).Draw(t, "card"))
	}
	r.ledger.Fence(fences)
	r.naive.fences = fences
	r.naive.unsure()
}

// Plan makes plans on a snapshot and keeps one, to see later that neither the
// books nor other plans have changed it.
func (r *run) Plan(t *rapid.T) {
	s := r.ledger.Snapshot()
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		if rapid.Bool().Draw(t, "without") {
			s = s.Without(rapid.SampledFrom(nodeIDs()).Draw(t, "node"), drawPod(t), drawPod(t))
		} else if next, err := s.With(drawPlacement(t, "planned")); err == nil {
			s = next
		}
	}
	r.plans = append(r.plans, take(s))
}
