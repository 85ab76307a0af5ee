package preempt

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Reasons of the events. Alerts rely on them: add, never rename.
const (
	// ReasonNotPreempting, on a pod that waits: nobody is ended for it.
	ReasonNotPreempting = "NotPreempting"
	// ReasonPreempting, on the preemptor: pods are ended for it.
	ReasonPreempting = "Preempting"
	// ReasonGivenUp, on the preemptor: no more are.
	ReasonGivenUp = "PreemptionGivenUp"
	// ReasonPreempted, on a victim: it is ended for another.
	ReasonPreempted = "Preempted"
	// ReasonRemade, on a successor: it was made in the place of a victim.
	ReasonRemade = "MadeAnew"
	// ReasonNotRemade, on a victim: the API server refuses to make it anew.
	ReasonNotRemade = "NotMadeAnew"
)

// mostNamed bounds how many pods a text names.
const mostNamed = 8

// tell tells what is new.
func (r *round) tell(before, after *v1alpha1.Preemption) {
	was, is := phase(&before.Status), phase(&after.Status)
	who := &after.Spec.Preemptor
	switch {
	case was == is:
	case is == v1alpha1.PreemptionDraining:
		r.say(who.Namespace, who.Name, who.UID, false, ReasonPreempting, after.Name,
			fmt.Sprintf("pods are ended so that it can run on node %s: %s; %s", after.Spec.Node, names(after.Spec.Victims), after.Spec.Rule))
	case is == v1alpha1.PreemptionRolledBack, is == v1alpha1.PreemptionExpired:
		r.say(who.Namespace, who.Name, who.UID, true, ReasonGivenUp, after.Name, fmt.Sprintf("no more pods are ended for it on node %s: %s", after.Spec.Node, after.Status.Message))
	}
	for i := range after.Status.Victims {
		if before.VictimState(i) != after.VictimState(i) {
			r.tellVictim(after, i)
		}
	}
}

// mostTold bounds the pods of which it is remembered what they were told.
const mostTold = 10_000

// explain tells a pod why nobody is ended for it, once until it is for another reason.
// Where nobody of lower priority offers to be ended nobody wonders.
func (r *round) explain(a *preempt.Asker, outcome preempt.Outcome) {
	why, id := "", types.UID(a.Pod)
	switch {
	case priorityOf(a) <= r.least:
	case outcome == preempt.Exempt:
		why = a.Never
	case outcome == preempt.Hopeless:
		why = "it would fit no node, whoever were ended that may be"
	}
	if why == "" || r.memory.told[id] == why {
		return
	}
	if len(r.memory.told) >= mostTold {
		clear(r.memory.told)
	}
	r.memory.told[id] = why
	r.say(a.Namespace, a.Name, id, false, ReasonNotPreempting, "", "no pods of lower priority are ended for it: "+why)
}

// tellVictim tells that a victim has come to its state.
func (r *round) tellVictim(p *v1alpha1.Preemption, i int) {
	v, s, by := &p.Spec.Victims[i], &p.Status.Victims[i], nameOf(&p.Spec.Preemptor)
	switch {
	case s.State == v1alpha1.VictimEvicting:
		r.say(v.Namespace, v.Name, v.UID, true, ReasonPreempted, p.Name, fmt.Sprintf("ended so that pod %s of a higher priority can run on node %s: %s", by, p.Spec.Node, p.Spec.Rule))
	case s.State == v1alpha1.VictimRefused:
		r.say(v.Namespace, v.Name, v.UID, true, ReasonNotRemade, p.Name, fmt.Sprintf("was ended for pod %s, and cannot be made anew; it is tried again: %s", by, s.Message))
	case s.State == v1alpha1.VictimSucceeded && s.Successor != "":
		r.say(v.Namespace, r.successorName(v, s), s.Successor, false, ReasonRemade, p.Name, fmt.Sprintf("made in the place of the pod that was ended for pod %s: %s. It is not ended for others again", by, p.Spec.Rule))
	}
}

// successorName is the name of the pod that was made in the victim's place: its own, or
// what the owner calls it.
func (r *round) successorName(v *v1alpha1.Victim, s *v1alpha1.VictimStatus) string {
	if v.Owner == nil {
		return v.Name
	}
	for _, pod := range r.owners[v.Owner.UID] {
		if pod.UID == s.Successor {
			return pod.Name
		}
	}
	return v.Name
}

func (r *round) say(namespace, name string, uid types.UID, warning bool, reason, key, text string) {
	r.Tell(kube.Notice{About: kube.Subject{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: uid}, Warning: warning, Reason: reason, Key: key, Text: text})
}

// names names the first few.
func names(victims []v1alpha1.Victim) string {
	all := make([]string, 0, mostNamed)
	for i := range victims[:min(len(victims), mostNamed)] {
		all = append(all, nameOf(&victims[i].PreemptionPod))
	}
	if more := len(victims) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all, ", "), more)
	}
	return strings.Join(all, ", ")
}
