package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// behindProxy has the proxy between the extender and the API server, and the
// books compared every few seconds.
func behindProxy() cluster.Extender {
	e := defaults
	e.APIServer, e.Audit, e.Settle = shared.proxy.URL(), 4*time.Second, 4*time.Second
	return e
}

func beginBehindProxy(t *testing.T) *scene {
	t.Helper()
	s := begin(t, behindProxy())
	t.Cleanup(s.proxy.Clear)
	return s
}

// holders waits until the extender's ledger has so many on the cards of all
// nodes: each pod counts once, however often its binding was tried.
func (s *scene) holders(want int) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d holders in the ledger", want), func() error {
		held, err := s.Holders(s.ctx)
		if err == nil && len(held) != want {
			err = fmt.Errorf("there are %v", held)
		}
		return err
	})
}

// TestBindingsThatFail lets the first Binding of a pod meet with each fault there
// is. Whether it has happened or not, the pod runs in the end, once, and the only
// other card is free for the next.
func TestBindingsThatFail(t *testing.T) {
	s := beginBehindProxy(t)
	for name, fault := range map[string]faults.Action{
		"too-busy":           faults.Answer(http.StatusTooManyRequests, "busy"),
		"internal-error":     faults.Answer(http.StatusInternalServerError, "etcdserver: leader changed"),
		"conflict-unknown":   faults.Answer(http.StatusConflict, "etcdserver: request timed out"),
		"conflict-known":     faults.Answer(http.StatusConflict, "pod x is being deleted, cannot be assigned to a host"),
		"refused":            faults.Answer(http.StatusForbidden, "no"),
		"request-lost":       faults.Drop,
		"answer-lost":        faults.LoseAnswer,
		"slow":               faults.Delay(2 * time.Second),
		"given-up-then-late": faults.Delay(17 * time.Second),
	} {
		s.part(name, func(s *scene) {
			node, first, second := "fault-"+name, "first-"+name, "second-"+name
			s.add(simnode.Spec{Name: node, Cards: simnode.Cards(node, 2, "nvidia", "Model-"+node, 24564)})
			s.proxy.On(faults.Binding(first), 1, fault)
			s.create(with(podFor(first, amount{wholeCards, 1}), modelKey, node))
			began := time.Now()
			s.runs(first)
			s.Logf("it runs after %.1f s", time.Since(began).Seconds())
			s.create(with(podFor(second, amount{wholeCards, 1}), modelKey, node))
			s.runs(second)
			s.verify()
		})
	}
	s.holders(2 * 9)
}

// TestLateBindingOfAWantedCard: while a Binding is on its way for longer than
// anybody waits for it, another pod wants the same card. Whoever has got it by
// then, the Binding that arrives takes it from nobody.
func TestLateBindingOfAWantedCard(t *testing.T) {
	s := beginBehindProxy(t)
	s.add(oneCard("late", "1"))
	sent, code := make(chan int, 1), make(chan int, 1)
	late := noting(faults.Delay(17*time.Second), code)
	s.proxy.On(faults.Binding("first"), 1, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		sent <- 0
		late(w, r, pass)
	})
	s.create(podFor("first", amount{wholeCards, 1}))
	await(s, "a Binding", sent)
	s.create(podFor("second", amount{wholeCards, 1}))
	s.meanwhile(20*time.Second, "one card", s.content)
	if got := await(s, "the late Binding", code); got != http.StatusConflict {
		s.Errorf("the late Binding is answered with %d", got)
	}

	one, other := s.oneRuns("first", "second")
	s.Logf("pod %s has the card", one)
	s.holders(1)
	s.remove(one, false)
	s.runs(other)
	s.holders(1)
	s.verify()
	s.remove(other, false)
	s.holders(0)
}

// noting notes how a request is answered, also when its client has gone by then.
func noting(act faults.Action, code chan<- int) faults.Action {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		act(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pass.ServeHTTP(noted{w, code}, r)
		}))
	}
}

// noted has no more than a ResponseWriter must have: with a CloseNotifier the
// request would end with its client.
type noted struct {
	http.ResponseWriter
	code chan<- int
}

func (n noted) WriteHeader(code int) {
	n.code <- code
	n.ResponseWriter.WriteHeader(code)
}

// await waits for a value.
func await[T any](s *scene, what string, c <-chan T) (value T) {
	s.Helper()
	select {
	case value = <-c:
	case <-s.ctx.Done():
		s.Fatalf("wait for %s: %v", what, s.ctx.Err())
	}
	return value
}

// content returns what the oracle complains of.
func (s *scene) content() error {
	wrong, err := oracle.Verify(s.ctx, s.Client)
	if err == nil && len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "\n"))
	}
	return err
}

