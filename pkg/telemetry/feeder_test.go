package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// gauges is a source that a test writes on.
type gauges struct {
	mu    sync.Mutex
	all   []Sample // guarded by mu
	err   error    // guarded by mu
	asked int      // guarded by mu
}

func (g *gauges) Read(context.Context) ([]Sample, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.all, g.err
}

func (g *gauges) show(all ...Sample) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all, g.err = all, nil
}

func (g *gauges) fall(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all, g.err = nil, err
}

func (g *gauges) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// tallies is what the feeder counted.
type tallies struct {
	mu      sync.Mutex
	dropped map[string]int // guarded by mu
	fresh   map[string]int // guarded by mu
}

func (c *tallies) TelemetryRead(int, error, time.Duration) {}

func (c *tallies) TelemetryDropped(why string, samples int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped[why] += samples
}

func (c *tallies) TelemetryFresh(figure string, of int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[figure] = of
}

// desk is a feeder at work on a ledger of the node n with the cards a and b.
type desk struct {
	*testing.T
	*gauges
	tallies
	ledger *ledger.Ledger
	feeder *Feeder
}

const stale = time.Minute

func facts(node string, cards ...gpu.CardID) ledger.Facts {
	f := ledger.Facts{ID: gpu.NodeID(node)}
	for i, id := range cards {
		f.Cards = append(f.Cards, gpu.Card{ID: id, Index: i, Vendor: gpu.Nvidia, Memory: 80000, Usable: 72000, Cores: 100, UsableCores: 100, MaxSlices: 10, Healthy: true})
	}
	return f
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, gauges: &gauges{}, tallies: tallies{dropped: map[string]int{}, fresh: map[string]int{}}, ledger: ledger.New(tenancy.Separate{})}
	d.ledger.SetNode(facts("n", "a", "b"))
	d.feeder = &Feeder{
		Source: d.gauges, Books: d.ledger, Counts: &d.tallies, Now: time.Now, Period: 15 * time.Second, Limit: 5 * time.Second, Stale: stale,
		Marks: Marks{CPU: 90, Memory: 90, CardMemory: 95, Utilisation: 95, Temperature: 79, MeanTemperature: 82},
	}
	return d
}

// work has the feeder run until the test ends.
func (d *desk) work() {
	ctx, stop := context.WithCancel(d.Context())
	d.Cleanup(stop)
	go d.feeder.Run(ctx)
}

func (d *desk) wait(for_ time.Duration) { time.Sleep(for_); synctest.Wait() }

func (d *desk) node() *ledger.Node {
	n, _ := d.ledger.Snapshot().Node("n")
	return n
}

func (d *desk) mustRead(when string, place int, want gpu.Reading) {
	d.Helper()
	if got := d.node().Cards[place].Reading; got != want {
		d.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

func of(card gpu.CardID, k Kind, value float64) Sample {
	return Sample{Kind: k, Card: card, Index: -1, Value: value, At: time.Now()}
}

func heat(degrees int64) gpu.Reading { return gpu.Reading{Temperature: gpu.Measured(degrees)} }

// TestFiguresExpire: a figure is known for stale and the tick at most, whether the
// source is dead, silent or says the same old thing.
func TestFiguresExpire(t *testing.T) {
	for name, then := range map[string]func(*desk, Sample){
		"it fails":               func(d *desk, _ Sample) { d.fall(errors.New("gone")) },
		"it says nothing":        func(d *desk, _ Sample) { d.show() },
		"it says it once more":   func(*desk, Sample) {},
		"it tells of other ones": func(d *desk, _ Sample) { d.show(of("b", Temperature, 30)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				s := of("a", Temperature, 60)
				d.show(s)
				d.work()
				d.wait(time.Second)
				then(d, s)
				d.wait(stale - 2*time.Second)
				d.mustRead("before its time", 0, heat(60))
				d.wait(tick + 2*time.Second)
				d.mustRead("after it", 0, gpu.Reading{})
			})
		})
	}
}

// stuck is a source that, once it is told to be, answers no more before its context
// ends.
type stuck struct {
	*gauges
	from time.Time
}

