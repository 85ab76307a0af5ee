package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/simnode"
)

// TestChangesOfLeader: replicas that end at any step of taking over, and objects
// of theirs that somebody deletes. Pods are bound all the same, and no card twice.
func TestChangesOfLeader(t *testing.T) {
	f := beginFleet(t)
	f.add(simnode.Spec{Name: "changes", Cards: simnode.Cards("changes", 8, "nvidia", "NVIDIA-L40S", 46068)})
	f.killedWhileTakingOver()
	f.endsInOrder()
	f.objectsDeleted()
	f.fenceMissing()
}

// killedWhileTakingOver kills replicas at each step of taking over: before and
// after the epoch is raised, in the proof of the fence, in reading what is bound.
// The next one takes over, in a later epoch.
func (f *fleet) killedWhileTakingOver() {
	f.Helper()
	leader := f.start("first", electing(quick))
	f.leads(leader)
	for _, tc := range []struct {
		step string
		at   faults.Match
		stop func(*faults.Step) faults.Action
	}{
		{"raise-asked", raising, before},
		{"raised", raising, after},
		{"proof", faults.Binding("heteroflow-fence-proof"), after},
		{"read", catchingUp, before},
	} {
		pod := "p-" + tc.step
		f.create(ourPod(pod, amount{wholeCards, 1}))
		epoch := f.epoch()
		step := faults.NewStep()
		f.proxy.On(tc.at, 1, tc.stop(step))
		victim := f.start("victim-"+tc.step, f.behind(electing(quick)))
		leader.Stop()
		await(f.scene, "the step "+tc.step, step.Reached)
		victim.Kill()
		step.Release()
		leader = f.start("after-"+tc.step, electing(quick))
		f.leads(leader)
		if now := f.epoch(); now <= epoch {
			f.Errorf("%s: the epoch is %d, and was %d", tc.step, now, epoch)
		}
		f.must("bind", f.bindAt(leader, pod, "changes"))
		f.verify()
	}
}

func raising(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/heteroflow.io/v1alpha1/epochs")
}

func catchingUp(r *http.Request) bool {
	return r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("labelSelector") != ""
}

// endsInOrder: a leader that is told to end with a Binding on its way waits for its
// outcome, and gives up the Lease then and not before. The next one takes over in
// no more than two seconds.
func (f *fleet) endsInOrder() {
	f.Helper()
	f.leader().Stop()
	a := f.start("ordered-a", f.behind(electing(quick)))
	f.leads(a)
	b := f.start("ordered-b", electing(quick))
	f.create(ourPod("ordered", amount{wholeCards, 1}))
	step, bound := faults.NewStep(), make(chan error, 1)
	f.proxy.On(faults.Binding("ordered"), 1, step.After)
	go func() { bound <- f.bindAt(a, "ordered", "changes") }()
	await(f.scene, "the Binding", step.Reached)
	stopped := make(chan struct{})
	go func() { defer close(stopped); a.Stop() }()
	f.meanwhile(quick.LeaseDuration+time.Second, "a leader with a bind in flight", func() error {
		if b.Leads(f.ctx) == nil || !a.Runs() {
			return errors.New("it is gone, or another leads")
		}
		return nil
	})
	began := time.Now()
	step.Release()
	f.must("the bind in flight", await(f.scene, "the bind", bound))
	f.leads(b)
	if took := time.Since(began); took > 2*time.Second {
		f.Errorf("the next leads %v after the last bind has ended", took)
	}
	<-stopped
	if status, err := a.Ended(f.ctx); status != 0 || err != nil {
		f.Errorf("it ends with status %d, %v", status, err)
	}
	f.verify()
}

