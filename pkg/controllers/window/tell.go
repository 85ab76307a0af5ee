package window

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/window"
)

// tell tells what the status did not say before: of what is there the last pass, or the
// last leader, has told.
func (p *pass) tell() {
	if p.unreadable() {
		p.news([]window.Condition{{Reason: ReasonUnreadable, Message: clip(p.known.spec.fault.Error())}})
		return
	}
	var all []window.Condition
	for _, c := range p.plan.Conditions {
		all = append(all, window.Condition{Reason: c.Reason, Message: p.words(c)})
	}
	if t := p.trouble(); t != nil && t.Reason == ReasonSeveralAutoscalers {
		all = append(all, *t)
	}
	p.news(all)
	if p.part != "" {
		p.Tell(kube.Notice{About: kube.TaskGroupSubject(p.group), Warning: true, Reason: ReasonKeptInPart, Key: p.part, Text: p.part})
		p.part = ""
	}
}

// news tells those of them that are news. That nothing is done is none.
func (p *pass) news(all []window.Condition) {
	told := map[string]bool{}
	for _, c := range all {
		key := string(c.Reason) + " " + c.Message
		told[key] = true
		quiet := c.Reason == window.AlwaysOpen || c.Reason == window.InWindow
		if quiet || p.known.told[key] || p.said(c) {
			continue
		}
		warning := slices.Contains(troubles(), c.Reason) || c.Reason == ReasonUnreadable || c.Reason == ReasonSeveralAutoscalers
		p.Tell(kube.Notice{About: kube.TaskGroupSubject(p.group), Warning: warning, Reason: string(c.Reason), Key: c.Message, Text: c.Message})
	}
	p.known.told, p.known.failure = told, ""
}

// said reports whether the status has said so already.
func (p *pass) said(c window.Condition) bool {
	return slices.ContainsFunc(p.before.Conditions, func(o metav1.Condition) bool {
		return o.Reason == string(c.Reason) && o.Message == c.Message
	})
}

// tellFailure tells that the API server refuses something, if that is news.
func (p *pass) tellFailure(text string) {
	if c := (window.Condition{Reason: ReasonStepFailed, Message: text}); p.known.failure == text || p.said(c) {
		return
	}
	p.known.failure = text
	p.Tell(kube.Notice{About: kube.TaskGroupSubject(p.group), Warning: true, Reason: ReasonStepFailed, Key: text, Text: text})
}
