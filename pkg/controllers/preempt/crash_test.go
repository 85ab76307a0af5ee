package preempt

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

var (
	crashRuns = flag.Int("crash-runs", 100, "how many random lives TestLeadersDie goes through")
	crashSeed = flag.Uint64("crash-seed", 0, "the seed of the first of them; 0: by chance")
)

// struck is what a leader dies of.
type struck struct{ at string }

// lead lets the controller have a round, and reports whether it has outlived it.
func lead(c *Controller) (outlived bool) {
	defer func() {
		if why := recover(); why != nil {
			if _, dead := why.(struck); !dead {
				panic(why)
			}
		}
	}()
	c.round(klog.NewContext(context.Background(), klog.Logger{})) // which tells nobody
	return true
}

// Whenever the leader dies: no bare pod is lost or made twice, nobody else gets the
// room, nobody is ended for a preemption that is over, and all of it comes to an end.
func TestLeadersDie(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	total := map[v1alpha1.PreemptionPhase]int{}
	deaths := map[string]int{}
	for i := range *crashRuns {
		ended := crash(t, seed+uint64(i), deaths)
		for phase, n := range ended {
			total[phase] += n
		}
		if t.Failed() {
			t.Fatalf("with -crash-seed %d -crash-runs 1", seed+uint64(i))
		}
	}
	if *crashRuns >= 100 && (total[v1alpha1.PreemptionBound] == 0 || total[v1alpha1.PreemptionRolledBack] == 0 || len(deaths) < 12) {
		t.Errorf("the lives were too quiet: %v, deaths %v", total, deaths)
	}
	t.Logf("ended: %v; deaths: %v", total, deaths)
}

// crash goes through one life.
func crash(t *testing.T, seed uint64, deaths map[string]int) map[v1alpha1.PreemptionPhase]int {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld()
	w.wrong = t.Errorf
	bare := settle(w, rng)
	w.strike = func(at string) {
		if rng.IntN(12) == 0 {
			deaths[at]++
			panic(struck{at})
		}
	}
	w.see()
	c := w.leader()
	for range 80 {
		w.disturb(rng, bare)
		w.live(rng)
		if rng.IntN(3) > 0 {
			w.see()
		}
		if !lead(c) {
			c = w.leader()
			w.forget()
		}
		w.check(t)
	}
	w.strike, w.quota = func(string) {}, nil
	for _, pod := range w.sorted() {
		if pod.Labels["elsewhere"] != "" {
			w.end(pod, 0) // or there would be plans for it for ever
		}
	}
	w.cards["spare"] = 100 // there is room for everybody
	for quiet, rounds := 0, 0; quiet < 40 && rounds < 1000; rounds++ {
		w.live(rng)
		w.see()
		lead(c)
		w.check(t)
		if quiet++; w.busy() {
			quiet = 0
		}
	}
	w.final(t, bare)
	return w.ended
}

// settle fills a few nodes with pods, and returns those of them that nobody else makes
// anew.
func settle(w *world, rng *rand.Rand) map[string]bool {
	bare := map[string]bool{}
	for n := range 1 + rng.IntN(3) {
		node := fmt.Sprintf("n%d", n)
		w.cards[gpu.NodeID(node)] = 4
		for i := range 4 {
			name := fmt.Sprintf("%s-p%d", node, i)
			options := []func(*corev1.Pod){on(node), preemptible}
			if rng.IntN(3) == 0 {
				options = append(options, labelled("app", fmt.Sprint("a", rng.IntN(2))))
			}
			if rng.IntN(8) == 0 {
				options = append(options, labelled("stuck", "yes"))
			}
			switch rng.IntN(6) {
			case 0:
				set := fmt.Sprint("rs", rng.IntN(3))
				w.sets[set]++
				options = append(options, ownedBy("ReplicaSet", set))
			case 1:
				options = append(options, noted("heteroflow.io/task-type", "training"))
			case 2:
				job := fmt.Sprint("job", rng.IntN(2))
				if w.jobs[key("ns", job)] == nil {
					w.job(job, 0)
				}
				*w.jobs[key("ns", job)].Spec.Parallelism++
				options = append(options, ownedBy("Job", job))
			default:
				bare[name] = true
			}
			w.pod(name, int32(rng.IntN(5)), 1, options...)
		}
	}
	w.budget["a0"], w.budget["a1"] = rng.IntN(2), rng.IntN(3)
	return bare
}

