package kube

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// realm is what candidates contend for: a Lease, the Epoch and the fence.
type realm struct {
	mu       sync.Mutex
	record   *resourcelock.LeaderElectionRecord // guarded by mu; nil: there is no Lease
	version  int                                // guarded by mu; of the record
	cut      map[string]bool                    // guarded by mu; identities that do not reach the Lease
	mute     map[string]bool                    // guarded by mu; whose next write happens, and is not answered
	hung     map[string]chan struct{}           // guarded by mu; whose requests end when this is closed, whatever their time
	epoch    *v1alpha1.Epoch                    // guarded by mu; nil: there is none
	broken   error                              // guarded by mu; what the fence says
	none     bool                               // guarded by mu; there can be no fence
	proved   []int64                            // guarded by mu; epochs that were proved
	readings int                                // guarded by mu; of what is bound
	unread   error                              // guarded by mu; why it cannot be read
	reading  time.Duration                      // guarded by mu; how long that takes
	hindered []string                           // guarded by mu; what has been told
}

func newRealm() *realm {
	return &realm{cut: map[string]bool{}, mute: map[string]bool{}, hung: map[string]chan struct{}{}}
}

// with changes something.
func (r *realm) with(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// lock is the Lease as one candidate sees it.
type lock struct {
	realm    *realm
	identity string
	version  int
}

func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "ns/lease" }
func (l *lock) RecordEvent(string) {}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.hang()
	l.realm.mu.Lock()
	defer l.realm.mu.Unlock()
	switch {
	case l.realm.cut[l.identity]:
		return nil, nil, errCut
	case l.realm.record == nil:
		return nil, nil, apierrors.NewNotFound(leases, "lease")
	}
	l.version = l.realm.version
	record := *l.realm.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.realm.mu.Lock()
	defer l.realm.mu.Unlock()
	if l.realm.record != nil {
		return apierrors.NewAlreadyExists(leases, "lease")
	}
	return l.write(record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.hang()
	l.realm.mu.Lock()
	defer l.realm.mu.Unlock()
	if l.realm.record == nil {
		return apierrors.NewNotFound(leases, "lease")
	}
	if l.realm.version != l.version {
		return apierrors.NewConflict(leases, "lease", errors.New("another version"))
	}
	return l.write(record)
}

func (l *lock) hang() {
	l.realm.mu.Lock()
	until := l.realm.hung[l.identity]
	l.realm.mu.Unlock()
	if until != nil {
		<-until
	}
}

func (l *lock) write(record resourcelock.LeaderElectionRecord) error {
	if l.realm.cut[l.identity] {
		return errCut
	}
	l.realm.record = &record
	l.realm.version++
	if l.realm.mute[l.identity] {
		delete(l.realm.mute, l.identity)
		return errCut
	}
	l.version = l.realm.version
	return nil
}

var errCut = errors.New("no route to host")

// Current and Raise are those of Epochs, Supported and Prove those of Fence.
func (r *realm) Current(context.Context) (*v1alpha1.Epoch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch.DeepCopy(), nil
}

func (r *realm) Raise(_ context.Context, was *v1alpha1.Epoch, least int64, holder string) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (was == nil) != (r.epoch == nil) || was != nil && was.Spec != r.epoch.Spec {
		return 0, errors.New("conflict")
	}
	number := max(least+1, time.Now().Unix())
	if was != nil {
		number = max(least, was.Spec.Number) + 1
	}
	r.epoch = &v1alpha1.Epoch{Spec: v1alpha1.EpochSpec{Number: number, Holder: holder}}
	return number, nil
}

func (r *realm) Supported(context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.none, nil
}

func (r *realm) Prove(_ context.Context, epoch int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proved = append(r.proved, epoch)
	return r.broken
}

func (r *realm) catchUp(ctx context.Context) error {
	r.mu.Lock()
	r.readings++
	took, err := r.reading, r.unread
	r.mu.Unlock()
	if !pause(ctx, took) {
		return ctx.Err()
	}
	return err
}

