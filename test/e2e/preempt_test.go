package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/simnode"
)

// Keys of preemption.
const (
	preemptibleKey  = ours + "preemptible"
	taskTypeKey     = ours + "task-type"
	preemptCountKey = ours + "preempt-count"
	preemptModeKey  = ours + "preempt-mode"
	preemptedFrom   = ours + "preempted-from"
	preemptedBy     = ours + "preempted-by"
)

// low is a pod that may be ended for others.
func low(name string, priority int, amounts ...amount) *corev1.Pod {
	return with(high(name, priority, amounts...), preemptibleKey, "true")
}

// high is a pod that nobody may be ended instead of.
func high(name string, priority int, amounts ...amount) *corev1.Pod {
	return with(bare(podFor(name, amounts...)), priorityKey, strconv.Itoa(priority))
}

// stops has the pod take so long to end, of a grace that is longer.
func stops(p *corev1.Pod, after time.Duration) *corev1.Pod {
	grace := int64(2 * after.Seconds())
	p.Spec.TerminationGracePeriodSeconds = &grace
	return with(p, simnode.StopAfter, after.String())
}

// on has the pod want the cards of one node of oneCard, or of cards.
func on(node string, p *corev1.Pod) *corev1.Pod { return with(p, modelKey, "Model-"+node) }

// cards is a node with so many cards of a model of its own.
func cards(node string, n int) simnode.Spec {
	return simnode.Spec{Name: node, Cards: simnode.Cards(node, n, "nvidia", "Model-"+node, 24564)}
}

// TestPreemption has pods of high priority need what others hold.
func TestPreemption(t *testing.T) {
	s := begin(t, defaults)
	s.admit()
	for _, part := range []struct {
		name string
		play func(*scene)
	}{
		{"one", (*scene).preemptsOne},
		{"fewest", (*scene).preemptsTheFewest},
		{"together", (*scene).preemptsAGroup},
		{"exempt", (*scene).preemptsNobody},
		{"useless", (*scene).preemptsNobodyInVain},
		{"budget", (*scene).preemptsAroundABudget},
		{"drain", (*scene).keepsWhatIsFreed},
		{"given-up", (*scene).givesUp},
		{"processors", (*scene).preemptsForProcessors},
		{"well-ended", (*scene).makesAnewWhoEndsWell},
		{"owned", (*scene).endsNoDeploymentForEver},
		{"suspended", (*scene).suspendsAJob},
	} {
		s.part(part.name, func(s *scene) {
			part.play(s)
			s.verify()
			s.clear()
		})
	}
}

// preemptsOne: the low one makes room, is made anew with its name and spec, and
// runs again when there is room, which is not the high one's any more.
func (s *scene) preemptsOne() {
	s.add(oneCard("one", "first"))
	first := on("one", low("one-low", 10, amount{wholeCards, 1}))
	first.Labels = map[string]string{"mine": "yes"}
	s.create(first)
	was := s.runs("one-low")
	s.create(on("one", high("one-high", 90, amount{wholeCards, 1})))
	s.runs("one-high")
	again := s.successor(was)
	if again.Spec.NodeName != "" || again.Labels["mine"] != "yes" || again.Annotations[preemptibleKey] != "false" || again.Annotations[preemptCountKey] != "1" {
		s.Errorf("its successor is on %q with labels %v and annotations %v", again.Spec.NodeName, again.Labels, again.Annotations)
	}
	s.eventually("an event that names who it was ended for", func() error { return s.hasEvent("one-low", "Preempted", "one-high") })
	if by := again.Annotations[preemptedBy]; !strings.Contains(by, "one-high") || !strings.Contains(by, "lower priority") {
		s.Errorf("its successor says of why it is there: %q", by)
	}
	s.remove("one-high", false)
	s.runs("one-low")
}

// successor waits for the pod that is made in place of a bare one.
func (s *scene) successor(was *corev1.Pod) (again *corev1.Pod) {
	s.Helper()
	s.eventually("a successor of "+was.Name, func() (err error) {
		again, err = s.Client.CoreV1().Pods(was.Namespace).Get(s.ctx, was.Name, metav1.GetOptions{})
		if err == nil && (again.UID == was.UID || again.Annotations[preemptedFrom] != string(was.UID)) {
			err = fmt.Errorf("it is %s, from %q; it was %s", again.UID, again.Annotations[preemptedFrom], was.UID)
		}
		return err
	})
	return again
}

