package window

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/window"
)

// change returns what the windows change next, nil if nothing: nor do they where the
// target is missing, or another group's.
func (p *pass) change(members []gpu.Placement, kept []holding) *v1alpha1.TaskGroupChange {
	rule := p.rule()
	t, ok := p.transition(p.now)
	if trouble := p.trouble(); !ok || p.unreadable() || trouble != nil && (trouble.Reason == window.TargetMissing || trouble.Reason == window.TargetTaken) {
		return nil
	}
	c := change{at: t.At, opens: t.Opens, forGood: rule.Action == window.Stop}
	out := &v1alpha1.TaskGroupChange{At: metav1.NewTime(t.At), Opens: t.Opens}
	if c.opens {
		c.cards = count(kept)
		c.forGood = c.forGood && p.record != nil
	} else {
		out.Replicas, c.cards = rule.Replicas, freed(members, rule.Replicas)
		if again, ok := p.transition(t.At); ok && rule.Action != window.Stop {
			out.Until = &metav1.Time{Time: again.At}
		}
	}
	if windows := p.group.Spec.Windows; len(windows) > 0 {
		out.TimeZone = windows[0].TimeZone
	}
	out.Cards, out.Text = c.cards, c.text(p.now, p.known.spec.zone)
	return out
}

// freed is how many cards are left behind at least if so many members stay.
func freed(members []gpu.Placement, stay int32) int64 {
	each := make([]int64, len(members))
	for i := range members {
		each[i] = devices(&members[i])
	}
	slices.Sort(each)
	var sum int64
	for _, n := range each[:max(len(each)-int(stay), 0)] {
		sum += n
	}
	return sum
}
