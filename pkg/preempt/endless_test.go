package preempt_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// story is a cluster over time: pods wait, are placed, are ended for others, and come
// back to wait.
type story struct {
	t       *rapid.T
	l       *ledger.Ledger
	c       cluster
	waiting []preempt.Asker
	lives   map[gpu.PodID]resident // of those that wait, what they are once bound
	drains  []*drain
	history []preempt.Eviction
	ended   map[string]int // lineage -> how often it was ended for another
	now     time.Time
	planner preempt.Planner
	next    int
	asks    map[string][]gpu.Ask // of each lineage
}

// drain is a plan that is being carried out.
type drain struct {
	plan preempt.Plan
	left map[gpu.PodID]int // victim -> rounds that it takes
}

// arrive has a pod wait: a new one, or the next life of one that was ended.
func (s *story) arrive(lineage string, priority int32, count int, asks []gpu.Ask, cpu gpu.MilliCPU) {
	s.next++
	s.asks[lineage] = asks
	id := gpu.PodID(fmt.Sprintf("p%d", s.next))
	a := preempt.Asker{Lineage: lineage, Created: s.now, Request: gpu.Request{
		Pod: id, Namespace: "red", Name: lineage, Priority: priority, Asks: asks, CPU: cpu, Memory: 1, NUMA: gpu.NoNUMA,
	}}
	s.waiting = append(s.waiting, a)
	s.lives[id] = resident{Pod: preempt.Pod{
		ID: id, Namespace: "red", Name: lineage, Priority: priority, Created: s.now, Preemptible: true,
		Count: count, Ours: true, Bare: true, Lineage: lineage, Phase: preempt.Running,
	}, cpu: cpu}
}

func (s *story) drawArrivals() {
	for range rapid.IntRange(3, 14).Draw(s.t, "pods") {
		ask := gpu.Ask{Container: "main", Count: pick(s.t, "count", 1, 1, 1, 2), Whole: true}
		if pick(s.t, "slice", false, true) {
			ask.Whole, ask.Memory = false, pick[gpu.MiB](s.t, "MiB", 3, 5, 9)
		}
		priority := 10 * int32(rapid.IntRange(0, 4).Draw(s.t, "priority"))
		s.arrive(fmt.Sprintf("lineage-%d", s.next), priority, 0, []gpu.Ask{ask}, pick[gpu.MilliCPU](s.t, "cpu", 500, 3000))
	}
}

// schedule binds who fits, in an order of kube-scheduler's own.
func (s *story) schedule() (moved bool) {
	for _, a := range rapid.Permutation(s.waiting).Draw(s.t, "in what order") {
		if s.draining(a.Pod) {
			continue
		}
		t := trials(new(int))(&a.Request, s.l.Snapshot())
		for _, f := range s.c.nodes {
			n, _ := s.l.Snapshot().Node(f.ID)
			p, ok := t.Place(s.l.Snapshot(), f.ID)
			if ok && n.UsedCPU+a.CPU <= n.CPU {
				s.bind(a.Pod, p)
				moved = true
				break
			}
		}
	}
	return moved
}

func (s *story) draining(pod gpu.PodID) bool {
	return slices.ContainsFunc(s.drains, func(d *drain) bool { return d.plan.Asker.Pod == pod })
}

func (s *story) bind(pod gpu.PodID, p gpu.Placement) {
	s.l.Confirm(p)
	r := s.lives[pod]
	r.Node, r.Since = p.Node, s.now
	s.c.residents = append(s.c.residents, r)
	s.waiting = slices.DeleteFunc(s.waiting, func(a preempt.Asker) bool { return a.Pod == pod })
}

