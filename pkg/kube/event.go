package kube

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Component is our name in events.
const Component = "heteroflow-scheduler"

// about names the pod that an event is about.
type about struct {
	pod             gpu.PodID
	namespace, name string
}

// event makes the event of this kind. Its name follows from the pod and the key,
// so that what is told again, by whichever process, becomes the same event
// instead of one more.
func event(a about, kind, reason, key, text string, times int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: eventName(a, reason, key)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: a.namespace, Name: a.name, UID: types.UID(a.pod),
		},
		Type:                kind,
		Reason:              reason,
		Message:             shorten(text),
		Count:               times,
		Source:              corev1.EventSource{Component: Component},
		ReportingController: Component,
	}
}

// nodeEvent makes the event about a node.
func nodeEvent(node gpu.NodeID, reason, text string) *corev1.Event {
	return noticeEvent(&Notice{About: NodeSubject(node), Warning: true, Reason: reason, Key: text, Text: text})
}

// leaseEvent makes the event about the Lease that the leader holds: one for each
// reason, whose text changes. Texts with the ports of broken connections in them
// would be an event each, two a second.
func leaseEvent(lease corev1.ObjectReference, reason, text string) *corev1.Event {
	about := Subject{APIVersion: lease.APIVersion, Kind: lease.Kind, Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID}
	return noticeEvent(&Notice{About: about, Warning: true, Reason: reason, Text: text})
}

func eventName(a about, reason, key string) string {
	const mostName = 253 // of any object
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s|%s|%s", a.pod, reason, key)
	tail := fmt.Sprintf("%016x", h.Sum64())
	head := a.name[:min(len(a.name), mostName-len(tail)-1)]
	return strings.TrimRight(head, "-.") + "." + tail
}

// mostMessage is what an event may say.
const mostMessage = 1024

// shorten cuts a text that is too long, between two characters.
func shorten(text string) string {
	const mark = " ..."
	if len(text) <= mostMessage {
		return text
	}
	cut := mostMessage - len(mark)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// boundText says which cards the pod has got, and why there.
func boundText(b *engine.Bound) string {
	var parts []string
	for i := range b.Placement.Grants {
		parts = append(parts, grantText(&b.Placement.Grants[i]))
	}
	text := fmt.Sprintf("on %s: %s", b.Placement.Node, strings.Join(parts, "; "))
	if d := &b.Decision; d.Asked > 0 {
		text += fmt.Sprintf("; %d of %d nodes fit", d.Feasible, d.Asked)
	}
	var best []string
	for _, s := range b.Decision.Best {
		best = append(best, fmt.Sprintf("%s %.1f", s.Node, s.Total))
	}
	if len(best) > 0 {
		text += "; best scores " + strings.Join(best, ", ")
	}
	return text
}

// grantText reads like "main: nvidia GPU-a 4096 MiB 30 % + nvidia GPU-b 4096 MiB 30 %".
func grantText(g *gpu.Grant) string {
	shares := make([]string, len(g.Shares))
	for i, s := range g.Shares {
		switch {
		case s.Exclusive:
			shares[i] = fmt.Sprintf("%s %s whole, %d MiB %d %%", s.Vendor, s.Card, s.Memory, s.Cores)
		case s.Cores > 0:
			shares[i] = fmt.Sprintf("%s %s %d MiB %d %%", s.Vendor, s.Card, s.Memory, s.Cores)
		default:
			shares[i] = fmt.Sprintf("%s %s %d MiB", s.Vendor, s.Card, s.Memory)
		}
	}
	return g.Container + ": " + strings.Join(shares, " + ")
}
