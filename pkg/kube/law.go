package kube

import (
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Law is what administrators had written about tenants at one moment, as it was
// read. It is never edited.
type Law struct {
	// Directory is what the ledger goes by; nil, by which nothing is allowed, as
	// long as nothing has been read.
	Directory *tenancy.Directory
	// Faults is what could not be read, or cannot be counted.
	Faults codec.Faults
	// Generations is that of each Tenant's spec, by the Tenant's name.
	Generations map[string]int64

	world tenancy.World
}

// read returns the law that is written now, without its Directory. Former namespaces
// are in it as they last were.
func (r *Rules) read() (*Law, error) {
	tenants, err := r.tenants.List(labels.Everything())
	namespaces, err2 := r.namespaces.List(labels.Everything())
	quotas, err3 := r.quotas.List(labels.Everything())
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	namespaces = r.former.join(namespaces)
	law := &Law{Generations: make(map[string]int64, len(tenants))}
	law.world, law.Faults = codec.World(tenants, namespaces, quotas)
	law.world.Quotas = slices.DeleteFunc(law.world.Quotas, func(q tenancy.Quota) bool { return len(q.Limits) == 0 }) // about other things than cards
	for _, t := range tenants {
		law.Generations[t.Name] = t.Generation
	}
	return law, nil
}

// rules reports whether the ledger would go by the same with either.
func (l *Law) rules(other *Law) bool { return l.world.Equal(other.world) }

// equal reports whether both say the same, in all that anybody looks at.
func (l *Law) equal(other *Law) bool {
	return l.rules(other) && reflect.DeepEqual(l.Generations, other.Generations) && reflect.DeepEqual(l.Faults, other.Faults)
}

// tell logs the Tenants that cannot be read any more, or not for the same reason.
func (l *Law) tell(logger klog.Logger, was *Law) {
	for name, err := range l.Faults.Tenants {
		if before := was.Faults.Tenants[name]; before == nil || before.Error() != err.Error() {
			logger.Error(err, "Tenant cannot be read, it counts as inactive and shares cards with nobody", "tenant", name)
		}
	}
}
