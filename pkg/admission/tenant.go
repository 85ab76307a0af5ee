package admission

import (
	"fmt"
	"strings"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// foresee returns the outlook of a request from the namespace.
func (r Rules) foresee(v *review, request gpu.Request) engine.Outlook {
	if r.Foresee == nil {
		return engine.Outlook{}
	}
	request.Namespace = v.namespace
	if request.Gang {
		request.Group = codec.GroupOf(v.namespace, codec.TaskGroup(v.pod))
	}
	return r.Foresee(&request)
}

// checkLimits: a pod that passes a limit by itself would wait for ever.
func checkLimits(o *engine.Outlook, request *gpu.Request) error {
	if o.Never == nil {
		return nil
	}
	l := o.Never.Limit
	return fmt.Errorf("%s: asks for %d %s; %s allows %d (%s)",
		fields(request), o.Never.Asked, unit(l.Measure), l.Quota, l.Most, codec.LimitField(l))
}

// fields lists the containers that ask for cards, as a person finds them.
func fields(request *gpu.Request) string {
	var all []string
	for i := range request.Asks {
		list := "containers"
		if request.Asks[i].Role != gpu.App {
			list = "initContainers"
		}
		all = append(all, fmt.Sprintf("%s[%s]", list, request.Asks[i].Container))
	}
	return strings.Join(all, ", ")
}

func unit(m gpu.Measure) string {
	switch m {
	case gpu.WholeCards:
		return "whole cards"
	case gpu.Memory:
		return "MiB of card memory"
	case gpu.Compute:
		return "percent of a card's compute"
	}
	return "cards"
}

// prospects says why a pod that is let in may wait for long, or will find fewer
// cards than its author thinks.
func prospects(v *review) (all []string) {
	o := &v.outlook
	if o.Closed != "" {
		all = append(all, fmt.Sprintf("the pod gets no cards for now (%s): the tenant of namespace %s is not active, does not exist, or is not known yet", o.Closed, v.namespace))
	}
	if o.Unknown {
		all = append(all, fmt.Sprintf("more than one Tenant claims namespace %s: its pods share cards with nobody", v.namespace))
	}
	if o.Waits {
		all = append(all, fmt.Sprintf("TaskGroup %s/%s is not there (yet): the pod waits for it (%s)", v.namespace, codec.TaskGroup(v.pod), gpu.GangIncomplete))
	}
	if o.Now != nil {
		all = append(all, fmt.Sprintf("the pod waits until there is room in a quota (%s): %s", gpu.QuotaExceeded, o.Now))
	}
	return all
}

// most returns the highest priority that pods of the namespace may ask for, false
// if that is not known for sure.
func (r Rules) most(namespace string) (n int, known bool) {
	if r.MaxPriority == nil {
		return tenancy.MostPriority, true
	}
	return r.MaxPriority(namespace)
}

// checkCap: the class is what kube-scheduler goes by, and it may be one that
// prioritise leaves alone.
func (r Rules) checkCap(v *review) error {
	class := v.pod.Spec.PriorityClassName
	most, known := r.most(v.namespace)
	n, _ := codec.ClassPriority(class)
	if p := v.pod.Spec.Priority; p != nil {
		n = int(*p)
	}
	switch {
	case class == "" || most >= tenancy.MostPriority || n <= most:
		return nil
	case !known:
		return fmt.Errorf("spec.priorityClassName: %s is priority %d, and namespace %s is not known yet, whose Tenant may allow less; try again", class, n, v.namespace)
	}
	return fmt.Errorf("spec.priorityClassName: %s is priority %d; the Tenant of namespace %s allows %d (spec.maxPriority); write %s (a class that nobody wrote is the cluster's default)",
		class, n, v.namespace, most, codec.PriorityClass(most))
}
