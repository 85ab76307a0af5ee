package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// busy is a card with 80 of its 100 MiB used, and hot.
func busy() gpu.Reading {
	return gpu.Reading{MemoryUsed: gpu.Measured(80), Utilisation: gpu.Measured(70), Temperature: gpu.Measured(60)}
}

// warm is what is left of that when somebody has gone: heat is nobody's.
func warm() gpu.Reading { return gpu.Reading{Temperature: gpu.Measured(60)} }

func TestReadingsOutlive(t *testing.T) {
	reversed := n1()
	for i := range reversed.Cards {
		reversed.Cards[i].Index = 9 - i
	}
	short := n1()
	short.Cards = short.Cards[1:]
	tests := map[string]struct {
		do   func(l *ledger.Ledger)
		want gpu.Reading // of card a of n1, on which p is
	}{
		"nothing happens":              {func(*ledger.Ledger) {}, busy()},
		"somebody comes":               {func(l *ledger.Ledger) { _ = l.Reserve(pod("q", slice("a", 1, 0))) }, busy()},
		"somebody leaves":              {func(l *ledger.Ledger) { l.Release("p") }, warm()},
		"somebody leaves another card": {func(l *ledger.Ledger) { l.Release("r") }, busy()},
		"a bind is refused":            {func(l *ledger.Ledger) { l.Unreserve("p") }, warm()},
		"a bind is confirmed":          {func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 10, 0))) }, busy()},
		"it is bound elsewhere":        {func(l *ledger.Ledger) { l.Confirm(on("n2", pod("p", slice("e", 10, 0)))) }, warm()},
		"it is bound to another card":  {func(l *ledger.Ledger) { l.Confirm(pod("p", slice("b", 10, 0))) }, warm()},
		"it has less now":              {func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 9, 0))) }, warm()},
		"it lingers":                   {func(l *ledger.Ledger) { l.Linger("p", start) }, busy()},
		"its time is up": {func(l *ledger.Ledger) {
			l.Linger("p", start)
			l.Expire(start.Add(time.Second))
		}, warm()},
		"the node reports its cards the other way round": {func(l *ledger.Ledger) { l.SetNode(reversed) }, busy()},
		"the card was away": {func(l *ledger.Ledger) {
			l.SetNode(short)
			l.SetNode(n1())
		}, warm()},
		"the node was away": {func(l *ledger.Ledger) {
			l.RemoveNode("n1")
			l.SetNode(n1())
		}, gpu.Reading{}},
		"the books disagree": {func(l *ledger.Ledger) { l.Fence(map[gpu.NodeID][]gpu.CardID{"n1": {"a"}}) }, busy()},
		"other rules":        {func(l *ledger.Ledger) { l.Govern(chain{}) }, busy()},
		"somebody leaves whose cards nobody knows": {func(l *ledger.Ledger) {
			l.Confirm(foreign("f", gpu.Foreign{Vendor: gpu.Nvidia, Cards: 1}))
			l.Release("f")
		}, warm()},
		"somebody leaves who had cards of another vendor": {func(l *ledger.Ledger) {
			l.Confirm(foreign("f", gpu.Foreign{Vendor: gpu.Ascend, Cards: 1}))
			l.Release("f")
		}, busy()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, pod("p", slice("a", 10, 0)), pod("r", slice("b", 10, 0)))
			l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": busy()}})
			tc.do(l)
			if diff := cmp.Diff(tc.want, cardOf(t, l.Snapshot(), "a").Reading); diff != "" {
				t.Errorf("reading of a (-want +got):\n%s", diff)
			}
		})
	}
}

func cardOf(t *testing.T, s ledger.Snapshot, id gpu.CardID) *ledger.Card {
	t.Helper()
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			if n.Cards[i].ID == id {
				return &n.Cards[i]
			}
		}
	}
	t.Fatalf("there is no card %s", id)
	return nil
}

