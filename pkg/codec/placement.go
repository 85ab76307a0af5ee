package codec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Active reports whether the pod counts against its node: it has one and has
// not ended. Both books go by this function and no other.
func Active(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !Ended(pod) }

// Terminal reports whether the pod will not run any more. Unlike Ended it says nothing
// about what still runs.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ended reports whether the pod holds nothing any more. A terminal phase is not
// enough: pod garbage collection writes Failed onto pods whose node it cannot
// reach, while their containers run on.
func Ended(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return false
	}
	running := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	return !slices.ContainsFunc(pod.Status.InitContainerStatuses, running) &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, running) &&
		!slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, running)
}

// Ours reports whether the pod is bound with an allocation that can be read and
// answers what the pod asks for.
func Ours(pod *corev1.Pod) bool {
	_, _, err := allocated(pod)
	return err == nil && pod.Spec.NodeName != ""
}

// BoundIn returns the epoch that the pod was bound in; false if it is not Ours,
// or says two different things about it.
func BoundIn(pod *corev1.Pod) (epoch int64, ours bool) {
	a, _, err := allocated(pod)
	if err != nil || pod.Spec.NodeName == "" || pod.Annotations[AnnotationEpoch] != strconv.FormatInt(a.Epoch, 10) {
		return 0, false
	}
	return a.Epoch, true
}

// Placement returns what a bound pod holds: the cards of its allocation; or, if
// it asks for cards and has no allocation that can be believed, a claim on every
// card that it may be on; both, if the containers are shown other cards than the
// record has. Its main memory and processors count in any case. Whose the pod is
// the ledger finds out: who may sit beside whom is never taken from what a pod's
// author can write, the tenant in the record included.
func Placement(pod *corev1.Pod) gpu.Placement {
	p := gpu.Placement{
		Pod:       gpu.PodID(pod.UID),
		Namespace: pod.Namespace,
		Name:      pod.Name,
		Node:      gpu.NodeID(pod.Spec.NodeName),
	}
	p.CPU, p.Memory = mainResources(pod)
	_, grants, err := allocated(pod)
	p.Grants = grants
	if err == nil {
		p.Group = groupOf(pod)
	} else {
		p.Foreign = foreign(pod, !errors.Is(err, errNone))
	}
	return p
}

// errNone says that a pod carries no allocation at all.
var errNone = errors.New("no allocation")

// allocated returns the pod's allocation and what it gives, or why that cannot be
// believed. It may give something all the same: what the containers are shown
// comes on top.
func allocated(pod *corev1.Pod) (allocation, []gpu.Grant, error) {
	text, ok := pod.Annotations[AnnotationAllocation]
	if !ok {
		if key, shows := showsCards(pod.Annotations); shows {
			return allocation{}, nil, fmt.Errorf("annotation %s: shows cards, and there is no record of them", key)
		}
		return allocation{}, nil, errNone
	}
	// A kubelet shows static pods so, which nobody has bound.
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return allocation{}, nil, errors.New("it is a static pod: not bound by us")
	}
	// Our Binding writes all of these at once. A copy of a bound pod carries the
	// original's record, and others may write one by hand.
	if pod.Labels[BoundByLabel] != BoundByValue {
		return allocation{}, nil, fmt.Errorf("label %s is missing: not bound by us", BoundByLabel)
	}
	if node := pod.Annotations[AnnotationHAMiNode]; node != pod.Spec.NodeName {
		return allocation{}, nil, fmt.Errorf("made for node %q", node)
	}
	a, err := decodeAllocation(text)
	if err != nil {
		return allocation{}, nil, err
	}
	wanted, err := asks(pod, policy.SliceCoresByForm)
	if err != nil {
		return allocation{}, nil, err
	}
	grants, err := a.grants(wanted)
	if err == nil {
		err = Shown(pod, grants)
	}
	return a, grants, err
}

// foreign returns the claims of a pod whose cards are not known. Who asked a
// device plugin for whole cards, and has no record of ours, has as many as that;
// of everybody else, and of who has a record that is not believed, nothing is
// certain.
func foreign(pod *corev1.Pod, recorded bool) []gpu.Foreign {
	wanted, err := asks(pod, policy.SliceCoresByForm)
	plain := plainAsks(pod)
	uncertain := err != nil || recorded
	vendors := vendorsNamed(pod)
	if len(vendors) == 0 && uncertain || slices.Contains(vendors, "") {
		return []gpu.Foreign{{Cards: gpu.AllCards}}
	}
	var claims []gpu.Foreign
	for _, v := range vendors {
		cards := gpu.AllCards
		if !uncertain && counts(wanted, plain, v) {
			cards = wholeCards(slices.Concat(wanted, plain), v)
		}
		claims = append(claims, gpu.Foreign{Vendor: v, Cards: cards})
	}
	return claims
}

// vendorsNamed lists the vendors by whose names the pod asks, "" for ours, in
// order.
func vendorsNamed(pod *corev1.Pod) []gpu.Vendor {
	seen := map[gpu.Vendor]bool{}
	for _, c := range containers(pod) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				if v, ok := vendorOf(name); ok && !q.IsZero() {
					seen[v] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// counts reports whether every container that asks by the vendor's names, plain
// or not, says how many whole cards its device plugin gives it.
func counts(wanted, plain []gpu.Ask, v gpu.Vendor) bool {
	shares := func(a gpu.Ask) bool {
		f := formOf(corev1.ResourceName(a.Plugin))
		return a.Vendor == v && (f == nil || !f.stock)
	}
	unknown := func(a gpu.Ask) bool { return a.Vendor == v && a.Count == 0 }
	return !slices.ContainsFunc(wanted, shares) && !slices.ContainsFunc(plain, unknown)
}

// wholeCards counts a pod's cards of one vendor as Kubernetes counts any
// resource.
func wholeCards(asks []gpu.Ask, v gpu.Vendor) int {
	var app, init, sidecar int
	for i := range asks {
		a := &asks[i]
		switch {
		case a.Vendor != v:
		case a.Role == gpu.App:
			app += a.Count
		case a.Role == gpu.Init:
			init = max(init, a.Count)
		case a.Role == gpu.Sidecar:
			sidecar += a.Count
		}
	}
	return max(app, init) + sidecar
}
