package gpu

import (
	"strings"
	"time"
)

// Role says when a container runs, which decides what its pod holds on a card.
type Role int

// App containers run together; ordinary init containers run before them, one
// after the other; sidecars (init containers that are always restarted) run
// beside both.
const (
	App Role = iota
	Init
	Sidecar
)

// Policy is a way to choose among nodes or among a node's cards.
type Policy string

// The policies a pod may name; the empty one leaves it to the SchedulerPolicy.
const (
	Binpack       Policy = "binpack"
	Spread        Policy = "spread"
	TopologyAware Policy = "topology-aware"
)

// Wish is how much a pod wants something that it can run without; the empty one
// says that it does not care.
type Wish string

// The wishes a pod may have.
const (
	Preferred Wish = "preferred"
	Required  Wish = "required"
)

// TaskType is what kind of work a pod does; the empty one is Batch.
type TaskType string

// The kinds of work.
const (
	Training  TaskType = "training"
	Inference TaskType = "inference"
	Batch     TaskType = "batch"
)

// GroupID names pods that work together, across the cluster: a task group, a
// training job, a Job. "" is no group.
type GroupID string

// Ask is what one container wants: Count different cards, each whole or each a
// slice of the same size.
type Ask struct {
	Container string
	Number    int // n of the container's own annotations
	Role      Role
	Vendor    Vendor // "" for any
	// Model is a part of the card's model, in any case; "" for any. See Suits.
	Model string
	Count int // at least 1
	// Plugin is the resource by whose count a device plugin gives the container
	// its cards; "" if none does. See Card.Plugin.
	Plugin string
	Whole  bool // the whole card, nobody else on it
	// Memory is the size of a slice; of a whole card the least it must have.
	// 0: not named.
	Memory MiB
	// MemoryPercent is the size of a slice in percent of the card's usable
	// memory. 0: not named. Never together with Memory.
	MemoryPercent int
	// Cores is the slice's share of compute. 0: not named.
	Cores Cores
	// ProportionalCores gives a slice that names no compute as much of it as
	// it takes of the memory; otherwise it gets none reserved.
	ProportionalCores bool
}

// SuitsVendor reports whether card c is of the vendor that is asked for, and is
// given to who asks so: a device plugin gives nobody else a card.
func (a *Ask) SuitsVendor(c *Card) bool {
	return (a.Vendor == "" || a.Vendor == c.Vendor) && (c.Plugin == "" || c.Plugin == a.Plugin)
}

// Suits reports whether card c is of the vendor and of the model that are asked
// for. Whatever stands before the model's name does not matter ("910B3" is also
// "Ascend910B3" and "Ascend 910B3"). After it a digit may follow (310P3 is a
// 310P), but neither a letter nor a hyphen: those make another model (910B2C is
// no 910B2, and 910B4-1 no 910B4). The cards of a device plugin whose names are
// those of one model are of that model, whatever they call themselves.
func (a *Ask) Suits(c *Card) bool {
	if !a.SuitsVendor(c) || a.Model == "" || c.Plugin != "" {
		return a.SuitsVendor(c)
	}
	for from := range len(c.Model) - len(a.Model) + 1 {
		to := from + len(a.Model)
		if strings.EqualFold(c.Model[from:to], a.Model) && !alters(c.Model[to:]) {
			return true
		}
	}
	return false
}

// alters reports whether what follows a model's name makes it another one.
func alters(rest string) bool {
	return rest != "" && (rest[0] == '-' || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= 'a' && rest[0] <= 'z')
}

// On returns what one device of the ask would hold on card c. A share that is
// computed is rounded down, but is at least 1.
func (a *Ask) On(c *Card) Use {
	if a.Whole {
		return Use{Memory: c.Memory, Cores: c.Cores, Slots: 1, Exclusive: true}
	}
	u := Use{Memory: a.Memory, Cores: a.Cores, Slots: 1}
	switch {
	case u.Memory > 0:
	case a.MemoryPercent > 0:
		u.Memory = max(1, c.Usable*MiB(a.MemoryPercent)/100)
	default:
		u.Memory = max(1, c.Usable*MiB(a.Cores)/MostCores)
	}
	if u.Cores == 0 && a.ProportionalCores && c.Usable > 0 {
		u.Cores = min(MostCores, max(1, Cores(u.Memory*MostCores/c.Usable)))
	}
	return u
}

// Request is all that a pod asks for. It never changes once made.
type Request struct {
	Pod       PodID
	Namespace string
	Name      string
	Tenant    TenantID
	Priority  int32 // in kube-scheduler's queue: the higher is served first
	Asks      []Ask // init containers first, then containers, in spec order

	CPU    MilliCPU // of the whole pod
	Memory Bytes    // of the whole pod, main memory

	Vendor    Vendor   // only cards of this vendor; "" for any
	Models    []string // a card's model contains one of these, in any case; none: any
	NotModels []string // ... and none of these
	Cards     []CardID // only these cards; none: any
	NotCards  []CardID // none of these
	NUMA      int      // only cards on this NUMA node; NoNUMA: any
	NUMABind  bool     // all cards on one NUMA node, whichever
	// NVLink is required: the cards of each container are joined by links of the
	// NVLink class, wherever it is known how cards are joined.
	NVLink bool

	Region string // where the pod would rather run; "": anywhere
	Zone   string // likewise
	Rack   string // likewise
	RDMA   Wish
	Type   TaskType
	Group  GroupID // whom it wants to be near
	// Gang says that Group is a task group whose members may need each other: unless that is
	// a service, the pod waits until all of it is placed. Inference says of itself that it does not.
	Gang bool
	// Runtime is how long the pod is there at most, its grace period included, as far as is
	// known; 0: it may be there for ever.
	Runtime time.Duration

	NodePolicy Policy
	CardPolicy Policy
	// Unmet is a hard wish for which no node can vouch, by the reason that
	// refuses the pod everywhere; "": none.
	Unmet Reason
	// SoftPreferences says that kube-scheduler has preferences of its own for
	// this pod (preferred affinity, soft spread), which must weigh in.
	SoftPreferences bool
}

// Wants reports whether any container could use card c, as suits judges.
func (r *Request) Wants(c *Card, suits func(*Ask, *Card) bool) bool {
	for i := range r.Asks {
		if suits(&r.Asks[i], c) {
			return true
		}
	}
	return false
}

// AsksForSeveral reports whether any container asks for more than one card.
func (r *Request) AsksForSeveral() bool {
	for i := range r.Asks {
		if r.Asks[i].Count > 1 {
			return true
		}
	}
	return false
}

// AsksForCards reports whether the pod asks for any card at all.
func (r *Request) AsksForCards() bool { return len(r.Asks) > 0 }
