package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// berlin is the zone of the windows in these tests, in winter.
func berlin() *time.Location { return time.FixedZone("CET", 3600) }

func at(day, hour int) time.Time { return time.Date(2026, time.November, day, hour, 0, 0, 0, berlin()) }

func TestComingText(t *testing.T) {
	tests := map[string]struct {
		summary Summary
		want    string
	}{
		"both ends": {
			Summary{Coming: &Coming{"ns/chat", 16, at(30, 22), at(31, 8).UTC()}},
			"; 16 cards from Mon 30 Nov 22:00 CET until Tue 1 Dec 08:00 CET (TaskGroup ns/chat)",
		},
		"for good":      {Summary{Coming: &Coming{"ns/chat", 1, at(30, 22), time.Time{}}}, "; 1 card from Mon 30 Nov 22:00 CET (TaskGroup ns/chat)"},
		"in UTC":        {Summary{Coming: &Coming{"ns/chat", 2, at(30, 22).UTC(), time.Time{}}}, "; 2 cards from Mon 30 Nov 21:00 UTC (TaskGroup ns/chat)"},
		"kept":          {Summary{Kept: &Keeping{Service: "ns/chat", From: at(31, 8)}}, "; cards are kept for TaskGroup ns/chat from Tue 1 Dec 08:00 CET: a pod whose max-runtime ends before that gets them"},
		"kept, and due": {Summary{Kept: &Keeping{Service: "ns/chat", From: at(31, 8), Due: true}}, "; cards are kept for TaskGroup ns/chat, which takes them back now"},
		"first what comes": {
			Summary{Coming: &Coming{"ns/chat", 2, at(30, 22), time.Time{}}, Kept: &Keeping{Service: "ns/code", From: at(31, 8), Due: true}},
			"; 2 cards from Mon 30 Nov 22:00 CET (TaskGroup ns/chat); cards are kept for TaskGroup ns/code, which takes them back now",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.summary.Nodes, tc.summary.Counts = 1, []Count{{Reason: gpu.HeldForOther, Nodes: 1}}
			if diff := cmp.Diff("0/1 nodes: 1 HeldForOther"+tc.want, tc.summary.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := tc.summary.Codes(); got != "HeldForOther" {
				t.Errorf("codes %s: they do not depend on what comes", got)
			}
		})
	}
}

// closes has the service close then, and come back at until; so many members stay.
func (c cluster) closes(name string, then, until time.Time, stay int) {
	c.ledger.SetService(ledger.Service{Group: gpu.GroupID(name), Name: "ns/" + name, Closing: &ledger.Closing{At: then, Until: until, Stay: stay}})
}

// serves has a member of the service on the card.
func (c cluster) serves(name, member string, cards ...gpu.CardID) {
	var shares []gpu.Share
	for _, id := range cards {
		s := alone
		s.Card, s.Vendor = id, gpu.Nvidia
		shares = append(shares, s)
	}
	c.ledger.Confirm(gpu.Placement{
		Pod: gpu.PodID(member), Namespace: "ns", Name: member, Group: gpu.GroupID(name), Node: gpu.NodeID(cards[0][:2]), Grants: []gpu.Grant{{Shares: shares}},
	})
}

