package preempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// plan plans for those who have been refused, the most important first. What it has no
// time for is first in the next round.
func (r *round) plan(ctx context.Context) {
	w := r.Base()
	if w.Rules.Stage == preempt.Disabled {
		return
	}
	askers, more := r.askers()
	if len(askers) == 0 {
		r.memory.cursor = rank{}
		return
	}
	r.furnish(&w)
	left, until := mostActive-r.countActive(), r.Now().Add(planningTime)
	for i := range askers {
		if left <= 0 || r.deeds <= 0 || ctx.Err() != nil || r.Now().After(until) {
			return
		}
		a := &askers[i]
		r.memory.cursor = rankOf(a)
		begun, err := r.planFor(ctx, &w, a)
		if err != nil {
			r.memory.failed[types.UID(a.Pod)] = r.Now()
			klog.FromContext(ctx).Error(err, "no pods are ended for a pod", "pod", klog.KRef(a.Namespace, a.Name), "podUID", a.Pod)
		}
		if begun {
			left--
		}
	}
	if !more {
		r.memory.cursor = rank{} // all have had their turn
	}
}

func (r *round) countActive() (n int) {
	for _, p := range r.all {
		if active(p) {
			n++
		}
	}
	return n
}

// askers returns those for whom the round plans: from behind the one that was the last
// of the round before, if that could not plan for all; more says that this one cannot.
func (r *round) askers() (askers []preempt.Asker, more bool) {
	for _, pod := range r.refused() {
		if len(askers) == mostAskers {
			return askers, true
		}
		if a, asks := r.Codec.Asking(pod); asks {
			askers = append(askers, a)
		}
	}
	return askers, false
}

// refused returns the pods that wait for a node and for whom something may be done
// now, in the order of planning, from behind the cursor.
func (r *round) refused() (pods []*corev1.Pod) {
	resting := restOf(r.all)
	for _, pod := range r.pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || r.Now().Before(resting[pod.UID]) || !r.ripe(pod) {
			continue
		}
		if _, holds := r.Ledger.Hold(gpu.PodID(pod.UID)); holds {
			continue // room is kept for it, or it is being bound
		}
		if _, failed := r.memory.failed[pod.UID]; failed {
			continue
		}
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return place(a).compare(place(b)) })
	if from := r.memory.cursor; from != (rank{}) {
		i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return place(pod).compare(from) > 0 })
		return pods[max(i, 0):] // behind the last one begins the next turn
	}
	return pods
}

// place returns where a pod comes in the order of planning, which is where its Asker
// does.
func place(pod *corev1.Pod) rank {
	var priority int32
	if pod.Spec.Priority != nil {
		priority = clamped(*pod.Spec.Priority)
	}
	return rank{priority, pod.CreationTimestamp.Time, string(pod.UID)}
}

func rankOf(a *preempt.Asker) rank { return rank{priorityOf(a), a.Created, string(a.Pod)} }

// priorityOf is the priority by which an asker has others ended: never more than what
// we give.
func priorityOf(a *preempt.Asker) int32 { return clamped(a.Priority) }

func clamped(priority int32) int32 { return min(max(priority, 0), tenancy.MostPriority) }

// ripe reports whether the pod has been refused for so long that kube-scheduler has
// had another chance at it.
func (r *round) ripe(pod *corev1.Pod) bool {
	since := pod.CreationTimestamp.Time
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return r.Now().Sub(since) >= time.Second
}

// furnish adds who is where, and what has been. Victims that have been asked to go are
// taken for going, whether that has been seen or not.
func (r *round) furnish(w *preempt.World) {
	asked := map[types.UID]bool{}
	for _, p := range r.all {
		for i := range p.Spec.Victims {
			if s := p.VictimState(i); s == v1alpha1.VictimChosen || s == v1alpha1.VictimEvicting {
				asked[p.Spec.Victims[i].UID] = true
			}
		}
	}
	r.least = tenancy.MostPriority
	w.Pods, w.Now, w.History, w.Blocked = map[gpu.NodeID][]preempt.Pod{}, r.Now(), history(r.all), blocked(r.all)
	for _, pod := range r.pods {
		if pod.Spec.NodeName == "" || codec.Terminal(pod) {
			continue
		}
		bound := r.Codec.Bound(pod)
		if until, is := r.memory.barred[pod.UID]; is && until.After(w.Blocked[bound.ID]) {
			w.Blocked[bound.ID] = until
		}
		if bound.Ours && bound.Preemptible {
			r.least = min(r.least, bound.Priority)
		}
		if asked[pod.UID] {
			bound.Phase = preempt.Ending
		}
		w.Pods[bound.Node] = append(w.Pods[bound.Node], bound)
	}
	r.join(w.Pods)
}

