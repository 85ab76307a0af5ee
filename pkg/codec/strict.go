package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// CheckKeys returns the faults of the keys of ours on a pod, whether it asks for
// cards or not. A key that is ignored would be a wish that is silently not met.
//
// What the scheduler alone writes is no fault here: a copy of a bound pod carries
// it, and it is taken off.
func CheckKeys(pod *corev1.Pod) error { return checkWishes(&corev1.Pod{}, pod) }

// CheckChange returns the faults of those keys of ours alone that differ between
// before and after. What was wrong before is let pass: else not even a finalizer
// could be taken off the pod. What the scheduler alone writes stays as it is,
// since containers that start anew are shown cards by it; the scheduler writes it
// by Bindings, which are no updates.
func CheckChange(before, after *corev1.Pod) error {
	return errors.Join(checkOwned(before, after), checkWishes(before, after))
}

// checkOwned names the keys of the scheduler that were added, changed or taken
// off.
func checkOwned(before, after *corev1.Pod) error {
	var errs []error
	for _, key := range differing(before.Annotations, after.Annotations, schedulerKey) {
		errs = append(errs, fmt.Errorf("annotation %s: is written by the scheduler alone", key))
	}
	for _, key := range differing(before.Labels, after.Labels, func(key string) bool { return key == BoundByLabel }) {
		errs = append(errs, fmt.Errorf("label %s: is written by the scheduler alone", key))
	}
	return errors.Join(errs...)
}

