package codec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Shown reports, as an error, how what shows cards to the containers of a bound
// pod differs from what our Binding wrote for these grants. A container that
// starts anew would see other cards than the pod has.
//
// Under which numbers it stands does not matter: containers refer to those that
// they were given before the pod was bound, and under any of them they see cards
// of their own pod.
func Shown(pod *corev1.Pod, grants []gpu.Grant) error {
	written := map[string]string{}
	for i, g := range grants {
		g.Number = i
		inject(written, &g, gpu.NodeID(pod.Spec.NodeName))
	}
	got, want := lots(pod.Annotations), lots(written)
	if slices.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("the annotations %s<n> and their limits show containers %s, where the record has %s", visibleDevices, quoted(strings.Join(got, "; ")), quoted(strings.Join(want, "; ")))
}

// lots returns what is shown under each number, in order. Empty values are of an
// earlier life, and superseded.
func lots(annotations map[string]string) []string {
	byNumber := map[string]string{}
	for _, prefix := range numbered {
		for key, value := range annotations {
			if n, ok := strings.CutPrefix(key, prefix); ok && digits(n) && value != "" {
				byNumber[n] += " " + strings.TrimSuffix(strings.TrimPrefix(prefix, own), "-") + " " + value
			}
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for _, lot := range byNumber {
			if !yield(strings.TrimSpace(lot)) {
				return
			}
		}
	})
}

// Doubt returns why the record of a bound pod's cards, or what stands there in its
// place, is not believed; nil if it is, or if there is none.
func Doubt(pod *corev1.Pod) error {
	if _, _, err := allocated(pod); !errors.Is(err, errNone) {
		return err
	}
	return nil
}

// Uncertain returns the claims of a pod of whose cards nothing is certain.
func Uncertain(pod *corev1.Pod) []gpu.Foreign { return foreign(pod, true) }

// WrittenEarly returns the keys on a pod that is not bound which the scheduler
// alone writes, with the cards: somebody else has written them.
func WrittenEarly(pod *corev1.Pod) []string {
	var keys []string
	for key := range pod.Annotations {
		if key != AnnotationContainers && schedulerKey(key) && !OfSuccessor(key) {
			keys = append(keys, key)
		}
	}
	if _, ok := pod.Labels[BoundByLabel]; ok {
		keys = append(keys, BoundByLabel)
	}
	slices.Sort(keys)
	return keys
}

// showsCards reports whether a key that shows cards to a container has a value.
func showsCards(annotations map[string]string) (key string, shows bool) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if injected(key) && annotations[key] != "" {
			return key, true
		}
	}
	return "", false
}
