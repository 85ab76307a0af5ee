package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Bounds of what is looked at to tell a pod what it waits for. It is done for each pod
// that fits nowhere, each time.
const (
	// foreseen is how far ahead closings are looked at.
	foreseen = 24 * time.Hour
	// mostClosings is how many of them are, the earliest, eachNodes on how many nodes
	// each, and mostNodes on how many together: some 0.7 ms.
	mostClosings = 10
	eachNodes    = 16
	mostNodes    = 64
)

// Coming is room that a service leaves to a pod when its windows close.
type Coming struct {
	Service string    // its TaskGroup, namespace/name
	Cards   int64     // that its members leave, a slice counts as one
	At      time.Time // in the zone of the windows
	Until   time.Time // when it takes them back; zero: never
}

// String is what the pod's event says, for example
//
//	16 cards from Mon 30 Nov 22:00 CET until Tue 1 Dec 08:00 CET (TaskGroup ns/chat)
func (c *Coming) String() string {
	until := ""
	if !c.Until.IsZero() {
		until = " until " + moment(c.Until.In(c.At.Location()))
	}
	return fmt.Sprintf("%s from %s%s (TaskGroup %s)", cardsText(c.Cards), moment(c.At), until, c.Service)
}

// Keeping is room that a pod does not get for nothing but that a service takes it back
// before the pod has ended.
type Keeping struct {
	Service string    // its TaskGroup, namespace/name
	From    time.Time // in the zone of the windows
	Due     bool      // that has come
}

// String is what the pod's event says.
func (k *Keeping) String() string {
	if k.Due {
		return fmt.Sprintf("cards are kept for TaskGroup %s, which takes them back now", k.Service)
	}
	return fmt.Sprintf("cards are kept for TaskGroup %s from %s: a pod whose max-runtime ends before that gets them", k.Service, moment(k.From))
}

// moment is a time for people, in its own zone. It is none that is told from now, as
// events should not differ from minute to minute.
func moment(t time.Time) string { return t.Format("Mon 2 Jan 15:04 MST") }

// ahead says what a request that no node fits may wait for, and what is kept from it.
func (j *judge) ahead() (*Coming, *Keeping) {
	if j.claimed != "" || !j.gate.OK() && j.gate.Limit == nil {
		return nil, nil
	}
	return j.coming(), j.keeping()
}

// coming returns the first room that a service is about to leave where the request fits;
// nil if none is known.
func (j *judge) coming() *Coming {
	left := mostNodes
	for _, s := range j.closings() {
		tries := min(eachNodes, left)
		for _, id := range j.snapshot.Members(s.Group) {
			i, known := j.snapshot.Place(id)
			if !known || j.of(i).Reason.Info().Final {
				continue // whoever leaves, it would not do
			}
			if tries--; tries < 0 {
				break
			}
			left--
			if j.fitsAfter(s, j.snapshot.At(i)) {
				return &Coming{s.Name, leftBy(s, j.snapshot), s.Closing.At, s.Closing.Until}
			}
		}
	}
	return nil
}

// closings returns the services that close soon for as long as the request takes and have
// members, the first to close first.
func (j *judge) closings() (soon []*ledger.Service) {
	runtime := lasts(j.cycle.Request, j.snapshot)
	for _, s := range j.snapshot.Services() {
		c := s.Closing
		if c == nil || s.Group == j.cycle.Request.Group || !c.At.After(j.now) || c.At.After(j.now.Add(foreseen)) {
			continue
		}
		if !c.Until.IsZero() && c.At.Add(runtime).After(c.Until) || len(j.snapshot.Members(s.Group)) == 0 {
			continue
		}
		soon = append(soon, s)
	}
	slices.SortFunc(soon, func(a, b *ledger.Service) int {
		return cmp.Or(a.Closing.At.Compare(b.Closing.At), cmp.Compare(a.Group, b.Group))
	})
	return soon[:min(mostClosings, len(soon))]
}

// fitsAfter reports whether the request fits the node once the service has closed. Who
// stays is there: the worst that may be.
func (j *judge) fitsAfter(s *ledger.Service, n *ledger.Node) bool {
	there := membersOn(n, s.Group)
	if len(there) <= s.Closing.Stay {
		return false
	}
	var leave []gpu.PodID
	for _, h := range there[s.Closing.Stay:] {
		leave = append(leave, h.Pod)
	}
	then := j.snapshot.Without(n.ID, leave...)
	n, _ = then.Node(n.ID)
	at := stand(j.cycle.Request, then, j.terms, s.Closing.At)
	return at.fits(n)
}

// membersOn returns what members of the group have of the node, as far as they are there.
func membersOn(n *ledger.Node, g gpu.GroupID) (all []*ledger.Hold) {
	for _, h := range n.Holds {
		if h.Group == g && h.State != ledger.Claimed && h.State != ledger.Lingering {
			all = append(all, h)
		}
	}
	return all
}

// leftBy is how many cards the members of the service leave when it closes, if each has
// as many as any other.
func leftBy(s *ledger.Service, in ledger.Snapshot) int64 {
	var members, devices int64
	for _, id := range in.Members(s.Group) {
		n, known := in.Node(id)
		if !known {
			continue
		}
		for _, h := range membersOn(n, s.Group) {
			members++
			for _, kind := range h.Placement.Spending() {
				devices += kind.Devices
			}
		}
	}
	if members == 0 {
		return 0
	}
	return devices * max(0, members-int64(s.Closing.Stay)) / members
}

// keeping returns until when a pod would have to end that gets cards which are kept: the
// latest of all nodes that nothing else keeps the request from; nil if there are none.
func (j *judge) keeping() (latest *Keeping) {
	if !j.snapshot.Keeps() {
		return nil // as nearly always
	}
	tries := mostNodes
	for i := range j.snapshot.Len() {
		n := j.snapshot.At(i)
		if !n.Keeps() || j.of(i).Reason != gpu.HeldForOther {
			continue
		}
		if tries--; tries < 0 {
			break
		}
		if !j.verdict(n, &pipeline.Scratch{}).OK() {
			continue
		}
		if k := n.FirstKept(j.cycle.Request.Group, j.stay); k != nil && (latest == nil || k.From.After(latest.From)) {
			latest = &Keeping{k.Service, k.From, !k.From.After(j.now)}
		}
	}
	return latest
}
