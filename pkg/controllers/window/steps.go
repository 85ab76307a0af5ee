package window

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/window"
)

// claim returns what the group has to do with the target, nil if nothing.
func claim(g *v1alpha1.TaskGroup, target *v1alpha1.TaskGroupTarget) *window.Claim {
	record, ref := g.Status.Action, g.Spec.ScaleTargetRef
	holds := record != nil && same(&record.Target, target)
	rules := g.DeletionTimestamp == nil && len(g.Spec.Windows) > 0 && ref != nil && same(ref, target)
	if !holds && !rules {
		return nil
	}
	return &window.Claim{Name: g.Namespace + "/" + g.Name, Created: g.CreationTimestamp.Time, Holds: holds}
}

// do does one step.
func (p *pass) do(ctx context.Context, step window.Step) error {
	if took := p.Now().Sub(p.now); took > passTime {
		return fmt.Errorf("it has taken %s so far: somebody else may lead", took.Round(time.Second))
	}
	err := p.take(ctx, step)
	outcome := metrics.WindowDone
	switch {
	case changed(err):
		outcome = metrics.WindowConflict
	case err != nil:
		outcome = metrics.WindowFailed
	default:
		p.done(ctx, step)
	}
	p.Meter.WindowStep(nameOf(step), outcome)
	return err
}

// done notes what was done, and how long after the moment for it the first of it was.
func (p *pass) done(ctx context.Context, step window.Step) {
	if due := p.before.Next; !p.begun && due != nil && !due.At.After(p.now) {
		p.Meter.WindowLag(p.Now().Sub(due.At.Time))
	}
	p.begun = true
	switch step.(type) {
	case window.SetHPA, window.SetKEDA, window.SetReplicas:
		p.log(ctx, step)
	}
}

func (p *pass) take(ctx context.Context, step window.Step) error {
	switch step := step.(type) {
	case window.Save:
		return p.save(ctx, window.Record(step))
	case window.Forget:
		p.record = nil
		return p.say(ctx)
	case window.SetHPA:
		return p.Targets.SetHPA(ctx, p.target, window.Bounds(step))
	case window.SetKEDA:
		return p.Targets.SetKEDA(ctx, p.target, string(step))
	case window.SetReplicas:
		return p.Targets.SetReplicas(ctx, p.target, int32(step))
	}
	return fmt.Errorf("a step %T is not known", step)
}

// save writes the record, and before the first one that the group is not to go while
// there is one.
func (p *pass) save(ctx context.Context, r window.Record) error {
	if has := slices.Contains(p.group.Finalizers, v1alpha1.TaskGroupFinalizer); !has && !p.deleting() {
		if err := p.finalize(ctx, append(slices.Clone(p.group.Finalizers), v1alpha1.TaskGroupFinalizer)); err != nil {
			return err
		}
	}
	p.record = &r
	return p.say(ctx)
}

func nameOf(step window.Step) metrics.WindowStep {
	switch step.(type) {
	case window.Save:
		return metrics.WindowSave
	case window.Forget:
		return metrics.WindowForget
	case window.SetHPA:
		return metrics.WindowHPA
	case window.SetKEDA:
		return metrics.WindowKEDA
	}
	return metrics.WindowReplicas
}
