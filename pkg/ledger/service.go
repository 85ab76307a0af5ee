package ledger

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Service is an inference group as the ledger knows it: its members are placed one by
// one, its windows free cards, and take them back. It never changes once handed over.
type Service struct {
	Group gpu.GroupID
	Name  string // namespace/name of its TaskGroup, for people
	// Closing is when its windows close next; nil: they do not, or are closed.
	Closing *Closing
	// Kept is what it takes back, and From when: after that nobody but its members gets
	// it. Of each it counts what its pod does not have (any more).
	Kept []gpu.Placement
	From time.Time
}

// Closing is a moment at which members end and leave their cards.
type Closing struct {
	At    time.Time // in the zone of the windows, for people
	Until time.Time // when they come back; zero: never
	Stay  int       // how many members stay
}