// uids are the pods of the scene as they are, by name.
func (s *scene) uids(prefix string) map[string]types.UID {
	s.Helper()
	all := map[string]types.UID{}
	for _, p := range s.pods() {
		if p.Namespace == s.ns && strings.HasPrefix(p.Name, prefix) {
			all[p.Name] = p.UID
		}
	}
	return all
}

// changed is how many of the pods are others now, or gone.
func (s *scene) changed(before map[string]types.UID, prefix string) (n int) {
	s.Helper()
	now := s.uids(prefix)
	for name, uid := range before {
		if now[name] != uid {
			n++
		}
	}
	return n
}

// preemptsTheFewest: of eleven small ones one goes: the one of lowest priority that
// came last. One that cannot be helped keeps nobody from being helped.
func (s *scene) preemptsTheFewest() {
	s.add(cards("fewest", 11))
	for i := range 11 {
		priority := 20
		if i == 4 || i == 7 {
			priority = 10
		}
		s.create(on("fewest", low(fmt.Sprintf("fewest-%d", i), priority, amount{wholeCards, 1})))
		if i == 4 {
			s.runs("fewest-4")
			s.meanwhile(1100*time.Millisecond, "the clock of creation", func() error { return nil }) // it counts seconds
		}
	}
	for i := range 11 {
		s.runs(fmt.Sprintf("fewest-%d", i))
	}
	before := s.uids("fewest-")
	last := s.pod("fewest-7")
	s.create(on("fewest", high("impossible", 99, amount{wholeCards, 12}))) // and is no hindrance
	s.create(on("fewest", high("fewest-high", 90, amount{wholeCards, 1})))
	s.runs("fewest-high")
	s.successor(last)
	if n := s.changed(before, "fewest-"); n != 1 {
		s.Errorf("%d pods were ended, want 1", n)
	}
}

// preemptsAGroup: members of a group go together, on whatever nodes they are.
func (s *scene) preemptsAGroup() {
	s.add(cards("together-a", 1), cards("together-b", 1))
	s.group("crew", "", v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference})
	for _, node := range []string{"together-a", "together-b"} {
		s.create(with(on(node, low(node, 10, amount{wholeCards, 1})), taskGroupKey, "crew"))
	}
	s.runs("together-a")
	s.runs("together-b")
	before := s.uids("together-")
	s.create(on("together-a", high("together-high", 90, amount{wholeCards, 1})))
	s.runs("together-high")
	s.eventually("both to be made anew", func() error {
		if n := s.changed(before, "together-"); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	s.runs("together-b")
}

// preemptsNobody: training, inference, pods that do not offer it, and pods of equal
// priority go on.
func (s *scene) preemptsNobody() {
	s.add(cards("exempt", 3))
	s.create(
		on("exempt", high("exempt-silent", 10, amount{wholeCards, 1})),
		with(on("exempt", low("exempt-inference", 10, amount{wholeCards, 1})), taskTypeKey, "inference"),
		on("exempt", low("exempt-equal", 90, amount{wholeCards, 1})))
	for _, name := range []string{"exempt-silent", "exempt-inference", "exempt-equal"} {
		s.runs(name)
	}
	before := s.uids("exempt-")
	s.create(on("exempt", high("exempt-high", 90, amount{wholeCards, 1})))
	s.nobodyGoes(before, "exempt-", "exempt-high")
	_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx,
		with(on("exempt", low("exempt-training", 10, amount{wholeCards, 1})), taskTypeKey, "training"), metav1.CreateOptions{})
	s.refused("training that offers to be ended", err, "training", "preemptible")
	s.remove("exempt-high", true)
}

// nobodyGoes waits until the pod has been refused, and sees that for a while nobody
// is ended for it.
func (s *scene) nobodyGoes(before map[string]types.UID, prefix, waiter string) {
	s.Helper()
	s.eventually("a refusal of "+waiter, func() error {
		if condition(s.pod(waiter)) == "" {
			return errors.New("there is none")
		}
		return nil
	})
	s.meanwhile(4*time.Second, "that nobody is ended", func() error {
		if n := s.changed(before, prefix); n > 0 {
			return fmt.Errorf("%d pods were ended", n)
		}
		return s.waits(waiter)
	})
	for _, p := range s.pods() {
		if p.Namespace == s.ns && strings.HasPrefix(p.Name, prefix) && p.DeletionTimestamp != nil {
			s.Errorf("pod %s is being ended", p.Name)
		}
	}
}

