package preempt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// stage is a world with a leader, in which time goes by when it is told to.
type stage struct {
	*world
	c *Controller
	t *testing.T
}

func newStage(t *testing.T, nodes ...string) *stage {
	w := newWorld()
	w.wrong = t.Errorf
	for _, node := range nodes {
		w.cards[gpu.NodeID(node)] = 4
	}
	return &stage{w, w.leader(), t}
}

// round lets the scheduler, owners and the leader do their work after that time. Pods
// that are being deleted have gone when their grace has passed.
func (s *stage) round(later time.Duration) {
	s.now = s.now.Add(later)
	for _, pod := range s.sorted() {
		if d := pod.DeletionTimestamp; d != nil && !s.now.Before(d.Time) && pod.Labels["stuck"] == "" {
			s.drop(pod, s.now)
		}
	}
	for id := range s.lingers {
		if !s.now.Before(s.lingers[id]) {
			delete(s.lingers, id)
			delete(s.holds, id)
		}
	}
	s.replace()
	s.schedule()
	s.see()
	s.c.round(klog.NewContext(context.Background(), klog.Logger{}))
	s.see()
}

// rounds has one round a second.
func (s *stage) rounds(n int) {
	for range n {
		s.round(time.Second)
	}
}

// phases returns how far each Preemption is, and its victims.
func (s *stage) phases() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s.plans)) {
		p := s.plans[name]
		text := fmt.Sprintf("%s on %s %s:", p.Spec.Preemptor.Name, p.Spec.Node, phase(&p.Status))
		for i := range p.Spec.Victims {
			text += fmt.Sprintf(" %s %s", p.Spec.Victims[i].Name, p.VictimState(i))
		}
		all = append(all, text)
	}
	return all
}

func (s *stage) want(what string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.phases()); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fill puts four pods of one card each onto the node, which may be ended.
func (s *stage) fill(node string, more ...func(*corev1.Pod)) {
	for i := range 4 {
		s.pod(fmt.Sprint(node, "-", i), int32(i), 1, append([]func(*corev1.Pod){on(node), preemptible}, more...)...)
	}
}