// disturb does what users do: they make pods, delete some, and change others.
func (w *world) disturb(rng *rand.Rand, bare map[string]bool) {
	switch all := w.sorted(); rng.IntN(12) {
	case 0, 1:
		name := "high-" + w.next()
		options := []func(*corev1.Pod){}
		if rng.IntN(6) == 0 {
			options = append(options, labelled("elsewhere", "yes"))
		}
		w.pod(name, int32(10+rng.IntN(10)), 1+rng.IntN(3), options...)
	case 2:
		if pod := all[rng.IntN(len(all))]; strings.HasPrefix(pod.Name, "high-") {
			w.end(pod, 0)
		}
	case 3:
		if pod := all[rng.IntN(len(all))]; pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && bare[pod.Name] {
			w.edit(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			delete(w.holds, gpu.PodID(pod.UID))
		}
	case 4:
		w.budget["a0"], w.budget["a1"] = rng.IntN(2), rng.IntN(3)
	case 6:
		w.meddle(rng)
	case 5:
		if w.quota = nil; rng.IntN(2) == 0 {
			w.quota = tooMany()
		}
	}
}

// meddle does to a Job what its user may do while we have it suspended.
func (w *world) meddle(rng *rand.Rand) {
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.jobs[name].DeepCopy(); suspended(j) && rng.IntN(2) == 0 {
			on := rng.IntN(2) == 0
			delete(j.Annotations, codec.AnnotationSuspendedBy)
			j.ResourceVersion, j.Spec.Suspend = w.next(), &on
			w.jobs[name] = j
		}
	}
}

// check looks at what must be so at any time.
func (w *world) check(t *testing.T) {
	for node, cards := range w.cards {
		used := 0
		for _, pod := range w.pods {
			if pod.Spec.NodeName == string(node) && pod.Status.Phase != corev1.PodSucceeded {
				used += need(pod.Annotations)
			}
		}
		if used > cards {
			t.Errorf("%d cards of node %s are used, of %d", used, node, cards)
		}
	}
	for _, p := range w.plans {
		if p.Status.Phase == v1alpha1.PreemptionHeld && w.uid(p.Spec.Preemptor) {
			w.kept(t, p)
		}
	}
}

// kept checks that nobody else has the room once the victims have gone.
func (w *world) kept(t *testing.T, p *v1alpha1.Preemption) {
	id := gpu.PodID(p.Spec.Preemptor.UID)
	h, has := w.holds[id]
	if !has || h.Node != gpu.NodeID(p.Spec.Node) {
		return // a leader has died, and the next has not seen it yet; or it is being deleted
	}
	others := []gpu.PodID{}
	for pod, o := range w.holds {
		if o.State == claimed { // whose room is that of pods which still run
			others = append(others, pod)
		}
	}
	if free := w.cards[h.Node] - w.used(h.Node, append(others, id)...); free < int(h.CPU) {
		t.Errorf("%s holds room for %s, and %d of %d cards are free", p.Name, p.Spec.Preemptor.Name, free, h.CPU)
	}
}

// busy reports whether something is still to be done.
func (w *world) busy() bool {
	for _, p := range w.plans {
		if !settled(p) {
			return true
		}
	}
	return false
}

// final looks at what must be so when nobody disturbs any more.
func (w *world) final(t *testing.T, bare map[string]bool) {
	for name := range bare {
		if w.pods[key("ns", name)] == nil {
			t.Errorf("pod %s is lost", name)
		}
	}
	for _, p := range w.plans {
		if active(p) || !settled(p) {
			t.Errorf("%s does not come to an end: %+v", p.Name, p.Status)
		}
	}
	for name, j := range w.jobs {
		if j.Annotations[codec.AnnotationSuspendedBy] != "" {
			t.Errorf("Job %s is not resumed", name)
		}
	}
	for id, h := range w.holds {
		if h.State == claimed {
			t.Errorf("room is still kept for %s", id)
		}
	}
	for _, pod := range w.pods {
		if pod.Annotations[codec.AnnotationPreemptedBy] != "" && pod.Annotations[codec.AnnotationPreemptCount] == "" && pod.DeletionTimestamp == nil && pod.Status.Phase == "" {
			t.Errorf("pod %s is marked, and runs", pod.Name)
		}
	}
}
