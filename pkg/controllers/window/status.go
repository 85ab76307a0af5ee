package window

import (
	"context"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
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
	// ReasonKeptInPart: of what the members had not all is kept, by a quota.
	ReasonKeptInPart = "KeptInPart"
)

// troubles are the reasons of which the condition Undisturbed tells.
func troubles() []window.Reason {
	return []window.Reason{window.EditedByHand, window.TenantInactive, window.TargetMissing, window.TargetTaken, window.TargetBusy}
}

// status returns what there is to say, with the record as it is now.
func (p *pass) status() v1alpha1.TaskGroupStatus {
	s := v1alpha1.TaskGroupStatus{
		ObservedGeneration: p.group.Generation, Action: p.group.Status.Action, Conditions: slices.Clone(p.group.Status.Conditions),
	}
	members := p.Members(p.Group(p.group.Namespace, p.group.Name))
	s.Members = int32(len(members))
	for i := range members {
		s.Cards += devices(&members[i])
	}
	var all []holding
	s.State = string(p.state().Reason)
	if !p.unreadable() {
		s.Action = nil
		if p.record != nil {
			s.Action = encodeRecord(p.record, *p.ref)
		}
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
	if p.unreadable() {
		return window.Condition{Reason: ReasonUnreadable, Message: "nothing is done until the spec can be read"}
	}
	first := p.plan.Conditions[0]
	return window.Condition{Reason: first.Reason, Message: p.words(first)}
}

func (p *pass) conditions() []metav1.Condition {
	state := p.state()
	awake := metav1.Condition{Type: v1alpha1.TaskGroupAwake, Status: metav1.ConditionFalse, Reason: string(state.Reason), Message: clip(state.Message)}
	if p.unreadable() {
		awake.Status = metav1.ConditionUnknown
		return []metav1.Condition{{Type: v1alpha1.TaskGroupAccepted, Status: metav1.ConditionFalse, Reason: ReasonUnreadable, Message: clip(p.known.spec.fault.Error())}, awake}
	}
	if p.rule().Schedule.Open(p.now) {
		awake.Status = metav1.ConditionTrue
	}
	undisturbed := metav1.Condition{Type: v1alpha1.TaskGroupUndisturbed, Status: metav1.ConditionTrue, Reason: ReasonAlone}
	if trouble := p.trouble(); trouble != nil {
		undisturbed.Status, undisturbed.Reason, undisturbed.Message = metav1.ConditionFalse, string(trouble.Reason), clip(trouble.Message)
	}
	return []metav1.Condition{{Type: v1alpha1.TaskGroupAccepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted}, awake, undisturbed}
}

// words is what a condition says. Why there is no target the one knows who has looked
// for it.
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

// say writes the status as it is to be, and tells what is new in it.
func (p *pass) say(ctx context.Context) error {
	if err := p.write(ctx, p.status()); err != nil {
		return err
	}
	p.tell()
	return nil
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
		if !kube.Answered(err) {
			p.known.mayKeep(s.Kept, p.now)
		}
		return err
	}
	p.have(g)
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
