package pipeline

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Peers is where the placed members of a group are. The zero Peers is that nobody
// is placed.
type Peers struct {
	nodes []gpu.NodeID // in order
	// Every node of a cluster is compared with all members, so that they are found
	// by name.
	regions, zones, racks, switches places
}

// places has what has a name, "" not among them: name -> the places that have it,
// each once. A name may be used again in another zone.
type places map[string][]topology.Location

// PeersOf returns where the group's members are in that state of the cluster; those
// on nodes that are not known are nowhere.
func PeersOf(g gpu.GroupID, in ledger.Snapshot) (p Peers) {
	for _, id := range in.Members(g) {
		n, known := in.Node(id)
		if !known {
			continue
		}
		p.nodes = append(p.nodes, id)
		l := n.Location
		p.regions.add(l.Region, topology.Location{Region: l.Region})
		p.zones.add(l.Zone, topology.Location{Region: l.Region, Zone: l.Zone})
		p.racks.add(l.Rack, topology.Location{Region: l.Region, Zone: l.Zone, Rack: l.Rack})
		p.switches.add(l.Switch, topology.Location{Region: l.Region, Zone: l.Zone, Switch: l.Switch})
	}
	return p
}

func (p *places) add(name string, l topology.Location) {
	if name == "" || slices.Contains((*p)[name], l) {
		return
	}
	if *p == nil {
		*p = places{}
	}
	(*p)[name] = append((*p)[name], l)
}

// Any reports whether any member is placed.
func (p Peers) Any() bool { return len(p.nodes) > 0 }

// On reports whether the node has a member already.
func (p Peers) On(id gpu.NodeID) bool {
	_, there := slices.BinarySearch(p.nodes, id)
	return there
}

// Near says which parts of that location some member shares, not always the same
// one.
func (p Peers) Near(l topology.Location) (near topology.Shared) {
	for _, found := range [...][]topology.Location{p.regions[l.Region], p.zones[l.Zone], p.racks[l.Rack], p.switches[l.Switch]} {
		for _, place := range found {
			s := topology.Near(place, l)
			near.Region, near.Zone = near.Region || s.Region, near.Zone || s.Zone
			near.Rack, near.Switch = near.Rack || s.Rack, near.Switch || s.Switch
		}
	}
	return near
}

// Tell reports whether it can be told if some member is in the rack, or under the leaf
// switch, of that location: the one or the other is known of both.
func (p Peers) Tell(l topology.Location) bool {
	return l.Rack != "" && len(p.racks) > 0 || l.Switch != "" && len(p.switches) > 0
}