// candidate is a leader that runs.
type candidate struct {
	*Leader
	stop  context.CancelFunc
	ended chan error
}

// stand has a candidate of that name run. Its address is NAME:1.
func (r *realm) stand(t *testing.T, name string, change ...func(*LeaderConfig)) *candidate {
	t.Helper()
	cfg := LeaderConfig{
		Lock:          &lock{realm: r, identity: Holder{name, name + ":1", "id-" + name}.String()},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond, FenceDelay: time.Second,
		Epochs: r, Fence: r, CatchUp: r.catchUp,
		Hindered: func(_ context.Context, why string) { r.with(func() { r.hindered = append(r.hindered, why) }) },
		Ready:    func() bool { return true }, Idle: func() bool { return true },
		Now: time.Now, Logger: logr.Discard(),
	}
	for _, c := range change {
		c(&cfg)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{NewLeader(cfg), stop, make(chan error, 1)}
	go func() { c.ended <- c.Run(ctx) }()
	return c
}

// within waits until ok holds, and returns how long that took.
func within(t *testing.T, longest time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > longest {
			t.Fatalf("%s: not within %v", what, longest)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

func (c *candidate) here() bool { return c.State().Here }

func (c *candidate) end(t *testing.T, want error) {
	t.Helper()
	c.stop()
	if err := <-c.ended; !errors.Is(err, want) {
		t.Errorf("Run = %v, want %v", err, want)
	}
	if c.here() {
		t.Error("it decides, and has ended")
	}
}

// inRealm is a test in a synctest bubble; what it leaves running is ended.
func inRealm(t *testing.T, play func(*testing.T, *realm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(t, newRealm()) })
}

func TestOneLeadsAndTheOthersKnowWho(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		took := within(t, 5*time.Second, "a leads", a.here)
		if took < time.Second {
			t.Errorf("it leads after %v, before every API server knows its epoch", took)
		}
		b := r.stand(t, "b")
		time.Sleep(time.Minute)
		if s := b.State(); s.Here || s.Leader != "a:1" {
			t.Errorf("the other stands so: %+v", s)
		}
		if s := a.State(); !s.Here || s.Leader != "a:1" || s.Why != "" {
			t.Errorf("the leader stands so: %+v", s)
		}
		if _, err := b.Term(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("the other's term: %v", err)
		}
		term, err := a.Term()
		if err != nil || term.Epoch != r.epoch.Spec.Number || a.First() != term.Epoch || !term.Until.IsZero() {
			t.Errorf("term %+v, %v; the epoch is %d", term, err, r.epoch.Spec.Number)
		}
		want := metrics.Leadership{Leading: true, Epoch: term.Epoch, Holders: 1, Fence: metrics.FenceProven}
		if got := a.View(); got != want {
			t.Errorf("it says %+v of itself, want %+v", got, want)
		}
		b.end(t, context.Canceled)
		a.end(t, context.Canceled)
	})
}

// Who ends in order has nothing on its way: the next leads within two seconds.
func TestAnOrderlyChange(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		first := r.epoch.Spec.Number
		b := r.stand(t, "b")
		time.Sleep(time.Second)
		a.end(t, context.Canceled)
		if took := within(t, 2*time.Second, "b leads", b.here); took >= 1200*time.Millisecond {
			t.Errorf("it takes %v, which includes the fence's delay", took)
		}
		if r.epoch.Spec.Number <= first {
			t.Errorf("epoch %d after %d", r.epoch.Spec.Number, first)
		}
		b.end(t, context.Canceled)
	})
}

// Who does not end in order is waited for.
func TestALeaderThatIsGone(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a", func(c *LeaderConfig) { c.Idle = func() bool { return false } })
		within(t, 5*time.Second, "a leads", a.here)
		b := r.stand(t, "b")
		time.Sleep(5 * time.Second)
		a.end(t, context.Canceled) // a Binding may be on its way, so the Lease stays
		took := within(t, 19*time.Second, "b leads", b.here)
		if took < 13*time.Second {
			t.Errorf("b leads after %v", took)
		}
		b.end(t, context.Canceled)
	})
}