// What a pod had of a card does not come back by a figure that was on its way when
// the pod left, and what a plan lets end is not taken for somebody else's.
func TestReadingsOfWhoHasGone(t *testing.T) {
	l := world(t, pod("p", slice("a", 70, 0)))
	seen := node(t, l.Snapshot(), "n1").Version
	late := ledger.Readings{Seen: seen, Cards: map[gpu.CardID]gpu.Reading{"a": busy(), "b": busy()}}
	l.SetReadings("n1", late)
	if got := cardOf(t, l.Snapshot(), "a").Foreign(); got != 0 {
		t.Fatalf("%d MiB of the pod's own are somebody else's", got)
	}
	plan := l.Snapshot().Without("n1", "p")
	if got := cardOf(t, plan, "a").FreeMemory(); got != 90 {
		t.Errorf("%d MiB would be free without the pod, want 90", got)
	}
	l.Release("p")
	l.SetReadings("n1", late)
	if got := cardOf(t, l.Snapshot(), "a"); got.FreeMemory() != 90 || got.Reading != warm() {
		t.Errorf("the pod has left %d MiB, measured %+v", got.FreeMemory(), got.Reading)
	}
	if got := cardOf(t, l.Snapshot(), "b"); got.Foreign() != 70 || got.FreeMemory() != 20 {
		t.Errorf("somebody has %d MiB of b and leaves %d, want 70 and 20", got.Foreign(), got.FreeMemory())
	}
	if late.Cards["a"] != busy() {
		t.Error("what was handed over has been edited")
	}
	l.SetReadings("n1", ledger.Readings{Seen: node(t, l.Snapshot(), "n1").Version, Cards: late.Cards})
	if got := cardOf(t, l.Snapshot(), "a").Foreign(); got != 70 {
		t.Errorf("%d MiB of a are somebody else's, want 70: that was measured since", got)
	}
}

// What is measured does not keep Reserve from giving what the books say is there.
func TestReserveGoesByTheBooks(t *testing.T) {
	l := world(t)
	l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": busy()}})
	if err := l.Reserve(pod("p", slice("a", 90, 0))); err != nil {
		t.Error(err)
	}
}

// Who has come, and does not use his memory yet, hides nothing of what others use; nor
// does who leaves take any of that with him.
func TestMemoryOfOthersStaysTheirs(t *testing.T) {
	come := func(id gpu.PodID, memory gpu.MiB) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			p := pod(id, slice("a", memory, 0))
			if err := l.Reserve(p); err != nil {
				t.Error(err)
			}
			l.Confirm(p)
		}
	}
	used := func(mib int64) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {MemoryUsed: gpu.Measured(mib), Power: gpu.Measured(100)}}})
		}
	}
	unknown := func(l *ledger.Ledger) { l.SetReadings("n1", ledger.Readings{}) }
	warmer := func(l *ledger.Ledger) {
		r := gpu.Reading{MemoryUsed: gpu.Measured(40), Temperature: gpu.Measured(50)}
		l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": r}})
	}
	leaves := func(l *ledger.Ledger) { l.Release("p") }
	only := func(degrees int64) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {Temperature: gpu.Measured(degrees)}}})
		}
	}
	tests := map[string]struct {
		steps []func(*ledger.Ledger)
		want  gpu.MiB // of 100, of which 10 are kept back
	}{
		"nobody comes":                   {nil, 30},
		"one comes":                      {[]func(*ledger.Ledger){come("p", 20)}, 30},
		"several come":                   {[]func(*ledger.Ledger){come("p", 20), come("q", 20), come("r", 20)}, 30},
		"something else is measured":     {[]func(*ledger.Ledger){come("p", 20), warmer}, 30},
		"he begins to use his":           {[]func(*ledger.Ledger){come("p", 20), used(50)}, 30},
		"he uses his":                    {[]func(*ledger.Ledger){come("p", 20), used(60)}, 30},
		"they use more":                  {[]func(*ledger.Ledger){come("p", 20), used(65)}, 35},
		"they have gone":                 {[]func(*ledger.Ledger){come("p", 20), used(60), used(30)}, 0},
		"they have gone before he began": {[]func(*ledger.Ledger){come("p", 20), used(0)}, 0},
		"they use less":                  {[]func(*ledger.Ledger){come("p", 20), used(35)}, 25},
		"nothing was known for a while":  {[]func(*ledger.Ledger){come("p", 20), unknown, used(40)}, 10},
		"one comes and goes":             {[]func(*ledger.Ledger){come("p", 20), used(60), leaves}, 30},
		"and it is warmer":               {[]func(*ledger.Ledger){come("p", 20), used(60), leaves, only(50)}, 30},
		"and another comes":              {[]func(*ledger.Ledger){come("p", 20), used(60), leaves, come("q", 20)}, 30},
		"and nothing is known":           {[]func(*ledger.Ledger){come("p", 20), used(60), leaves, unknown}, 0},
		"and it is measured":             {[]func(*ledger.Ledger){come("p", 20), used(60), leaves, used(25)}, 15},
		"it was that of one who had been there": {[]func(*ledger.Ledger){
			func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 20, 0))) },
		}, 10},
		"or that of one who has more than was known": {[]func(*ledger.Ledger){
			come("p", 20),
			func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 35, 0))) },
		}, 15},
		"one has less than he had": {[]func(*ledger.Ledger){
			come("p", 20),
			func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 5, 0))) },
		}, 30},
		"and of more than that": {[]func(*ledger.Ledger){
			func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 50, 0))) },
		}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t)
			used(40)(l)
			for _, step := range tc.steps {
				step(l)
			}
			if c := cardOf(t, l.Snapshot(), "a"); c.Foreign() != tc.want || c.FreeMemory() != 90-c.Used.Memory-tc.want {
				t.Errorf("%d MiB are somebody else's and %d free, want %d", c.Foreign(), c.FreeMemory(), tc.want)
			}
		})
	}
}

