package preempt

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// round is one look at everything.
type round struct {
	*Controller
	all    []*v1alpha1.Preemption
	pods   []*corev1.Pod
	deeds  int                         // that may be done yet
	least  int32                       // priority of those who say that they may be ended
	owners map[types.UID][]*corev1.Pod // controller -> the pods that it has made; nil: not looked at
}

// advance does for one Preemption what can be done now. That there is something to do
// is seen from memory; what, is decided by what the API server says.
func (r *round) advance(ctx context.Context, p *v1alpha1.Preemption) error {
	s, err := r.look(ctx, p, false)
	if err != nil {
		return err
	}
	if todo := next(p, s, r.Now()); todo.waits() && !r.jobsDue(p) {
		return nil
	}
	for range mostSteps {
		p, err := r.Plans.Get(ctx, p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // somebody has deleted it
		}
		if err != nil {
			return err
		}
		if s, err = r.look(ctx, p, true); err != nil {
			return errors.Join(passing(err), r.abandon(ctx, p))
		}
		todo := next(p, s, r.Now())
		if todo.waits() {
			return nil
		}
		if err := r.apply(ctx, p, s, &todo); err != nil {
			return passing(err)
		}
	}
	return nil
}

// abandon ends a preemption of which not everything can be seen, if the preemptor needs
// it no more: room that is kept must not hang on that. What is owed to victims is not
// touched.
func (r *round) abandon(ctx context.Context, p *v1alpha1.Preemption) error {
	if !active(p) {
		return nil
	}
	s := &seen{}
	if err := r.lookAtPreemptor(ctx, p, s, true); err != nil || s.preemptor == waiting {
		return passing(err)
	}
	d := decision{spec: &p.Spec, status: p.Status.DeepCopy(), seen: s, now: r.Now()}
	d.complete()
	if s.preemptor == here {
		d.move(v1alpha1.PreemptionBound, "")
	} else {
		d.move(v1alpha1.PreemptionRolledBack, "the pod does not wait for it any more")
	}
	d.status.EndedAt = at(d.now)
	_, err := r.write(ctx, p, d.status)
	return passing(err)
}

