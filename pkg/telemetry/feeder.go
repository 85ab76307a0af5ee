package telemetry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Books is what the feeder tells.
type Books interface {
	Snapshot() ledger.Snapshot
	SetReadings(id gpu.NodeID, r ledger.Readings)
}

// Counts is told how it goes. Its methods return at once.
type Counts interface {
	// TelemetryRead is told of each reading: how many samples came, whether a part
	// or all of it failed, and how long it took.
	TelemetryRead(samples int, err error, took time.Duration)
	TelemetryDropped(why string, samples int)
	// TelemetryFresh is told of how many cards, or nodes, each figure is known.
	TelemetryFresh(figure string, of int)
}

// Feeder brings what a source tells into the ledger.
type Feeder struct {
	Source Source
	Books  Books
	// Ready reports whether the books have all nodes: before that nobody is asked, since
	// samples of nodes that are not there yet would be of no use. nil: they always have.
	Ready  func() bool
	Marks  Marks
	Counts Counts
	Now    func() time.Time
	Period time.Duration // between two readings
	Limit  time.Duration // of one reading
	Stale  time.Duration // age at which a figure is not known any more

	state  state
	failed int  // readings in a row that brought an error and nothing else
	silent bool // whether the last one brought nothing
}

const (
	// tick is how often is looked for what has become too old. A figure is known for
	// as long as Stale and that, at most.
	tick = 2 * time.Second
	// soon is how often is looked whether the books are ready.
	soon = 200 * time.Millisecond
	// rarest is how far apart readings come to be while the source fails.
	rarest = 2 * time.Minute
)

// answer is what a reading brought.
type answer struct {
	samples []Sample
	err     error
	took    time.Duration
}

// Run reads and tells until ctx ends, whatever the source does: readings are made
// beside it, so that one that takes long keeps nothing from becoming too old.
func (f *Feeder) Run(ctx context.Context) {
	f.state = state{}
	log := klog.FromContext(ctx).WithName("telemetry")
	var reading sync.WaitGroup
	defer reading.Wait()
	answers := make(chan answer, 1) // one reading at a time, which never waits to be heard
	due := time.NewTimer(0)
	defer due.Stop()
	t := time.NewTicker(min(tick, f.Period))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			if f.Ready != nil && !f.Ready() {
				due.Reset(soon)
				continue
			}
			reading.Go(func() { answers <- f.read(ctx) })
		case a := <-answers:
			f.use(a, log)
			due.Reset(f.pause())
		case <-t.C:
		}
		f.tell()
	}
}

// pause is the time to the next reading: longer and longer while the source fails,
// and not the same for all replicas.
func (f *Feeder) pause() time.Duration {
	if f.failed == 0 {
		return f.Period
	}
	longer := min(f.Period<<min(f.failed, 10), max(rarest, f.Period))
	return longer - time.Duration(rand.Int64N(int64(longer)/4+1))
}

func (f *Feeder) read(ctx context.Context) answer {
	began := f.Now()
	limited, stop := context.WithTimeout(ctx, f.Limit)
	defer stop()
	samples, err := f.Source.Read(limited)
	return answer{samples, err, f.Now().Sub(began)}
}

// use enters what a reading brought.
func (f *Feeder) use(a answer, log klog.Logger) {
	f.Counts.TelemetryRead(len(a.samples), a.err, a.took)
	f.report(log, len(a.samples), a.err)
	now, s := f.Now(), f.Books.Snapshot()
	f.state.follow(s, now)
	dropped := f.state.take(a.samples, s, now.Add(-f.Stale), now)
	for _, why := range Drops() {
		f.Counts.TelemetryDropped(string(why), dropped[why])
	}
	log.V(4).Info("read", "samples", len(a.samples), "unknown", dropped[DropUnknown], "absurd", dropped[DropAbsurd], "stale", dropped[DropStale])
}

// report logs a source that falls silent, and one that speaks again. One that says
// without an error that there is nothing is asked as often as ever: it answers, and
// may have something the next time.
func (f *Feeder) report(log klog.Logger, samples int, err error) {
	f.failed++
	if samples > 0 || err == nil {
		f.failed = 0
	}
	before := f.silent
	f.silent = samples == 0
	switch {
	case f.silent && !before:
		log.Info("no figures of cards: what was known of them counts until it is too old", "err", err)
	case before && !f.silent:
		log.Info("there are figures of cards again", "samples", samples)
	case err != nil:
		log.V(2).Info("a part of the figures is missing", "err", err)
	}
}

// tell brings what is known now into the ledger, where it matters.
func (f *Feeder) tell() {
	now := f.Now()
	s := f.Books.Snapshot()
	f.state.follow(s, now)
	known := map[Kind]int{}
	for id, n := range s.Nodes() {
		r := f.state[id].readings(now.Add(-f.Stale))
		r.Seen = n.Version
		count(known, &r)
		if f.Marks.matters(n, r) {
			f.Books.SetReadings(id, r)
		}
	}
	for _, k := range Kinds() {
		f.Counts.TelemetryFresh(string(k), known[k])
	}
}

// readings is what is known of the node, of what is from fresh or later.
func (n *nodeState) readings(fresh time.Time) ledger.Readings {
	r := ledger.Readings{CPU: n.cpu.figure(fresh), Memory: n.memory.figure(fresh), Cards: map[gpu.CardID]gpu.Reading{}}
	for id, c := range n.cards {
		if x := c.reading(fresh); x != (gpu.Reading{}) {
			r.Cards[id] = x
		}
	}
	return r
}

func count(known map[Kind]int, r *ledger.Readings) {
	add := func(k Kind, f gpu.Figure) {
		if f.Known {
			known[k]++
		}
	}
	add(NodeCPU, r.CPU)
	add(NodeMemory, r.Memory)
	for _, c := range r.Cards {
		add(MemoryUsed, c.MemoryUsed)
		add(Utilisation, c.Utilisation)
		add(Temperature, c.Temperature)
		add(Power, c.Power)
		add(PowerLimit, c.PowerLimit)
	}
}
