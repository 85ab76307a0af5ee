package codec

import (
	"errors"
	"fmt"
	"strings"
	"time"
	// Zones are read here, and what reads them has the tz database with it: one of the
	// machine comes before it.
	_ "time/tzdata"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// GroupOf returns the group of the pods whose annotation heteroflow.io/task-group names
// this TaskGroup of their namespace.
func GroupOf(namespace, taskGroup string) gpu.GroupID {
	return unique.Make(gpu.GroupID(namespace + "/" + AnnotationTaskGroup + "=" + taskGroup)).Value()
}

// TaskGroup returns the name of the TaskGroup that the pod says it is a member of; ""
// if it says none.
func TaskGroup(pod *corev1.Pod) string {
	return strings.TrimSpace(pod.Annotations[AnnotationTaskGroup])
}

// Inference reports whether the pod says that it is inference.
func Inference(pod *corev1.Pod) bool {
	of, known := taskType(pod)
	return known && of == gpu.Inference
}

// MaxRuntime returns how long the pod's author has it run at most; false if that is not
// said, or cannot be read.
func MaxRuntime(pod *corev1.Pod) (time.Duration, bool) {
	d, err := time.ParseDuration(strings.TrimSpace(pod.Annotations[AnnotationMaxRuntime]))
	if err != nil || d <= 0 {
		return 0, false
	}
	return d, true
}

// Service reads what the ledger is to know of an inference group. With an error, which
// names every field that cannot be read, it is known as a service all the same, and what
// those fields say is left out; of what it takes back that is all, if any of it cannot be
// read.
func Service(g *v1alpha1.TaskGroup) (ledger.Service, error) {
	s := ledger.Service{Group: GroupOf(g.Namespace, g.Name), Name: g.Namespace + "/" + g.Name}
	zone, zoneErr := zoneOf(g.Status.Next)
	closing, closingErr := closingOf(g.Status.Next, zone)
	kept, keptErr := keptOf(g, s.Group)
	s.Closing = closing
	if len(kept) > 0 {
		s.Kept, s.From = kept, g.Status.Kept.From.In(zone)
	}
	if err := errors.Join(zoneErr, closingErr, keptErr); err != nil {
		return s, fmt.Errorf("TaskGroup %s: %w", s.Name, err)
	}
	return s, nil
}

// zoneOf is the zone in which people are told of the group's times: UTC where none is
// said, or none that is known.
func zoneOf(next *v1alpha1.TaskGroupChange) (*time.Location, error) {
	if next == nil {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(next.TimeZone)
	if err != nil || zone == time.Local {
		return time.UTC, fmt.Errorf("status.next.timeZone: %s is not a time zone of the tz database", quoted(next.TimeZone))
	}
	return zone, nil
}

// closingOf returns when the windows close next; nil if something else comes next.
func closingOf(next *v1alpha1.TaskGroupChange, zone *time.Location) (*ledger.Closing, error) {
	switch {
	case next == nil || next.Opens:
		return nil, nil
	case next.At.IsZero():
		return nil, errors.New("status.next.at: is missing")
	case next.Replicas < 0:
		return nil, fmt.Errorf("status.next.replicas: %d is negative", next.Replicas)
	}
	c := &ledger.Closing{At: next.At.In(zone), Stay: int(next.Replicas)}
	if next.Until != nil {
		c.Until = next.Until.In(zone)
	}
	return c, nil
}

// keptOf reads what the group takes back: all of it or, with an error, nothing.
func keptOf(g *v1alpha1.TaskGroup, group gpu.GroupID) ([]gpu.Placement, error) {
	kept := g.Status.Kept
	if kept == nil {
		return nil, nil
	}
	var errs []error
	if kept.From.IsZero() {
		errs = append(errs, errors.New("status.kept.from: is missing"))
	}
	var all []gpu.Placement
	seen := map[gpu.PodID]bool{}
	for i := range kept.Members {
		p, err := keptOfMember(&kept.Members[i], g.Namespace, group)
		if err == nil && seen[p.Pod] {
			err = fmt.Errorf("uid: %s is named twice", p.Pod)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("status.kept.members[%d].%w", i, err))
		}
		seen[p.Pod] = true
		all = append(all, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// keptOfMember reads what one member had, of that group.
func keptOfMember(m *v1alpha1.TaskGroupMember, namespace string, group gpu.GroupID) (gpu.Placement, error) {
	p, err := DecodeMember(m)
	if err == nil && p.Group != group {
		err = fmt.Errorf("allocation: group: %s is not %s", quoted(string(p.Group)), quoted(string(group)))
	}
	if err != nil {
		return gpu.Placement{}, err
	}
	p.Namespace = namespace
	return p, nil
}

// DecodeMember returns what one member had, or what is wrong with it. The namespace is
// not a part of it.
func DecodeMember(m *v1alpha1.TaskGroupMember) (gpu.Placement, error) {
	switch {
	case m.UID == "":
		return gpu.Placement{}, errors.New("uid: is missing")
	case m.Node == "":
		return gpu.Placement{}, errors.New("node: is missing")
	}
	group, grants, err := decodeClaim(m.Allocation)
	switch {
	case err != nil:
		return gpu.Placement{}, fmt.Errorf("allocation: %w", err)
	case len(grants) == 0:
		return gpu.Placement{}, errors.New("allocation: has no cards")
	}
	return gpu.Placement{Pod: gpu.PodID(m.UID), Node: gpu.NodeID(m.Node), Group: group, Grants: grants}, nil
}