// oneRuns waits until one of two pods that want the same card runs and the other
// has been refused, and returns them in that order.
func (s *scene) oneRuns(a, b string) (one, other string) {
	s.Helper()
	s.eventually("one of "+a+" and "+b, func() error {
		switch inA, inB := s.waits(a) != nil, s.waits(b) != nil; {
		case inA:
			one, other = a, b
		case inB:
			one, other = b, a
		default:
			return errors.New("both wait")
		}
		return nil
	})
	s.runs(one)
	s.refusedFor(other, "InsufficientGPUCount")
	s.meanwhile(time.Second, "a card that is in use", func() error { return s.waits(other) })
	return one, other
}

// TestBindFallsOnAnotherNode has the Binding refused on whichever node comes
// first: nothing of it is left behind there.
func TestBindFallsOnAnotherNode(t *testing.T) {
	s := beginBehindProxy(t)
	s.add(oneCard("other-a", "1"), oneCard("other-b", "1"))
	s.proxy.On(faults.Binding("p"), 1, faults.Answer(http.StatusForbidden, "not there"))
	s.create(podFor("p", amount{wholeCards, 1}))
	s.runs("p")
	s.holders(1)
	s.create(podFor("q", amount{wholeCards, 1}))
	s.runs("q")
	s.holders(2)
	s.verify()
}

// TestKilledBetweenSteps kills the scheduler at each step of a bind: before it
// hears of it, with the cards reserved and the Binding on its way, with the
// Binding done and no word of that, and with its answer on the way. Another pod
// comes for the only card while the scheduler is away. A pod that was bound
// keeps the card; of two that were not one gets it, whichever.
func TestKilledBetweenSteps(t *testing.T) {
	s := beginBehindProxy(t)
	front, err := faults.New(s.ExtenderURL(), nil)
	s.must("a proxy in front of the extender", err)
	s.restartKubeScheduler(front.URL())
	t.Cleanup(func() { s.restartKubeScheduler(s.ExtenderURL()); front.Close() })
	for _, tc := range []struct {
		step  string
		proxy *faults.Proxy
		at    faults.Match
		stop  func(*faults.Step) faults.Action
		late  bool // what was stopped arrives when the scheduler is dead
		bound bool // when the scheduler is dead
	}{
		{"bind-asked", front, faults.Path("/bind"), before, false, false},
		{"reserved", s.proxy, faults.Binding("step-"), before, true, false},
		{"binding-done", s.proxy, faults.Binding("step-"), after, false, true},
		{"bind-answered", front, faults.Path("/bind"), after, false, true},
	} {
		s.part(tc.step, func(s *scene) {
			node, pod, rival := "step-"+tc.step, "step-"+tc.step, "rival-"+tc.step
			s.add(oneCard(node, "1"))
			step, code := faults.NewStep(), make(chan int, 1)
			tc.proxy.On(tc.at, 1, noting(tc.stop(step), code))
			s.create(with(podFor(pod, amount{wholeCards, 1}), modelKey, "Model-"+node))
			await(s, "the step", step.Reached)
			s.KillExtender()
			s.create(with(podFor(rival, amount{wholeCards, 1}), modelKey, "Model-"+node))
			step.Release()
			if tc.late {
				s.Logf("the Binding is answered with %d", await(s, "the Binding", code))
			}
			bound := s.waits(pod) != nil
			if tc.bound && !bound {
				s.Error("the pod is not bound")
			}
			s.must("restart", s.StartExtender(s.ctx, s.running))
			if one, _ := s.oneRuns(pod, rival); bound && one != pod {
				s.Errorf("pod %s has the card of %s, which was bound", one, pod)
			}
			s.verify()
		})
	}
	s.holders(4)
}

func before(s *faults.Step) faults.Action { return s.Before }
func after(s *faults.Step) faults.Action  { return s.After }

// restartKubeScheduler may run when the test's own time is over.
func (s *scene) restartKubeScheduler(extender string) {
	s.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), time.Minute)
	defer stop()
	s.check("stop kube-scheduler", s.StopKubeScheduler(ctx))
	s.check("start kube-scheduler", s.StartKubeSchedulerAt(ctx, extender))
}

