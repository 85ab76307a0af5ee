package gpu

// Mode says how a card is offered.
type Mode string

// A card with mode MIG or VNPU and no parent is one whose partitioning is
// switched on; with a parent it is one of the partitions.
const (
	ModeWhole Mode = "whole" // given out as one piece only
	ModeSlice Mode = "slice" // given out as one piece or in slices
	ModeMIG   Mode = "mig"
	ModeVNPU  Mode = "vnpu"
)

// Isolation says what keeps a holder within its bounds.
type Isolation string

// From the strongest to none at all. Exclusive is what the holder of a whole
// card gets; a card itself is never "exclusive".
const (
	IsolationExclusive Isolation = "exclusive"
	IsolationHard      Isolation = "hard"   // a partition made by the hardware
	IsolationDriver    Isolation = "driver" // bounds kept by the driver
	IsolationSoft      Isolation = "soft"   // bounds kept by a library in the container
	IsolationNone      Isolation = "none"   // nothing: no slice may be placed here
)

// NoNUMA is the NUMA node of a card that reports none, and of a request that
// names none.
const NoNUMA = -1

// Card is one physical accelerator, one die that the driver lists, or one
// partition. It says what is there, never who uses it.
type Card struct {
	ID     CardID
	Index  int // the vendor tool's number of the card on its node
	Vendor Vendor
	Model  string
	// Counted says that which card it is only the device plugin knows: its name
	// is ours, and the plugin may give any of its like instead.
	Counted bool
	// Plugin is the resource by whose count a device plugin of the vendor gives
	// the card out, and nobody who does not name it gets one; "" if none does.
	Plugin string

	Memory MiB // on the board
	// Usable is what all slices together may take: Memory less the reserve,
	// times the overcommit scale. Whole cards do not look at it.
	Usable MiB
	Cores  Cores // 100
	// UsableCores is Cores times the overcommit scale, for slices alone.
	UsableCores Cores
	MaxSlices   int // most holders at once

	NUMA      int // NoNUMA if unknown
	PCIBusID  string
	Healthy   bool
	Cordoned  bool // taken out by an administrator; holders stay
	Mode      Mode
	Isolation Isolation // of a slice on this card
	Parent    CardID    // of a partition
	Profile   string    // of a partition
}

// TakesWhole reports whether the card can be given out as one piece: partitions
// and cards that are partitioned cannot.
func (c *Card) TakesWhole() bool { return c.Mode == ModeWhole || c.Mode == ModeSlice }

// TakesSlices reports whether something enforces a slice's bounds here.
func (c *Card) TakesSlices() bool {
	return c.Mode == ModeSlice && c.Isolation != IsolationNone && c.Isolation != ""
}

// Use is what one pod, or all pods, hold of one card.
type Use struct {
	Memory    MiB
	Cores     Cores
	Slots     int  // containers that run on the card at once
	Exclusive bool // nobody else may be on the card
}

// Plus adds what runs at the same time.
func (u Use) Plus(v Use) Use {
	return Use{u.Memory + v.Memory, u.Cores + v.Cores, u.Slots + v.Slots, u.Exclusive || v.Exclusive}
}

// Max covers what runs one after the other.
func (u Use) Max(v Use) Use {
	return Use{max(u.Memory, v.Memory), max(u.Cores, v.Cores), max(u.Slots, v.Slots), u.Exclusive || v.Exclusive}
}
