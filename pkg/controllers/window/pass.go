package window

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/window"
)

// pass is one look at one group, and what is done about it.
type pass struct {
	*Controller
	name  types.NamespacedName
	known *known

	now    time.Time           // by which all of it is decided
	group  *v1alpha1.TaskGroup // as the API server has it
	record *window.Record      // what is remembered in its status
	ref    *v1alpha1.TaskGroupTarget
	target *Target // nil: nothing is asked of one
	plan   window.Plan
	begun  bool                     // a step was done
	part   string                   // why not all is kept that members had, and is yet to be told; ""
	before v1alpha1.TaskGroupStatus // as it was read
}

// run looks, decides and applies. again says that there is more to be done at once.
func (p *pass) run(ctx context.Context) (again bool, err error) {
	p.now = seconds(p.Now())
	g, err := p.Client.Get(ctx, p.name.Namespace, p.name.Name)
	if apierrors.IsNotFound(err) {
		return false, nil // the cache will come to know
	}
	if err != nil {
		return false, err
	}
	p.group = g
	p.known.look(p.group)
	p.before, p.record = p.group.Status, decodeRecord(p.group.Status.Action)
	if err := p.decide(ctx); err != nil {
		return false, p.fail(ctx, "look at the target", err)
	}
	return p.apply(ctx)
}

func (p *pass) deleting() bool { return p.group.DeletionTimestamp != nil }

// leaving reports whether the record is of a target that is not the group's any more.
func (p *pass) leaving() bool {
	if p.record == nil {
		return false
	}
	ref := p.group.Spec.ScaleTargetRef
	return p.deleting() || ref == nil || !same(ref, &p.group.Status.Action.Target)
}

// rule is what the group asks for, of whatever target.
func (p *pass) rule() window.Rule {
	if p.deleting() {
		return window.Rule{}
	}
	return p.known.spec.rule
}

// transition is the first after that by what the group asks for.
func (p *pass) transition(after time.Time) (window.Transition, bool) {
	if p.deleting() {
		return window.Transition{}, false
	}
	return p.known.spec.next(after)
}

// unreadable reports whether nobody knows what the group asks for. One that is deleted
// asks for nothing.
func (p *pass) unreadable() bool { return p.known.spec.fault != nil && !p.deleting() }

// aim returns the target that the pass is about, nil if none, and the rule for it.
func (p *pass) aim() (*v1alpha1.TaskGroupTarget, window.Rule) {
	switch rule := p.rule(); {
	case p.leaving():
		return &p.group.Status.Action.Target, window.Rule{}
	case p.deleting(), rule.Schedule.Always() && p.record == nil && p.group.Status.Kept == nil && p.stayed() == nil:
		return nil, window.Rule{}
	default:
		return p.group.Spec.ScaleTargetRef, rule
	}
}

// decide finds out what is to be done.
func (p *pass) decide(ctx context.Context) error {
	if p.unreadable() {
		return nil
	}
	var rule window.Rule
	if p.ref, rule = p.aim(); p.ref == nil {
		p.plan = window.Decide(rule, nil, window.Seen{Target: "none"}, p.now)
		return nil
	}
	seen := window.Seen{TenantInactive: p.Inactive(p.group.Namespace)}
	var err error
	if seen.Contest, err = p.contest(ctx); err != nil {
		return fmt.Errorf("read who else has the target: %w", err)
	}
	if p.target, err = p.Targets.Get(ctx, p.group.Namespace, *p.ref); err != nil {
		return err
	}
	seen.Target, seen.State = string(p.target.UID), p.target.State
	p.plan = window.Decide(rule, p.record, seen, p.now)
	if p.leaving() && seen.Target == "" {
		p.plan.Steps = []window.Step{window.Forget{}} // there is nothing to be restored
	}
	awake := &p.plan.Conditions[0]
	if said := p.stayed(); said != nil && p.target.State.Replicas == 0 && (awake.Reason == window.InWindow || awake.Reason == window.AlwaysOpen) {
		*awake = window.Condition{Reason: window.StayedStopped, Message: said.Message}
	}
	return nil
}

// stayed is the condition that says that the service was left stopped; nil if none does.
// Nothing else is remembered of it, so that is said for as long as it has no replicas.
func (p *pass) stayed() *metav1.Condition {
	said := meta.FindStatusCondition(p.before.Conditions, v1alpha1.TaskGroupAwake)
	if said == nil || said.Reason != string(window.StayedStopped) {
		return nil
	}
	return said
}

