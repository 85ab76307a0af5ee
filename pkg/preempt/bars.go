package preempt

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Bars says in words why the pod may not be ended for the Asker; "" if it may. One
// member of a unit who may not be bars all. That ending the pod would not help is
// nothing that bars it.
func Bars(w *World, a *Asker, pod *Pod) string {
	r := w.look()
	if why := r.bars(w, pod); why != "" {
		return why
	}
	if why := between(a, pod, r.cooled(w, a)); why != "" {
		return why
	}
	for _, m := range r.units[pod.Unit] {
		why := r.bars(w, m)
		if why == "" {
			why = between(a, m, r.cooled(w, a))
		}
		if why != "" {
			return "it goes with " + m.Namespace + "/" + m.Name + ", which may not be ended: " + why
		}
	}
	return ""
}

// bars says why nobody may have the pod ended; "" if somebody may.
func (r *round) bars(w *World, p *Pod) string {
	_, going := r.going[p.ID]
	switch {
	case !p.Ours:
		return "another scheduler placed it"
	case p.System:
		return "it is of the system"
	case p.Type == gpu.Training, p.Type == gpu.Inference:
		return string(p.Type) + " is not ended for others"
	case !p.Preemptible:
		return "it does not say that it may be"
	case p.Count > 0:
		return "its former life was ended for another"
	case p.Phase == Ending, going:
		return "it is ending already"
	case !w.Rules.reaches(p.Phase):
		return "the policy spares it in the phase that it is in"
	case w.Rules.young(p, w.Now):
		return "it has not been running for long enough"
	case w.Rules.MaxGrace > 0 && p.Grace > w.Rules.MaxGrace:
		return "it has longer to end than the policy lets others wait"
	case w.Now.Before(w.Blocked[p.ID]):
		return "a PodDisruptionBudget keeps it"
	case p.Bare && !w.Rules.Bare:
		return "nothing but this scheduler would make it anew, and the policy spares such pods"
	case p.Unmade != "":
		return "it could not be made anew: " + p.Unmade
	case r.left(w, p) == 0:
		return "enough pods of its tenant were ended within the hour"
	}
	return ""
}

// between says why this Asker may not have the pod ended whom others may.
func between(a *Asker, p *Pod, cooled map[string]struct{}) string {
	if p.Priority >= a.Priority {
		return "its priority is not lower"
	}
	if _, hot := cooled[p.Lineage]; hot {
		return "one of the two was ended for the other a while ago"
	}
	return ""
}

// never says why nobody is ended for the Asker; "" if somebody may be.
func never(w *World, a *Asker) string {
	switch {
	case a.Never != "":
		return a.Never
	case a.Type == gpu.Training:
		return "nobody is ended for training"
	case a.Gang && !served(w, a):
		return "its task group is not known: no node takes it"
	case w.Rules.Stage != OfScheduled && w.Rules.Stage != OfRunning:
		return "the policy has nobody ended"
	}
	return ""
}

// served reports whether the Asker is of a service: whoever is of another group is not
// placed by itself.
func served(w *World, a *Asker) bool {
	_, known := w.State.Service(a.Group)
	return known
}

// reaches reports whether pods in the phase may be ended.
func (r *Rules) reaches(p Phase) bool {
	return r.Stage == OfScheduled && p == Scheduled || r.Stage == OfRunning && p == Running
}

func (r *Rules) young(p *Pod, now time.Time) bool {
	return p.Phase == Running && r.MinRuntime > 0 && (p.Since.IsZero() || now.Before(p.Since.Add(r.MinRuntime)))
}

// cooled returns the lineages of which nobody is ended for that of the Asker: one of
// the two was ended for the other lately.
func (r *round) cooled(w *World, a *Asker) map[string]struct{} {
	var all map[string]struct{}
	for i := range w.History {
		e := &w.History[i]
		other := e.Of
		if e.Of == a.Lineage {
			other = e.By
		} else if e.By != a.Lineage {
			continue
		}
		if a.Lineage == "" || !w.Now.Before(e.At.Add(w.Rules.Cooldown)) {
			continue
		}
		if all == nil {
			all = map[string]struct{}{}
		}
		all[other] = struct{}{}
	}
	return all
}
