package preempt

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// preemption is one made a second ago for pod ns/high, with a victim for each state.
// Their pods are ns/v0 and so on, with the UIDs u0 and so on.
func preemption(phase v1alpha1.PreemptionPhase, states ...v1alpha1.VictimState) *v1alpha1.Preemption {
	p := &v1alpha1.Preemption{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(noon.Add(-time.Second))},
		Spec: v1alpha1.PreemptionSpec{Preemptor: v1alpha1.PreemptionPod{Namespace: "ns", Name: "high", UID: "uh", Priority: 50}, Node: "n1"}}
	p.Status.Phase = phase
	for i, s := range states {
		p.Spec.Victims = append(p.Spec.Victims, v1alpha1.Victim{PreemptionPod: v1alpha1.PreemptionPod{Namespace: "ns", Name: fmt.Sprint("v", i), UID: types.UID(fmt.Sprint("u", i))},
			Mode: v1alpha1.VictimEvict, GraceSeconds: 30, Count: 1})
		p.Status.Victims = append(p.Status.Victims, v1alpha1.VictimStatus{State: s, Since: at(noon.Add(-time.Second))})
	}
	switch phase {
	case "", v1alpha1.PreemptionPlanned:
		p.Status.Victims = nil
	case v1alpha1.PreemptionDraining:
		p.Status.DrainingSince = at(noon.Add(-time.Second))
	case v1alpha1.PreemptionHeld:
		p.Status.DrainingSince, p.Status.HeldSince = at(noon.Add(-time.Minute)), at(noon.Add(-time.Second))
	default:
		p.Status.DrainingSince, p.Status.EndedAt = at(noon.Add(-time.Minute)), at(noon.Add(-time.Second))
	}
	return p
}

// sight is what is seen when all is as it should be: the pod waits, and each victim is
// as the states say.
func sight(victims ...victim) *seen {
	return &seen{planned: noon.Add(-time.Second), suits: true, tried: noon.Add(-10 * time.Second), nominated: true, victims: victims}
}

func runs() victim  { return victim{pod: podOf("u0"), fate: alive, held: true} }
func marks() victim { v := runs(); v.marked = true; return v }
func leaves() victim {
	v := marks()
	v.fate = ending
	v.pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(20 * time.Second)}
	return v
}
func left() victim { return victim{} }
func done() victim { v := runs(); v.fate, v.held = ended, false; return v }

func podOf(uid types.UID, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "v0", UID: uid, Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[annotations[i]] = annotations[i+1]
	}
	return pod
}

// with returns the victim with something else about it.
func (v victim) with(change func(*victim)) victim { change(&v); return v }

// said is a step in words: what is written, and what is done.
func said(s step) string {
	var parts []string
	if s.status != nil {
		text := "write " + string(s.status.Phase)
		for i := range s.status.Victims {
			v := &s.status.Victims[i]
			text += " " + string(v.State)
			if v.Message != "" {
				text += " (" + v.Message + ")"
			}
			if v.ForcedAt != nil && v.ForcedAt.Time.Equal(noon) {
				text += " forced"
			}
			if v.Successor != "" {
				text += " by " + string(v.Successor)
			}
		}
		if s.status.Message != "" {
			text += ": " + s.status.Message
		}
		parts = append(parts, text)
	}
	for _, d := range s.deeds {
		name := [...]string{"ask", "unmark", "force", "remake", "count", "unsuspend", "nominate", "withdraw"}[d.act]
		if d.act < nominate {
			name += fmt.Sprint(" ", d.victim)
		}
		parts = append(parts, name)
	}
	if s.remove {
		parts = append(parts, "remove")
	}
	return cmp.Or(strings.Join(parts, "; "), "wait")
}