// contest finds out who else has something to do with the target. The others are read
// from the API server too: one may have begun a moment ago.
func (p *pass) contest(ctx context.Context) (window.Contest, error) {
	all, err := p.Groups.TaskGroups(p.group.Namespace).List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		return window.Contest{}, err
	}
	mine := claim(p.group, p.ref)
	if mine == nil {
		return window.Contest{}, nil
	}
	claims := []window.Claim{*mine}
	for _, other := range p.rivals(all) {
		now, err := p.Client.Get(ctx, other.Namespace, other.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return window.Contest{}, err
		}
		if c := claim(now, p.ref); c != nil {
			claims = append(claims, *c)
		}
		if c := window.Contend(mine.Name, claims); c.Older != "" {
			return c, nil // whoever else there is
		}
	}
	return window.Contend(mine.Name, claims), nil
}

// rivals returns those of the groups that may have something to do with the target, the
// oldest first: of many that name one target, only the oldest asks for all of them.
func (p *pass) rivals(all []*v1alpha1.TaskGroup) (rivals []*v1alpha1.TaskGroup) {
	for _, other := range all {
		k := p.memory.groups[types.NamespacedName{Namespace: other.Namespace, Name: other.Name}]
		if other.Name != p.group.Name && (claim(other, p.ref) != nil || k.about(p.ref)) {
			rivals = append(rivals, other)
		}
	}
	slices.SortFunc(rivals, func(a, b *v1alpha1.TaskGroup) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return rivals
}

// apply does what was decided, and writes what there is to say.
func (p *pass) apply(ctx context.Context) (again bool, err error) {
	for _, step := range p.plan.Steps {
		if err := p.do(ctx, step); err != nil {
			return false, p.fail(ctx, "write "+string(nameOf(step)), err)
		}
	}
	if !p.deleting() || p.record != nil {
		if err := p.say(ctx); err != nil {
			return false, p.fail(ctx, "write the status", err)
		}
	}
	if p.record != nil {
		return false, nil
	}
	left := p.leftBehind()
	if i := slices.Index(p.group.Finalizers, v1alpha1.TaskGroupFinalizer); i >= 0 {
		err = p.finalize(ctx, slices.Delete(slices.Clone(p.group.Finalizers), i, i+1))
	}
	return left, err
}

// leftBehind reports whether the pass was about a target that is not the group's any
// more, so that its own has not been looked at.
func (p *pass) leftBehind() bool {
	ref := p.group.Spec.ScaleTargetRef
	return p.ref != nil && ref != nil && !p.deleting() && !same(ref, p.ref)
}

// finalize has the group keep these finalizers. A group that goes with the last is one
// that nobody needs to look at any more.
func (p *pass) finalize(ctx context.Context, finalizers []string) error {
	g, err := p.Client.SetFinalizers(ctx, p.group, finalizers)
	if apierrors.IsNotFound(err) && p.deleting() {
		return nil
	}
	if err != nil {
		return err
	}
	p.have(g)
	return nil
}

// have notes what the API server has now.
func (p *pass) have(g *v1alpha1.TaskGroup) {
	p.group = g
	p.known.note(g)
}

// next is when the group is to be looked at again, if nothing happens.
func (p *pass) next() time.Time {
	at := p.now.Add(period)
	if p.group == nil || p.unreadable() {
		return at
	}
	switch {
	case p.busy(), p.waking():
		at = p.now.Add(retry)
	case p.record != nil && p.record.Phase != window.Acted:
		at = p.now.Add(watching)
	}
	if t, ok := p.transition(p.now); ok && t.At.Before(at) {
		at = t.At
	}
	return at
}

// busy reports whether the pass waits for another group.
func (p *pass) busy() bool {
	return slices.ContainsFunc(p.plan.Conditions, func(c window.Condition) bool { return c.Reason == window.TargetBusy })
}

// waking reports whether members come back to what is kept for them.
func (p *pass) waking() bool {
	kept := p.group.Status.Kept
	return kept != nil && !p.asleep() && !kept.From.After(p.now)
}

// asleep reports whether the target is set to what it is outside the windows, to be
// restored inside.
func (p *pass) asleep() bool {
	return p.record != nil && p.record.Action != window.Stop && p.record.Phase != window.Restoring
}

// fail reports that a step could not be done, if the API server has an opinion on it.
func (p *pass) fail(ctx context.Context, what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if changed(err) {
		return err
	}
	p.letGo(ctx)
	if kube.Answered(err) {
		p.complain(ctx, err)
	}
	return err
}

// log is for what is done to targets.
func (p *pass) log(ctx context.Context, step window.Step) {
	klog.FromContext(ctx).Info("window", "taskGroup", klog.KRef(p.name.Namespace, p.name.Name), "target", p.ref.Kind+"/"+p.ref.Name,
		"step", fmt.Sprintf("%s %v", nameOf(step), step), "reason", p.state().Reason)
}