func (s stuck) Read(ctx context.Context) ([]Sample, error) {
	if time.Now().Before(s.from) {
		return s.gauges.Read(ctx)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFiguresExpireDuringAReading: what is too old is taken out though a reading is
// under way for an hour.
func TestFiguresExpireDuringAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.feeder.Source, d.feeder.Limit = stuck{d.gauges, time.Now().Add(10 * time.Second)}, time.Hour
		d.show(of("a", Temperature, 60))
		d.work()
		d.wait(stale - time.Second)
		d.mustRead("before its time", 0, heat(60))
		d.wait(tick + 2*time.Second)
		d.mustRead("after it", 0, gpu.Reading{})
	})
}

// TestRunEnds, and what it has begun, whenever it is told to.
func TestRunEnds(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "during a reading": time.Second, "long after": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
				d := newDesk(t)
				d.feeder.Source, d.feeder.Limit = stuck{d.gauges, time.Time{}}, 24*time.Hour
				began := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), after)
				defer stop()
				d.feeder.Run(ctx)
				if took := time.Since(began); took != after {
					t.Errorf("it ended after %v, want %v", took, after)
				}
			})
		})
	}
}

// TestNobodyIsAskedBeforeTheBooksAreReady, and at once when they are: a reading that
// comes before the nodes is lost for a whole period.
func TestNobodyIsAskedBeforeTheBooksAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		var ready atomic.Bool
		d.feeder.Ready = ready.Load
		d.ledger.RemoveNode("n")
		d.show(of("a", Temperature, 60))
		d.work()
		d.wait(10 * time.Second)
		if n := d.times(); n != 0 {
			t.Errorf("it has asked %d times", n)
		}
		d.ledger.SetNode(facts("n", "a", "b"))
		ready.Store(true)
		d.wait(time.Second)
		d.mustRead("ready", 0, heat(60))
		d.counted(func() {
			if d.dropped["unknown"] != 0 {
				t.Errorf("counted %v", d.dropped)
			}
		})
	})
}

// TestSamplesOfTheFuture count as of now: later ones replace them, and without those
// they become too old like any other.
func TestSamplesOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		early := of("a", Temperature, 60)
		early.At = early.At.Add(time.Hour)
		d.show(early)
		d.work()
		d.wait(time.Second)
		d.mustRead("early", 0, heat(60))
		d.show(of("a", Temperature, 70))
		d.wait(20 * time.Second)
		d.mustRead("replaced", 0, heat(70))
		d.wait(stale + tick)
		d.mustRead("too old", 0, gpu.Reading{})
	})
}

// TestOthersStayKnown when a card of their node goes, or is replaced.
func TestOthersStayKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.show(of("a", Temperature, 60), of("b", Temperature, 70))
		d.work()
		d.wait(time.Second)
		d.ledger.SetNode(facts("n", "b"))
		d.wait(3 * time.Second)
		d.mustRead("one is gone", 0, heat(70))
		d.ledger.SetNode(facts("n", "c"))
		d.ledger.SetNode(facts("n", "c", "b"))
		d.wait(3 * time.Second)
		d.mustRead("new", 0, gpu.Reading{})
		d.mustRead("the other", 1, heat(70))
	})
}

// TestAgeIsThatOfTheSample: one that is old already when it comes has only the rest
// of its time, and one that is too old never counts.
func TestAgeIsThatOfTheSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		old, ancient := of("a", Temperature, 60), of("b", Temperature, 70)
		old.At, ancient.At = time.Now().Add(-40*time.Second), time.Now().Add(-stale-time.Second)
		d.show(old, ancient)
		d.work()
		d.wait(time.Second)
		d.mustRead("old", 0, heat(60))
		d.mustRead("ancient", 1, gpu.Reading{})
		d.wait(20*time.Second + tick)
		d.mustRead("older", 0, gpu.Reading{})
	})
}