// One pod of a low priority goes for one of a high, and comes back when it can.
func TestOneForOne(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	s.round(500 * time.Millisecond)
	s.want("at once: kube-scheduler has its own chance")
	s.round(500 * time.Millisecond)
	s.want("a plan", "high on n1 Planned: n1-0 Chosen")
	s.rounds(1)
	s.want("it is asked", "high on n1 Draining: n1-0 Evicting")
	s.pod("third", 20, 1)
	s.rounds(32)
	s.want("it has gone", "third on n1 Draining: n1-1 Evicting", "high on n1 Bound: n1-0 Succeeded")
	if pod := s.pods["ns/n1-0"]; pod == nil || pod.Annotations[codec.AnnotationPreemptedFrom] == "" || counted(pod) != 1 || pod.Spec.NodeName != "" {
		t.Errorf("made anew: %+v", pod)
	}
	if diff := cmp.Diff(map[string]int{"Preempted n1-0": 1, "Preempted n1-1": 1, "Preempting high": 1, "Preempting third": 1, "MadeAnew n1-0": 1}, s.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	s.rounds(200)
	if diff := cmp.Diff([]string{"n1-0", "n1-1"}, s.evicted); diff != "" {
		t.Errorf("evicted: the two that were ended wait, and end nobody (-want +got):\n%s", diff)
	}
	if s.begun != 2 || s.ended[v1alpha1.PreemptionBound] != 2 || len(s.disrupted) != 2 || s.disrupted[0] < 29*time.Second || s.disrupted[0] > 32*time.Second {
		t.Errorf("counted: %d begun, %v ended, %v disrupted", s.begun, s.ended, s.disrupted)
	}
	s.round(2 * time.Hour)
	s.rounds(1)
	s.want("two hours later")
}

// Two victims with 30 s and 90 s: the room of the first goes to nobody meanwhile.
func TestNobodyTakesTheRoom(t *testing.T) {
	s := newStage(t, "n1")
	s.pod("long", 1, 3, on("n1"), preemptible, labelled("stuck", "for a while"))
	s.pod("short", 1, 1, on("n1"), preemptible)
	s.pod("high", 10, 4)
	s.rounds(33)
	s.want("one has gone", "high on n1 Draining: long Evicting short Succeeded")
	s.pod("third", 5, 1)
	s.rounds(40)
	for _, name := range []string{"third", "short"} {
		if node := s.pods["ns/"+name].Spec.NodeName; node != "" {
			t.Errorf("%s has got onto %s", name, node)
		}
	}
	s.edit(s.pods["ns/long"], func(p *corev1.Pod) { p.Labels = nil })
	s.rounds(3)
	s.want("both have gone", "high on n1 Bound: long Succeeded short Succeeded")
}

// A budget that keeps a victim: nobody is killed, and the next plan is another.
func TestABudgetKeepsOne(t *testing.T) {
	s := newStage(t, "n1")
	s.pod("guarded", 0, 2, on("n1"), preemptible, labelled("app", "a"))
	s.pod("free", 1, 2, on("n1"), preemptible)
	s.budget["a"] = 0
	s.pod("high", 10, 2)
	s.rounds(2)
	s.want("blocked", "high on n1 RolledBack: guarded Spared")
	s.rounds(36)
	s.want("another", "high on n1 RolledBack: guarded Spared", "high on n1 Bound: free Succeeded")
	if diff := cmp.Diff([]string{"free"}, s.evicted); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
}

// A budget of one, and two victims of it: the trial run sees no harm. The one that has
// been evicted is not lost, and the other is spared after a while.
func TestABudgetIsUsedUp(t *testing.T) {
	s := newStage(t, "n1")
	s.pod("a", 0, 2, on("n1"), preemptible, labelled("app", "a"))
	s.pod("b", 0, 2, on("n1"), preemptible, labelled("app", "a"))
	s.budget["a"] = 1
	s.pod("high", 10, 4)
	s.rounds(60)
	s.want("it is asked again", "high on n1 Draining: a Succeeded b Evicting")
	s.rounds(10)
	s.want("and spared", "high on n1 RolledBack: a Succeeded b Spared")
	if s.pods["ns/a"] == nil || s.pods["ns/b"].DeletionTimestamp != nil || s.pods["ns/b"].Annotations[codec.AnnotationPreemptedBy] != "" {
		t.Error("a is lost, or b is still asked to go")
	}
}

// The preemptor is deleted while pods drain: nobody more is ended, who has been is made
// anew.
func TestThePreemptorGoes(t *testing.T) {
	s := newStage(t, "n1")
	s.pod("a", 0, 2, on("n1"), preemptible)
	s.pod("b", 0, 2, on("n1"), preemptible, labelled("app", "a"))
	s.pod("high", 10, 4)
	s.rounds(1)
	s.strike = func(op string) {
		if op == "evicted" {
			s.budget["a"] = 0 // so that b stays to be asked
		}
	}
	s.rounds(1)
	s.strike = func(string) {}
	s.want("one goes", "high on n1 Draining: a Evicting b Evicting")
	s.end(s.pods["ns/high"], 0)
	s.budget["a"] = 5
	s.rounds(1)
	s.want("rolled back", "high on n1 RolledBack: a Evicting b Spared")
	s.rounds(40)
	s.want("and nothing is owed", "high on n1 RolledBack: a Succeeded b Spared")
	if diff := cmp.Diff([]string{"a"}, s.evicted); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
}

// A pod that kube-scheduler refuses for reasons of its own ends somebody once in a
// long time, and not over and over.
func TestOneThatDoesNotCome(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1, labelled("elsewhere", "yes"))
	s.rounds(100)
	s.want("expired", "high on n1 Expired: n1-0 Succeeded")
	s.rounds(500)
	if diff := cmp.Diff([]string{"n1-0"}, s.evicted); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
	if s.told["PreemptionGivenUp high"] != 1 {
		t.Errorf("told: %v", s.told)
	}
}

// A bare pod that the API server refuses to make anew is tried again, less and less
// often, and told of once.
func TestRefusedIsTriedAgain(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	s.quota = tooMany()
	tries := 0
	s.strike = func(op string) {
		if op == "create" {
			tries++
		}
	}
	s.rounds(1000)
	s.want("refused", "high on n1 Bound: n1-0 Refused")
	if tries < 5 || tries > 20 || s.told["NotMadeAnew n1-0"] != 1 {
		t.Errorf("%d tries, told %v", tries, s.told)
	}
	s.quota = nil
	s.rounds(301)
	s.want("allowed again", "high on n1 Bound: n1-0 Succeeded")
}

// An owner's successor is told how often its lives were ended, each of another one.
func TestOwnersMakeSuccessors(t *testing.T) {
	s := newStage(t, "n1")
	s.sets["rs"] = 4
	s.fill("n1", ownedBy("ReplicaSet", "rs"))
	s.pod("high", 10, 2)
	s.rounds(40)
	s.want("done", "high on n1 Bound: n1-0 Succeeded n1-1 Succeeded")
	heirs := map[string]int{}
	for _, p := range s.plans {
		for i := range p.Status.Victims {
			heirs[string(p.Status.Victims[i].Successor)]++
		}
	}
	counts := 0
	for _, pod := range s.pods {
		if heirs[string(pod.UID)] == 1 && counted(pod) == 1 {
			counts++
		}
	}
	if len(heirs) != 2 || counts != 2 {
		t.Errorf("successors: %v, %d of them count", heirs, counts)
	}
}

