package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// forgeries remembers what has been told of pods that carry what only the
// scheduler writes, and have it from somebody else. The API server refuses that
// where the chart's policies are installed; where they are not, or were not for a
// while, it is seen here. The zero value is ready for use.
type forgeries struct {
	told map[gpu.PodID]string // pod -> what was told last
}

// forged tells of a forgery, once until it is another.
func (b *Books) forged(pod *corev1.Pod, kind metrics.Forgery, text string) {
	id := gpu.PodID(pod.UID)
	if b.forgeries.told[id] == text {
		return
	}
	if b.forgeries.told == nil {
		b.forgeries.told = map[gpu.PodID]string{}
	}
	b.forgeries.told[id] = text
	b.Logger.Info("pod carries what only the scheduler writes, and has it from somebody else", "pod", klog.KObj(pod), "podUID", pod.UID,
		"node", pod.Spec.NodeName, "kind", kind, "found", text)
	if b.Forged != nil {
		b.Forged(pod, kind, text)
	}
}

// forget drops what was told of a pod that has left.
func (f *forgeries) forget(pod gpu.PodID) { delete(f.told, pod) }

// doubted tells of a pod whose record of cards is not believed when it is first
// seen bound.
func (b *Books) doubted(pod *corev1.Pod) {
	if why := codec.Doubt(pod); why != nil {
		b.forged(pod, metrics.ForgeryDoubted, fmt.Sprintf("the record of its cards is not believed: %v; the cards that it may be on are given to nobody else", why))
	}
}

// early tells of keys that a pod carries before it is bound. They mean nothing:
// the Binding overwrites them.
func (b *Books) early(pod *corev1.Pod) {
	if keys := codec.WrittenEarly(pod); len(keys) > 0 {
		b.forged(pod, metrics.ForgeryEarly, "written by the scheduler alone, and to no effect before the pod is bound: "+strings.Join(keys, ", "))
	}
}

// changed returns the claims of a pod of ours whose record somebody has edited: as
// before, and, when its containers would be shown other cards as they start anew,
// whatever it may be on besides. That stays when the edit is undone, since nobody
// can say what has started in between.
func (b *Books) changed(pod *corev1.Pod, grants []gpu.Grant, claims []gpu.Foreign) []gpu.Foreign {
	shown := codec.Shown(pod, grants)
	switch {
	case shown == nil:
		b.forged(pod, metrics.ForgeryChanged, "the record of its cards was changed after it was bound, which is ignored: it counts for "+held(grants))
	case len(claims) == 0:
		claims = codec.Uncertain(pod)
		fallthrough
	default:
		b.forged(pod, metrics.ForgeryChanged, fmt.Sprintf("%v; besides %s, the cards that it may be on are given to nobody else", shown, held(grants)))
	}
	return claims
}

// held names the cards of grants.
func held(grants []gpu.Grant) string {
	p := gpu.Placement{Grants: grants}
	return cardsText(p.Uses())
}

// reasonForged is the reason of the events about forgeries.
const reasonForged = "RecordForged"

// Forged tells of a forgery on the pod. It never blocks.
func (e *Events) Forged(pod *corev1.Pod, text string) {
	e.send(event(about{gpu.PodID(pod.UID), pod.Namespace, pod.Name}, corev1.EventTypeWarning, reasonForged, text, text, 1))
}
