package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// told returns what it has been told that keeps the leader from deciding.
func (r *realm) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.hindered)
}

// A fence that goes while somebody leads ends his deciding within half a minute,
// though no Binding is sent; it is told once, and he goes on when it is back.
func TestTheFenceGoes(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		for n := 1; n <= 2; n++ {
			gone := fmt.Errorf("%w: it is gone for the %d. time", ErrNoFence, n)
			r.with(func() { r.broken = gone })
			within(t, 31*time.Second, "it does not decide", func() bool { return !a.here() })
			time.Sleep(time.Minute)
			if v := a.View(); v.Leading || v.Fence != metrics.FenceUnproven {
				t.Errorf("without a fence it says %+v", v)
			}
			if told := r.told(); len(told) != n || told[n-1] != gone.Error() {
				t.Errorf("told %q", told)
			}
			r.with(func() { r.broken = nil })
			within(t, time.Second, "it decides", a.here)
		}
		a.end(t, context.Canceled)
	})
}

// While Bindings are not refused an API server that cannot be asked is no reason to
// stop.
func TestTheFenceCannotBeLookedAt(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		r.with(func() { r.broken = errors.New("the API server is out of order") })
		for range 600 {
			time.Sleep(time.Second)
			if !a.here() {
				t.Fatal("it does not decide any more")
			}
		}
		var looked int
		r.with(func() { looked = len(r.proved) })
		if looked < 15 || looked > 25 {
			t.Errorf("looked %d times in ten minutes", looked)
		}
		if told := r.told(); len(told) > 0 {
			t.Errorf("told %q", told)
		}
		a.end(t, context.Canceled)
	})
}

// Until the fence is proved again nobody may believe in it, and an Epoch that is
// deleted is told.
func TestInterruptedIsUnproven(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		r.with(func() { r.epoch, r.unread = nil, errors.New("no list") })
		r.with(func() { r.broken = errors.New("not yet") })
		a.FenceRefused()
		time.Sleep(5 * time.Second)
		if v := a.View(); v.Fence != metrics.FenceUnproven || v.Leading {
			t.Errorf("interrupted, it says %+v", v)
		}
		r.with(func() { r.broken = nil })
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff([]string{textRefused, "not yet", "no list"}, r.told()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		r.with(func() { r.unread = nil })
		within(t, time.Second, "it decides", a.here)
		a.end(t, context.Canceled)
	})
}

// The fence's state is lost with the interruption, not with what comes after it.
func TestInterruptForgetsTheProof(t *testing.T) {
	var told []string
	l := NewLeader(LeaderConfig{
		Lock: &lock{identity: "a"}, Now: time.Now, Logger: logr.Discard(),
		Hindered: func(_ context.Context, why string) { told = append(told, why) },
	})
	l.interrupt(t.Context(), "nothing to interrupt")
	l.stage, l.fenced, l.until = leading, metrics.FenceProven, time.Now().Add(time.Hour)
	l.interrupt(t.Context(), "why")
	if v := l.View(); v.Leading || v.Fence != metrics.FenceUnproven || l.State().Why != "why" {
		t.Errorf("it says %+v, %+v", v, l.State())
	}
	if diff := cmp.Diff([]string{"why"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A refusal from before the epoch was raised says nothing of it.
func TestAnEarlierRefusalIsForgotten(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.reading = time.Second
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a reads what is bound", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.readings > 0
		})
		a.FenceRefused()
		within(t, 5*time.Second, "a leads", a.here)
		time.Sleep(5 * time.Second)
		if r.readings != 1 || !a.here() {
			t.Errorf("what is bound was read %d times", r.readings)
		}
		a.end(t, context.Canceled)
	})
}

// freeze stops what the candidate does about the Lease, as if that process stood
// still, until it is ended.
func (r *realm) freeze(c *candidate) (end func()) {
	until := make(chan struct{})
	r.with(func() { r.hung[c.cfg.Lock.Identity()] = until })
	return func() {
		c.stop()
		close(until)
		<-c.ended
	}
}

// Who has begun in time and ends too late must not even begin what only leaders do.
func TestTheLeaseExpiresWhileItBegins(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.reading = 20 * time.Second
		a := r.stand(t, "a")
		time.Sleep(2 * time.Second)
		end := r.freeze(a)
		time.Sleep(25 * time.Second)
		select {
		case <-a.Led():
			t.Error("it has begun to decide with a Lease that has expired")
		default:
		}
		end()
	})
}

// shelved is the Epoch with whatever comes before an answer.
type shelved struct {
	*realm
	current, raise func() error
}

func (s *shelved) Current(ctx context.Context) (*v1alpha1.Epoch, error) {
	if err := s.current(); err != nil {
		return nil, err
	}
	return s.realm.Current(ctx)
}

func (s *shelved) Raise(ctx context.Context, was *v1alpha1.Epoch, least int64, holder string) (int64, error) {
	if err := s.raise(); err != nil {
		return 0, err
	}
	return s.realm.Raise(ctx, was, least, holder)
}

// An epoch is not raised by one whose Lease may be another's by now: it would have
// the other's Bindings refused.
func TestNoEpochIsRaisedTooLate(t *testing.T) {
	fine := func() error { return nil }
	for name, epochs := range map[string]func() *shelved{
		"it was told to try again": func() *shelved {
			began := time.Now()
			return &shelved{current: fine, raise: func() error {
				if time.Since(began) < 20*time.Second {
					return errors.New("try again")
				}
				return nil
			}}
		},
		"reading the Epoch took so long": func() *shelved {
			return &shelved{current: func() error { time.Sleep(20 * time.Second); return nil }, raise: fine}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRealm(t, func(t *testing.T, r *realm) {
				s := epochs()
				s.realm = r
				a := r.stand(t, "a", func(c *LeaderConfig) { c.Epochs = s })
				time.Sleep(time.Second)
				end := r.freeze(a)
				time.Sleep(time.Minute)
				if r.epoch != nil {
					t.Errorf("it has raised %+v", r.epoch.Spec)
				}
				end()
			})
		})
	}
}

// slowLock answers a while after the write.
type slowLock struct{ resourcelock.Interface }

func (slowLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(3 * time.Second)
	return nil
}

func (slowLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(3 * time.Second)
	return nil
}

// keeper notes since when the Lease is kept.
type keeper struct{ since []time.Time }

func (*keeper) seen(string, bool)      {}
func (k *keeper) kept(since time.Time) { k.since = append(k.since, since) }

// The Lease runs from when its renewal was sent, which is the latest that others
// can count from.
func TestTheLeaseIsKeptSinceTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		w := &watchedLock{Interface: slowLock{}, now: time.Now, tenure: k}
		var want []time.Time
		for _, write := range []func(context.Context, resourcelock.LeaderElectionRecord) error{w.Create, w.Update} {
			want = append(want, time.Now())
			if err := write(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, k.since); diff != "" {
			t.Errorf("kept since (-want +got):\n%s", diff)
		}
	})
}
