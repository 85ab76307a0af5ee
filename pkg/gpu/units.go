package gpu

// MiB counts card memory in mebibytes. It is never negative. What enters the
// program is at most MostMemory, so that no sum of it comes near the end of the
// range.
type MiB int64

// Cores counts compute in whole percent of one card. 100 is a whole card.
type Cores int64

// MilliCPU counts a node's processors in thousandths of one.
type MilliCPU int64

// Bytes counts a node's main memory.
type Bytes int64

// The identities of things, each a type of its own so that none is mistaken
// for another.
type (
	// PodID is a pod's metadata.uid: names are used again, UIDs are not.
	PodID string
	// NodeID is a node's name.
	NodeID string
	// CardID is a card's UUID, unique in the cluster.
	CardID string
	// TenantID names the owner of a pod. The empty one shares with nobody.
	TenantID string
)

// Absolute bounds of a request. They lie above any hardware, so that a slip of
// units is seen here and not as a pod that waits for ever.
const (
	MostCards  = 64      // cards one container may ask for
	MostMemory = 1 << 20 // MiB of one device: 1 TiB
	MostCores  = 100     // percent of one card
)
