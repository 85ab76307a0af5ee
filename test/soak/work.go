package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// grace is how long, by the run's clock, containers may outlive their object.
const grace = 3 * time.Second

// work does one operation, or two.
func (r *run) work(rnd *rand.Rand) {
	r.ops.Add(1)
	switch n := rnd.IntN(1000); {
	case n < 3:
		r.write(rnd)
	case n < 5:
		r.moveNode(rnd)
	case n < 7:
		r.force(rnd)
	case n < 12:
		r.tick(time.Second)
	case n < 20:
		r.server.deliver()
	case n < 22:
		r.server.setDown(rnd.IntN(3) == 0)
	case n < 200:
		r.end(rnd)
	case n < 450:
		r.hear()
	case n < 480:
		r.bindAnywhere(rnd)
	case n < 520:
		r.bindBlindly(rnd)
	case n < 650:
		r.create(rnd)
	default:
		r.schedule(rnd)
	}
}

// create makes a pod, if there are not enough.
func (r *run) create(rnd *rand.Rand) {
	if q := drawRequest(rnd, fmt.Sprintf("p%d", r.made.Add(1))); r.few(together) {
		r.server.create(q)
		r.enter(q)
	}
}

func (r *run) few(most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.alive) < most
}

// enter lets others find the pod, which is there.
func (r *run) enter(q gpu.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = append(r.alive, q)
}

// any returns one of the pods, false when there is none.
func (r *run) any(rnd *rand.Rand) (gpu.Request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.alive) == 0 {
		return gpu.Request{}, false
	}
	return r.alive[rnd.IntN(len(r.alive))], true
}

// take takes one of the pods out.
func (r *run) take(rnd *rand.Rand) (gpu.Request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.alive) == 0 {
		return gpu.Request{}, false
	}
	i := rnd.IntN(len(r.alive))
	q := r.alive[i]
	r.alive[i] = r.alive[len(r.alive)-1]
	r.alive = r.alive[:len(r.alive)-1]
	return q, true
}

// force has somebody else bind a pod.
func (r *run) force(rnd *rand.Rand) {
	if q := drawRequest(rnd, fmt.Sprintf("f%d", r.made.Add(1))); r.few(2 * together) {
		r.server.force(q, drawForced(rnd, &q))
		r.enter(q)
	}
}

// end ends a pod in one of the ways there are.
func (r *run) end(rnd *rand.Rand) {
	if rnd.IntN(4) == 0 {
		if q, ok := r.any(rnd); ok {
			r.server.stop(q.Name)
		}
		return
	}
	q, ok := r.take(rnd)
	switch {
	case !ok:
	case rnd.IntN(4) == 0:
		r.server.remove(q.Name, r.now().Add(grace))
	default:
		r.server.end(q.Name)
	}
}

// schedule is one turn of kube-scheduler: filter, score, bind. Now and then the
// pod never comes to its bind.
func (r *run) schedule(rnd *rand.Rand) {
	q, ok := r.any(rnd)
	if !ok || r.server.isBound(q.Name) {
		return
	}
	offered := make([]gpu.NodeID, 0, machines)
	for _, i := range rnd.Perm(machines)[:machines-rnd.IntN(2)] {
		offered = append(offered, nodeName(i))
	}
	f := r.engine.Filter(&q, offered)
	if len(f.Feasible) == 0 {
		r.count(f.Reason)
		return
	}
	node := f.Feasible[rnd.IntN(len(f.Feasible))]
	if len(f.Feasible) > 1 {
		r.engine.Score(&q, f.Feasible)
		r.ops.Add(1)
	}
	if rnd.IntN(50) > 0 {
		r.bind(&q, node)
	}
}

// bindAnywhere binds a pod without having asked, as after a decision that is out
// of date.
func (r *run) bindAnywhere(rnd *rand.Rand) {
	if q, ok := r.any(rnd); ok {
		r.bind(&q, nodeName(rnd.IntN(machines)))
	}
}

func (r *run) bind(q *gpu.Request, node gpu.NodeID) {
	r.ops.Add(1)
	ctx, stop := context.WithTimeout(context.WithValue(context.Background(), attempt{}, r.truth.begin()), bindTime)
	defer stop()
	_, err := r.engine.Bind(ctx, engine.Target{Pod: q.Pod, Namespace: q.Namespace, Name: q.Name, Node: node})
	var refusal *engine.Refusal
	if errors.As(err, &refusal) {
		r.count("bind: " + refusal.Reason)
	}
}