// Whatever comes between the replicas and the Lease, two never decide at once.
func TestNeverTwoAtOnce(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		b := r.stand(t, "b")
		r.with(func() { r.cut[a.cfg.Lock.Identity()] = true })
		within(t, time.Minute, "b leads", func() bool {
			if a.here() && b.here() {
				t.Fatal("both decide")
			}
			return b.here()
		})
		a.end(t, ErrLost)
		b.end(t, context.Canceled)
	})
}

// A process that is stopped and goes on finds out by its own clock, before any of
// its loops does.
func TestAStoppedProcess(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		goOn := make(chan struct{})
		r.with(func() { r.hung[a.cfg.Lock.Identity()] = goOn })
		b := r.stand(t, "b")
		within(t, time.Minute, "b leads", func() bool {
			if a.here() && b.here() {
				t.Fatal("both decide")
			}
			return b.here()
		})
		if _, err := a.Term(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("its term: %v", err)
		}
		close(goOn)
		if err := <-a.ended; !errors.Is(err, ErrLost) {
			t.Errorf("Run = %v", err)
		}
		b.end(t, context.Canceled)
	})
}

// client-go would go on for ten seconds after it has seen another's name.
func TestAnothersNameEndsIt(t *testing.T) {
	for name, change := range map[string]func(*realm){
		"another holds the Lease": func(r *realm) { r.record.HolderIdentity = "c_c:1_x"; r.version++ },
		"somebody has emptied it": func(r *realm) { r.record.HolderIdentity = ""; r.version++ },
		"the Lease is deleted":    func(r *realm) { r.record = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inRealm(t, func(t *testing.T, r *realm) {
				a := r.stand(t, "a")
				within(t, 5*time.Second, "a leads", a.here)
				r.with(func() { change(r) })
				within(t, time.Second, "it ends", func() bool { return !a.here() })
				synctest.Wait()
				select {
				case err := <-a.ended:
					if !errors.Is(err, ErrLost) {
						t.Errorf("Run = %v", err)
					}
				default:
					t.Error("Run goes on")
				}
			})
		})
	}
}

// An answer that is lost on the way is no clean release, whatever was seen before.
func TestTheLeaseIsTakenWithoutAnAnswer(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.record = &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: metav1.Now()}
		r.mute[Holder{"a", "a:1", "id-a"}.String()] = true
		a := r.stand(t, "a")
		if took := within(t, 5*time.Second, "a leads", a.here); took < time.Second {
			t.Errorf("it leads after %v", took)
		}
		a.end(t, context.Canceled)
	})
}

// What is missing keeps it from deciding, is said, and is not in its way any more
// when it is there.
func TestWhatKeepsItFromDeciding(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.broken = errors.New("the fence is not in force")
		a := r.stand(t, "a")
		time.Sleep(30 * time.Second)
		if s := a.State(); s.Here || s.Leader != "a:1" || s.Why != "the fence is not in force" {
			t.Errorf("without a fence it stands so: %+v", s)
		}
		if v := a.View(); v.Leading || v.Fence != metrics.FenceUnproven {
			t.Errorf("without a fence it says %+v", v)
		}
		raised := r.epoch.Spec.Number
		r.with(func() { r.broken, r.unread = nil, errors.New("no list") })
		time.Sleep(30 * time.Second)
		if s := a.State(); s.Here || s.Why != "no list" {
			t.Errorf("without a list it stands so: %+v", s)
		}
		r.with(func() { r.unread = nil })
		within(t, 2*time.Second, "it leads", a.here)
		if r.epoch.Spec.Number != raised {
			t.Errorf("the epoch was raised with every try, from %d to %d", raised, r.epoch.Spec.Number)
		}
		a.end(t, context.Canceled)
	})
}

