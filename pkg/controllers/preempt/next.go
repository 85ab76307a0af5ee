package preempt

import (
	"cmp"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// How long things are waited for.
const (
	planTime  = 10 * time.Second // from the plan to when the first is asked to go
	heldTime  = time.Minute      // for the preemptor to come, once there is room
	blockTime = time.Minute      // for one that may not be evicted after all
	askTime   = 5 * time.Second  // until it is asked again
	pastGrace = time.Minute      // until one that does not go is deleted without grace
	watchTime = 30 * time.Second // until it is deleted so again
	heirTime  = 10 * time.Minute // for an owner to make a successor
	keepTime  = time.Hour        // for which one that is over is kept
	// One whose preemptor has not come is kept for longer: it is why nobody is ended
	// for that pod again.
	keepExpired = 24 * time.Hour
	nomination  = 5 * time.Second // between two nominations of one node
)

// Texts that are read back.
const (
	blockedText  = "its eviction is refused, as by a PodDisruptionBudget"
	resumingText = "its Job is being resumed"
)

// deed is something that is done to a pod or a Job.
type deed struct {
	act    act
	victim int // in the order of the spec; of no meaning for the preemptor
}

type act int

const (
	ask       act = iota // mark the victim, and evict it or suspend its Job
	unmark               // take the mark off it
	force                // delete it without grace
	remake               // make it anew
	count                // tell its successor how often its lives were ended
	unsuspend            // resume its Job
	nominate             // the node, for the preemptor
	withdraw             // that again
)

// step is what is to be done next: first the status is written, then the deeds are
// done. The zero step is to wait.
type step struct {
	status *v1alpha1.PreemptionStatus // nil: stays as it is
	deeds  []deed
	remove bool // the Preemption is over, and old
}

func (s *step) waits() bool { return s.status == nil && len(s.deeds) == 0 && !s.remove }

// decision is a step that is being made.
type decision struct {
	spec    *v1alpha1.PreemptionSpec
	status  *v1alpha1.PreemptionStatus // as it is to be
	seen    *seen
	now     time.Time
	changed bool
	deeds   []deed
}

// next returns what is to be done for a Preemption.
func next(p *v1alpha1.Preemption, s *seen, now time.Time) step {
	d := decision{spec: &p.Spec, status: p.Status.DeepCopy(), seen: s, now: now}
	d.complete()
	switch d.status.Phase {
	case v1alpha1.PreemptionPlanned:
		d.planned()
	case v1alpha1.PreemptionDraining:
		d.victims()
		d.draining()
	case v1alpha1.PreemptionHeld:
		d.victims()
		d.held()
	default:
		d.victims()
	}
	out := step{deeds: d.deeds}
	if d.changed {
		out.status = d.status
	}
	out.remove = out.waits() && settled(p) && now.Sub(p.Status.EndedAt.Time) >= keptFor(p)
	return out
}

// complete spells out a status that nobody has written yet, or not as we do.
func (d *decision) complete() {
	d.status.Phase = phase(d.status)
	d.status.Victims = d.status.Victims[:min(len(d.status.Victims), len(d.spec.Victims))]
	for i := len(d.status.Victims); i < len(d.spec.Victims); i++ {
		d.status.Victims = append(d.status.Victims, v1alpha1.VictimStatus{State: v1alpha1.VictimChosen})
	}
}

// phase returns how far it has come.
func phase(s *v1alpha1.PreemptionStatus) v1alpha1.PreemptionPhase {
	return cmp.Or(s.Phase, v1alpha1.PreemptionPlanned)
}

// active reports whether room is kept for the preemptor.
func active(p *v1alpha1.Preemption) bool { return p.Status.Phase.Active() }

// settled reports whether it has ended, and nothing is owed to anybody.
func settled(p *v1alpha1.Preemption) bool {
	if active(p) || p.Status.EndedAt == nil {
		return false
	}
	for i := range p.Status.Victims {
		switch p.Status.Victims[i].State {
		case v1alpha1.VictimSpared, v1alpha1.VictimSucceeded:
		default:
			return false
		}
	}
	return true
}

// keptFor returns how long one that is over is kept.
func keptFor(p *v1alpha1.Preemption) time.Duration {
	if p.Status.Phase == v1alpha1.PreemptionExpired {
		return keepExpired
	}
	return keepTime
}

// planned has the victims asked, or gives up.
func (d *decision) planned() {
	if d.over() {
		return
	}
	if d.seen.stale(d.now) {
		d.end(v1alpha1.PreemptionRolledBack, "the plan is old: there may be a better one")
		return
	}
	for i := range d.seen.victims {
		switch v := &d.seen.victims[i]; {
		case v.fate != alive:
			d.end(v1alpha1.PreemptionRolledBack, d.name(i)+" ends without being asked: fewer may do")
		case v.exempt != "":
			d.end(v1alpha1.PreemptionRolledBack, d.name(i)+" is not ended for others: "+v.exempt)
		case v.blocked:
			d.spare(i, blockedText)
			d.end(v1alpha1.PreemptionRolledBack, blockedText+": "+d.name(i))
		default:
			continue
		}
		return
	}
	d.move(v1alpha1.PreemptionDraining, "")
	d.status.DrainingSince = at(d.now)
	for i := range d.status.Victims {
		d.victim(i, v1alpha1.VictimEvicting, "")
		d.do(ask, i)
	}
}

// draining goes on to Held when all have gone, and gives up when they need not, or
// will not.
func (d *decision) draining() {
	if d.over() {
		return
	}
	kept, going := []int{}, 0
	for i := range d.status.Victims {
		if d.status.Victims[i].State != v1alpha1.VictimEvicting {
			continue
		}
		v := &d.seen.victims[i]
		switch {
		case !v.asked() && v.exempt != "":
			d.end(v1alpha1.PreemptionRolledBack, d.name(i)+" is not ended for others any more: "+v.exempt)
			return
		case v.asked():
			going++
		default:
			kept = append(kept, i)
		}
	}
	switch {
	case len(kept) == 0 && going == 0:
		d.move(v1alpha1.PreemptionHeld, "")
		d.status.HeldSince = at(d.now)
		d.do(nominate, 0)
	case going == 0 && d.since(d.status.DrainingSince) > blockTime:
		d.end(v1alpha1.PreemptionRolledBack, blockedText+": "+d.name(kept[0]))
	}
}

// held waits for the preemptor.
func (d *decision) held() {
	switch {
	case d.over():
	case d.since(d.status.HeldSince) >= heldTime && !d.seen.binding:
		d.end(v1alpha1.PreemptionExpired, "the pod has not come: the scheduler has other reasons to refuse it the node")
	case !d.seen.binding && d.now.Sub(d.seen.tried) >= d.patience():
		d.do(nominate, 0)
	}
}

// patience is how long one nomination is given: one that is still there may have come
// while kube-scheduler was looking at the pod.
func (d *decision) patience() time.Duration {
	if d.seen.nominated {
		return 3 * nomination
	}
	return nomination
}

// since returns how long ago that was. What nobody has written down was long ago.
func (d *decision) since(t *metav1.MicroTime) time.Duration {
	if t == nil {
		return math.MaxInt64
	}
	return d.now.Sub(t.Time)
}

// over ends it if the preemptor has its node, or needs this one no more, and reports
// whether that is so.
func (d *decision) over() bool {
	switch s := d.seen; {
	case s.preemptor == here:
		d.end(v1alpha1.PreemptionBound, "")
	case s.preemptor == elsewhere:
		d.end(v1alpha1.PreemptionRolledBack, "the pod runs on another node")
	case s.preemptor == gone:
		d.end(v1alpha1.PreemptionRolledBack, "the pod is gone")
	case s.never != "":
		d.end(v1alpha1.PreemptionRolledBack, "nobody is ended for the pod: "+s.never)
	case !s.suits:
		d.end(v1alpha1.PreemptionRolledBack, "the node does not suit the pod any more")
	case s.noRoom != "":
		d.end(v1alpha1.PreemptionRolledBack, "the node has no room for the pod any more: "+s.noRoom)
	default:
		return false
	}
	return true
}

// end ends it, once the marks are off those who are spared.
func (d *decision) end(p v1alpha1.PreemptionPhase, why string) {
	d.deeds = slices.DeleteFunc(d.deeds, func(a deed) bool { return a.act == ask })
	if d.unmarks() {
		return // and then it is looked at anew, and why it ends is still to be seen
	}
	for i := range d.status.Victims {
		d.release(i)
	}
	waits := d.seen.preemptor == waiting
	d.move(p, why)
	d.status.EndedAt = at(d.now)
	if waits && d.seen.nominated && d.status.HeldSince != nil { // or it is not ours
		d.do(withdraw, 0)
	}
}

// unmarks has the marks taken off who has not been asked to go, and reports whether
// there are any.
func (d *decision) unmarks() (any bool) {
	for i := range d.status.Victims {
		if v := &d.seen.victims[i]; d.status.Victims[i].State == v1alpha1.VictimEvicting && v.fate == alive && !v.asked() && v.marked {
			d.do(unmark, i)
			any = true
		}
	}
	return any
}

// release spares the victim if it has not been asked to go.
func (d *decision) release(i int) {
	v := &d.seen.victims[i]
	switch d.status.Victims[i].State {
	case v1alpha1.VictimChosen:
		d.spare(i, "")
	case v1alpha1.VictimEvicting:
		if v.fate == alive && !v.asked() {
			d.spare(i, d.whySpared())
		}
	}
}

// whySpared says why those are spared who are left alone now: that a budget kept them
// for all of blockTime is remembered, and they are not planned for at once again.
func (d *decision) whySpared() string {
	if d.seen.preemptor == waiting && d.status.DrainingSince != nil && d.since(d.status.DrainingSince) > blockTime {
		return blockedText
	}
	return ""
}

func (d *decision) do(a act, victim int) { d.deeds = append(d.deeds, deed{a, victim}) }

func (d *decision) move(p v1alpha1.PreemptionPhase, why string) {
	d.status.Phase, d.status.Message, d.changed = p, shorten(why, 1024), true
}

func (d *decision) spare(i int, why string) { d.victim(i, v1alpha1.VictimSpared, why) }

// victim has the victim in another state.
func (d *decision) victim(i int, s v1alpha1.VictimState, why string) {
	v := &d.status.Victims[i]
	v.State, v.Since, v.Message, d.changed = s, at(d.now), shorten(why, 512), true
}

func (d *decision) name(i int) string { return "pod " + nameOf(&d.spec.Victims[i].PreemptionPod) }

func nameOf(p *v1alpha1.PreemptionPod) string { return p.Namespace + "/" + p.Name }

func at(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t)
	return &m
}

// shorten cuts a text to what a field of the API takes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for i := range text {
		if i > most-8 { // where a character begins: none is longer than 4 bytes
			return text[:i] + " ..."
		}
	}
	return text
}
