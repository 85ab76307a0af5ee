package topology

// Location is where a node stands, from the widest to the narrowest. What is
// "" is not known, and is like nothing.
type Location struct {
	Region, Zone, Rack string
	Switch             string // the leaf switch
}

// Shared says which parts of two locations are the same.
type Shared struct {
	Region, Zone, Rack, Switch bool
}

// Matching compares part by part, each for itself: what a pod's author wishes
// with what a node has.
func Matching(a, b Location) Shared {
	return Shared{
		Region: same(a.Region, b.Region), Zone: same(a.Zone, b.Zone),
		Rack: same(a.Rack, b.Rack), Switch: same(a.Switch, b.Switch),
	}
}

// Near compares where two nodes are. Names of zones, racks and switches are often
// used again: where the nodes are known to be in different regions or zones,
// nothing narrower is the same place, whatever its name.
func Near(a, b Location) Shared {
	s := Matching(a, b)
	if differ(a.Region, b.Region) {
		s.Zone = false
	}
	if differ(a.Region, b.Region) || differ(a.Zone, b.Zone) {
		s.Rack, s.Switch = false, false
	}
	return s
}

func same(a, b string) bool   { return a != "" && a == b }
func differ(a, b string) bool { return a != "" && b != "" && a != b }
