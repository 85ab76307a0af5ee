package window

import (
	"context"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/window"
)

// Reasons of conditions and events, beside those of pkg/window. Alerts rely on them:
// add, never rename.
const (
	// ReasonAccepted and ReasonUnreadable are of the condition Accepted.
	ReasonAccepted   = "Accepted"
	ReasonUnreadable = "Unreadable"
	// ReasonAlone is of the condition Undisturbed where it is True.
	ReasonAlone = "Undisturbed"
	// ReasonSeveralAutoscalers: one of them is pinned, the others may act against it.
	ReasonSeveralAutoscalers = "SeveralAutoscalers"
	// ReasonStepFailed: the API server refuses what is to be read or written.
	ReasonStepFailed = "StepFailed"
)

// troubles are the reasons of which the condition Undisturbed tells.
func troubles() []window.Reason {
	return []window.Reason{window.EditedByHand, window.TenantInactive, window.TargetMissing, window.TargetTaken, window.TargetBusy}
}

// status returns what there is to say, with the record as it is now.
func (p *pass) status() v1alpha1.TaskGroupStatus {
	s := v1alpha1.TaskGroupStatus{
		ObservedGeneration: p.group.Generation, State: p.group.Status.State, Action: p.group.Status.Action, Conditions: slices.Clone(p.group.Status.Conditions),
	}
	members := p.Members(p.Group(p.group.Namespace, p.group.Name))
	s.Members = int32(len(members))
	for i := range members {
		s.Cards += devices(&members[i])
	}
	var all []holding
	if !p.unreadable() {
		s.Action = nil
		if p.record != nil {
			s.Action = encodeRecord(p.record, *p.ref)
		}
		s.State = string(p.state().Reason)
	}
	s.Kept, all = p.kept(members)
	s.Next = p.change(members, all)
	for _, c := range p.conditions() {
		c.ObservedGeneration, c.LastTransitionTime = p.group.Generation, metav1.NewTime(p.now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// state is what the condition Awake says.
func (p *pass) state() window.Condition {
	if len(p.plan.Conditions) == 0 {
		return window.Condition{Reason: window.InWindow}
	}
	return p.plan.Conditions[0]
}

func (p *pass) conditions() []metav1.Condition {
	if p.unreadable() {
		return []metav1.Condition{{Type: v1alpha1.TaskGroupAccepted, Status: metav1.ConditionFalse, Reason: ReasonUnreadable, Message: clip(p.memory.spec.fault.Error())}}
	}
	awake := metav1.Condition{Type: v1alpha1.TaskGroupAwake, Status: metav1.ConditionFalse, Reason: string(p.state().Reason), Message: clip(p.message())}
	if p.rule().Schedule.Open(p.now) {
		awake.Status = metav1.ConditionTrue
	}
	undisturbed := metav1.Condition{Type: v1alpha1.TaskGroupUndisturbed, Status: metav1.ConditionTrue, Reason: ReasonAlone}
	if trouble := p.trouble(); trouble != nil {
		undisturbed.Status, undisturbed.Reason, undisturbed.Message = metav1.ConditionFalse, string(trouble.Reason), clip(trouble.Message)
	}
	return []metav1.Condition{{Type: v1alpha1.TaskGroupAccepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted}, awake, undisturbed}
}

// message is what the condition Awake says in words. Why there is no target the one knows
// who has looked for it.
func (p *pass) message() string { return p.words(p.state()) }

func (p *pass) words(c window.Condition) string {
	if c.Reason == window.TargetMissing && p.target != nil && p.target.Missing != "" {
		return p.target.Missing
	}
	return c.Message
}

// trouble is the first thing that is in the way, nil if there is none.
func (p *pass) trouble() *window.Condition {
	for _, reason := range troubles() {
		for _, c := range p.plan.Conditions {
			if c.Reason == reason {
				return &window.Condition{Reason: c.Reason, Message: p.words(c)}
			}
		}
	}
	if p.target != nil && p.target.Ignored != "" {
		return &window.Condition{Reason: ReasonSeveralAutoscalers, Message: "more than one scales the target; left alone, and perhaps at work against the windows: " + p.target.Ignored}
	}
	return nil
}

// kept returns what is kept for the members that come back, as the status has it and as
// it is.
func (p *pass) kept(members []gpu.Placement) (*v1alpha1.TaskGroupKept, []holding) {
	old := p.group.Status.Kept
	had := p.holdings(old)
	switch {
	case p.unreadable():
		if old == nil {
			return nil, nil
		}
		return kept(had, old.From.Time, p.now), nil
	case p.deleting() && p.record == nil:
		return nil, nil
	case p.asleep():
		opening, ok := p.rule().Schedule.Next(p.now)
		if !ok || !opening.Opens {
			return nil, nil
		}
		if p.closing() {
			had = keep(p.holds(members), had, p.record.Image.Replicas)
		}
		had = trim(had, members, p.record.Image.Replicas, false)
		return kept(had, opening.At, p.now), had
	case old == nil:
		return nil, nil
	}
	from := old.From.Time
	if from.After(p.now) {
		from = p.now // it has opened before it was to
	}
	return kept(trim(had, members, p.wanted(), true), from, p.now), nil
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
		if err != nil {
			continue // it has what no record of ours says, and does not come back to it
		}
		all = append(all, holding{v1alpha1.TaskGroupMember{UID: types.UID(m.Pod), Node: string(m.Node), Allocation: text}, *m})
	}
	return all
}

// holdings returns what is kept, as far as it can be read.
func (p *pass) holdings(k *v1alpha1.TaskGroupKept) []holding {
	if k == nil {
		return nil
	}
	var all []holding
	for i := range k.Members {
		if placement, err := p.Decode(&k.Members[i]); err == nil {
			all = append(all, holding{k.Members[i], placement})
		}
	}
	return all
}

// change returns what the windows change next, nil if nothing: nor do they where the
// target is missing, or another group's.
func (p *pass) change(members []gpu.Placement, kept []holding) *v1alpha1.TaskGroupChange {
	rule := p.rule()
	t, ok := rule.Schedule.Next(p.now)
	if trouble := p.trouble(); !ok || p.unreadable() || trouble != nil && (trouble.Reason == window.TargetMissing || trouble.Reason == window.TargetTaken) {
		return nil
	}
	c := change{at: t.At, opens: t.Opens, forGood: rule.Action == window.Stop}
	out := &v1alpha1.TaskGroupChange{At: metav1.NewTime(t.At), Opens: t.Opens}
	if c.opens {
		for i := range kept {
			c.cards += devices(&kept[i].placement)
		}
		c.forGood = c.forGood && p.record != nil
	} else {
		out.Replicas, c.cards = rule.Replicas, freed(members, rule.Replicas)
		if again, ok := rule.Schedule.Next(t.At); ok && rule.Action != window.Stop {
			out.Until = &metav1.Time{Time: again.At}
		}
	}
	if windows := p.group.Spec.Windows; len(windows) > 0 {
		out.TimeZone = windows[0].TimeZone
	}
	out.Cards, out.Text = c.cards, c.text(p.now, p.memory.spec.zone)
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

// write writes the status, if it says something else than what is there.
func (p *pass) write(ctx context.Context, s v1alpha1.TaskGroupStatus) error {
	if apiequality.Semantic.DeepEqual(s, p.group.Status) {
		return nil
	}
	next := *p.group // nothing that it points to is edited
	next.Status = s
	g, err := p.Client.UpdateStatus(ctx, &next)
	if err != nil {
		return err
	}
	p.group = g
	return nil
}

// complain has the status say that the API server refuses something. What is there of
// the windows stays.
func (p *pass) complain(ctx context.Context, cause error) {
	text := clip(cause.Error())
	s := p.group.Status
	s.Conditions = slices.Clone(s.Conditions)
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.TaskGroupUndisturbed, Status: metav1.ConditionFalse, Reason: ReasonStepFailed, Message: text,
		ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(p.now),
	})
	if err := p.write(ctx, s); err != nil {
		klog.FromContext(ctx).V(2).Info("status of TaskGroup not written", "taskGroup", klog.KRef(p.name.Namespace, p.name.Name), "cause", err)
	}
	p.tellFailure(text)
}

// mostMessage bounds a message; the API server takes 32 KiB.
const mostMessage = 4096

// clip cuts a text that is too long, between two characters.
func clip(text string) string {
	if len(text) <= mostMessage {
		return text
	}
	return strings.ToValidUTF8(text[:mostMessage], "") + " ..."
}
