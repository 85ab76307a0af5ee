package preempt

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Phase is how far a bound pod has come.
type Phase int

// The phases. A pod that has ended is in none of them: it is not handed over.
const (
	Scheduled Phase = iota // bound, and no container has been started
	Running
	Ending // being deleted
)

// Mode is how a pod is ended for another.
type Mode int

// A pod is evicted, or the Job that owns it is suspended and resumed later.
const (
	Evict Mode = iota
	Suspend
)

// Pod is a bound pod, as far as it matters for whether it may be ended for another.
type Pod struct {
	ID        gpu.PodID
	Namespace string
	Name      string
	Node      gpu.NodeID

	Priority    int32 // 0..100, of spec.priority: nobody can edit it once the pod is there
	Created     time.Time
	Type        gpu.TaskType
	Preemptible bool // it says so itself
	Count       int  // how often its earlier lives were ended for others
	Ours        bool // of our scheduler
	System      bool // of a system priority class, static, or in a namespace that is never touched
	Bare        bool // nobody makes it anew but us
	// Unmade says why we could not make a bare pod anew; "": we could.
	Unmade string

	// Unit names the pods that are ended together or not at all; "": the pod alone.
	Unit string
	// Lineage is whom its successors have it from: the UID of its owner, or its own.
	Lineage string

	Phase Phase
	Since time.Time // it has been running for so long; zero while it is not
	// Due is when an Ending pod should have gone, its grace included; zero if not
	// known. One that is long overdue is not waited for, nor one that has long to go.
	Due   time.Time
	Mode  Mode
	Grace time.Duration
}

// Asker is a pod that waits for a node and has been refused.
type Asker struct {
	gpu.Request
	Lineage string // as Pod's
	Created time.Time
	// Never says why no pod is ended for it; "": some may be.
	Never string
}