// preemptsNobodyInVain: who would not run all the same has nobody ended for it.
func (s *scene) preemptsNobodyInVain() {
	s.add(cards("useless", 2))
	s.create(on("useless", low("useless-a", 10, amount{wholeCards, 1})), on("useless", low("useless-b", 10, amount{wholeCards, 1})))
	s.runs("useless-a")
	s.runs("useless-b")
	before := s.uids("useless-")
	elsewhere := on("useless", high("useless-elsewhere", 90, amount{wholeCards, 1}))
	elsewhere.Spec.NodeSelector = map[string]string{"there-is": "none"}
	apart := on("useless", high("useless-apart", 90, amount{wholeCards, 1}))
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelHostname}}}}
	large := on("useless", high("useless-large", 90, amount{wholeCards, 3}))
	for _, p := range []*corev1.Pod{elsewhere, apart, large} {
		s.create(p)
	}
	for _, p := range []*corev1.Pod{elsewhere, apart, large} {
		s.nobodyGoes(before, "useless-", p.Name)
	}
	for pod, why := range map[string]string{apart.Name: "anti-affinity", large.Name: "fit no node", elsewhere.Name: "fit no node"} {
		s.eventually("the reason of "+pod, func() error { return s.hasEvent(pod, "NotPreempting", why) })
	}
	for _, p := range []*corev1.Pod{elsewhere, apart, large} {
		s.remove(p.Name, true)
	}
}

