package window

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/window"
)

// kept returns what is kept for the members that come back, as the status has it and, of
// one that sleeps, as it is.
func (p *pass) kept(members []gpu.Placement) (*v1alpha1.TaskGroupKept, []holding) {
	old := p.group.Status.Kept
	had := p.holdings(old)
	switch {
	case p.unreadable():
		if old == nil {
			return nil, nil
		}
		return kept(had, old.From.Time, p.now), nil
	case p.deleting() && p.record == nil, p.target != nil && p.target.UID == "", p.record != nil && p.record.Action == window.Stop:
		return nil, nil // nobody comes back
	case p.asleep():
		opening, ok := p.transition(p.now)
		if !ok || !opening.Opens {
			return nil, nil
		}
		closing := p.closing()
		if closing {
			had = keep(p.holds(members), had, p.record.Image.Replicas)
		}
		had = trim(had, members, p.record.Image.Replicas, false)
		if closing || old != nil && !old.From.After(p.now) { // or it has not counted since then
			had = p.affordable(had)
		}
		next := kept(had, opening.At, p.now)
		if next == nil {
			return nil, nil
		}
		return next, had[:len(next.Members)]
	case old == nil:
		return nil, nil
	}
	from := old.From.Time
	if from.After(p.now) {
		from = p.now // it has opened before it was to
	}
	return kept(trim(had, members, p.wanted(), true), from, p.now), nil
}

// letGo has nothing kept any more that was kept for long enough. It is for a pass that
// failed: a target that cannot be read or written takes no cards back.
func (p *pass) letGo(ctx context.Context) {
	s := p.group.Status
	if s.Kept == nil || p.now.Sub(s.Kept.From.Time) < patience {
		return
	}
	s.Kept = nil
	if err := p.write(ctx, s); err != nil {
		klog.FromContext(ctx).V(2).Info("cards are still kept for a TaskGroup", "taskGroup", klog.KRef(p.name.Namespace, p.name.Name), "cause", err)
	}
}

// closing reports whether the image has just been taken.
func (p *pass) closing() bool {
	was := decodeRecord(p.group.Status.Action)
	return was == nil || was.Action == window.Stop || was.Phase == window.Restoring || was.Target != p.record.Target
}

// wanted is how many replicas there are to be once all are back.
func (p *pass) wanted() int32 {
	var n int32
	if p.target != nil {
		n = p.target.State.Replicas
	}
	if p.record != nil && p.record.Action != window.Stop {
		n = max(n, p.record.Image.Replicas)
	}
	for _, step := range p.plan.Steps { // that writes it back
		if set, ok := step.(window.SetReplicas); ok {
			n = max(n, int32(set))
		}
	}
	return n
}

// holds returns what the members have, as far as that can be written down.
func (p *pass) holds(members []gpu.Placement) []holding {
	var all []holding
	for i := range members {
		m := &members[i]
		text, err := p.Encode(m)
		if err != nil || len(m.Grants) == 0 {
			continue // it has none, or what no record of ours says
		}
		all = append(all, holding{v1alpha1.TaskGroupMember{UID: types.UID(m.Pod), Node: string(m.Node), Allocation: text}, *m})
	}
	return all
}

// holdings returns what is kept, as far as it can be read.
func (c *Controller) holdings(k *v1alpha1.TaskGroupKept) []holding {
	if k == nil {
		return nil
	}
	var all []holding
	for i := range k.Members {
		if placement, err := c.Decode(&k.Members[i]); err == nil {
			all = append(all, holding{k.Members[i], placement})
		}
	}
	return all
}

// spending is what members with what is kept would be charged for.
func (c *Controller) spending(k *v1alpha1.TaskGroupKept) (sum gpu.Spending) {
	all := c.holdings(k)
	for i := range all {
		sum = sum.Plus(all[i].placement.Spending())
	}
	return sum
}