// TestComing: a pod that fits nowhere is told of the first room that it will get, and of
// none that it will not.
func TestComing(t *testing.T) {
	noon, night, morning := at(30, 12), at(30, 22), at(31, 8)
	ever := time.Time{}
	chat := &Coming{"ns/chat", 3, night, ever}
	till := &Coming{"ns/chat", 3, night, morning}
	tests := map[string]struct {
		before  func(cluster)
		request gpu.Request
		want    *Coming
	}{
		"stop": {func(c cluster) { c.closes("chat", night, ever, 0) }, pod("p", whole(1)), chat},
		"two on one node, of which one is another's": {func(c cluster) { c.closes("chat", night, ever, 0) }, pod("p", whole(2)), chat},
		"many close before it that have nobody": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			for i := range 2 * mostClosings {
				c.closes(fmt.Sprintf("idle%d", i), noon.Add(time.Minute), ever, 0)
			}
		}, pod("p", whole(1)), chat},
		"more than it frees anywhere": {func(c cluster) { c.closes("chat", night, ever, 0) }, pod("p", whole(3)), nil},
		"no end, and it comes back":   {func(c cluster) { c.closes("chat", night, morning, 0) }, pod("p", whole(1)), nil},
		"just long enough":            {func(c cluster) { c.closes("chat", night, morning, 0) }, lasting(10*time.Hour, pod("p", whole(1))), till},
		"too long":                    {func(c cluster) { c.closes("chat", night, morning, 0) }, lasting(10*time.Hour+1, pod("p", whole(1))), nil},
		"one stays": {func(c cluster) {
			c.closes("chat", night, ever, 1)
			c.ledger.Release("m1")
			c.serves("chat", "a", "n1-d0")
			c.serves("chat", "b", "n1-d1")
		}, pod("p", whole(1)), &Coming{"ns/chat", 2, night, ever}},
		"who stays may be there": {func(c cluster) { c.closes("chat", night, ever, 1) }, pod("p", whole(1)), nil},
		"who has gone leaves no more": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.ledger.Linger("m2", night)
		}, pod("p", whole(1)), &Coming{"ns/chat", 2, night, ever}},
		"who is to come has nothing to leave": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			s := alone
			s.Card = "n1-d0"
			p := gpu.Placement{Pod: "m3", Namespace: "ns", Node: "n1", Group: "chat", Grants: []gpu.Grant{{Shares: []gpu.Share{s}}}}
			if err := c.ledger.Claim(p, []gpu.PodID{"m1"}); err != nil {
				t.Fatal(err)
			}
		}, pod("p", whole(1)), chat},
		"all stay":              {func(c cluster) { c.closes("chat", night, ever, 2) }, pod("p", whole(1)), nil},
		"in more than a day":    {func(c cluster) { c.closes("chat", noon.Add(24*time.Hour+1), ever, 0) }, pod("p", whole(1)), nil},
		"it should have closed": {func(c cluster) { c.closes("chat", noon, ever, 0) }, pod("p", whole(1)), nil},
		"it does not close":     {func(c cluster) { c.keeps("chat", noon) }, pod("p", whole(1)), nil},
		"it ends with it":       {func(c cluster) { c.closes("chat", night, ever, 0) }, memberOf("chat", pod("p", whole(1))), nil},
		"a member of another stays for ever": {func(c cluster) {
			c.closes("chat", night, morning, 0)
			c.keeps("other", noon)
		}, lasting(time.Hour, memberOf("other", pod("p", whole(1)))), nil},
		"it waits for its group": {func(c cluster) { c.closes("chat", night, ever, 0) }, memberOf("train", pod("p", whole(1))), nil},
		"the first of two": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.closes("early", night.Add(-time.Hour), ever, 0)
			c.ledger.Release("other")
			c.serves("early", "e", "n2-d1")
		}, pod("p", whole(1)), &Coming{"ns/early", 1, night.Add(-time.Hour), ever}},
		"the first does not do": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.closes("early", night.Add(-time.Hour), ever, 0)
			c.ledger.Release("other")
			c.serves("early", "e", "n2-d1")
		}, pod("p", whole(2)), chat},
		"its tenant has a quota that the members leave as well": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.ledger.Govern(rules{}.limiting("ns", cardLimit(4)))
		}, pod("p", whole(1)), chat},
		"its tenant has a quota that is too small": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.ledger.Govern(rules{}.limiting("ns", cardLimit(1)))
		}, pod("p", whole(1)), nil},
		"what it leaves is kept for another": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.keeps("code", morning, "n1-d0", "n1-d1", "n2-d0")
		}, lasting(11*time.Hour, pod("p", whole(1))), nil},
		"what it leaves is kept for another for later": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			c.keeps("code", morning, "n1-d0", "n1-d1", "n2-d0")
		}, lasting(10*time.Hour, pod("p", whole(1))), chat},
		"another claims it": {func(c cluster) {
			c.closes("chat", night, ever, 0)
			for i, id := range []gpu.CardID{"n1-d0", "n2-d0"} {
				s := alone
				s.Card = id
				p := gpu.Placement{Pod: gpu.PodID(fmt.Sprint("q", i)), Namespace: "ns", Node: gpu.NodeID(id[:2]), Grants: []gpu.Grant{{Shares: []gpu.Share{s}}}}
				if err := c.ledger.Claim(p, []gpu.PodID{"m1", "m2"}); err != nil {
					t.Fatal(err)
				}
			}
		}, pod("p", whole(2)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(2, 2)
			c.cfg.Now = func() time.Time { return noon }
			c.serves("chat", "m1", "n1-d0", "n1-d1")
			c.serves("chat", "m2", "n2-d0")
			c.joins("other", "two", "n2-d1", alone)
			tc.before(c)
			f := c.Filter(&tc.request, c.all())
			if f.Fit > 0 {
				t.Fatalf("before: it fits %v", f.Feasible)
			}
			if diff := cmp.Diff(tc.want, f.Summary.Coming); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			later := noon.Add(time.Minute)
			c.cfg.Now = func() time.Time { return later }
			if again := c.Filter(&tc.request, c.all()); name != "in more than a day" && again.Summary.String() != f.Summary.String() {
				t.Errorf("a minute later it is told %q, before %q", again.Summary, f.Summary)
			}
		})
	}
}