func TestForeignMemory(t *testing.T) {
	tests := map[string]struct {
		card ledger.Card
		want gpu.MiB
	}{
		"nothing is known":            {ledger.Card{Card: gpu.Card{Memory: 100, Usable: 90}}, 0},
		"what is kept back covers it": {measured(100, 90, 10, 0), 0},
		"one MiB more than that":      {measured(100, 90, 11, 0), 1},
		"the holders have it":         {measured(100, 90, 70, 60), 0},
		"more than the holders have":  {measured(100, 90, 71, 60), 1},
		"the holders use less":        {measured(100, 90, 20, 60), 0},
		"nothing is kept back":        {measured(100, 100, 1, 0), 1},
		"overcommitted":               {measured(100, 180, 30, 0), 30},
		"more than there is":          {measured(100, 90, 1<<40, 0), 90},
		"less than nothing":           {measured(100, 90, -5, 0), 0},
		"held whole":                  {ledger.Card{Card: gpu.Card{Memory: 100, Usable: 90}, Reading: busy(), Used: gpu.Use{Memory: 1, Exclusive: true}}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.card.Foreign(); got != tc.want {
				t.Errorf("%d MiB, want %d", got, tc.want)
			}
		})
	}
}

func measured(memory, usable gpu.MiB, used int64, held gpu.MiB) ledger.Card {
	return ledger.Card{
		Card: gpu.Card{Memory: memory, Usable: usable}, Used: gpu.Use{Memory: held},
		Reading: gpu.Reading{MemoryUsed: gpu.Measured(used)},
	}
}

// A node is another one when something else was measured of it, and only then.
func TestReadingsAndVersions(t *testing.T) {
	l := world(t)
	one := func(degrees int64) map[gpu.CardID]gpu.Reading {
		return map[gpu.CardID]gpu.Reading{"a": {Temperature: gpu.Measured(degrees)}}
	}
	steps := []struct {
		name    string
		told    ledger.Readings
		another bool
	}{
		{"nothing is known", ledger.Readings{}, false},
		{"nothing is known of a card", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {}}}, false},
		{"a card", ledger.Readings{Cards: one(50)}, true},
		{"the same again", ledger.Readings{Cards: one(50)}, false},
		{"the same, and one that nothing is known of", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {Temperature: gpu.Measured(50)}, "b": {}}}, false},
		{"another temperature", ledger.Readings{Cards: one(51)}, true},
		{"the node", ledger.Readings{CPU: gpu.Measured(1), Cards: one(51)}, true},
		{"no measure, and 0", ledger.Readings{CPU: gpu.Measured(1), Memory: gpu.Measured(0), Cards: one(51)}, true},
		{"the card no more", ledger.Readings{CPU: gpu.Measured(1), Memory: gpu.Measured(0)}, true},
		{"nothing any more", ledger.Readings{}, true},
	}
	for _, step := range steps {
		before := l.Snapshot()
		l.SetReadings("n1", step.told)
		after := l.Snapshot()
		was, is := node(t, before, "n1"), node(t, after, "n1")
		if another := is.Version != was.Version; another != step.another || another != (len(after.Since(before)) == 1) {
			t.Errorf("%s: version %d after %d", step.name, is.Version, was.Version)
		}
	}
	l.SetReadings("n3", ledger.Readings{CPU: gpu.Measured(1)}) // a node that nobody knows
	l.SetNode(ledger.Facts{ID: "n3"})
	if n := node(t, l.Snapshot(), "n3"); n.Readings.Any() {
		t.Errorf("%+v is known of a node that was not", n.Readings)
	}
}
