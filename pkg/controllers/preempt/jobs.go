package preempt

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
)

// resumePace is between two looks at one suspended Job, and between two Jobs that are
// resumed: the pods of the first are there then, and the next is judged beside them.
const resumePace = 5 * time.Second

// job is the Job that owns victims.
type job struct {
	*batchv1.Job      // nil: there is none of that UID
	ours         bool // it is suspended, and by this Preemption
	over         bool // gone or finished
	fits         bool // and is resumed
}

// jobsDue reports whether p has a suspended Job that has not been looked at for a while.
func (r *round) jobsDue(p *v1alpha1.Preemption) bool {
	for i := range p.Spec.Victims {
		if v := &p.Spec.Victims[i]; v.Mode == v1alpha1.VictimSuspend && p.VictimState(i) == v1alpha1.VictimGone && r.Now().Sub(r.memory.tried[v.UID]) >= resumePace {
			return true
		}
	}
	return false
}

// lookAtJob sees how it is with the Job of a victim.
func (r *round) lookAtJob(ctx context.Context, p *v1alpha1.Preemption, i int, v *victim, live bool, jobs map[types.UID]*job) error {
	who := &p.Spec.Victims[i]
	if !live {
		v.suspended = p.VictimState(i) == v1alpha1.VictimGone // which has its own time to be looked at: jobsDue
		return nil
	}
	j := jobs[who.Owner.UID]
	if j == nil {
		found, err := r.findJob(ctx, p, who)
		if err != nil {
			return err
		}
		j, jobs[who.Owner.UID] = found, found
	}
	if p.VictimState(i) == v1alpha1.VictimGone {
		r.memory.tried[who.UID] = r.Now()
	}
	v.job, v.suspended, v.ownerGone, v.fits = j.Job, j.ours, j.over, j.fits
	return nil
}

// findJob asks for the Job, and whether it is to be resumed now.
func (r *round) findJob(ctx context.Context, p *v1alpha1.Preemption, who *v1alpha1.Victim) (*job, error) {
	found, err := r.Jobs.Get(ctx, who.Namespace, who.Owner.Name)
	if apierrors.IsNotFound(err) || err == nil && found.UID != who.Owner.UID {
		return &job{over: true}, nil
	}
	if err != nil {
		return nil, err
	}
	j := &job{Job: found, over: kube.JobOver(found)}
	j.ours = !j.over && suspended(found) && found.Annotations[codec.AnnotationSuspendedBy] == p.Name
	j.fits = j.ours && allGone(p, who.Owner.UID) && r.Now().Sub(r.memory.resumed) >= resumePace && r.Resume(found.Namespace, &found.Spec.Template, parallelism(found))
	return j, nil
}

// allGone reports whether no victim of that owner is still being ended.
func allGone(p *v1alpha1.Preemption, owner types.UID) bool {
	for i := range p.Spec.Victims {
		if o := p.Spec.Victims[i].Owner; o != nil && o.UID == owner && p.VictimState(i) == v1alpha1.VictimEvicting {
			return false
		}
	}
	return true
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// parallelism returns how many pods of it run at once.
func parallelism(j *batchv1.Job) int32 {
	n := int32(1)
	if j.Spec.Parallelism != nil {
		n = *j.Spec.Parallelism
	}
	if j.Spec.Completions != nil {
		n = min(n, max(*j.Spec.Completions-j.Status.Succeeded, 0))
	}
	return n
}

// suspend suspends the Job of a victim, which ends all of its pods. One that its user
// has suspended ends them too, and stays his.
func (r *round) suspend(ctx context.Context, p *v1alpha1.Preemption, seen *victim) error {
	if seen.job == nil || suspended(seen.job) {
		return nil
	}
	now, err := r.Jobs.Get(ctx, seen.job.Namespace, seen.job.Name)
	if err != nil || now.UID != seen.job.UID || suspended(now) {
		return err // the Job of another victim of this step, as a rule
	}
	return r.Jobs.Suspend(ctx, now, true, map[string]any{codec.AnnotationSuspendedBy: p.Name})
}

// unsuspend resumes the Job, of the version that was seen to be suspended by us.
func (r *round) unsuspend(ctx context.Context, seen *victim) error {
	if seen.job == nil || !seen.suspended {
		return nil
	}
	r.memory.resumed = r.Now()
	return r.Jobs.Suspend(ctx, seen.job, false, map[string]any{codec.AnnotationSuspendedBy: nil})
}