// differing returns those of the keys that are new, another or gone, sorted.
func differing(before, after map[string]string, of func(key string) bool) (keys []string) {
	for key, value := range after {
		if old, ok := before[key]; of(key) && (!ok || old != value) {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; of(key) && !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// checkWishes judges what authors write, where it is new or another.
func checkWishes(before, after *corev1.Pod) error {
	annotations := changed(before.Annotations, after.Annotations)
	errs := strays(after, annotations, changed(before.Labels, after.Labels), false)
	for i := range wishes {
		if value, ok := annotations[wishes[i].key]; ok {
			// Whether it fits the rest of the pod is for Request to say.
			if err := wishes[i].read(&gpu.Request{}, strings.TrimSpace(value)); err != nil {
				errs = append(errs, fmt.Errorf("annotation %s: %w", wishes[i].key, err))
			}
		}
	}
	errs = append(errs, contradiction(annotations, after.Annotations), longer(before, after))
	return errors.Join(errs...)
}

// longer says that a pod which has its cards would run for longer than it said when it
// got them: they may be kept for a service from then on.
func longer(before, after *corev1.Pod) error {
	was, limited := MaxRuntime(before)
	if before.Spec.NodeName == "" || !limited || Inference(before) {
		return nil
	}
	switch now, still := MaxRuntime(after); {
	case !still || now > was:
		return fmt.Errorf("annotation %s: cannot become longer than %s, or go: the pod has got its cards by it", AnnotationMaxRuntime, was)
	case Inference(after):
		return fmt.Errorf("annotation %s: cannot become inference, which runs for ever: the pod has got its cards by its %s", AnnotationTaskType, AnnotationMaxRuntime)
	case TaskGroup(after) != TaskGroup(before) && TaskGroup(after) != "":
		return fmt.Errorf("annotation %s: cannot become another, whose members may run for ever: the pod has got its cards by its %s", AnnotationTaskGroup, AnnotationMaxRuntime)
	}
	return nil
}

// changed returns the keys of ours that are new or another, nil if none is.
func changed(before, after map[string]string) map[string]string {
	var all map[string]string
	for _, key := range differing(before, after, isOurs) {
		value, there := after[key]
		if !there {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
	}
	return all
}

// contradiction names two wishes that exclude each other, when one of them has
// changed. Request does not judge it: a pod that was let in is placed, and is
// not preemptible.
func contradiction(changed, all map[string]string) error {
	_, one := changed[AnnotationTaskType]
	_, other := changed[AnnotationPreemptible]
	if !one && !other || strings.TrimSpace(all[AnnotationTaskType]) != training || strings.TrimSpace(all[AnnotationPreemptible]) != yes {
		return nil
	}
	return fmt.Errorf("annotation %s: %q contradicts %s: %s, which is never preempted; leave one of them out",
		AnnotationPreemptible, yes, AnnotationTaskType, training)
}

// mostStrays bounds how many stray keys are named: a pod has room for a hundred thousand
// labels, and each is compared with every key that it may have been meant for.
const mostStrays = 20

// strays names annotations and labels of the pod that nothing reads, the first of them.
// If it asks for cards, those that are not ours but can only have been meant for us are
// among them; elsewhere they may be anybody's.
func strays(pod *corev1.Pod, annotations, labels map[string]string, asks bool) (errs []error) {
	for _, of := range []struct {
		keys  map[string]string
		stray func(pod *corev1.Pod, key, value string) error
	}{{annotations, strayAnnotation}, {labels, strayLabel}} {
		for _, key := range suspects(of.keys, asks) {
			if len(errs) == mostStrays {
				return append(errs, errors.New("further annotations and labels may be unknown: those named are the first"))
			}
			if err := of.stray(pod, key, of.keys[key]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// suspects returns the keys that are to be judged, sorted.
func suspects(all map[string]string, asks bool) (keys []string) {
	for key := range all {
		if asks || isOurs(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func strayAnnotation(pod *corev1.Pod, key, value string) error {
	if wishNames[key] || ownedByScheduler(key) {
		return nil
	}
	if name, ok := meantResource(pod, key, value); ok {
		return fmt.Errorf("annotation %s: is a resource; write %s under resources.limits", key, name)
	}
	if !isOurs(key) {
		return otherWish(key, value)
	}
	switch meant := nearest(key); {
	case key == own+"require-nvlink":
		return fmt.Errorf("unknown annotation %s: it is an argument of the nvlink plugin; a pod writes %s: %s", key, AnnotationNVLink, required)
	case meant != "":
		return fmt.Errorf("unknown annotation %s; did you mean %s?", key, meant)
	}
	return fmt.Errorf("unknown annotation %s", key)
}

func strayLabel(pod *corev1.Pod, key, value string) error {
	switch {
	case key == BoundByLabel:
		return nil
	case wishNames[key]:
		return fmt.Errorf("label %s: is an annotation; write it under metadata.annotations", key)
	case own+key == AnnotationNVLink || own+key == AnnotationRDMA: // as nodes have them
		return fmt.Errorf("label %s: is an annotation; write %s%s under metadata.annotations", key, own, key)
	case !isOurs(key):
		return nil
	}
	if name, ok := meantResource(pod, key, value); ok {
		return fmt.Errorf("label %s: is a resource; write %s under resources.limits", key, name)
	}
	if meant := nearest(key); meant != "" {
		return fmt.Errorf("unknown label %s; did you mean the annotation %s?", key, meant)
	}
	return fmt.Errorf("unknown label %s", key)
}

// wishNames is read only: every name of a wish.
var wishNames = func() map[string]bool {
	all := map[string]bool{}
	for i := range wishes {
		all[wishes[i].key] = true
		for _, alias := range wishes[i].aliases {
			all[alias] = true
		}
	}
	return all
}()

// Reworded returns those annotations of a pod that differ by which its author has a say,
// sorted.
func Reworded(before, after map[string]string) []string {
	return differing(before, after, func(key string) bool { return wishNames[key] })
}

// nearest returns the annotation that may have been meant by a key of ours that
// does not exist; "" if none is like it.
func nearest(key string) string {
	best, least := "", 3 // more slips than two make another word
	for i := range wishes {
		if d := distance(key, wishes[i].key); d < least {
			best, least = wishes[i].key, d
		}
	}
	return best
}

// distance counts the bytes to add, drop or replace that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of what is read of a, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// spellings are ours and NVIDIA's words for what a form has a resource for.
var spellings = map[string]func(*form) corev1.ResourceName{
	"gpu-memory":        func(f *form) corev1.ResourceName { return f.memory },
	"gpumem":            func(f *form) corev1.ResourceName { return f.memory },
	"gpu-cores":         firstCores,
	"gpucores":          firstCores,
	"gpumem-percentage": func(f *form) corev1.ResourceName { return f.percent },
}

func firstCores(f *form) corev1.ResourceName {
	if len(f.cores) == 0 {
		return ""
	}
	return f.cores[0]
}

// domains is read only: where resources for cards are looked for, "" standing
// for no domain.
var domains = func() map[string]bool {
	all := map[string]bool{"": true, "hami.io": true}
	for i := range forms {
		domain, _, _ := strings.Cut(string(forms[i].count), "/")
		all[domain] = true
	}
	return all
}()

// meantResource returns the resource that is meant by a key of an annotation or
// a label, false if none is.
func meantResource(pod *corev1.Pod, key, value string) (corev1.ResourceName, bool) {
	if f := formOf(corev1.ResourceName(key)); f != nil {
		// Schedulers note under the name of a model which of its cards they gave
		// (huawei.com/Ascend910B3): that is no number.
		note := f.vendor != "" && string(f.count) == key && !digits(strings.TrimSpace(value))
		return corev1.ResourceName(key), !note
	}
	domain, word, cut := strings.Cut(key, "/")
	if !cut {
		domain, word = "", key
	}
	resource, ok := spellings[word]
	if !ok || !domains[domain] {
		return "", false
	}
	return spelled(pod, resource)
}

// spelled returns the resource by the names of the form in which the pod asks;
// where that has none, by ours.
func spelled(pod *corev1.Pod, resource func(*form) corev1.ResourceName) (corev1.ResourceName, bool) {
	for _, c := range containers(pod) {
		for _, f := range formsIn(c.Resources.Limits) {
			if name := resource(f); name != "" {
				return name, true
			}
		}
	}
	name := resource(&forms[0])
	return name, name != ""
}