// plan is a round of the controller: each plan is claimed in the books and begun.
func (s *story) plan() (moved bool) {
	slices.SortFunc(s.waiting, func(a, b preempt.Asker) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Pod, b.Pod))
	})
	w := s.c.world(s.l)
	w.Now, w.History = s.now, s.history
	for _, a := range s.waiting {
		if s.draining(a.Pod) {
			continue
		}
		plan, outcome := s.planner.Plan(w, &a)
		if outcome != preempt.Planned {
			continue
		}
		mustHold(s.t, w, &plan)
		s.l.Confirm(plan.Placement) // the claim
		w.State = s.l.Snapshot()
		s.begin(plan)
		moved = true
	}
	return moved
}

func (s *story) begin(plan preempt.Plan) {
	d := &drain{plan, map[gpu.PodID]int{}}
	for _, v := range plan.Victims {
		d.left[v.ID] = rapid.IntRange(0, 2).Draw(s.t, "grace")
		i := slices.IndexFunc(s.c.residents, func(r resident) bool { return r.ID == v.ID })
		s.c.residents[i].Phase = preempt.Ending
		if v.Count > 0 || v.Priority >= plan.Asker.Priority {
			s.t.Fatalf("%s is ended for %s", v.Name, plan.Asker.Name)
		}
		if s.ended[v.Lineage]++; s.ended[v.Lineage] > 1 {
			s.t.Fatalf("%s is ended a second time", v.Name)
		}
		s.history = append(s.history, preempt.Eviction{By: plan.Asker.Lineage, Of: v.Lineage, Tenant: "red", At: s.now})
	}
	s.drains = append(s.drains, d)
}

// drain lets who is going go on going; who has gone comes back as another pod, at once.
func (s *story) drain() (moved bool) {
	for _, d := range slices.Clone(s.drains) {
		for _, v := range d.plan.Victims {
			rounds, there := d.left[v.ID]
			switch {
			case !there:
			case rounds > 0:
				d.left[v.ID]--
			default:
				delete(d.left, v.ID)
				s.end(v)
			}
		}
		moved = true
		if len(d.left) == 0 {
			s.drains = slices.DeleteFunc(s.drains, func(o *drain) bool { return o == d })
			s.bind(d.plan.Asker.Pod, d.plan.Placement)
		}
	}
	return moved
}

func (s *story) end(v preempt.Pod) {
	s.l.Release(v.ID)
	i := slices.IndexFunc(s.c.residents, func(r resident) bool { return r.ID == v.ID })
	r := s.c.residents[i]
	s.c.residents = slices.Delete(slices.Clone(s.c.residents), i, i+1)
	s.arrive(v.Lineage, v.Priority, v.Count+1, s.asks[v.Lineage], r.cpu)
}

// TestItEnds: however pods come, wait and are ended, nobody's lineage is ended twice,
// and after so many rounds nothing happens any more: those who are ended come back
// exempt, so that each plan leaves fewer who may be.
func TestItEnds(t *testing.T) {
	moreChecks(t, "400")
	plans, rounds := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := &story{t: t, lives: map[gpu.PodID]resident{}, ended: map[string]int{}, asks: map[string][]gpu.Ask{}, now: now}
		s.c.nodes = []ledger.Facts{facts("n1", 2), facts("n2", 3)}
		s.l = s.c.books()
		waves := rapid.IntRange(1, 3).Draw(t, "waves")
		for quiet, round := 0, 0; quiet < 2 || waves > 0; round++ {
			if waves > 0 && (quiet > 0 || round == 0 || rarely(t, "more come", 3)) {
				waves--
				s.drawArrivals()
			}
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
			moved := s.drain()
			moved = s.schedule() || moved
			moved = s.plan() || moved
			if quiet++; moved {
				quiet = 0
			}
			if rounds++; round > 200 {
				t.Fatalf("no end after %d rounds: %d wait, %d were ended", round, len(s.waiting), len(s.history))
			}
		}
		plans += len(s.ended)
	})
	t.Logf("%d were ended in %d rounds", plans, rounds)
	if plans == 0 {
		t.Error("nobody was ended")
	}
}