// objectsDeleted: without its Lease a leader ends, and another leads. Without the
// Epoch one Binding is refused, and the leader makes another with a higher number.
func (f *fleet) objectsDeleted() {
	f.Helper()
	was := f.leader()
	f.create(ourPod("no-lease", amount{wholeCards, 1}), ourPod("no-epoch", amount{wholeCards, 1}))
	other := f.start("other", electing(quick))
	f.must("delete the lease", f.Client.CoordinationV1().Leases("heteroflow-system").Delete(f.ctx, "heteroflow-scheduler", metav1.DeleteOptions{}))
	f.loses(was)
	f.leads(other)
	f.must("bind", f.bindAt(other, "no-lease", "changes"))

	epoch := f.epoch()
	f.must("delete the Epoch", f.epochs().Delete(f.ctx, "scheduler", metav1.DeleteOptions{}))
	if err := f.bindAt(other, "no-epoch", "changes"); err == nil || !strings.Contains(err.Error(), "heteroflow-fence") {
		f.Errorf("a Binding without an Epoch: %v", err)
	}
	f.eventually("the leader to go on", func() error { return f.bindAt(other, "no-epoch", "changes") })
	if now := f.epoch(); now <= epoch {
		f.Errorf("the epoch is %d, and was %d", now, epoch)
	}
	f.leads(other)
	f.verify()
}

// fenceMissing: a leader whose fence is not there, or is taken away, says so and
// binds nothing, until it is there. Pods of other schedulers are bound meanwhile.
func (f *fleet) fenceMissing() {
	f.Helper()
	f.leader().Stop()
	f.must("no fence", f.Repeal(f.ctx))
	r := f.start("unfenced", electing(quick))
	f.eventually("the replica to miss its fence", func() error {
		text, err := r.Metrics(f.ctx)
		if err == nil && !strings.Contains(text, `heteroflow_fence{state="unproven"} 1`) {
			err = errors.New("it does not")
		}
		return err
	})
	f.meanwhile(time.Second, "a leader without a fence", func() error {
		if r.Leads(f.ctx) == nil {
			return errors.New("it leads")
		}
		return nil
	})
	f.bindByHand(ourPod("foreign"), "changes")
	f.eventually("an event on the Lease", func() error { return f.hindered("is not installed", "is let pass", "no params") })
	f.must("the fence", f.Install(f.ctx, epochs, fence))
	f.leads(r)

	f.must("no fence", f.Repeal(f.ctx))
	f.eventually("the leader to miss its fence", func() error {
		if r.Leads(f.ctx) == nil {
			return errors.New("it leads")
		}
		return nil
	})
	f.must("the fence", f.Install(f.ctx, epochs, fence))
	f.leads(r)
	r.Stop()
}

// hindered returns nil if an event on the Lease says one of the texts.
func (f *fleet) hindered(texts ...string) error {
	lease, err := f.Client.CoordinationV1().Leases("heteroflow-system").Get(f.ctx, "heteroflow-scheduler", metav1.GetOptions{})
	if err != nil {
		return err
	}
	events, err := f.Client.CoreV1().Events(lease.Namespace).List(f.ctx, metav1.ListOptions{FieldSelector: "reason=LeaderHindered,involvedObject.uid=" + string(lease.UID)})
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		for _, text := range texts {
			if strings.Contains(e.Message, text) {
				return nil
			}
		}
	}
	return fmt.Errorf("none of %d says so", len(events.Items))
}

// failoverNodes are more where larger clusters are measured.
var failoverNodes = flag.Int("failover-nodes", 500, "how many nodes TestFailover has")

// TestFailover measures how long nobody binds at that many nodes: in a planned change,
// and after a leader was killed, with the flags as they are where none are given.
func TestFailover(t *testing.T) {
	f := beginFleet(t)
	specs := make([]simnode.Spec, *failoverNodes)
	for i := range specs {
		name := fmt.Sprintf("over-%03d", i)
		specs[i] = simnode.Spec{Name: name, Cards: simnode.Cards(name, 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)}
	}
	f.add(specs...)
	f.schedules()
	a := f.start("a", electing(usual))
	f.leads(a)
	b := f.start("b", electing(usual))
	arriving := f.arrive(10)
	f.eventually("pods to be bound", func() error { return f.bound(10) })

	planned := f.changeFrom(a, func() { a.Stop() })
	f.Logf("planned: first bind %.2f s after the leader was told to end", planned.Seconds())
	if planned > 2*time.Second {
		f.Errorf("planned: %v, want no more than 2s", planned)
	}
	c := f.start("c", electing(usual))
	killed := f.changeFrom(b, b.Kill)
	f.Logf("killed: first bind %.2f s after the leader was killed", killed.Seconds())
	if most := usual.LeaseDuration + 4*time.Second; killed > most {
		f.Errorf("killed: %v, want no more than %v", killed, most)
	}
	f.leads(c)
	created := arriving.end()
	f.eventually("all pods", func() error { return f.bound(created) })
	f.verify()
}