// preemptsAroundABudget: whom a PodDisruptionBudget keeps is left alone, and the
// next best goes.
func (s *scene) preemptsAroundABudget() {
	s.add(cards("budget", 2))
	kept := on("budget", low("budget-kept", 10, amount{wholeCards, 1}))
	kept.Labels = map[string]string{"app": "kept"}
	s.create(kept, on("budget", low("budget-next", 20, amount{wholeCards, 1})))
	s.runs("budget-kept")
	next := s.runs("budget-next")
	all := intstr.FromString("100%")
	_, err := s.Client.PolicyV1().PodDisruptionBudgets(s.ns).Create(s.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: kept.Labels}},
	}, metav1.CreateOptions{})
	s.must("create a budget", err)
	s.eventually("the budget to be known", func() error {
		b, err := s.Client.PolicyV1().PodDisruptionBudgets(s.ns).Get(s.ctx, "kept", metav1.GetOptions{})
		if err == nil && b.Status.ObservedGeneration == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	before := s.uids("budget-kept")
	s.create(on("budget", high("budget-high", 90, amount{wholeCards, 1})))
	s.runs("budget-high")
	s.successor(next)
	if s.changed(before, "budget-kept") > 0 {
		s.Error("whom the budget keeps was ended")
	}
}

// keepsWhatIsFreed: of two victims one takes longer. What the first has left is
// nobody else's meanwhile, not even its own successor's.
func (s *scene) keepsWhatIsFreed() {
	s.add(cards("drain", 2))
	s.create(stops(on("drain", low("drain-fast", 10, amount{wholeCards, 1})), time.Second), stops(on("drain", low("drain-slow", 10, amount{wholeCards, 1})), 8*time.Second))
	fast := s.runs("drain-fast")
	slow := s.runs("drain-slow")
	s.create(on("drain", high("drain-high", 80, amount{wholeCards, 2})))
	s.successor(fast)
	s.create(on("drain", high("drain-third", 95, amount{wholeCards, 1})))
	s.eventually("the high one to run", func() error {
		for _, name := range []string{"drain-third", "drain-fast"} {
			if err := s.waits(name); err != nil {
				s.Fatal(err)
			}
		}
		if p := s.pod("drain-high"); p.Status.Phase != corev1.PodRunning {
			return errors.New("it does not")
		}
		return nil
	})
	s.successor(slow)
	s.remove("drain-third", true)
}

// givesUp: when the high one goes while the victims drain, the cards are everybody's
// again, and what was ended comes back.
func (s *scene) givesUp() {
	s.add(cards("given-up", 1))
	s.create(stops(on("given-up", low("given-up-low", 10, amount{wholeCards, 1})), 4*time.Second))
	was := s.runs("given-up-low")
	s.create(on("given-up", high("given-up-high", 90, amount{wholeCards, 1})))
	s.eventually("the low one to be told", func() error {
		if s.pod("given-up-low").DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.remove("given-up-high", true)
	s.successor(was)
	s.runs("given-up-low")
	s.eventually("the end of the preemption", func() error {
		for _, p := range s.preemptions() {
			if p.Spec.Node == "given-up" && p.Status.Phase != v1alpha1.PreemptionRolledBack {
				return fmt.Errorf("it is %s", p.Status.Phase)
			}
		}
		return nil
	})
}

// preemptions are all that there are.
func (s *scene) preemptions() []v1alpha1.Preemption {
	s.Helper()
	all, err := s.ourKinds().HeteroflowV1alpha1().Preemptions().List(s.ctx, metav1.ListOptions{})
	s.must("list preemptions", err)
	return all.Items
}

// preemptsForProcessors: a pod that lacks nothing but processors has those of
// others, though kube-scheduler never asks the extender about it.
func (s *scene) preemptsForProcessors() {
	s.add(cards("processors", 2))
	all := s.node("processors").Status.Allocatable[corev1.ResourceCPU]
	greedy := on("processors", low("processors-low", 10, amount{wholeCards, 1}))
	greedy.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = all
	s.create(greedy)
	was := s.runs("processors-low")
	s.create(on("processors", high("processors-high", 90, amount{wholeCards, 1})))
	s.runs("processors-high")
	s.successor(was)
}

// node reads one node.
func (s *scene) node(name string) *corev1.Node {
	s.Helper()
	n, err := s.Client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
	s.must("read node", err)
	return n
}

// makesAnewWhoEndsWell: a bare pod that exits with 0 when it is told to go has not
// done its work.
func (s *scene) makesAnewWhoEndsWell() {
	s.add(cards("well", 1))
	s.create(with(on("well", low("well-low", 10, amount{wholeCards, 1})), simnode.StopCode, "0"))
	was := s.runs("well-low")
	s.create(on("well", high("well-high", 90, amount{wholeCards, 1})))
	s.runs("well-high")
	s.successor(was)
}

// endsNoDeploymentForEver: pods of a set come back by themselves, and are not ended
// a second time: what two of them lose, two of the high ones get, and that is all.
func (s *scene) endsNoDeploymentForEver() {
	s.add(cards("owned", 2))
	s.replicaSet(on("owned", low("owned", 10, amount{wholeCards, 1})), 2)
	s.eventually("both to run", func() error { return s.podsOf("owned", 2) })
	for i := range 3 {
		s.create(on("owned", high(fmt.Sprintf("high-%d", i), 90, amount{wholeCards, 1})))
	}
	s.eventually("two of the high ones to run", func() error {
		n := 0
		for i := range 3 {
			if s.pod(fmt.Sprintf("high-%d", i)).Spec.NodeName != "" {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	s.eventually("two successors that say so", func() error {
		n := 0
		for _, p := range s.pods() {
			if p.Labels["app"] == "owned" && p.DeletionTimestamp == nil && p.Annotations[preemptCountKey] == "1" {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for i := range 3 {
		s.remove(fmt.Sprintf("high-%d", i), false)
	}
	s.eventually("both to run again", func() error { return s.podsOf("owned", 2) })
	before := s.uids("owned-")
	s.create(on("owned", high("high-again", 90, amount{wholeCards, 1})))
	s.nobodyGoes(before, "owned-", "high-again")
}

// suspendsAJob: a Job that offers it is suspended with all its pods, and goes on when
// there is room for all.
func (s *scene) suspendsAJob() {
	s.add(cards("suspended", 2))
	job := s.job(with(on("suspended", low("suspended-low", 10, amount{wholeCards, 1})), preemptModeKey, "suspend"))
	s.eventually("its pods to run", func() error { return s.podsOf(job, 2) })
	s.create(on("suspended", high("suspended-high", 90, amount{wholeCards, 1})))
	s.runs("suspended-high")
	s.eventually("the Job to be suspended", func() error { return s.isSuspended(job, true) })
	s.remove("suspended-high", false)
	s.eventually("the Job to go on", func() error { return s.isSuspended(job, false) })
	s.eventually("its pods to run", func() error { return s.podsOf(job, 2) })
}

// job makes a Job of two pods.
func (s *scene) job(pod *corev1.Pod) string {
	s.Helper()
	job := jobOf(2, pod.Name)
	job.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": pod.Name}, Annotations: pod.Annotations}, Spec: pod.Spec}
	_, err := s.Client.BatchV1().Jobs(s.ns).Create(s.ctx, job, metav1.CreateOptions{})
	s.must("create job", err)
	return pod.Name
}

func (s *scene) isSuspended(job string, want bool) error {
	j, err := s.Client.BatchV1().Jobs(s.ns).Get(s.ctx, job, metav1.GetOptions{})
	if err == nil && ptr.Deref(j.Spec.Suspend, false) != want {
		err = fmt.Errorf("suspend of job %s is not %t", job, want)
	}
	return err
}