// bindBlindly is a scheduler that looks at nothing and goes by what the ledger
// says: all that keeps pods apart is checked there too.
func (r *run) bindBlindly(rnd *rand.Rand) {
	q := drawRequest(rnd, fmt.Sprintf("b%d", r.made.Add(1)))
	if !r.few(2 * together) {
		return
	}
	r.ops.Add(1)
	r.server.create(q)
	defer r.enter(q)
	b := r.truth.begin()
	b.blind = true
	p := drawPlacement(rnd, &q)
	if err := r.ledger.Reserve(p); err != nil {
		r.count(gpu.Reason("blind: " + blame(err)))
		return
	}
	ctx, stop := context.WithTimeout(context.WithValue(context.Background(), attempt{}, b), time.Millisecond)
	defer stop()
	if err := r.server.Bind(ctx, p, nil); errors.Is(err, engine.ErrRefused) {
		r.ledger.Unreserve(q.Pod)
	}
}

// blame is the last link of what the ledger answers.
func blame(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

func (r *run) count(reason gpu.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[reason]++
}

// hear tells the ledger some of what has happened to pods.
func (r *run) hear() {
	r.informer.Lock()
	defer r.informer.Unlock()
	for range 3 {
		if e, ok := r.server.next(); ok {
			r.tell(e)
		}
	}
}

// tell is what the informer does with news. It is called with informer held.
func (r *run) tell(e event) {
	pod := e.pod.Request.Pod
	p := e.pod.p
	p.Tenant = "tenant-0" // as the pod's author would like it
	switch e.what {
	case gotNode:
		r.ledger.Confirm(p)
		r.truth.learn(pod)
	case stopping:
		_ = r.ledger.Drain(pod)
	case ended:
		r.ledger.Release(pod)
	case removed:
		r.ledger.Unreserve(pod)
	case orphaned:
		r.ledger.Linger(pod, r.now().Add(grace))
	case created:
		return
	}
	switch e.what {
	case ended, removed, orphaned:
		r.engine.Forget(pod)
	case created, gotNode, stopping:
	}
}

// now is the time of a run: that of the clock on the wall, and what tick adds.
func (r *run) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// tick lets time pass for what lingers.
func (r *run) tick(d time.Duration) {
	r.informer.Lock()
	defer r.informer.Unlock()
	r.ahead.Add(int64(d))
	now := r.now()
	r.truth.endOrphans(func(b *body) bool { return !b.until.After(now) })
	r.ledger.Expire(now)
}

// write changes what administrators have written.
func (r *run) write(rnd *rand.Rand) {
	r.informer.Lock()
	defer r.informer.Unlock()
	if rnd.IntN(5) > 0 {
		next := r.truth.now().change(rnd)
		r.truth.announce(next)
		r.ledger.Govern(tenancy.New(next.world))
		r.truth.come()
		return
	}
	i := rnd.IntN(machines)
	label := pick(rnd, "", "", "", tenantName(rnd.IntN(tenants)), namespaceName(rnd.IntN(namespaces)))
	next := r.truth.now().relabel(nodeName(i), label)
	r.truth.announce(next)
	if f, up := r.up[nodeName(i)]; up {
		f.Dedicated = label
		r.up[f.ID] = f
		r.ledger.SetNode(f)
	}
	r.truth.come()
}

// moveNode takes a node away, or brings it back, started anew or not.
func (r *run) moveNode(rnd *rand.Rand) {
	r.informer.Lock()
	defer r.informer.Unlock()
	i := rnd.IntN(machines)
	id := nodeName(i)
	r.boots += rnd.IntN(2)
	f, up := r.up[id]
	if up && rnd.IntN(2) == 0 {
		r.truth.endOrphans(func(b *body) bool { return b.p.Node == id })
		delete(r.up, id)
		r.ledger.RemoveNode(id)
		return
	}
	r.truth.endOrphans(func(b *body) bool { return up && f.BootID != fmt.Sprint(r.boots) && b.p.Node == id })
	f = facts(i, r.truth.now().labels[id], r.boots)
	r.up[id] = f
	r.ledger.SetNode(f)
}