// TestKeeping: a pod is told of what is kept where nothing else is in its way, and until
// when it would have to end.
func TestKeeping(t *testing.T) {
	noon := at(30, 12)
	tests := map[string]struct {
		before  func(cluster)
		request gpu.Request
		want    *Keeping
	}{
		"for ever":                    {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0") }, pod("p", whole(1)), &Keeping{Service: "ns/chat", From: at(31, 8)}},
		"it is due":                   {func(c cluster) { c.keeps("chat", noon, "n1-d0") }, pod("p", whole(1)), &Keeping{Service: "ns/chat", From: noon, Due: true}},
		"too large":                   {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0") }, pod("p", whole(3)), nil},
		"the latest":                  {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0"); c.keeps("code", at(31, 9), "n3-d0") }, pod("p", whole(1)), &Keeping{Service: "ns/code", From: at(31, 9)}},
		"of one node the earliest":    {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0"); c.keeps("code", at(31, 9), "n1-d0") }, pod("p", whole(1)), &Keeping{Service: "ns/chat", From: at(31, 8)}},
		"its own is not kept from it": {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0"); c.keeps("code", at(31, 9), "n1-d0") }, memberOf("chat", pod("p", whole(1))), &Keeping{Service: "ns/code", From: at(31, 9)}},
		"it ends before one":          {func(c cluster) { c.keeps("chat", at(31, 8), "n1-d0"); c.keeps("code", at(31, 9), "n1-d0") }, lasting(20*time.Hour+time.Minute, pod("p", whole(1))), &Keeping{Service: "ns/chat", From: at(31, 8)}},
		"a claim is in its way as well": {func(c cluster) {
			c.keeps("chat", at(31, 8), "n1-d0")
			s := alone
			s.Card = "n1-d0"
			if err := c.ledger.Claim(gpu.Placement{Pod: "q", Namespace: "ns", Node: "n1", Grants: []gpu.Grant{{Shares: []gpu.Share{s}}}}, nil); err != nil {
				t.Fatal(err)
			}
		}, pod("p", whole(1)), nil},
		"somebody is there": {func(c cluster) { c.keeps("chat", at(31, 8), "n2-d0"); c.takes(t, "a", "n1", whole(1)) }, pod("p", whole(1)), nil},
		"nothing is kept":   {func(c cluster) { c.takes(t, "a", "n1", whole(1)); c.takes(t, "b", "n3", whole(1)) }, pod("p", whole(1)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 1, 1)
			c.cfg.Now = func() time.Time { return noon }
			c.joins("other", "two", "n2-d0", alone)
			tc.before(c)
			if name != "the latest" {
				c.joins("third", "two", "n3-d0", alone)
			}
			f := c.Filter(&tc.request, c.all())
			if f.Fit > 0 {
				t.Fatalf("before: it fits %v", f.Feasible)
			}
			if diff := cmp.Diff(tc.want, f.Summary.Kept); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeseeingIsBounded: of many services that close some are looked at, on some nodes.
func TestForeseeingIsBounded(t *testing.T) {
	const nodes = 2 * mostNodes
	c := newCluster(make([]int, nodes)...)
	noon := at(30, 12)
	c.cfg.Now = func() time.Time { return noon }
	for i := range nodes {
		id := gpu.NodeID(fmt.Sprintf("n%d", i+1))
		f := ledger.Facts{ID: id, Cards: cards(id, 1)}
		if id == "n99" { // the last by name
			f.Cards = cards(id, 2)
		}
		c.ledger.SetNode(f)
		var shares []gpu.Share
		for _, card := range f.Cards {
			shares = append(shares, gpu.Share{Card: card.ID, Memory: 1000, Cores: 100, Exclusive: true})
		}
		c.ledger.Confirm(gpu.Placement{Pod: "m" + gpu.PodID(id), Namespace: "ns", Group: "big", Node: id, Grants: []gpu.Grant{{Shares: shares}}})
		c.ledger.Confirm(gpu.Placement{Pod: "s" + gpu.PodID(id), Namespace: "ns", Group: gpu.GroupID(fmt.Sprintf("s%03d", i)), Node: id})
		c.closes(fmt.Sprintf("s%03d", i), at(30, 13), time.Time{}, 0)
	}
	c.closes("big", at(30, 12).Add(time.Minute), time.Time{}, 0)
	r := pod("p", whole(2))
	j, done := c.verdicts.judge(&r, c.terms(c.ledger.Snapshot()), c.ledger.Snapshot(), noon)
	defer done()
	if got := len(j.closings()); got != mostClosings || j.closings()[0].Name != "ns/big" {
		t.Errorf("%d services are looked at, want %d, and the first to close first", got, mostClosings)
	}
	if coming, kept := j.ahead(); coming != nil || kept != nil {
		t.Errorf("it is told of %v, %v, on a node that is not looked at", coming, kept)
	}
	one := pod("q", whole(1))
	if f := c.Filter(&one, c.all()); f.Summary.Coming == nil || f.Summary.Coming.Cards != nodes+1 {
		t.Errorf("%s: want all cards of the members", f.Summary)
	}
}

// TestForeseeingPassesOverWhatNeverDoes: nodes of another kind are no reason not to look
// further.
func TestForeseeingPassesOverWhatNeverDoes(t *testing.T) {
	const others = 2 * eachNodes
	c := newCluster(make([]int, others+1)...)
	noon := at(30, 12)
	c.cfg.Now = func() time.Time { return noon }
	for i := range others + 1 {
		id := gpu.NodeID(fmt.Sprintf("n%d", i+1))
		f := ledger.Facts{ID: id, Cards: cards(id, 1)}
		if f.Cards[0].Vendor = gpu.Ascend; id == "n9" { // the last by name
			f.Cards[0].Vendor = gpu.Nvidia
		}
		c.ledger.SetNode(f)
		c.ledger.Confirm(gpu.Placement{Pod: "m" + gpu.PodID(id), Namespace: "ns", Group: "chat", Node: id, Grants: []gpu.Grant{{Shares: []gpu.Share{{Card: f.Cards[0].ID, Memory: 1000, Cores: 100, Exclusive: true}}}}})
	}
	c.closes("chat", at(30, 22), time.Time{}, 0)
	r := pod("p", whole(1))
	r.Vendor = gpu.Nvidia
	if f := c.Filter(&r, c.all()); f.Summary.Coming == nil {
		t.Errorf("%s: one node will do", f.Summary)
	}
}

func BenchmarkForeseeing(b *testing.B) {
	c := newCluster(2)
	noon := at(30, 12)
	c.cfg.Now = func() time.Time { return noon }
	for i := range 20_000 {
		c.closes(fmt.Sprintf("idle%d", i), at(30, 13).Add(time.Duration(i)*time.Second), at(31, 8), 0)
	}
	r := lasting(time.Hour, pod("p", whole(1)))
	j, done := c.verdicts.judge(&r, c.terms(c.ledger.Snapshot()), c.ledger.Snapshot(), noon)
	defer done()
	for b.Loop() {
		j.coming()
	}
}