// TestWhatIsTold: small changes are not, what crosses a mark is, either way.
func TestWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.work()
		told := func(k Kind, value float64) bool {
			before := d.node().Version
			d.show(of("a", k, value))
			d.wait(16 * time.Second)
			return d.node().Version != before
		}
		for i, step := range []struct {
			kind  Kind
			value float64
			want  bool
		}{
			{Temperature, 60, true}, {Temperature, 61, false}, {Temperature, 62, true}, {Temperature, 78, true}, {Temperature, 79, true}, {Temperature, 78, true},
			{Utilisation, 93, true}, {Utilisation, 94, false}, {Utilisation, 95, true}, {Utilisation, 99, false}, {Utilisation, 94, true},
			{MemoryUsed, 75400, true}, {MemoryUsed, 75999, false}, {MemoryUsed, 76000, true}, {MemoryUsed, 75999, true}, {MemoryUsed, 75300, false}, {MemoryUsed, 75199, true},
			{Power, 300, true}, {Power, 319, false}, {Power, 320, true},
		} {
			if got := told(step.kind, step.value); got != step.want {
				t.Errorf("step %d, %s %g: told %t", i, step.kind, step.value, got)
			}
		}
	})
}

// TestMeanThatCrosses: a mean that comes to lie above thermal's limit is told though
// no card has moved by much.
func TestMeanThatCrosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.show(of("a", Temperature, 82), of("b", Temperature, 82))
		d.wait(16 * time.Second)
		d.show(of("a", Temperature, 82), of("b", Temperature, 83))
		d.wait(16 * time.Second)
		d.mustRead("above the mean", 1, heat(83))
	})
}

// TestWhoHasLeft: what is in use on a card after a pod has left it is not known until
// a sample says so that was taken later; the temperature is known all the time.
func TestWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.ledger.Confirm(gpu.Placement{Pod: "p", Node: "n", Grants: []gpu.Grant{{Container: "c", Shares: []gpu.Share{{
			Card: "a", Vendor: gpu.Nvidia, Memory: 30000, Cores: 50}}}}})
		d.work()
		samples := []Sample{of("a", MemoryUsed, 29000), of("a", Utilisation, 90), of("a", Temperature, 70)}
		d.show(samples...)
		d.wait(time.Second)
		if d.node().Cards[0].Reading.Temperature != gpu.Measured(70) {
			t.Fatalf("it reads %+v", d.node().Cards[0].Reading)
		}
		d.wait(15 * time.Second)
		d.ledger.Release("p")
		d.mustRead("at once", 0, heat(70))
		d.wait(20 * time.Second) // the same samples come once more
		d.mustRead("with samples of before", 0, heat(70))
		d.show(of("a", MemoryUsed, 500), of("a", Utilisation, 0), of("a", Temperature, 70))
		d.wait(16 * time.Second)
		want := heat(70)
		want.MemoryUsed, want.Utilisation = gpu.Measured(500), gpu.Measured(0)
		d.mustRead("with later samples", 0, want)
	})
}

// TestEmptyAnswers are answers: who says that there is nothing is asked as often as
// ever, so that figures are known a period after there are some.
func TestEmptyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.wait(time.Hour)
		d.show(of("a", Temperature, 60))
		d.wait(16 * time.Second)
		d.mustRead("a period later", 0, heat(60))
	})
}

// TestReadsLessOften: while the source fails the pause grows, to two minutes at most, and
// one answer ends that.
func TestReadsLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.fall(errors.New("gone"))
		d.work()
		d.wait(time.Hour)
		if n := d.times(); n < 30 || n > 50 { // 2 min less a quarter at most
			t.Errorf("it has asked %d times in an hour", n)
		}
		d.show(of("a", Temperature, 60))
		d.wait(rarest + tick)
		before := d.times()
		d.wait(time.Minute)
		if n := d.times() - before; n < 3 || n > 4 {
			t.Errorf("it asks %d times a minute once there are answers", n)
		}
	})
}