// join has all pods of a Job that would be suspended go together, whether they say so
// themselves or not: they would all be ended.
func (r *round) join(all map[gpu.NodeID][]preempt.Pod) {
	units := map[string]string{} // Job -> unit
	for _, pods := range all {
		for i := range pods {
			if pods[i].Mode == preempt.Suspend {
				units[pods[i].Lineage] = pods[i].Unit
			}
		}
	}
	if len(units) == 0 {
		return
	}
	of := map[gpu.PodID]string{} // pod -> unit of its Job
	for _, pod := range r.pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && units[string(owner.UID)] != "" {
			of[gpu.PodID(pod.UID)] = units[string(owner.UID)]
		}
	}
	for _, pods := range all {
		for i := range pods {
			if p := &pods[i]; p.Unit == "" {
				p.Unit = of[p.ID]
			}
		}
	}
}

// planFor plans for one, and reports whether pods are going to be ended for it.
func (r *round) planFor(ctx context.Context, w *preempt.World, a *preempt.Asker) (begun bool, err error) {
	w.State = r.Ledger.Snapshot()
	before := r.Now()
	plan, outcome := r.Planner.Plan(w, a)
	r.Meter.PreemptionPlanning(r.Now().Sub(before))
	if outcome != preempt.Planned {
		r.explain(a, outcome)
		return false, nil
	}
	if len(plan.Victims) > mostVictims {
		return false, fmt.Errorf("%d pods would have to be ended, and at most %d are", len(plan.Victims), mostVictims)
	}
	p, err := r.draft(ctx, &plan)
	switch {
	case errors.Is(err, errUnfit): // and the next round plans without it
		klog.FromContext(ctx).Info("a pod is not ended for another", "pod", klog.KRef(a.Namespace, a.Name), "podUID", a.Pod, "reason", err.Error())
		return false, nil
	case err != nil:
		return false, err
	}
	if err := r.Planner.Certify(w, &plan); err != nil {
		return false, fmt.Errorf("the plan does not hold: %w", err)
	}
	if err := r.begin(ctx, p, &plan); err != nil {
		return false, err
	}
	return true, nil
}

// begin has the room kept, and writes the plan down. Only then is anybody asked to go.
func (r *round) begin(ctx context.Context, p *v1alpha1.Preemption, plan *preempt.Plan) error {
	if err := r.Ledger.Claim(plan.Placement, plan.IDs()); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	r.deeds--
	made, err := r.Plans.Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		// If it has been made all the same, the room is claimed again when it is seen.
		r.Ledger.Unclaim(plan.Placement.Pod)
		return fmt.Errorf("write down the plan: %w", err)
	}
	r.Meter.PreemptionPlanned(len(made.Spec.Victims))
	r.memory.made[made.Name], r.memory.mine[made.Name] = made, r.Now()
	klog.FromContext(ctx).Info("pods are ended for another", "pod", klog.KRef(p.Spec.Preemptor.Namespace, p.Spec.Preemptor.Name), "podUID", p.Spec.Preemptor.UID,
		"node", p.Spec.Node, "victims", len(p.Spec.Victims), "preemption", p.Name)
	return nil
}

// errUnfit means that a victim cannot be one: it is not any more as it was when it was
// chosen, or could not be made anew. For a while it is not chosen again.
var errUnfit = errors.New("it is left alone")

// draft returns the Preemption that says what the plan is. Victims are read anew for
// it: from what is said there they are made again.
func (r *round) draft(ctx context.Context, plan *preempt.Plan) (*v1alpha1.Preemption, error) {
	allocation, err := r.Codec.Allocation(&plan.Placement)
	if err != nil {
		return nil, err
	}
	a := &plan.Asker
	p := &v1alpha1.Preemption{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.PreemptionKind},
		ObjectMeta: metav1.ObjectMeta{Name: r.nameFor(string(a.Pod))},
		Spec: v1alpha1.PreemptionSpec{
			Preemptor: v1alpha1.PreemptionPod{Namespace: a.Namespace, Name: a.Name, UID: types.UID(a.Pod), Priority: priorityOf(a), Lineage: a.Lineage},
			Node:      string(plan.Placement.Node), Allocation: allocation, MilliCPU: int64(plan.Placement.CPU), MemoryBytes: int64(plan.Placement.Memory),
			VictimCount: int32(len(plan.Victims)), Rule: ruleOf(plan),
		},
	}
	for i := range plan.Victims {
		v, err := r.victimOf(ctx, &plan.Victims[i], a)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", plan.Victims[i].Namespace, plan.Victims[i].Name, err)
		}
		p.Spec.Victims = append(p.Spec.Victims, v)
	}
	return p, r.storable(p, plan)
}

