package codec

import (
	"encoding/json"
	"errors"
	"fmt"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// claim is the JSON of a Preemption's spec.allocation: the cards that are kept for
// its preemptor, as the annotation heteroflow.io/allocation has them, with what that
// leaves to the pod's own spec.
type claim struct {
	Version    int            `json:"version"`
	Group      gpu.GroupID    `json:"group,omitempty"`
	Containers []claimedCards `json:"containers"`
}

type claimedCards struct {
	allocatedCards

	Number   int    `json:"number"`
	Sidecar  bool   `json:"sidecar,omitempty"` // of those with init
	Resource string `json:"resource,omitempty"`
}

// EncodeClaim returns the spec.allocation of a Preemption that keeps these cards.
func EncodeClaim(p *gpu.Placement) (string, error) {
	c := claim{Version: allocationVersion, Group: p.Group, Containers: []claimedCards{}}
	for i := range p.Grants {
		g := &p.Grants[i]
		cards := newCards(g)
		if err := cards.check(); err != nil {
			return "", fmt.Errorf("claim of pod %s/%s: container %s: %w", p.Namespace, p.Name, g.Container, err)
		}
		c.Containers = append(c.Containers, claimedCards{cards, g.Number, g.Role == gpu.Sidecar, g.Resource})
	}
	text, err := json.Marshal(c)
	return string(text), err
}

// DecodeClaim returns what a Preemption keeps for its preemptor, or what is wrong with
// it: then nothing of it is kept.
func DecodeClaim(p *v1alpha1.Preemption) (gpu.Placement, error) {
	of := &p.Spec.Preemptor
	placement := gpu.Placement{
		Pod: gpu.PodID(of.UID), Namespace: of.Namespace, Name: of.Name, Node: gpu.NodeID(p.Spec.Node),
		CPU: gpu.MilliCPU(p.Spec.MilliCPU), Memory: gpu.Bytes(p.Spec.MemoryBytes),
	}
	var err error
	placement.Group, placement.Grants, err = decodeClaim(p.Spec.Allocation)
	switch {
	case err != nil:
		err = fmt.Errorf("spec.allocation: %w", err)
	case of.UID == "":
		err = errors.New("spec.preemptor.uid: is missing")
	case p.Spec.Node == "":
		err = errors.New("spec.node: is missing")
	case p.Spec.MilliCPU < 0 || p.Spec.MemoryBytes < 0:
		err = errors.New("spec.milliCPU, spec.memoryBytes: are negative")
	}
	if err != nil {
		return gpu.Placement{}, fmt.Errorf("preemption %s: %w", p.Name, err)
	}
	return placement, nil
}

func decodeClaim(text string) (gpu.GroupID, []gpu.Grant, error) {
	var c claim
	if err := strictJSON(text, &c); err != nil {
		return "", nil, err
	}
	if c.Version != allocationVersion {
		return "", nil, fmt.Errorf("version: %d is not %d", c.Version, allocationVersion)
	}
	var grants []gpu.Grant
	seen := map[string]bool{}
	for i := range c.Containers {
		of := &c.Containers[i]
		if err := of.check(); err != nil {
			return "", nil, fmt.Errorf("container %s: %w", of.Name, err)
		}
		if seen[of.Name] {
			return "", nil, fmt.Errorf("container %s is named twice", of.Name)
		}
		seen[of.Name] = true
		grants = append(grants, of.grant(&gpu.Ask{Number: of.Number, Role: of.role(), Plugin: of.Resource}))
	}
	return c.Group, grants, nil
}

func (c *claimedCards) check() error {
	switch {
	case c.Sidecar && !c.Init:
		return errors.New("sidecar: is none, as init is false")
	case c.Number < 0:
		return fmt.Errorf("number: %d is negative", c.Number)
	}
	return c.allocatedCards.check()
}

func (c *claimedCards) role() gpu.Role {
	switch {
	case c.Sidecar:
		return gpu.Sidecar
	case c.Init:
		return gpu.Init
	}
	return gpu.App
}