// Where there can be no fence, a Binding has to have arrived before the Lease can
// have gone to another.
func TestWithoutAdmissionPolicies(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.none = true
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		time.Sleep(time.Minute)
		term, err := a.Term()
		if left := time.Until(term.Until); err != nil || left <= 12*time.Second || left > 14*time.Second {
			t.Errorf("term %+v, %v: %v are left", term, err, left)
		}
		if v := a.View(); v.Fence != metrics.FenceUnsupported || len(r.proved) > 0 {
			t.Errorf("it says %+v, and has tried %v", v, r.proved)
		}
		a.end(t, context.Canceled)
	})
}

func TestTheEpochIsDeleted(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		before, err := a.Term()
		if err != nil {
			t.Fatal(err)
		}
		first := a.First()
		for range 3 { // a burst of refusals is one
			r.with(func() { r.epoch = nil })
			a.FenceRefused()
			a.FenceRefused()
			time.Sleep(time.Second)
			after, err := a.Term()
			if err != nil || after.Epoch <= before.Epoch || a.First() != first {
				t.Fatalf("term %+v after %+v, %v", after, before, err)
			}
			before = after
		}
		if r.readings < 4 {
			t.Errorf("what is bound was read %d times", r.readings)
		}
		a.end(t, context.Canceled)
	})
}

// Another epoch than ours, of another: he has taken the Lease, whatever we know.
func TestTheEpochIsAnothers(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		r.with(func() { r.epoch.Spec.Number++; r.epoch.Spec.Holder = "c_c:1_x" })
		a.FenceRefused()
		within(t, time.Second, "it ends", func() bool { return len(a.ended) > 0 })
		if err := <-a.ended; !errors.Is(err, ErrLost) || a.here() {
			t.Errorf("Run = %v", err)
		}
	})
}

// A is stopped while it reads what is bound, B leads, and goes. A has to find out
// before it decides by what it has read.
func TestLostWhileItBegins(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		r.reading = 20 * time.Second
		a := r.stand(t, "a")
		time.Sleep(5 * time.Second)
		r.with(func() { r.cut[a.cfg.Lock.Identity()], r.reading = true, 0 })
		b := r.stand(t, "b")
		within(t, 30*time.Second, "b leads", func() bool {
			if a.here() {
				t.Fatal("a decides")
			}
			return b.here()
		})
		b.end(t, context.Canceled)
		r.with(func() { clear(r.cut) })
		time.Sleep(time.Minute)
		if a.here() {
			t.Error("a decides")
		}
		a.end(t, ErrLost)
	})
}

func TestItDoesNotStandBeforeItsBooksAreBuilt(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a", func(c *LeaderConfig) { c.Ready = func() bool { return false } })
		time.Sleep(time.Hour)
		if r.record != nil {
			t.Errorf("it has taken the Lease: %+v", r.record)
		}
		a.end(t, context.Canceled)
	})
}

// Who waits for a change is told of each.
func TestChangesAreTold(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		var seen []Standing
		watching, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				s := a.State()
				seen = append(seen, s)
				select {
				case <-s.Changed:
				case <-watching.Done():
					return
				}
			}
		}()
		within(t, 5*time.Second, "a leads", a.here)
		synctest.Wait() // he has seen it
		r.with(func() { r.epoch, r.reading = nil, time.Second })
		a.FenceRefused()
		time.Sleep(5 * time.Second)
		a.end(t, context.Canceled)
		synctest.Wait()
		stop()
		<-done
		var here []string
		for _, s := range seen {
			if text := map[bool]string{true: "here", false: "not"}[s.Here]; len(here) == 0 || here[len(here)-1] != text {
				here = append(here, text)
			}
		}
		if got := strings.Join(here, " "); got != "not here not here not" {
			t.Errorf("seen: %s", got)
		}
	})
}