// Low pods of one owner and high ones of another: it comes to an end.
func TestNoEndlessLoop(t *testing.T) {
	s := newStage(t, "n1", "n2")
	s.sets["low"] = 8
	s.rounds(3)
	for i := range 12 {
		s.pod(fmt.Sprint("high", i), 10, 1)
	}
	s.rounds(600)
	before := len(s.evicted)
	s.rounds(600)
	if len(s.evicted) != before || before != 8 {
		t.Errorf("%d were evicted, and then %d more", before, len(s.evicted)-before)
	}
}

// Jobs that say so are suspended as a whole, and resumed when there is room, the oldest
// first, and once.
func TestJobsAreSuspendedAndResumed(t *testing.T) {
	s := newStage(t, "n1", "n2")
	for _, name := range []string{"a", "b"} {
		s.job(name, 4)
		for i := range 4 {
			s.pod(fmt.Sprint(name, i), 1, 1, on(map[string]string{"a": "n1", "b": "n2"}[name]), preemptible, ownedBy("Job", name))
		}
	}
	s.pod("high1", 10, 4)
	s.pod("high2", 10, 4)
	s.rounds(40)
	s.want("suspended", "high1 on n1 Bound: a0 Gone a1 Gone a2 Gone a3 Gone", "high2 on n2 Bound: b0 Gone b1 Gone b2 Gone b3 Gone")
	if len(s.evicted) != 0 || !suspended(s.jobs["ns/a"]) || !suspended(s.jobs["ns/b"]) {
		t.Errorf("evicted %v, Jobs %+v", s.evicted, s.jobs)
	}
	s.end(s.pods["ns/high2"], 0)
	s.rounds(15)
	if suspended(s.jobs["ns/a"]) || !suspended(s.jobs["ns/b"]) {
		t.Errorf("the older one is to run: %v %v", suspended(s.jobs["ns/a"]), suspended(s.jobs["ns/b"]))
	}
	s.want("resumed", "high1 on n1 Bound: a0 Succeeded a1 Succeeded a2 Succeeded a3 Succeeded", "high2 on n2 Bound: b0 Gone b1 Gone b2 Gone b3 Gone")
	s.end(s.pods["ns/high1"], 0)
	s.rounds(15)
	if suspended(s.jobs["ns/b"]) || s.jobs["ns/b"].Annotations[codec.AnnotationSuspendedBy] != "" {
		t.Errorf("the other one is not resumed: %+v", s.jobs["ns/b"])
	}
}

// What the user of a Job does to it is not undone.
func TestAJobIsItsUsers(t *testing.T) {
	s := newStage(t, "n1")
	s.job("a", 4)
	for i := range 4 {
		s.pod(fmt.Sprint("a", i), 1, 1, on("n1"), preemptible, ownedBy("Job", "a"))
	}
	s.pod("high", 10, 4)
	s.rounds(40)
	j := s.jobs["ns/a"].DeepCopy()
	delete(j.Annotations, codec.AnnotationSuspendedBy)
	j.ResourceVersion = s.next()
	s.jobs["ns/a"] = j
	s.end(s.pods["ns/high"], 0)
	s.rounds(700)
	if !suspended(s.jobs["ns/a"]) {
		t.Error("a Job that its user keeps suspended was resumed")
	}
	s.want("nothing is owed", "high on n1 Bound: a0 Succeeded a1 Succeeded a2 Succeeded a3 Succeeded")
}

// What cannot be claimed, written or certified ends nobody.
func TestNothingIsBegunInPart(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]func(*stage){
		"no certificate":       func(s *stage) { s.c.Planner.Certify = func(*preempt.World, *preempt.Plan) error { return broken } },
		"no manifest":          func(s *stage) { s.c.Codec.Manifest = func(*corev1.Pod, int) ([]byte, error) { return nil, broken } },
		"no claim can be said": func(s *stage) { s.c.Codec.Allocation = func(*gpu.Placement) (string, error) { return "", broken } },
		"a victim trains by now": func(s *stage) {
			s.c.Codec.Bound = func(pod *corev1.Pod) preempt.Pod {
				p := s.bound(pod)
				if pod.Labels["live"] != "" {
					p.Type = gpu.Training
				}
				return p
			}
			s.c.Pods = relabelled{podServer{s.world}}
		},
		"the API server takes no plan": func(s *stage) { s.c.Plans = noPlans{planServer{s.world}} },
		"more than can be named": func(s *stage) {
			s.c.Planner.Plan = func(*preempt.World, *preempt.Asker) (preempt.Plan, preempt.Outcome) {
				return preempt.Plan{Victims: make([]preempt.Pod, mostVictims+1)}, preempt.Planned
			}
		},
		"nobody may be ended": func(s *stage) {
			s.c.Base = func() preempt.World { return preempt.World{Rules: preempt.Rules{Stage: preempt.Disabled}} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "n1")
			s.fill("n1")
			s.pod("high", 10, 1)
			tc(s)
			claims := 0
			s.c.Ledger = counting{s.world, &claims}
			s.rounds(9)
			s.want("begun")
			if claims > 1 {
				t.Errorf("tried %d times in 9 s", claims)
			}
			if _, has := s.Hold(gpu.PodID(s.pods["ns/high"].UID)); has {
				t.Error("room is kept")
			}
		})
	}
}

