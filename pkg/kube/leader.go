package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/metrics"
)

var (
	// ErrLost means that another replica may lead now. The process has to end: it
	// leads once at most.
	ErrLost = errors.New("the lease is lost: another replica may lead now")
	// ErrNotLeading means that this replica must not bind.
	ErrNotLeading = errors.New("this replica does not lead")
)

// LeaderConfig is what a leader works with.
type LeaderConfig struct {
	Lock          resourcelock.Interface // the Lease; its identity is a Holder
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
	// FenceDelay is how long after raising the epoch API servers may still take a
	// Binding of the one before.
	FenceDelay time.Duration
	// Hindered is told what keeps the holder of the Lease from deciding, once until
	// it changes.
	Hindered func(ctx context.Context, why string)
	Epochs   epochs
	Fence    fence
	Ready    func() bool                 // whether the books have been built
	CatchUp  func(context.Context) error // brings the books up to everything that was bound by now
	Idle     func() bool                 // whether no Binding of ours can be on its way
	Now      func() time.Time
	Logger   klog.Logger
}

type epochs interface {
	Current(ctx context.Context) (*v1alpha1.Epoch, error)
	Raise(ctx context.Context, was *v1alpha1.Epoch, least int64, holder string) (int64, error)
}

type fence interface {
	Supported(ctx context.Context) (bool, error)
	Prove(ctx context.Context, epoch int64) error
}

// Leader takes the Lease when nobody has it, and says whether this replica
// decides. Between the two lies what makes sure that nobody else does; see lead.
// All methods are safe for concurrent use.
type Leader struct {
	cfg     LeaderConfig
	holder  Holder
	refused chan struct{} // a Binding of ours was refused by the fence
	led     chan struct{} // closed when this replica has begun to decide
	begun   sync.Once     // closes led

	mu      sync.Mutex
	stage   stage                   // guarded by mu
	why     string                  // guarded by mu; what keeps us from deciding
	current string                  // guarded by mu; who holds the Lease, as far as known; "" for nobody
	last    string                  // guarded by mu; who held it last
	holders int                     // guarded by mu; so many have held it, one after the other, since we look
	free    bool                    // guarded by mu; it is there, and nobody holds it
	changed chan struct{}           // guarded by mu; closed at the next change
	clean   bool                    // guarded by mu; the Lease had been released when we took it
	until   time.Time               // guarded by mu; until then the Lease is ours if nobody deletes it
	number  int64                   // guarded by mu; the epoch that we have raised, 0 before
	first   int64                   // guarded by mu; the first that we have raised
	settled time.Time               // guarded by mu; the end of the fence's delay
	fenced  metrics.FenceState      // guarded by mu
	end     context.CancelCauseFunc // guarded by mu; ends Run
}

// stage is how far a replica has come. It never goes back but from leading to
// taken.
type stage int

const (
	standby stage = iota
	taken         // the Lease is ours, and what it takes to decide is being done
	leading       // we decide
	over          // we have led
)

// NewLeader returns a leader that is a standby until it runs.
func NewLeader(cfg LeaderConfig) *Leader {
	return &Leader{
		cfg: cfg, holder: ParseHolder(cfg.Lock.Identity()), fenced: metrics.FenceStandby,
		refused: make(chan struct{}, 1), led: make(chan struct{}), changed: make(chan struct{}),
	}
}

// Standing is how leadership stands at one moment, seen from this replica.
type Standing struct {
	Here    bool            // this replica decides
	Leader  string          // address of the replica that does or is about to, "" if not known
	Why     string          // what keeps it from deciding, "" if there is nothing to say
	Changed <-chan struct{} // closed when this is no longer how it stands
}

// State returns how leadership stands.
func (l *Leader) State() Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Standing{Here: l.valid(), Leader: ParseHolder(l.current).Address, Why: l.why, Changed: l.changed}
	if l.stage == taken || l.stage == leading {
		s.Leader = l.holder.Address
	}
	return s
}

// valid reports whether we decide. A process that was stopped for longer than
// the Lease lasts finds out here, before the elector does. mu is held.
func (l *Leader) valid() bool { return l.stage == leading && l.cfg.Now().Before(l.until) }

// Led is closed once this replica has begun to decide.
func (l *Leader) Led() <-chan struct{} { return l.led }

// View is what metrics show.
func (l *Leader) View() metrics.Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	return metrics.Leadership{Leading: l.valid(), Epoch: l.number, Holders: l.holders, Fence: l.fenced}
}

// Term is what a Binding may rely on.
type Term struct {
	Epoch int64
	// Until is when it must have arrived; zero: whenever, since the fence refuses
	// it when it is too late.
	Until time.Time
}

// unfencedMargin is left between the end of a Binding's time and the end of the
// Lease where there is no fence: clocks run at different rates.
const unfencedMargin = time.Second

// Term returns what Bindings may rely on, and ErrNotLeading when there must not
// be any.
func (l *Leader) Term() (Term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.valid() {
		return Term{}, ErrNotLeading
	}
	t := Term{Epoch: l.number}
	if l.fenced == metrics.FenceUnsupported {
		t.Until = l.until.Add(-unfencedMargin)
	}
	return t, nil
}