// TestWatchesThatFail: what the scheduler could not see it learns when it can see
// again, without a restart: a pod that has gone, one that has ended, and one that
// somebody else has bound.
func TestWatchesThatFail(t *testing.T) {
	s := beginBehindProxy(t)
	s.add(oneCard("gap-gone", "1"), oneCard("gap-ended", "1"), oneCard("gap-taken", "1"))
	for _, name := range []string{"gone", "ended"} {
		s.create(with(podFor(name, amount{wholeCards, 1}), modelKey, "gap-"+name))
		s.runs(name)
	}
	s.proxy.On(faults.Watch, 0, faults.Drop)
	if n := s.proxy.CutWatches(); n == 0 {
		s.Fatal("no watch goes through the proxy")
	}
	s.remove("gone", false)
	s.gone("gone")
	s.annotate("ended", simnode.End, "Succeeded")
	s.bindByHand(with(podFor("taken", amount{vendorCards, 1}), modelKey, "gap-taken"), "gap-taken")
	s.proxy.Clear()
	for _, name := range []string{"gone", "ended"} {
		s.create(with(podFor("after-"+name, amount{wholeCards, 1}), modelKey, "gap-"+name))
		s.runs("after-" + name)
	}
	s.create(with(podFor("after-taken", amount{wholeCards, 1}), modelKey, "gap-taken"))
	s.meanwhile(3*time.Second, "a card that somebody has taken", func() error { return s.waits("after-taken") })
}

// TestOldNews: a watch that tells again what has long passed neither frees a card
// nor takes one for good.
func TestOldNews(t *testing.T) {
	s := beginBehindProxy(t)
	s.add(oneCard("old-a", "1"), oneCard("old-b", "1"))
	s.create(with(podFor("was", amount{wholeCards, 1}), modelKey, "old-a"))
	s.create(with(podFor("is", amount{wholeCards, 1}), modelKey, "old-b"))
	s.runs("was")
	s.runs("is")
	s.remove("was", false)
	s.gone("was")
	if n := s.proxy.Replay(s.ns); n == 0 {
		s.Fatal("there was nothing to tell again")
	}
	s.create(with(podFor("next-a", amount{wholeCards, 1}), modelKey, "old-a"))
	s.create(with(podFor("next-b", amount{wholeCards, 1}), modelKey, "old-b"))
	s.runs("next-a")
	s.must("the card that is in use", s.waits("next-b"))
	s.verify()
}

// TestDeletedWhileDown: what ends while the scheduler is away is free when it is
// back.
func TestDeletedWhileDown(t *testing.T) {
	s := begin(t, defaults)
	s.add(oneCard("down", "1"))
	s.create(podFor("p", amount{wholeCards, 1}))
	s.runs("p")
	s.KillExtender()
	s.remove("p", false)
	s.gone("p")
	s.must("restart", s.StartExtender(s.ctx, s.running))
	s.create(podFor("q", amount{wholeCards, 1}))
	s.runs("q")
	s.holders(1)
	s.verify()
}

// TestSlowAPIServer: no lock is held while the API server is waited for, so that
// many slow Bindings are on their way at once.
func TestSlowAPIServer(t *testing.T) {
	s := beginBehindProxy(t)
	const nodes, each = 10, 8
	for i := range nodes {
		name := fmt.Sprintf("slow-%d", i)
		s.add(simnode.Spec{Name: name, Cards: simnode.Cards(name, each, "nvidia", "NVIDIA-L40S", 46068)})
	}
	s.proxy.On(faults.Binding(""), 0, faults.Delay(2*time.Second))
	began := time.Now()
	s.create(many(nodes*each, s.ns, "slow", nil, amount{wholeCards, 1})...)
	s.eventually("all pods", func() error { return s.bound(nodes * each) })
	s.Logf("%d Bindings of 2 s each after %.1f s", nodes*each, time.Since(began).Seconds())
	s.verify()
}

// TestBooksThatDisagree: who edits a record moves no container. The card that it
// claims takes nobody, the node says so, and when the record is right again the
// card is free again.
func TestBooksThatDisagree(t *testing.T) {
	s := beginBehindProxy(t)
	s.add(simnode.Spec{Name: "books", Cards: simnode.Cards("books", 2, "nvidia", "Model-books", 24564)})
	s.create(podFor("p", amount{wholeCards, 1}))
	record := s.runs("p").Annotations[allocationOf]
	mine := s.has(s.pod("p"))[0].Card
	other := map[string]string{"GPU-books-nvidia-0": "GPU-books-nvidia-1", "GPU-books-nvidia-1": "GPU-books-nvidia-0"}[mine]
	s.annotate("p", allocationOf, strings.ReplaceAll(record, mine, other))
	s.eventually("an event on the node", func() error {
		if texts := s.toldOn("books"); len(texts) == 0 || !strings.Contains(texts[0], "LedgerMismatch") {
			return fmt.Errorf("there are %q", texts)
		}
		return nil
	})
	s.create(with(podFor("next", amount{wholeCards, 1}), uuidKey, other))
	s.refusedFor("next", "LedgerMismatch")
	s.annotate("p", allocationOf, record)
	s.runs("next")
	s.verify()
}

// toldOn lists what events say of a node.
func (s *scene) toldOn(node string) []string {
	s.Helper()
	l, err := s.Client.CoreV1().Events(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "Node", "involvedObject.name": node}.String(),
	})
	s.must("list events", err)
	return texts(l.Items)
}
