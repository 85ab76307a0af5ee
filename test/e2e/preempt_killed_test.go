package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/test/faults"
)

// TestLeaderIsKilledInAPreemption kills the leader at each step of a preemption,
// before and after what it asks of the API server has been done. The next one goes on:
// the high pod runs, and the bare pod that was ended for it is there once, made
// anew from what it was.
func TestLeaderIsKilledInAPreemption(t *testing.T) {
	f := beginFleet(t)
	f.must("priority classes", f.Install(f.ctx, "priorityclasses.yaml"))
	f.schedules()
	lives := f.lives()
	for _, tc := range []struct {
		name string
		at   faults.Match
		stop func(*faults.Step) faults.Action
	}{
		{"write-asked", asks(http.MethodPost, "/preemptions"), before},
		{"has-written", asks(http.MethodPost, "/preemptions"), after},
		{"evict-asked", evicting, before},
		{"has-evicted", evicting, after},
		{"make-asked", asks(http.MethodPost, "/pods"), before},
		{"has-made", asks(http.MethodPost, "/pods"), after},
		{"noted", advancing, after},
	} {
		f.survives(tc.name, lives, func() {
			step := faults.NewStep()
			f.proxy.On(tc.at, 1, tc.stop(step))
			f.create(classed(on(tc.name, high(tc.name+"-high", 90, amount{wholeCards, 1}))))
			await(f.scene, "the step "+tc.name, step.Reached)
			f.leader().Kill()
			step.Release()
		})
	}
}

// kills is how often TestRandomKillsInPreemptions kills the leader.
var kills = flag.Int("kills", 3, "how often the leader is killed in preemptions")

// TestRandomKillsInPreemptions kills the leader at any time.
func TestRandomKillsInPreemptions(t *testing.T) {
	f := beginFleet(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute+time.Duration(*kills)*20*time.Second)
	t.Cleanup(stop)
	f.ctx = ctx
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f.must("priority classes", f.Install(f.ctx, "priorityclasses.yaml"))
	f.schedules()
	lives := f.lives()
	for i := range *kills {
		name := fmt.Sprintf("random-%04d", i) // no model is a part of another
		f.survives(name, lives, func() {
			f.create(classed(on(name, high(name+"-high", 90, amount{wholeCards, 1}))))
			<-time.After(time.Duration(random.Int64N(int64(2500 * time.Millisecond))))
			f.leader().Kill()
		})
	}
}

// survives has a high pod need the card of a low bare one, and the leader be killed
// meanwhile. The next one goes on.
func (f *fleet) survives(name string, lives func(pod string) int, killed func()) {
	f.Helper()
	f.crew()
	f.add(cards(name, 1))
	f.create(classed(on(name, low(name+"-low", 10, amount{wholeCards, 1}))))
	was := f.runs(name + "-low")
	killed()
	f.crew()
	f.runs(name + "-high")
	again := f.successor(was)
	if now := f.pod(name + "-low"); now.UID != again.UID || lives(name+"-low") != 2 {
		f.Errorf("%s: the low pod had %d lives, want 2", name, lives(name+"-low"))
	}
	f.verify()
	f.remove(name+"-low", true)
	f.remove(name+"-high", true)
}

// crew has two replicas run: one that is slow to renew its Lease, on a machine that does
// much else, ends by itself.
func (f *fleet) crew() {
	f.Helper()
	running := 0
	for _, r := range f.replicas {
		if r.Runs() {
			running++
		}
	}
	for ; running < 2; running++ {
		f.start(fmt.Sprintf("r%d", len(f.replicas)), f.behind(electing(quick)))
	}
}

// lives follows the pods of the scene, and says how many a name has had.
func (f *fleet) lives() (of func(pod string) int) {
	f.Helper()
	events, err := f.Client.CoreV1().Pods(f.ns).Watch(f.ctx, metav1.ListOptions{})
	f.must("watch pods", err)
	f.Cleanup(events.Stop)
	var mu sync.Mutex
	seen := map[string]map[types.UID]bool{} // guarded by mu
	go func() {
		for e := range events.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				mu.Lock()
				if seen[p.Name] == nil {
					seen[p.Name] = map[types.UID]bool{}
				}
				seen[p.Name][p.UID] = true
				mu.Unlock()
			}
		}
	}()
	return func(pod string) int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen[pod])
	}
}

// classed gives the pod what admission would: a class, and our kube-scheduler.
func classed(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = "heteroflow-scheduler"
	p.Spec.PriorityClassName = "heteroflow-" + p.Annotations[priorityKey]
	return p
}

// asks matches what is asked of a path that ends so.
func asks(method, end string) faults.Match {
	return func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, end) }
}

// evicting matches an eviction that is meant, and no trial.
func evicting(r *http.Request) bool {
	return asks(http.MethodPost, "/eviction")(r) && !r.URL.Query().Has("dryRun") && !says(r, metav1.DryRunAll)
}

// says reports whether the request's body has these words; one that cannot be read has.
func says(r *http.Request, words string) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err != nil || bytes.Contains(body, []byte(words))
}

// advancing matches a change of how far a preemption has come.
func advancing(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/preemptions/") && strings.HasSuffix(r.URL.Path, "/status")
}
