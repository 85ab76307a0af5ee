package codec

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/topology"
)

// locations is the topology file as it is written.
type locations struct {
	Nodes []located `json:"nodes"`
}

type located struct {
	Name   string `json:"name"`
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone,omitempty"`
	Rack   string `json:"rack,omitempty"`
	Switch string `json:"switch,omitempty"`
}

// Locations reads a topology file: where nodes stand that have no labels for it. Every
// fault is named.
func Locations(text []byte) (map[gpu.NodeID]topology.Location, error) {
	document, err := only(text)
	if err != nil {
		return nil, err
	}
	var file locations
	if err := yaml.UnmarshalStrict(document, &file); err != nil {
		return nil, err
	}
	var errs []error
	all := make(map[gpu.NodeID]topology.Location, len(file.Nodes))
	for i, n := range file.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		l := topology.Location{Region: n.Region, Zone: n.Zone, Rack: n.Rack, Switch: n.Switch}
		_, twice := all[gpu.NodeID(n.Name)]
		switch {
		case n.Name == "":
			errs = append(errs, fmt.Errorf("%s.name: is missing", at))
		case twice:
			errs = append(errs, fmt.Errorf("%s.name: %s is named twice", at, n.Name))
		case l == topology.Location{}:
			errs = append(errs, fmt.Errorf("%s: name a region, zone, rack or switch of %s", at, n.Name))
		}
		all[gpu.NodeID(n.Name)] = l
	}
	return all, errors.Join(errs...)
}