// TestWhoseSampleItIs: by the card's ID, whatever the node's label says; by node and
// number; and never by an ID that two nodes have.
func TestWhoseSampleItIs(t *testing.T) {
	l := ledger.New(tenancy.Separate{})
	l.SetNode(facts("n", "a", "same"))
	l.SetNode(facts("m", "c", "same"))
	s := l.Snapshot()
	for name, tc := range map[string]struct {
		sample Sample
		want   gpu.NodeID
		card   gpu.CardID
	}{
		"its ID":                       {Sample{Card: "a"}, "n", "a"},
		"and its node":                 {Sample{Card: "a", Node: "n"}, "n", "a"},
		"and the exporter's name":      {Sample{Card: "a", Node: "exporter-x7"}, "n", "a"},
		"and the node of the exporter": {Sample{Card: "a", Node: "m"}, "n", "a"},
		"its number on a node":         {Sample{Node: "m", Index: 0}, "m", "c"},
		"an ID of two, with its node":  {Sample{Card: "same", Node: "m"}, "m", "same"},
		"an ID of two":                 {Sample{Card: "same"}, "", ""},
		"an ID of two, of nobody":      {Sample{Card: "same", Node: "exporter"}, "", ""},
		"an ID of nobody":              {Sample{Card: "z", Node: "n"}, "", ""},
		"a number that is not there":   {Sample{Node: "n", Index: 2}, "", ""},
		"a number of nobody":           {Sample{Node: "z", Index: 0}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, c := byCard(s).find(s, &tc.sample)
			var node gpu.NodeID
			var card gpu.CardID
			if c != nil {
				node, card = n.ID, c.ID
			}
			if node != tc.want || card != tc.card {
				t.Errorf("it is of %s on %s, want %s on %s", card, node, tc.card, tc.want)
			}
		})
	}
}

// TestAbsurdFigures count as none, and are counted.
func TestAbsurdFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.show(of("a", Temperature, math.NaN()), of("a", Utilisation, 101), of("a", MemoryUsed, 160001), of("a", Power, math.Inf(1)), of("a", PowerLimit, -1),
			of("z", Temperature, 1), Sample{Kind: NodeCPU, Node: "z", Value: 1, At: time.Now()}, Sample{Kind: NodeMemory, Node: "n", Value: 120, At: time.Now()})
		d.work()
		d.wait(time.Second)
		d.mustRead("all of them", 0, gpu.Reading{})
		d.counted(func() {
			if d.dropped["absurd"] != 6 || d.dropped["unknown"] != 2 {
				t.Errorf("counted %v", d.dropped)
			}
		})
	})
}

func (d *desk) counted(look func()) {
	d.tallies.mu.Lock()
	defer d.tallies.mu.Unlock()
	look()
}

// TestWhatTheLedgerHasIsTrue: whatever samples come in whatever order, pods come and
// go and nodes change, no figure in the ledger is older than it may be, and memory
// that is measured of a card was measured after the last pod had left it.
func TestWhatTheLedgerHasIsTrue(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkLedger(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func checkLedger(t *testing.T, r *rand.Rand) {
	d := newDesk(t)
	d.work()
	taken := map[int64]time.Time{} // a value is used once: so it says when it was measured
	left := time.Time{}
	for step := range 200 {
		switch r.IntN(5) {
		case 0:
			d.fall(errors.New("gone"))
		case 1:
			d.ledger.Confirm(gpu.Placement{Pod: "p", Node: "n", Grants: []gpu.Grant{{Container: "c", Shares: []gpu.Share{{
				Card: "a", Vendor: gpu.Nvidia, Memory: 1}}}}})
		case 2:
			if _, held := d.ledger.Hold("p"); held {
				left = time.Now()
			}
			d.ledger.Release("p")
		default:
			s := of("a", MemoryUsed, float64(1000*r.IntN(160))) // further apart than what is not told
			s.At = s.At.Add(-time.Duration(r.IntN(100)) * time.Second)
			if _, twice := taken[int64(s.Value)]; !twice {
				taken[int64(s.Value)] = s.At
				d.show(s)
			}
		}
		d.wait(time.Duration(r.IntN(20000)) * time.Millisecond)
		now := d.node().Cards[0].Reading.MemoryUsed
		if !now.Known {
			continue
		}
		at := taken[now.Value]
		if age := time.Since(at); age > stale+tick {
			t.Fatalf("step %d: a figure of %v ago counts", step, age)
		}
		if at.Before(left) {
			t.Fatalf("step %d: a figure counts that was measured %v before a pod left the card", step, left.Sub(at))
		}
	}
}
