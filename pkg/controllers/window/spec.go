package window

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// spec is what the author of a group wants, as it was read.
type spec struct {
	rule  window.Rule
	zone  *time.Location // of the first window, for people
	fault error          // all that is wrong with it; nil: nothing
	found []found        // the last transitions that were looked for
}

// found is the first transition after a moment.
type found struct {
	after time.Time
	next  window.Transition
	ok    bool // else there is none in sight
}

// mostFound is how many are remembered: the next, and the one after it.
const mostFound = 2

// holds reports whether it is also the first after that.
func (f *found) holds(after time.Time) bool {
	if f.ok {
		return !after.Before(f.after) && after.Before(f.next.At)
	}
	return !after.Before(f.after) && after.Sub(f.after) < 24*time.Hour // of the 400 days that were looked at
}

// next returns the first transition after that. Where windows by cron expressions close
// never, it takes up to 30 ms to find that out, for each of many groups: so it is remembered.
func (s *spec) next(after time.Time) (window.Transition, bool) {
	for i := range s.found {
		if f := &s.found[i]; f.holds(after) {
			return f.next, f.ok
		}
	}
	f := found{after: after}
	f.next, f.ok = s.rule.Schedule.Next(after)
	s.found = append(s.found[max(0, len(s.found)-mostFound+1):], f)
	return f.next, f.ok
}

// read reads the spec.
func read(s *v1alpha1.TaskGroupSpec) *spec {
	w := window.Written{Action: string(s.WindowAction), Replicas: s.Replicas}
	for _, one := range s.Windows {
		w.Windows = append(w.Windows, window.Window{Days: one.Days, From: one.From, To: one.To, Start: one.Start, End: one.End, TimeZone: one.TimeZone})
	}
	rule, err := window.Parse(w)
	out := &spec{rule: rule, zone: time.UTC, fault: errors.Join(targetFault(s), err)}
	if len(s.Windows) > 0 && out.fault == nil {
		if zone, err := time.LoadLocation(s.Windows[0].TimeZone); err == nil {
			out.zone = zone
		}
	}
	return out
}

// targetFault returns what is wrong with the target. Most of it the API server refuses,
// where it has the schema of this version.
func targetFault(s *v1alpha1.TaskGroupSpec) error {
	t := s.ScaleTargetRef
	if t == nil {
		if len(s.Windows) > 0 {
			return errors.New("scaleTargetRef: is missing: windows need it")
		}
		return nil
	}
	var errs []error
	if gv, err := schema.ParseGroupVersion(t.APIVersion); err != nil || gv.Version == "" {
		errs = append(errs, fmt.Errorf("scaleTargetRef.apiVersion: %q is no version of an API, as apps/v1", t.APIVersion))
	}
	if t.Kind == "" {
		errs = append(errs, errors.New("scaleTargetRef.kind: is missing"))
	}
	if t.Name == "" || strings.Contains(t.Name, "/") {
		errs = append(errs, fmt.Errorf("scaleTargetRef.name: %q is no name", t.Name))
	}
	return errors.Join(errs...)
}

// same reports whether both name one object: of an API all versions have it.
func same(a, b *v1alpha1.TaskGroupTarget) bool {
	return a.Kind == b.Kind && a.Name == b.Name && groupOf(a.APIVersion) == groupOf(b.APIVersion)
}

// groupOf returns the API group of an apiVersion; "" is that of Kubernetes itself.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
