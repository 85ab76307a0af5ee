package preempt

import (
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// victims goes on with each victim that has been asked to go.
func (d *decision) victims() {
	for i := range d.status.Victims {
		switch d.status.Victims[i].State {
		case v1alpha1.VictimChosen:
			if d.status.EndedAt != nil {
				d.spare(i, "")
			}
		case v1alpha1.VictimEvicting:
			d.evicting(i)
		case v1alpha1.VictimGone, v1alpha1.VictimRefused:
			d.owed(i)
		}
	}
}

// evicting watches one go.
func (d *decision) evicting(i int) {
	v := &d.seen.victims[i]
	switch v.fate {
	case alive:
		d.alive(i)
	case ended:
		if v.suspended { // and its Job is owed to be resumed
			d.victim(i, v1alpha1.VictimGone, "")
			return
		}
		d.spare(i, "had ended by itself")
	case ending, absent:
		if !v.held {
			d.victim(i, v1alpha1.VictimGone, "")
			return
		}
		d.watch(i)
	}
}

// alive asks one who has not gone yet, or spares it if nobody needs that any more.
func (d *decision) alive(i int) {
	v := &d.seen.victims[i]
	switch {
	case v.asked(): // its Job is suspended
		d.watch(i)
	case d.status.EndedAt == nil:
		if d.now.Sub(v.tried) >= askTime {
			d.do(ask, i)
		}
	case v.marked:
		d.do(unmark, i)
	default:
		d.spare(i, "")
	}
}

// watch deletes one without grace that does not go.
func (d *decision) watch(i int) {
	v, s := &d.seen.victims[i], &d.status.Victims[i]
	if due, known := d.due(i); v.pod == nil || !known || d.now.Sub(due) < pastGrace {
		return
	}
	if s.ForcedAt != nil && d.now.Sub(s.ForcedAt.Time) < watchTime {
		return
	}
	s.ForcedAt, d.changed = at(d.now), true
	d.do(force, i)
}

// due returns when the grace of one that has been asked is over, false when nobody
// knows.
func (d *decision) due(i int) (time.Time, bool) {
	v, s := &d.seen.victims[i], &d.status.Victims[i]
	switch {
	case v.fate == ending:
		return v.pod.DeletionTimestamp.Time, true // which the API server has put that far ahead
	case v.fate == alive && s.Since != nil:
		return s.Since.Add(time.Duration(d.spec.Victims[i].GraceSeconds) * time.Second), true
	}
	return time.Time{}, false
}

// owed does what is owed to one that has gone.
func (d *decision) owed(i int) {
	switch v := &d.spec.Victims[i]; {
	case v.Owner == nil:
		d.bare(i)
	case v.Mode == v1alpha1.VictimSuspend && d.seen.victims[i].suspended:
		d.suspended(i)
	default:
		d.owned(i)
	}
}

// bare makes it anew once its name is free.
func (d *decision) bare(i int) {
	v := &d.seen.victims[i]
	switch {
	case v.pod == nil:
		if d.now.Sub(v.tried) >= d.pause(i) {
			d.do(remake, i)
		}
	case v.pod.UID == d.spec.Victims[i].UID:
		d.watch(i)
	case v.pod.Annotations[codec.AnnotationPreemptedFrom] == string(d.spec.Victims[i].UID):
		d.succeeded(i, "")
	default:
		d.succeeded(i, "made anew by somebody else")
	}
}

// pause is how long is waited before one that was refused is tried again: as long as
// it has been refused, so that it doubles.
func (d *decision) pause(i int) time.Duration {
	const shortest, longest = time.Second, 5 * time.Minute
	s, v := &d.status.Victims[i], &d.seen.victims[i]
	if s.State != v1alpha1.VictimRefused || s.Since == nil {
		return 0
	}
	return min(max(v.tried.Sub(s.Since.Time), shortest), longest)
}

// suspended resumes its Job if there is room again. That it is being resumed is
// written first: from then on a successor is waited for.
func (d *decision) suspended(i int) {
	if !d.seen.victims[i].fits {
		return
	}
	if s := &d.status.Victims[i]; s.Message != resumingText {
		d.victim(i, s.State, resumingText)
	}
	if !slices.ContainsFunc(d.deeds, func(a deed) bool {
		return a.act == unsuspend && d.spec.Victims[a.victim].Owner.UID == d.spec.Victims[i].Owner.UID
	}) {
		d.do(unsuspend, i)
	}
}

// owned waits for its owner.
func (d *decision) owned(i int) {
	v, s := &d.seen.victims[i], &d.status.Victims[i]
	switch {
	case v.heir != nil && v.heirCounts:
		d.succeeded(i, "")
		s.Successor = v.heir.UID
		d.do(count, i) // admission, where it was that counted, does not say for whom
	case v.heir != nil:
		if d.now.Sub(v.tried) >= time.Second {
			d.do(count, i)
		}
	case v.ownerGone:
		d.succeeded(i, "its owner is gone or has finished: it needs none")
	case s.Since == nil || d.now.Sub(s.Since.Time) >= heirTime:
		d.succeeded(i, "its owner has made none")
	}
}

func (d *decision) succeeded(i int, why string) {
	d.victim(i, v1alpha1.VictimSucceeded, why)
	if pod := d.seen.victims[i].pod; pod != nil && why == "" {
		d.status.Victims[i].Successor = pod.UID
	}
}
