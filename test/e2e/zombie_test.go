package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/simnode"
)

// behind has the replica talk to the API server through the proxy.
func (f *fleet) behind(e cluster.Extender) cluster.Extender {
	f.Helper()
	e.APIServer = f.proxy.URL()
	f.Cleanup(f.proxy.Clear)
	return e
}

// TestZombies: leaders that were stopped, and go on when another has taken over,
// bind nothing any more.
func TestZombies(t *testing.T) {
	f := beginFleet(t)
	f.bindingOfAZombie()
	f.bindingThatSlipsThrough()
	f.stoppedWhileItBegins()
}

// zombie has the replica, which leads behind the proxy, send a Binding that stops
// on the way, and then stops the replica itself. By the time that another leads
// the Binding is released by the returned function.
func (f *fleet) zombie(r *cluster.Replica, pod, node string) (arrive func() (code int)) {
	f.Helper()
	step, code := faults.NewStep(), make(chan int, 1)
	f.proxy.On(faults.Binding(pod), 1, noting(step.Before, code))
	go func() { _ = f.bindAt(r, pod, node) }() // its client is gone with it
	await(f.scene, "the Binding", step.Reached)
	f.must("stop "+r.Name(), r.Pause())
	return func() int {
		step.Release()
		return await(f.scene, "the old Binding", code)
	}
}

// bindingOfAZombie: a leader is stopped for longer than its Lease lasts, with a
// Binding on its way. Another binds the card meanwhile. The old Binding is refused
// by the API server, and the old leader ends when it goes on.
func (f *fleet) bindingOfAZombie() {
	f.Helper()
	f.add(oneCard("zombie", "1"))
	f.create(ourPod("old", amount{wholeCards, 1}), ourPod("new", amount{wholeCards, 1}))
	a := f.start("zombie-a", f.behind(electing(quick)))
	f.leads(a)
	arrive, before := f.zombie(a, "old", "zombie"), f.epoch()

	b := f.start("zombie-b", electing(quick))
	f.leads(b)
	if now := f.epoch(); now <= before {
		f.Errorf("the epoch is %d, and was %d", now, before)
	}
	f.must("bind", f.bindAt(b, "new", "zombie"))
	f.runs("new")
	if code := arrive(); code != http.StatusForbidden {
		f.Errorf("the Binding of the old leader is answered with %d, want that of a policy, 403", code)
	}
	f.must("go on", a.Resume())
	f.loses(a)
	f.must("old", f.waits("old"))
	f.verify()
	f.leads(b)
	f.remove("new", false)
	f.gone("new")
	f.must("bind", f.bindAt(b, "old", "zombie"))
	b.Stop()
}

// bindingThatSlipsThrough: a Binding of the old leader that the API server takes
// all the same, since it does not know of the new epoch yet. Its pod loses before
// it runs, and the one that was bound in the new epoch keeps the card.
func (f *fleet) bindingThatSlipsThrough() {
	f.Helper()
	f.add(oneCard("slip", "1"), oneCard("free", "1"))
	late := with(ourPod("late", amount{wholeCards, 1}), simnode.StartAfter, "3s")
	f.create(late, ourPod("winner", amount{wholeCards, 1}), with(ourPod("lone", amount{wholeCards, 1}), simnode.StartAfter, "1s"))
	a := f.start("slip-a", f.behind(electing(quick)))
	f.leads(a)
	second := f.zombie(a, "late", "slip")

	b := f.start("slip-b", electing(quick))
	f.leads(b)
	f.must("bind", f.bindAt(b, "winner", "slip"))
	f.must("the API server to know of no fence", f.Repeal(f.ctx))
	if code := second(); code != http.StatusCreated {
		f.Fatalf("the Binding of the old leader is answered with %d", code)
	}
	began := time.Now()
	f.gone("late")
	f.Logf("the pod has gone after %.1f s", time.Since(began).Seconds())
	if n := f.starts("late"); n {
		f.Error("the pod has been started")
	}
	f.verify()
	f.runs("winner")
	events, err := f.Client.CoreV1().Events(f.ns).List(f.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=late,reason=BindConflict"})
	f.must("events", err)
	if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, "had been replaced") {
		f.Errorf("events about the pod that lost: %q", texts(events.Items))
	}
	f.must("go on", a.Resume())
	f.loses(a)
	f.must("the fence", f.Install(f.ctx, epochs, fence))
	b.Stop()
}

// starts reports whether the kubelet has started the pod.
func (f *fleet) starts(pod string) bool {
	_, err := f.nodes.Env(f.ns, pod, "main")
	return err == nil
}

// stoppedWhileItBegins: a leader is stopped in the middle of reading what is
// bound. Another leads, binds and ends. The first goes on and must not decide by
// what it has read; then it starts anew, and leads.
func (f *fleet) stoppedWhileItBegins() {
	f.Helper()
	f.add(oneCard("begins", "1"))
	f.create(ourPod("b-1", amount{wholeCards, 1}), ourPod("b-2", amount{wholeCards, 1}))
	step := faults.NewStep()
	f.proxy.On(func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("labelSelector") != ""
	}, 1, step.After)
	a := f.start("begins-a", f.behind(electing(quick)))
	await(f.scene, "the read", step.Reached)
	f.must("stop", a.Pause())
	b := f.start("begins-b", electing(quick))
	f.leads(b)
	f.must("bind", f.bindAt(b, "b-1", "begins"))
	b.Kill()
	step.Release()
	f.must("go on", a.Resume())
	if err := f.bindAt(a, "b-2", "begins"); err == nil {
		f.Error("a leader that has been replaced binds")
	}
	f.loses(a)
	again := f.start("begins-a2", electing(quick))
	f.leads(again)
	if err := f.bindAt(again, "b-2", "begins"); err == nil {
		f.Error("the card of a running pod is given away")
	}
	f.verify()
	again.Stop()
}