// counting counts claims.
type counting struct {
	*world
	claims *int
}

func (c counting) Claim(p gpu.Placement, victims []gpu.PodID) error {
	*c.claims++
	return c.world.Claim(p, victims)
}

// noPlans takes none.
type noPlans struct{ planServer }

func (noPlans) Create(context.Context, *v1alpha1.Preemption, metav1.CreateOptions) (*v1alpha1.Preemption, error) {
	return nil, errors.New("broken")
}

// relabelled says of each pod that is read anew that it is.
type relabelled struct{ podServer }

func (r relabelled) Get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := r.podServer.Get(ctx, namespace, name)
	if err == nil {
		labelled("live", "yes")(pod)
	}
	return pod, err
}

// Training ends nobody, whatever the planner says.
func TestTrainingEndsNobody(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	plan := s.c.Planner.Plan
	s.c.Planner.Plan = func(w *preempt.World, a *preempt.Asker) (preempt.Plan, preempt.Outcome) {
		b := *a
		b.Never = ""
		return plan(w, &b)
	}
	s.pod("train", 10, 1, noted(codec.AnnotationTaskType, string(gpu.Training)))
	s.rounds(5)
	if len(s.evicted) > 0 {
		t.Errorf("evicted %v", s.evicted)
	}
	for _, p := range s.plans {
		if p.Status.Phase != v1alpha1.PreemptionRolledBack && p.Status.Phase != "" {
			t.Errorf("%s is %s", p.Name, p.Status.Phase)
		}
	}
}

// A round plans for so many, the most important first, and the next goes on behind.
func TestEverybodyHasATurn(t *testing.T) {
	s := newStage(t)
	var asked []string
	s.c.Planner.Plan = func(_ *preempt.World, a *preempt.Asker) (preempt.Plan, preempt.Outcome) {
		asked = append(asked, a.Name)
		return preempt.Plan{}, preempt.Hopeless
	}
	for i := range mostAskers + 50 {
		s.pod(fmt.Sprintf("p%03d", i), int32(i%2), 1, labelled("elsewhere", "yes"))
	}
	for i, want := range []int{mostAskers, 50, mostAskers, 50} {
		asked = nil
		s.rounds(1)
		if len(asked) != want {
			t.Errorf("round %d: %d were planned for, want %d", i, len(asked), want)
		}
		for j, name := range asked {
			if odd := strings.ContainsAny(name[3:], "13579"); odd != (i%2 == 0 && j < (mostAskers+50)/2) {
				t.Fatalf("round %d: %s is number %d", i, name, j)
			}
		}
	}
}

// Planning that takes long is left for the next round.
func TestPlanningIsBounded(t *testing.T) {
	s := newStage(t)
	var asked []string
	s.c.Planner.Plan = func(_ *preempt.World, a *preempt.Asker) (preempt.Plan, preempt.Outcome) {
		asked, s.now = append(asked, a.Name), s.now.Add(200*time.Millisecond)
		return preempt.Plan{}, preempt.Early
	}
	for i := range 7 {
		s.pod(fmt.Sprint("p", i), 1, 1)
	}
	s.rounds(4)
	if got, want := strings.Join(asked, " "), "p0 p1 p2 p3 p4 p5 p6 p0 p1 p2"; got != want {
		t.Errorf("planned for %s, want %s", got, want)
	}
}

// There is a round a second, and one at once when something has changed.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := w.leader()
		changed, rounds := make(chan struct{}), 0
		c.Changed = func() <-chan struct{} { rounds++; return changed }
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if rounds != 6 {
			t.Errorf("%d rounds in 5 s, want 6", rounds)
		}
		before := changed
		changed = make(chan struct{})
		close(before)
		time.Sleep(pace + time.Millisecond)
		synctest.Wait()
		if rounds != 7 {
			t.Errorf("%d rounds after a change, want 7", rounds)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}