// What is done next, of all that may be seen: a leader that died before it has left
// each of these behind.
func TestNext(t *testing.T) {
	const draining, held, bound, back, expired = v1alpha1.PreemptionDraining, v1alpha1.PreemptionHeld, v1alpha1.PreemptionBound, v1alpha1.PreemptionRolledBack, v1alpha1.PreemptionExpired
	const chosen, evicting, left1, succeeded, refusedState = v1alpha1.VictimChosen, v1alpha1.VictimEvicting, v1alpha1.VictimGone, v1alpha1.VictimSucceeded, v1alpha1.VictimRefused
	type object func(*v1alpha1.Preemption)
	owner := func(p *v1alpha1.Preemption) {
		for i := range p.Spec.Victims {
			p.Spec.Victims[i].Owner = &metav1.OwnerReference{Kind: "ReplicaSet", Name: "rs", UID: "urs"}
		}
	}
	job := func(p *v1alpha1.Preemption) {
		owner(p)
		for i := range p.Spec.Victims {
			p.Spec.Victims[i].Mode = v1alpha1.VictimSuspend
		}
	}
	since := func(d time.Duration) object {
		return func(p *v1alpha1.Preemption) {
			p.CreationTimestamp = metav1.NewTime(noon.Add(-d))
			for _, s := range []**metav1.MicroTime{&p.Status.DrainingSince, &p.Status.HeldSince, &p.Status.EndedAt} {
				if *s != nil {
					*s = at(noon.Add(-d))
				}
			}
			for i := range p.Status.Victims {
				p.Status.Victims[i].Since = at(noon.Add(-d))
			}
		}
	}
	forced := func(d time.Duration) object {
		return func(p *v1alpha1.Preemption) { p.Status.Victims[0].ForcedAt = at(noon.Add(-d)) }
	}
	sees := func(s *seen, change func(*seen)) *seen { change(s); return s }
	gone := func(s *seen) { s.preemptor = gone }
	heir := func(counts bool) victim { return victim{heir: podOf("heir"), heirCounts: counts} }
	overdue := leaves().with(func(v *victim) { v.pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(-pastGrace)} })
	tests := map[string]struct {
		p    *v1alpha1.Preemption
		is   []object
		seen *seen
		want string
	}{
		"planned: all are asked":                 {preemption("", chosen, chosen), nil, sight(runs(), runs()), "write Draining Evicting Evicting; ask 0; ask 1"},
		"planned: one has gone by itself":        {preemption("", chosen, chosen), nil, sight(runs(), done()), "write RolledBack Spared Spared: pod ns/v1 ends without being asked: fewer may do"},
		"planned: one is exempt by now":          {preemption("", chosen), nil, sight(runs().with(func(v *victim) { v.exempt = "so" })), "write RolledBack Spared: pod ns/v0 is not ended for others: so"},
		"planned: a budget keeps one":            {preemption("", chosen, chosen), nil, sight(runs(), runs().with(func(v *victim) { v.blocked = true })), "write RolledBack Spared Spared (its eviction is refused, as by a PodDisruptionBudget): its eviction is refused, as by a PodDisruptionBudget: pod ns/v1"},
		"planned: the pod is gone":               {preemption("", chosen), nil, sees(sight(runs()), gone), "write RolledBack Spared: the pod is gone"},
		"planned: the pod has its node":          {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.preemptor = here }), "write Bound Spared"},
		"planned: the pod runs elsewhere":        {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.preemptor = elsewhere }), "write RolledBack Spared: the pod runs on another node"},
		"planned: the pod trains":                {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.never = "it trains" }), "write RolledBack Spared: nobody is ended for the pod: it trains"},
		"planned: the node does not suit":        {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.suits = false }), "write RolledBack Spared: the node does not suit the pod any more"},
		"planned: no room is kept":               {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.noRoom = "full" }), "write RolledBack Spared: the node has no room for the pod any more: full"},
		"planned: by another leader":             {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.planned = time.Time{} }), "write RolledBack Spared: the plan is old: there may be a better one"},
		"planned: long ago":                      {preemption("", chosen), nil, sees(sight(runs()), func(s *seen) { s.planned = noon.Add(-11 * time.Second) }), "write RolledBack Spared: the plan is old: there may be a better one"},
		"draining: written, nobody asked":        {preemption(draining, evicting, evicting), nil, sight(runs(), runs()), "ask 0; ask 1"},
		"draining: marked, not evicted":          {preemption(draining, evicting), nil, sight(marks()), "ask 0"},
		"draining: one goes, one is to be":       {preemption(draining, evicting, evicting), nil, sight(leaves(), marks()), "ask 1"},
		"draining: all go":                       {preemption(draining, evicting), nil, sight(leaves()), "wait"},
		"draining: its containers still run":     {preemption(draining, evicting), nil, sight(victim{held: true}), "wait"},
		"draining: the first has gone":           {preemption(draining, evicting, evicting), nil, sight(left(), leaves()), "write Draining Gone Evicting"},
		"draining: and is made anew":             {preemption(draining, left1, evicting), nil, sight(left(), leaves()), "remake 0"},
		"draining: all have gone":                {preemption(draining, evicting), nil, sight(left()), "write Held Gone; nominate"},
		"draining: one ends by itself":           {preemption(draining, evicting), nil, sight(done()), "write Held Spared (had ended by itself); nominate"},
		"draining: another pod of its name":      {preemption(draining, evicting), nil, sight(victim{pod: podOf("other")}), "write Held Gone; nominate"},
		"draining: one does not go":              {preemption(draining, evicting), nil, sight(overdue), "write Draining Evicting forced; force 0"},
		"draining: nor a while later":            {preemption(draining, evicting), []object{forced(29 * time.Second)}, sight(overdue), "wait"},
		"draining: nor after that":               {preemption(draining, evicting), []object{forced(30 * time.Second)}, sight(overdue), "write Draining Evicting forced; force 0"},
		"draining: the pod is gone, one marked":  {preemption(draining, evicting, evicting), nil, sees(sight(leaves(), marks()), gone), "unmark 1"},
		"draining: the pod is gone, all spared":  {preemption(draining, evicting, evicting), nil, sees(sight(leaves(), runs()), gone), "write RolledBack Evicting Spared: the pod is gone"},
		"draining: the pod has its node":         {preemption(draining, evicting, evicting), nil, sees(sight(left(), runs()), func(s *seen) { s.preemptor = here }), "write Bound Gone Spared"},
		"draining: one is exempt by now":         {preemption(draining, evicting), nil, sight(runs().with(func(v *victim) { v.exempt = "so" })), "write RolledBack Spared: pod ns/v0 is not ended for others any more: so"},
		"draining: one going is exempt by now":   {preemption(draining, evicting), nil, sight(leaves().with(func(v *victim) { v.exempt = "so" })), "wait"},
		"draining: a budget keeps one":           {preemption(draining, evicting, left1), []object{since(time.Minute + time.Second), owner}, sight(runs(), left()), "write RolledBack Spared (its eviction is refused, as by a PodDisruptionBudget) Gone: its eviction is refused, as by a PodDisruptionBudget: pod ns/v0"},
		"draining: it does, and another goes":    {preemption(draining, evicting, evicting), []object{since(time.Minute + time.Second)}, sight(runs(), leaves()), "ask 0"},
		"draining: a Job is suspended":           {preemption(draining, evicting), []object{job}, sight(runs().with(func(v *victim) { v.suspended = true })), "wait"},
		"draining: its pod stays":                {preemption(draining, evicting), []object{job, since(90 * time.Second)}, sight(runs().with(func(v *victim) { v.suspended = true })), "write Draining Evicting forced; force 0"},
		"draining: its pod ends by itself":       {preemption(draining, evicting), []object{job}, sight(done().with(func(v *victim) { v.suspended = true })), "write Held Gone; nominate"},
		"held: the pod is awaited":               {preemption(held, succeeded), nil, sight(victim{}), "wait"},
		"held: its nomination has gone":          {preemption(held, succeeded), nil, sees(sight(victim{}), func(s *seen) { s.nominated, s.tried = false, noon.Add(-5*time.Second) }), "nominate"},
		"held: it has just been nominated":       {preemption(held, succeeded), nil, sees(sight(victim{}), func(s *seen) { s.nominated, s.tried = false, noon.Add(-time.Second) }), "wait"},
		"held: its nomination is old":            {preemption(held, succeeded), nil, sees(sight(victim{}), func(s *seen) { s.tried = noon.Add(-15 * time.Second) }), "nominate"},
		"held: nobody wrote since when":          {preemption(held, succeeded), []object{func(p *v1alpha1.Preemption) { p.Status.HeldSince = nil }}, sight(victim{}), "write Expired Succeeded: the pod has not come: the scheduler has other reasons to refuse it the node"},
		"draining: nor since when":               {preemption(draining, evicting), []object{func(p *v1alpha1.Preemption) { p.Status.DrainingSince = nil }}, sight(runs()), "write RolledBack Spared: its eviction is refused, as by a PodDisruptionBudget: pod ns/v0"},
		"draining: more victims than planned":    {preemption(draining, evicting, evicting), []object{func(p *v1alpha1.Preemption) { p.Spec.Victims = p.Spec.Victims[:1] }}, sight(left()), "write Held Gone; nominate"},
		"held: the pod comes":                    {preemption(held, succeeded), nil, sees(sight(victim{}), func(s *seen) { s.preemptor = here }), "write Bound Succeeded"},
		"held: the pod is gone":                  {preemption(held, succeeded), nil, sees(sight(victim{}), gone), "write RolledBack Succeeded: the pod is gone"},
		"held: it does not come":                 {preemption(held, succeeded), []object{since(time.Minute)}, sight(victim{}), "write Expired Succeeded: the pod has not come: the scheduler has other reasons to refuse it the node; withdraw"},
		"held: it is on its way":                 {preemption(held, succeeded), []object{since(time.Minute)}, sees(sight(victim{}), func(s *seen) { s.binding = true }), "wait"},
		"bare: its name is taken by itself":      {preemption(bound, left1), nil, sight(leaves()), "wait"},
		"bare: made anew, not written":           {preemption(bound, left1), nil, sight(victim{pod: podOf("new", codec.AnnotationPreemptedFrom, "u0")}), "write Bound Succeeded by new"},
		"bare: by somebody else":                 {preemption(bound, left1), nil, sight(victim{pod: podOf("new")}), "write Bound Succeeded (made anew by somebody else)"},
		"bare: not of this one":                  {preemption(bound, left1), nil, sight(victim{pod: podOf("new", codec.AnnotationPreemptedFrom, "u9")}), "write Bound Succeeded (made anew by somebody else)"},
		"bare: refused a moment ago":             {preemption(bound, refusedState), []object{since(8 * time.Second)}, sight(left().with(func(v *victim) { v.tried = noon.Add(-3 * time.Second) })), "wait"},
		"bare: refused a while ago":              {preemption(bound, refusedState), []object{since(8 * time.Second)}, sight(left().with(func(v *victim) { v.tried = noon.Add(-5 * time.Second) })), "remake 0"},
		"bare: refused for days":                 {preemption(bound, refusedState), []object{since(48 * time.Hour)}, sight(left().with(func(v *victim) { v.tried = noon.Add(-5 * time.Minute) })), "remake 0"},
		"owned: no successor yet":                {preemption(bound, left1), []object{owner}, sight(left()), "wait"},
		"owned: a successor that counts":         {preemption(bound, left1), []object{owner}, sight(heir(true)), "write Bound Succeeded by heir; count 0"},
		"owned: one that does not":               {preemption(bound, left1), []object{owner}, sight(heir(false)), "count 0"},
		"owned: none":                            {preemption(bound, left1), []object{owner, since(10 * time.Minute)}, sight(left()), "write Bound Succeeded (its owner has made none)"},
		"a Job for which there is no room":       {preemption(bound, left1), []object{job, since(time.Hour)}, sight(left().with(func(v *victim) { v.suspended = true })), "wait"},
		"a Job for which there is, two pods":     {preemption(bound, left1, left1), []object{job}, sight(left().with(func(v *victim) { v.suspended, v.fits = true, true }), left().with(func(v *victim) { v.suspended, v.fits = true, true })), "write Bound Gone (its Job is being resumed) Gone (its Job is being resumed); unsuspend 0"},
		"a Job that has finished":                {preemption(bound, left1), []object{job}, sight(left().with(func(v *victim) { v.ownerGone, v.job = true, &batchv1.Job{} })), "write Bound Succeeded (its owner is gone or has finished: it needs none)"},
		"ended: one that was asked goes on":      {preemption(back, evicting), nil, sight(left()), "write RolledBack Gone"},
		"ended: one not asked is spared":         {preemption(back, evicting), nil, sight(runs()), "write RolledBack Spared"},
		"ended: its mark goes first":             {preemption(back, evicting), nil, sight(marks()), "unmark 0"},
		"ended: one does not go":                 {preemption(expired, evicting), nil, sight(overdue), "write Expired Evicting forced; force 0"},
		"ended: nothing is owed":                 {preemption(bound, succeeded), nil, sight(victim{}), "wait"},
		"ended: an hour ago":                     {preemption(bound, succeeded), []object{since(time.Hour)}, sight(victim{}), "remove"},
		"ended: an hour ago, in vain":            {preemption(expired, succeeded), []object{since(time.Hour)}, sight(victim{}), "wait"},
		"ended: a day ago, in vain":              {preemption(expired, succeeded), []object{since(24 * time.Hour)}, sight(victim{}), "remove"},
		"ended: long ago, and something is owed": {preemption(bound, refusedState), []object{since(9 * time.Hour)}, sight(left().with(func(v *victim) { v.tried = noon })), "wait"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, is := range tc.is {
				is(tc.p)
			}
			before := tc.p.DeepCopy()
			if got := said(next(tc.p, tc.seen, noon)); got != tc.want {
				t.Errorf("next:\n got %s\nwant %s", got, tc.want)
			}
			if diff := gocmp.Diff(before, tc.p); diff != "" {
				t.Errorf("what was read is changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Who is exempt is asked of the pod itself, last, and apart from any plan.
func TestExempt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*preempt.Pod)
		want   string
	}{
		"as planned":            {func(*preempt.Pod) {}, ""},
		"another scheduler's":   {func(p *preempt.Pod) { p.Ours = false }, "another scheduler's"},
		"of the system":         {func(p *preempt.Pod) { p.System = true }, "a pod of the system"},
		"training":              {func(p *preempt.Pod) { p.Type = gpu.Training }, "its task type is training"},
		"inference":             {func(p *preempt.Pod) { p.Type = gpu.Inference }, "its task type is inference"},
		"not preemptible":       {func(p *preempt.Pod) { p.Preemptible = false }, "it is not preemptible"},
		"ended before":          {func(p *preempt.Pod) { p.Count = 1 }, "it was ended for another before"},
		"of the same priority":  {func(p *preempt.Pod) { p.Priority = 50 }, "its priority is not lower"},
		"of a higher priority":  {func(p *preempt.Pod) { p.Priority = 51 }, "its priority is not lower"},
		"cannot be made anew":   {func(p *preempt.Pod) { p.Unmade = "too long" }, "too long"},
		"need not be made anew": {func(p *preempt.Pod) { p.Unmade, p.Bare = "too long", false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := preempt.Pod{Ours: true, Preemptible: true, Bare: true, Priority: 49, Type: gpu.Batch}
			tc.change(&p)
			if got := exempt(&p, 50); got != tc.want {
				t.Errorf("exempt = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTextsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 600)
	if got := shorten(long, 512); len(got) > 512 || !strings.HasSuffix(got, "ä ...") {
		t.Errorf("%d bytes, %q at the end", len(got), got[len(got)-8:])
	}
	if got := shorten("short", 512); got != "short" {
		t.Errorf("shorten = %q", got)
	}
}