func TestHolder(t *testing.T) {
	for _, h := range []Holder{
		{"pod-1", "10.0.0.1:9444", "x"}, {"pod-1", "[fd00::1]:9444", "x"}, {"pod-1", "", "x"},
	} {
		if got := ParseHolder(h.String()); got != h {
			t.Errorf("%+v comes back as %+v", h, got)
		}
	}
	for text, want := range map[string]Holder{
		"":             {},
		"somebody":     {Host: "somebody"},
		"a_b_c_d":      {Host: "a_b_c_d"},
		"host_uuid":    {Host: "host_uuid"},
		"h_1.2.3.4:5_": {Host: "h", Address: "1.2.3.4:5"},
	} {
		if got := ParseHolder(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	a, b := NewHolder("my_host", "h:1"), NewHolder("my_host", "h:1")
	if a == b || ParseHolder(a.String()) != a {
		t.Errorf("%v and %v", a, b)
	}
}

func TestReleaseLeavesAnothersLeaseAlone(t *testing.T) {
	r := newRealm()
	r.record = &resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaderTransitions: 3}
	if released, err := release(t.Context(), &lock{realm: r, identity: "a"}, start()); released || err != nil || r.record.HolderIdentity != "b" {
		t.Errorf("released %t, %v: %+v", released, err, r.record)
	}
	released, err := release(t.Context(), &lock{realm: r, identity: "b"}, start())
	if !released || err != nil || r.record.HolderIdentity != "" || r.record.LeaderTransitions != 3 {
		t.Errorf("released %t, %v: %+v", released, err, r.record)
	}
}

// Who is told to end before it has led leaves the Lease to expire: its being free
// would have the next one begin without the fence's delay.
func TestEndedBeforeItLed(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		r.with(func() { r.cut[a.cfg.Lock.Identity()] = true }) // a zombie from here on
		b := r.stand(t, "b")
		within(t, time.Minute, "b takes", func() bool { return b.State().Leader == "b:1" && b.First() > 0 })
		raised := time.Now()
		time.Sleep(100 * time.Millisecond)
		b.end(t, context.Canceled)
		c := r.stand(t, "c")
		within(t, time.Minute, "c leads", c.here)
		if took := time.Since(raised); took < time.Second {
			t.Errorf("c leads %v after the epoch of the zombie was superseded, want the fence's delay at least", took)
		}
		c.end(t, context.Canceled)
		<-a.ended
	})
}

// stubborn is a Lease that refuses the first few updates.
type stubborn struct {
	*lock
	fails int
}

func (s *stubborn) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if s.fails > 0 {
		s.fails--
		return errors.New("conflict")
	}
	return s.lock.Update(ctx, record)
}

// A Lease whose release meets a conflict is released all the same.
func TestReleaseIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm()
		r.record = &resourcelock.LeaderElectionRecord{HolderIdentity: "a", RenewTime: metav1.Now()}
		l := NewLeader(LeaderConfig{
			Lock: &stubborn{lock: &lock{realm: r, identity: "a"}, fails: 3},
			Idle: func() bool { return true }, Now: time.Now, Logger: logr.Discard(),
		})
		l.giveUp(t.Context())
		if r.record.HolderIdentity != "" {
			t.Errorf("it is held by %q", r.record.HolderIdentity)
		}
	})
}

// A replica whose books are being built knows who leads, and sends on what it is
// asked.
func TestWhoIsNotReadyKnowsTheLeader(t *testing.T) {
	inRealm(t, func(t *testing.T, r *realm) {
		a := r.stand(t, "a")
		within(t, 5*time.Second, "a leads", a.here)
		b := r.stand(t, "b", func(c *LeaderConfig) { c.Ready = func() bool { return false } })
		within(t, 5*time.Second, "b knows it", func() bool { return b.State().Leader == "a:1" })
		b.end(t, context.Canceled)
		a.end(t, context.Canceled)
	})
}