// changeFrom ends the leader and returns how long it took from then until a pod
// was bound in a later epoch.
func (f *fleet) changeFrom(leader *cluster.Replica, end func()) time.Duration {
	f.Helper()
	f.leads(leader)
	epoch := f.epoch()
	watch, err := f.Client.CoreV1().Pods(f.ns).Watch(f.ctx, metav1.ListOptions{})
	f.must("watch", err)
	defer watch.Stop()
	began := time.Now()
	go end()
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if ok && pod.Spec.NodeName != "" && pod.Annotations["heteroflow.io/epoch"] > fmt.Sprint(epoch) {
			return time.Since(began)
		}
	}
	f.Fatal("the watch has ended")
	return 0
}

// arrival is pods that come steadily.
type arrival struct {
	stop context.CancelFunc
	done chan error
	made *atomic.Int64
	fail func(string, error)
}

// arriveAtOnce is how many are made at the same time, as one may take longer than
// the next is due.
const arriveAtOnce = 8

// arrive makes so many pods a second.
func (f *fleet) arrive(perSecond int) *arrival {
	f.Helper()
	ctx, stop := context.WithCancel(f.ctx)
	a := &arrival{stop: stop, done: make(chan error, 1), made: &atomic.Int64{}, fail: f.check}
	var making errgroup.Group
	making.SetLimit(arriveAtOnce)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				a.done <- making.Wait()
				return
			case <-tick.C:
			}
			p := podFor(fmt.Sprintf("arrives-%d", n), amount{sliceMemory, 8000}, amount{sliceCores, 5})
			making.Go(func() error {
				_, err := f.Client.CoreV1().Pods(f.ns).Create(f.ctx, p, metav1.CreateOptions{})
				if err == nil {
					a.made.Add(1)
				}
				return err
			})
		}
	}()
	f.Cleanup(stop)
	return a
}

// end stops the arrival and returns how many pods have come.
func (a *arrival) end() int {
	a.stop()
	a.fail("create pods", <-a.done)
	return int(a.made.Load())
}

// rollFor is longer in the long run.
var rollFor = flag.Duration("roll", 20*time.Second, "how long TestRollingRestart goes on")

// TestRollingRestart restarts replicas one after the other while 20 pods come
// each second. All are bound, none of them twice, and no card twice.
func TestRollingRestart(t *testing.T) {
	f := beginFleet(t)
	for i := range 30 {
		name := fmt.Sprintf("roll-%d", i)
		f.add(simnode.Spec{Name: name, Cards: simnode.Cards(name, 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	}
	f.schedules()
	var running []*cluster.Replica
	for i := range 3 {
		running = append(running, f.start(fmt.Sprintf("r%d", i), electing(quick)))
	}
	f.leader()
	arriving := f.arrive(20)
	began := time.Now()
	for n := 0; time.Since(began) < *rollFor; n++ {
		i := n % len(running)
		f.must("retire", f.front.retire(f.ctx, running[i]))
		running[i].Stop()
		running[i] = f.start(fmt.Sprintf("r%d-%d", i, n), electing(quick))
		f.leader()
		f.verify()
	}
	created := arriving.end()
	f.eventually("all pods", func() error { return f.bound(created) })
	f.Logf("%d pods over %.0f s", created, time.Since(began).Seconds())
	f.verify()
	if why := f.front.unanswered(); len(why) > 0 {
		f.Errorf("requests of kube-scheduler were not answered: %q", why)
	}
	for _, p := range f.pods() {
		if p.Status.Phase == corev1.PodFailed {
			f.Errorf("pod %s has failed: %s", p.Name, p.Status.Reason)
		}
	}
}
