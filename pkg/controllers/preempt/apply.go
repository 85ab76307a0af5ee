package preempt

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
)

// apply does a step.
func (r *round) apply(ctx context.Context, p *v1alpha1.Preemption, s *seen, todo *step) error {
	ctx, stop := context.WithTimeout(ctx, callTime*mostSteps)
	defer stop()
	if todo.remove {
		return r.Plans.Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}})
	}
	p, err := r.write(ctx, p, todo.status)
	if err != nil {
		return err
	}
	if err := r.markAll(ctx, p, s, todo.deeds); err != nil {
		return err
	}
	var errs []error
	for _, d := range todo.deeds {
		r.deeds--
		if p, err = r.do(ctx, p, s, d); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// write writes the status on the version that was read, and tells what is new in it.
func (r *round) write(ctx context.Context, p *v1alpha1.Preemption, status *v1alpha1.PreemptionStatus) (*v1alpha1.Preemption, error) {
	if status == nil {
		return p, nil
	}
	r.deeds--
	other := *p
	other.Status = *status
	written, err := r.Plans.UpdateStatus(ctx, &other, metav1.UpdateOptions{})
	if err != nil {
		return p, fmt.Errorf("write the status: %w", err)
	}
	if active(p) && !active(written) && written.Status.Phase != v1alpha1.PreemptionBound {
		r.Ledger.Unclaim(gpu.PodID(p.Spec.Preemptor.UID))
	}
	r.tell(p, written)
	r.measure(p, written)
	return written, nil
}

// measure counts what is new.
func (r *round) measure(before, after *v1alpha1.Preemption) {
	if active(before) && !active(after) {
		r.Ended(after.Status.Phase, r.Now().Sub(after.CreationTimestamp.Time))
	}
	for i := range after.Status.Victims {
		if after.Status.DrainingSince != nil && after.Status.Victims[i].State == v1alpha1.VictimSucceeded && before.VictimState(i) != v1alpha1.VictimSucceeded {
			r.Meter.Disrupted(r.Now().Sub(after.Status.DrainingSince.Time))
		}
	}
}

// do does one deed, and returns the Preemption as it is after it.
func (r *round) do(ctx context.Context, p *v1alpha1.Preemption, s *seen, d deed) (*v1alpha1.Preemption, error) {
	who := &p.Spec.Preemptor
	target := engine.Target{Pod: gpu.PodID(who.UID), Namespace: who.Namespace, Name: who.Name, Node: gpu.NodeID(p.Spec.Node)}
	switch d.act {
	case nominate:
		r.memory.tried[who.UID] = r.Now()
		_, err := r.Nominate(ctx, target, "pods have ended to make room for it")
		return p, err
	case withdraw:
		return p, r.Withdraw(ctx, target)
	}
	v, seen := &p.Spec.Victims[d.victim], &s.victims[d.victim]
	switch d.act {
	case ask:
		return p, r.ask(ctx, p, v, seen)
	case unmark:
		_, err := r.Pods.Annotate(ctx, seen.pod, map[string]any{codec.AnnotationPreemptedBy: nil})
		return p, err
	case force:
		return p, r.Pods.Kill(ctx, seen.pod)
	case remake:
		return r.remake(ctx, p, d.victim)
	case count:
		return p, r.count(ctx, p, v, seen)
	case unsuspend:
		return p, r.unsuspend(ctx, seen)
	}
	return p, fmt.Errorf("deed %d is unknown", d.act)
}

// markAll marks all who are to be asked, before the first of them is. A mark is of the
// version that was looked at: of who has changed since, and may not be ended any more,
// the others are not ended in vain.
func (r *round) markAll(ctx context.Context, p *v1alpha1.Preemption, s *seen, deeds []deed) error {
	var errs []error
	for _, d := range deeds {
		if d.act != ask || s.victims[d.victim].marked {
			continue
		}
		r.deeds--
		v := &s.victims[d.victim]
		pod, err := r.Pods.Annotate(ctx, v.pod, map[string]any{codec.AnnotationPreemptedBy: mark(p, r.Now())})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		v.pod, v.marked = pod, true
	}
	return errors.Join(errs...)
}

// ask evicts the victim or suspends its Job. The request is of the version that the
// mark has left: if anything has changed between, the round decides anew.
func (r *round) ask(ctx context.Context, p *v1alpha1.Preemption, v *v1alpha1.Victim, seen *victim) error {
	if v.Mode == v1alpha1.VictimSuspend && v.Owner != nil {
		return r.suspend(ctx, p, seen)
	}
	err := r.Pods.Evict(ctx, seen.pod, false)
	if errors.Is(err, kube.ErrBlocked) {
		r.memory.tried[v.UID] = r.Now()
	}
	return err
}

// remake makes a pod anew that nobody else does. That there is one of its name is
// found out by the next look.
func (r *round) remake(ctx context.Context, p *v1alpha1.Preemption, i int) (*v1alpha1.Preemption, error) {
	v := &p.Spec.Victims[i]
	r.memory.tried[v.UID] = r.Now()
	if v.Pod == nil {
		return r.note(ctx, p, i, v1alpha1.VictimSucceeded, "there is no manifest to make it anew from")
	}
	manifest, err := explained(v.Pod.Raw, p, r.Now())
	if err == nil {
		_, err = r.Pods.Create(ctx, v.Namespace, manifest)
	}
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return p, nil
	case apierrors.IsNotFound(err):
		return r.note(ctx, p, i, v1alpha1.VictimSucceeded, "its namespace is gone")
	case refusal(err):
		return r.note(ctx, p, i, v1alpha1.VictimRefused, err.Error())
	}
	return p, err
}

// refusal reports whether the API server has understood what was asked, and has said
// no to just that.
func refusal(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err)
}

// note writes what came of making the victim anew, if it is news.
func (r *round) note(ctx context.Context, p *v1alpha1.Preemption, i int, s v1alpha1.VictimState, why string) (*v1alpha1.Preemption, error) {
	status := p.Status.DeepCopy()
	v := &status.Victims[i]
	why = shorten(why, 512)
	if v.State == s && v.Message == why {
		return p, nil
	}
	if v.State != s {
		v.Since = at(r.Now())
	}
	v.State, v.Message = s, why
	return r.write(ctx, p, status)
}

// count tells a successor how often its lives were ended, and for whom the last. It is read anew: what is
// known of it may be old.
func (r *round) count(ctx context.Context, p *v1alpha1.Preemption, v *v1alpha1.Victim, seen *victim) error {
	r.memory.tried[v.UID] = r.Now()
	pod, err := r.Pods.Get(ctx, seen.heir.Namespace, seen.heir.Name)
	if err != nil || pod.UID != seen.heir.UID || counted(pod) >= int(v.Count) && pod.Annotations[codec.AnnotationPreemptedBy] != "" {
		return err
	}
	_, err = r.Pods.Annotate(ctx, pod, map[string]any{codec.AnnotationPreemptCount: fmt.Sprint(max(counted(pod), int(v.Count))), codec.AnnotationPreemptedBy: mark(p, r.Now())})
	return err
}