// passing drops an error that says no more than that the next round decides anew.
func passing(err error) error {
	if errors.Is(err, kube.ErrBlocked) || errors.Is(err, engine.ErrNoPod) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// look sees what is the case for p: live, by what the API server says, or by what has
// been seen.
func (r *round) look(ctx context.Context, p *v1alpha1.Preemption, live bool) (*seen, error) {
	s := &seen{planned: r.memory.mine[p.Name], tried: r.memory.tried[p.Spec.Preemptor.UID], victims: make([]victim, len(p.Spec.Victims))}
	if active(p) {
		if err := r.lookAtPreemptor(ctx, p, s, live); err != nil {
			return nil, err
		}
	}
	if phase(&p.Status) == v1alpha1.PreemptionPlanned && s.stale(r.Now()) {
		return s, nil // and if nothing can be learnt of them: they are spared
	}
	jobs := map[types.UID]*job{}
	for i := range p.Spec.Victims {
		switch p.VictimState(i) {
		case v1alpha1.VictimSpared, v1alpha1.VictimSucceeded:
			continue
		}
		if err := r.lookAtVictim(ctx, p, i, &s.victims[i], live, jobs); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pod returns the pod of that name, nil when there is none.
func (r *round) pod(ctx context.Context, namespace, name string, live bool) (*corev1.Pod, error) {
	get := r.PodLister.Pods(namespace).Get
	if live {
		get = func(name string) (*corev1.Pod, error) { return r.Pods.Get(ctx, namespace, name) }
	}
	pod, err := get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

func (r *round) lookAtPreemptor(ctx context.Context, p *v1alpha1.Preemption, s *seen, live bool) error {
	who, node := &p.Spec.Preemptor, p.Spec.Node
	pod, err := r.pod(ctx, who.Namespace, who.Name, live)
	if err != nil {
		return err
	}
	if s.preemptor = where(pod, who.UID, node); s.preemptor != waiting {
		return nil
	}
	s.suits, s.nominated = true, pod.Status.NominatedNodeName == node
	if a, asks := r.Codec.Asking(pod); asks {
		s.never, s.suits = a.Never, r.Base().Suits(&a, gpu.NodeID(node))
	}
	hold, has := r.Ledger.Hold(gpu.PodID(who.UID))
	s.binding = has && hold.State == ledger.Held
	switch {
	case has && hold.Node != gpu.NodeID(node):
		s.noRoom = "the pod holds room on node " + string(hold.Node)
	case !has && !live:
		s.noRoom = "it is not kept" // and so it is looked at more closely
	case !has:
		s.noRoom = r.claim(p)
	}
	return nil
}

// where returns where the pod is.
func where(pod *corev1.Pod, uid types.UID, node string) whereabouts {
	switch {
	case pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil:
		return gone
	case pod.Spec.NodeName == node:
		return here
	case pod.Spec.NodeName != "":
		return elsewhere
	case codec.Terminal(pod):
		return gone
	}
	return waiting
}

// claim has the ledger keep the room, or says why it does not.
func (r *round) claim(p *v1alpha1.Preemption) string {
	placement, err := r.Codec.Claim(p)
	if err == nil {
		err = r.Ledger.Claim(placement, victimsOf(p))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// victimsOf returns those that have not been spared.
func victimsOf(p *v1alpha1.Preemption) (ids []gpu.PodID) {
	for i := range p.Spec.Victims {
		if p.VictimState(i) != v1alpha1.VictimSpared {
			ids = append(ids, gpu.PodID(p.Spec.Victims[i].UID))
		}
	}
	return ids
}

func (r *round) lookAtVictim(ctx context.Context, p *v1alpha1.Preemption, i int, v *victim, live bool, jobs map[types.UID]*job) (err error) {
	who := &p.Spec.Victims[i]
	if v.pod, err = r.pod(ctx, who.Namespace, who.Name, live); err != nil {
		return err
	}
	v.tried = r.memory.tried[who.UID]
	v.fate = fateOf(v.pod, who.UID)
	_, v.held = r.Ledger.Hold(gpu.PodID(who.UID))
	if v.fate == alive {
		v.marked = marked(v.pod, p.Name)
	}
	if v.fate == alive && live {
		bound := r.Codec.Bound(v.pod)
		v.exempt = exempt(&bound, p.Spec.Preemptor.Priority)
		if err := r.rehearse(ctx, p, who, v); err != nil {
			return err
		}
	}
	if who.Mode == v1alpha1.VictimSuspend && who.Owner != nil {
		if err := r.lookAtJob(ctx, p, i, v, live, jobs); err != nil {
			return err
		}
	}
	if who.Owner != nil && p.VictimState(i) == v1alpha1.VictimGone && !v.suspended {
		v.heir = r.heir(p, who)
		v.heirCounts = v.heir != nil && counted(v.heir) >= int(who.Count)
	}
	return nil
}

// rehearse evicts the victim for a trial, before the first one is.
func (r *round) rehearse(ctx context.Context, p *v1alpha1.Preemption, who *v1alpha1.Victim, v *victim) error {
	if phase(&p.Status) != v1alpha1.PreemptionPlanned || who.Mode == v1alpha1.VictimSuspend || v.exempt != "" {
		return nil
	}
	err := r.Pods.Evict(ctx, v.pod, true)
	if v.blocked = errors.Is(err, kube.ErrBlocked); v.blocked {
		return nil
	}
	return err
}

// counted returns how often the lives of a pod were ended, as it says itself.
func counted(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[codec.AnnotationPreemptCount])
	if err != nil {
		return 0
	}
	return n
}

// heir returns the pod that the owner has made in the victim's place, nil when there
// is none yet. Each is the successor of one.
func (r *round) heir(p *v1alpha1.Preemption, who *v1alpha1.Victim) *corev1.Pod {
	if r.owners == nil {
		r.index()
	}
	made := r.owners[who.Owner.UID]
	known := r.memory.heirs[who.UID]
	if i := slices.IndexFunc(made, func(pod *corev1.Pod) bool { return pod.UID == known }); i >= 0 {
		return made[i]
	}
	var since time.Time
	if p.Status.DrainingSince != nil {
		since = p.Status.DrainingSince.Truncate(time.Second) // as creation timestamps are
	}
	for _, pod := range made {
		if !r.memory.isHeir(pod.UID) && !pod.CreationTimestamp.Time.Before(since) {
			r.memory.heirs[who.UID] = pod.UID
			return pod
		}
	}
	return nil
}

// index orders the pods by who has made them, but for victims.
func (r *round) index() {
	r.owners = map[types.UID][]*corev1.Pod{}
	victims := map[types.UID]bool{}
	for _, p := range r.all {
		for i := range p.Spec.Victims {
			victims[p.Spec.Victims[i].UID] = true
			if i < len(p.Status.Victims) && p.Status.Victims[i].Successor != "" {
				r.memory.heirs[p.Spec.Victims[i].UID] = p.Status.Victims[i].Successor
			}
		}
	}
	for _, pod := range r.pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && !victims[pod.UID] {
			r.owners[owner.UID] = append(r.owners[owner.UID], pod)
		}
	}
	for _, made := range r.owners {
		slices.SortFunc(made, byAge)
	}
}
