package preempt

import (
	"errors"
	"fmt"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// ErrStale means that the world is another than the one the plan was made for. It is
// planned anew; nobody is ended.
var ErrStale = errors.New("the plan does not hold any more")

// Certify proves the plan in this World: every victim may be ended, no unit is torn
// apart, the placement fits with all victims gone, and without any one of them going,
// or with nobody ended, the Asker does not fit the node.
func Certify(w *World, p *Plan) error {
	if err := certify(w, p); err != nil {
		return fmt.Errorf("plan for pod %s/%s on %s: %w: %w", p.Asker.Namespace, p.Asker.Name, p.Placement.Node, err, ErrStale)
	}
	return nil
}

func certify(w *World, p *Plan) error {
	if why := never(w, &p.Asker); why != "" {
		return errors.New(why)
	}
	n, ok := w.State.Node(p.Placement.Node)
	switch {
	case !ok:
		return errors.New("the node is gone")
	case w.Suits != nil && !w.Suits(&p.Asker, n.ID):
		return errors.New("kube-scheduler's own rules keep the pod off the node")
	}
	l := newInquiry(w, &p.Asker, nil)
	victims, err := l.check(p.Victims)
	if err != nil {
		return err
	}
	if l.tooMany(victims) >= 0 {
		return errors.New("more pods of a tenant would be ended than may within the hour")
	}
	return l.prove(p, victims)
}

// check returns the victims as entries, or why one of them is none.
func (l *inquiry) check(victims []Pod) ([]entry, error) {
	var all []entry
	for i := range victims {
		v := &victims[i]
		if !holds(l.w.State, v) {
			return nil, fmt.Errorf("victim %s/%s holds nothing on %s", v.Namespace, v.Name, v.Node)
		}
		if why := Bars(l.w, l.a, v); why != "" {
			return nil, fmt.Errorf("victim %s/%s may not be ended: %s", v.Namespace, v.Name, why)
		}
		if v.Unit == "" {
			all = append(all, entry{[]*Pod{v}, int64(v.Priority)})
			continue
		}
		for _, m := range l.round.units[v.Unit] {
			if !slices.ContainsFunc(victims, func(o Pod) bool { return o.ID == m.ID }) {
				return nil, fmt.Errorf("victim %s/%s goes with %s/%s, which is none", v.Namespace, v.Name, m.Namespace, m.Name)
			}
		}
		if !slices.ContainsFunc(all, func(e entry) bool { return e.pods[0].Unit == v.Unit }) {
			all = append(all, entry{pods: l.round.units[v.Unit]})
		}
	}
	return all, nil
}

func (l *inquiry) prove(p *Plan, victims []entry) error {
	w, node := l.w, p.Placement.Node
	after := without(w.State, node, victims, nil)
	if !fits(l.trial, after, node, &l.a.Request) {
		return errors.New("it does not fit even then")
	}
	if _, err := after.With(p.Placement); err != nil {
		return err
	}
	n, _ := w.State.Node(node)
	base := l.base(n)
	if fits(l.trial, w.State, node, &l.a.Request) || fits(l.trial, base, node, &l.a.Request) {
		return errors.New("it fits without anybody being ended")
	}
	gone := slices.Repeat([]bool{true}, len(victims))
	for i := range victims {
		gone[i] = false
		if fits(l.trial, without(base, node, victims, gone), node, &l.a.Request) {
			v := victims[i].pods[0]
			return fmt.Errorf("victim %s/%s need not go", v.Namespace, v.Name)
		}
		gone[i] = true
	}
	return nil
}

// IDs returns those of the victims, as Ledger.Claim wants them.
func (p *Plan) IDs() []gpu.PodID {
	ids := make([]gpu.PodID, len(p.Victims))
	for i := range p.Victims {
		ids[i] = p.Victims[i].ID
	}
	return ids
}