// mostManifests bounds the manifests of one Preemption, in bytes: the API server takes
// no object that is much longer.
const mostManifests = 768 << 10

// storable reports whether the plan can be written down; if not, the pod with the
// longest manifest is left alone for a while.
func (r *round) storable(p *v1alpha1.Preemption, plan *preempt.Plan) error {
	sum, longest, most := 0, 0, -1
	for i := range p.Spec.Victims {
		if pod := p.Spec.Victims[i].Pod; pod != nil {
			sum += len(pod.Raw)
			if len(pod.Raw) > most {
				longest, most = i, len(pod.Raw)
			}
		}
	}
	if sum <= mostManifests {
		return nil
	}
	return r.unfit(&plan.Victims[longest], barTime, fmt.Sprintf("pod %s: it and others take too much to write down", nameOf(&p.Spec.Victims[longest].PreemptionPod)))
}

// nameFor returns a name that no Preemption for that pod has had.
func (r *round) nameFor(pod string) string {
	n := 1
	for _, p := range r.all {
		if string(p.Spec.Preemptor.UID) == pod {
			n++
		}
	}
	return fmt.Sprintf("%s-%d-%x", pod, n, r.Now().UnixMilli())
}

// victimOf returns what is written down of a victim.
func (r *round) victimOf(ctx context.Context, v *preempt.Pod, a *preempt.Asker) (v1alpha1.Victim, error) {
	pod, err := r.Pods.Get(ctx, v.Namespace, v.Name)
	if err != nil {
		return v1alpha1.Victim{}, err
	}
	if fateOf(pod, types.UID(v.ID)) != alive {
		return v1alpha1.Victim{}, r.unfit(v, failTime, "it ends by itself")
	}
	now := r.Codec.Bound(pod)
	if why := exempt(&now, priorityOf(a)); why != "" {
		return v1alpha1.Victim{}, r.unfit(v, failTime, why)
	}
	hold, _ := r.Ledger.Hold(v.ID)
	out := v1alpha1.Victim{
		PreemptionPod: v1alpha1.PreemptionPod{Namespace: v.Namespace, Name: v.Name, UID: pod.UID, Priority: now.Priority, Lineage: now.Lineage},
		Node:          pod.Spec.NodeName, Tenant: string(hold.Tenant), GraceSeconds: int64(now.Grace / time.Second), Mode: v1alpha1.VictimEvict,
		Count: int32(now.Count + 1), Owner: metav1.GetControllerOf(pod),
	}
	if now.Mode == preempt.Suspend && out.Owner != nil {
		out.Mode = v1alpha1.VictimSuspend
	}
	if out.Owner == nil {
		manifest, err := r.Codec.Manifest(pod, int(out.Count))
		if err != nil {
			return v1alpha1.Victim{}, r.unfit(v, barTime, err.Error())
		}
		out.Pod = &runtime.RawExtension{Raw: manifest}
	}
	return out, nil
}

// unfit has the pod left alone for a while.
func (r *round) unfit(v *preempt.Pod, d time.Duration, why string) error {
	r.memory.barred[types.UID(v.ID)] = r.Now().Add(d)
	return fmt.Errorf("%w: %s", errUnfit, why)
}

// ruleOf says in words how the victims were chosen, and what was rejected: nodes that
// were rejected alike are named together.
func ruleOf(p *preempt.Plan) string {
	text := strings.Builder{}
	fmt.Fprintf(&text, "of lower priority and preemptible, the fewest that make room on node %s", p.Placement.Node)
	told := map[string]bool{}
	for _, rejected := range p.Rejected {
		if !told[rejected.Why] {
			told[rejected.Why] = true
			fmt.Fprintf(&text, "; not %s: %s", strings.Join(alike(p.Rejected, rejected.Why), ", "), rejected.Why)
		}
	}
	return shorten(text.String(), 2048)
}

// alike returns the nodes that were rejected for that.
func alike(all []preempt.Rejection, why string) (nodes []string) {
	for _, r := range all {
		if r.Why == why {
			nodes = append(nodes, string(r.Node))
		}
	}
	return nodes
}
