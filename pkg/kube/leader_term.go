package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// How often the start of a term is tried, and how long one try may take.
const (
	termRetry = 500 * time.Millisecond
	termTime  = 30 * time.Second
)

// How often a leader looks whether its fence is still there, and how long one look
// may take: refusals are not heard meanwhile.
const (
	fenceLook = 30 * time.Second
	lookTime  = 5 * time.Second
)

// lead does, once the Lease is ours, what makes sure that nobody else decides,
// and then has this replica decide:
//
//	raise the epoch -> wait until every API server knows it -> prove that
//	Bindings of another are refused -> read what was bound by now -> decide
//
// Until that is done requests are held. When a Binding of ours is refused as one
// of another epoch it is done again: somebody may have deleted the Epoch. So it is
// when the fence turns out to be gone: nobody decides without one.
func (l *Leader) lead(ctx context.Context) {
	if !l.taking(ctx) {
		return
	}
	for ctx.Err() == nil {
		err := l.begin(ctx)
		switch {
		case errors.Is(err, ErrLost):
			l.lose(err)
			return
		case err != nil:
			l.hinder(ctx, err)
			pause(ctx, termRetry)
		default:
			if why := l.decide(ctx); why != "" {
				l.interrupt(ctx, why)
			}
		}
	}
}

// taking waits until the Lease is ours; false when ctx ends first.
func (l *Leader) taking(ctx context.Context) bool {
	for {
		l.mu.Lock()
		ours, changed := l.stage == taken, l.changed
		l.mu.Unlock()
		if ours {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// begin does one try of what comes before deciding. What has been done stays so.
func (l *Leader) begin(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, termTime)
	defer stop()
	if err := l.raise(ctx); err != nil {
		return err
	}
	if !pause(ctx, l.delay()) {
		return ctx.Err()
	}
	if err := l.prove(ctx); err != nil {
		return err
	}
	return l.cfg.CatchUp(ctx)
}

// raise makes the epoch ours, if it is not. One that another has raised over
// ours says that he has taken the Lease since.
func (l *Leader) raise(ctx context.Context) error {
	was, err := l.cfg.Epochs.Current(ctx)
	if err != nil {
		return err
	}
	ours := l.epoch()
	switch {
	case was == nil || ours == 0:
	case was.Spec.Number == ours && was.Spec.Holder == l.cfg.Lock.Identity():
		return nil
	case was.Spec.Number >= ours:
		return fmt.Errorf("epoch %d of %s is in force: %w", was.Spec.Number, was.Spec.Holder, ErrLost)
	}
	if l.expired() { // another may have it by now, whose epoch must not be raised over
		return errExpired
	}
	number, err := l.cfg.Epochs.Raise(ctx, was, ours, l.cfg.Lock.Identity())
	if err != nil {
		return err
	}
	l.raised(was, number)
	return nil
}

var errExpired = errors.New("the lease has not been renewed in time")

func (l *Leader) expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.cfg.Now().Before(l.until)
}

func (l *Leader) epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number
}

// raised notes our epoch.
func (l *Leader) raised(was *v1alpha1.Epoch, number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.number == 0 {
		// Bindings of the one before us are refused everywhere from then on. Of
		// our own former number there are only those that we know of.
		l.first, l.settled = number, l.cfg.Now().Add(l.cfg.FenceDelay)
	}
	l.number, l.fenced = number, metrics.FenceUnproven
	if was == nil {
		l.cfg.Logger.Info("there was no Epoch: it starts anew, from the clock", "epoch", number)
		return
	}
	l.cfg.Logger.Info("raised the epoch", "epoch", number, "before", was.Spec.Number, "of", was.Spec.Holder)
}

// delay is what is left of the fence's delay. Who gave the Lease up had nothing
// on its way.
func (l *Leader) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clean {
		return 0
	}
	return max(0, l.settled.Sub(l.cfg.Now()))
}

// prove makes sure of the fence, or finds that there can be none.
func (l *Leader) prove(ctx context.Context) error {
	possible, err := l.cfg.Fence.Supported(ctx)
	if err != nil {
		return err
	}
	state := metrics.FenceUnsupported
	if possible {
		if err := l.cfg.Fence.Prove(ctx, l.epoch()); err != nil {
			return err
		}
		state = metrics.FenceProven
	} else {
		l.cfg.Logger.Info("the API server has no admission policies: there is no fence, and the time of each Binding ends before the lease can instead")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fenced = state
	return nil
}

const textRefused = "the API server has refused a Binding as one of another epoch"

// decide has this replica decide until there may be no fence any more, and returns
// why; "" when ctx ends first, or when the Lease may have been lost.
func (l *Leader) decide(ctx context.Context) (why string) {
	l.mu.Lock()
	if l.stage != taken || !l.cfg.Now().Before(l.until) { // lost, or about to find out
		l.mu.Unlock()
		pause(ctx, termRetry)
		return ""
	}
	select {
	case <-l.refused: // by the epoch before this one: nothing has been sent in this
	default:
	}
	l.stage, l.why = leading, ""
	l.cfg.Logger.Info("leading", "epoch", l.number, "fence", l.fenced)
	l.change()
	l.mu.Unlock()
	l.begun.Do(func() { close(l.led) })
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-l.refused:
			return textRefused
		case <-time.After(fenceLook):
		}
		if err := l.looked(ctx); err != nil {
			return err.Error()
		}
	}
}

// looked returns what is wrong with the fence that was there when the term began.
// An API server that cannot be asked, or is too slow, is no sign of that.
func (l *Leader) looked(ctx context.Context) error {
	l.mu.Lock()
	number, fenced := l.number, l.fenced
	l.mu.Unlock()
	if fenced != metrics.FenceProven {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, lookTime)
	defer stop()
	err := l.cfg.Fence.Prove(ctx, number)
	if errors.Is(err, ErrNoFence) {
		return err
	}
	return nil
}

// interrupt has nobody decide here until it has been looked into.
func (l *Leader) interrupt(ctx context.Context, why string) {
	l.mu.Lock()
	if l.stage != leading {
		l.mu.Unlock()
		return
	}
	l.cfg.Logger.Info("leading is interrupted", "cause", why, "epoch", l.number)
	l.stage, l.why, l.fenced = taken, why, metrics.FenceUnproven
	l.change()
	l.mu.Unlock()
	l.cfg.Hindered(ctx, why)
}

// hinder says, once until it changes, what keeps us from deciding.
func (l *Leader) hinder(ctx context.Context, err error) {
	l.mu.Lock()
	if ctx.Err() != nil || l.why == err.Error() {
		l.mu.Unlock()
		return
	}
	l.why = err.Error()
	l.cfg.Logger.Error(err, "the lease is ours, but this replica cannot decide yet")
	l.change()
	l.mu.Unlock()
	l.cfg.Hindered(ctx, err.Error())
}

// lose ends Run.
func (l *Leader) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg.Logger.Error(err, "leading ends")
	l.stage, l.why = over, err.Error()
	l.change()
	l.end(ErrLost)
}