// First returns the first epoch that this replica has raised, 0 before. What was
// bound in an earlier one was bound by another; no other's has come since.
func (l *Leader) First() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// FenceRefused tells that the API server has refused a Binding as one of another
// epoch. It does not block.
func (l *Leader) FenceRefused() {
	select {
	case l.refused <- struct{}{}:
	default: // somebody is looking already
	}
}

// readyLook is how often the books are looked at until they have been built.
const readyLook = 50 * time.Millisecond

// Run takes the Lease as soon as the books have been built and nobody else has
// it, and keeps it until ctx ends. Then the Lease is given up, unless a Binding
// of ours may be on its way. The error is ErrLost when another may have taken it.
func (l *Leader) Run(ctx context.Context) error {
	lock := &watchedLock{Interface: l.cfg.Lock, now: l.cfg.Now, tenure: l}
	for looked := (time.Time{}); !l.cfg.Ready(); {
		if now := l.cfg.Now(); now.Sub(looked) >= l.cfg.RetryPeriod {
			looked = now
			l.look(ctx, lock)
		}
		if !pause(ctx, readyLook) {
			return ctx.Err()
		}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: l.cfg.LeaseDuration, RenewDeadline: l.cfg.RenewDeadline, RetryPeriod: l.cfg.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
		Name:      LeaseName,
	})
	if err != nil {
		return err
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	l.mu.Lock()
	l.end = end
	l.mu.Unlock()
	var work sync.WaitGroup
	work.Go(func() { l.lead(running) })
	elector.Run(klog.NewContext(running, l.cfg.Logger))
	settled := l.resign(ctx)
	end(nil)
	work.Wait()
	switch {
	case ctx.Err() == nil:
		return ErrLost // also when the renewals did not get through in time
	case settled:
		l.giveUp(context.WithoutCancel(ctx))
	}
	return ctx.Err()
}

// look finds out who leads while this replica cannot: what it is asked is sent on.
func (l *Leader) look(ctx context.Context, lock *watchedLock) {
	ctx, stop := context.WithTimeout(ctx, l.cfg.RetryPeriod)
	defer stop()
	_, _, _ = lock.Get(ctx) // an error is met again by the elector, which tells of it
}

// resign has no Binding begin from now on. It reports whether the Lease is ours to
// release: to who finds it free that is a promise that nothing is on its way from
// anybody. So who has not led yet leaves it to expire, unless it was free before:
// the delay of the fence has not passed, or its epoch is not even raised.
func (l *Leader) resign(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.led:
	default:
		if !l.clean {
			l.stage, l.why = over, "this replica has stopped"
			l.change()
			return false
		}
	}
	had := l.stage == taken || l.stage == leading
	l.stage, l.why = over, "this replica has stopped"
	if ctx.Err() == nil {
		l.why = ErrLost.Error()
	}
	l.change()
	return had
}

// Giving up is tried for so long, and no longer than the Lease lasts.
const (
	idleWait    = 2 * time.Second
	idleLook    = 20 * time.Millisecond
	releaseTime = 5 * time.Second
)

// giveUp releases the Lease, once no Binding of ours can be on its way: the next
// leader takes its being free as a promise of that.
func (l *Leader) giveUp(ctx context.Context) {
	for began := l.cfg.Now(); !l.cfg.Idle(); pause(ctx, idleLook) {
		if l.cfg.Now().Sub(began) > idleWait {
			l.cfg.Logger.Info("the lease is left to expire: the outcome of a Binding is not known", "lease", l.cfg.Lock.Describe())
			return
		}
	}
	ctx, stop := context.WithTimeout(ctx, releaseTime)
	defer stop()
	released, err := release(ctx, l.cfg.Lock, l.cfg.Now())
	for err != nil && pause(ctx, idleLook) { // a conflict, or an API server that is ending as well
		released, err = release(ctx, l.cfg.Lock, l.cfg.Now())
	}
	switch {
	case err != nil:
		l.cfg.Logger.Error(err, "the lease could not be released and is left to expire", "lease", l.cfg.Lock.Describe())
	case released:
		l.cfg.Logger.Info("the lease is released", "lease", l.cfg.Lock.Describe())
	}
}

// seen implements tenure.
func (l *Leader) seen(holder string, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder != l.cfg.Lock.Identity() && (l.stage == taken || l.stage == leading) {
		// Even if nobody has it: somebody may have had it in between.
		l.cfg.Logger.Error(ErrLost, "leading ends", "holder", holder)
		l.stage, l.why = over, ErrLost.Error()
		l.end(ErrLost)
	}
	l.free = there && holder == ""
	l.hold(holder)
}

// kept implements tenure.
func (l *Leader) kept(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = since.Add(l.cfg.LeaseDuration)
	if l.stage != standby {
		return
	}
	l.clean = l.free
	l.stage, l.why = taken, "it has just taken the lease"
	l.cfg.Logger.Info("took the lease", "lease", l.cfg.Lock.Describe(), "holder", l.cfg.Lock.Identity(), "released", l.clean)
	l.hold(l.cfg.Lock.Identity())
	l.change()
}

// hold notes who holds the Lease. mu is held.
func (l *Leader) hold(holder string) {
	if holder == l.current {
		return
	}
	l.current = holder
	if holder != "" && holder != l.last {
		l.last = holder
		l.holders++
	}
	l.change()
}

// change tells that something is not as it was. mu is held.
func (l *Leader) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// pause waits that long; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

var _ tenure = (*Leader)(nil)
