package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// allocation is the JSON of the annotation heteroflow.io/allocation: which cards
// each container of a bound pod has. Others read it, so its fields are API.
type allocation struct {
	Version    int              `json:"version"`
	Tenant     gpu.TenantID     `json:"tenant"`  // whose the pod was when it was bound; for people
	BoundAt    string           `json:"boundAt"` // RFC 3339, UTC, whole seconds
	Epoch      int64            `json:"epoch"`
	Containers []allocatedCards `json:"containers"`
}

type allocatedCards struct {
	Name  string          `json:"name"`
	Init  bool            `json:"init"` // sidecars too
	Cards []allocatedCard `json:"cards"`
}

type allocatedCard struct {
	Vendor    gpu.Vendor    `json:"vendor"`
	UUID      gpu.CardID    `json:"uuid"`
	Index     int           `json:"index"`
	MemoryMiB gpu.MiB       `json:"memoryMiB"`
	Cores     gpu.Cores     `json:"cores"`
	Exclusive bool          `json:"exclusive"`
	Isolation gpu.Isolation `json:"isolation"`
}

const (
	allocationVersion = 1
	// mostShare is the memory of the largest card under the largest overcommit.
	mostShare = 10 * gpu.MostMemory
)

// newAllocation returns the record of p, bound at that time in that epoch.
func newAllocation(p *gpu.Placement, at time.Time, epoch int64) allocation {
	a := allocation{
		Version:    allocationVersion,
		Tenant:     p.Tenant,
		BoundAt:    at.UTC().Format(time.RFC3339),
		Epoch:      epoch,
		Containers: []allocatedCards{}, // [] and not null, for those who loop over it
	}
	for i := range p.Grants {
		a.Containers = append(a.Containers, newCards(&p.Grants[i]))
	}
	return a
}

func newCards(g *gpu.Grant) allocatedCards {
	c := allocatedCards{Name: g.Container, Init: g.Role != gpu.App, Cards: make([]allocatedCard, len(g.Shares))}
	for i, s := range g.Shares {
		c.Cards[i] = allocatedCard{s.Vendor, s.Card, s.Index, s.Memory, s.Cores, s.Exclusive, s.Isolation}
	}
	return c
}

// encode returns the JSON, or what is wrong with it: nothing is written that
// would not be read back.
func (a *allocation) encode() (string, error) {
	if err := a.check(); err != nil {
		return "", err
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// decodeAllocation reads the JSON as strictly as it is written: every field is
// there, none is there twice, and none that we do not know.
func decodeAllocation(text string) (allocation, error) {
	var a allocation
	if err := strictJSON(text, &a); err != nil {
		return allocation{}, err
	}
	again, err := a.encode()
	if err != nil {
		return allocation{}, err
	}
	var given, ours any
	if err := errors.Join(json.Unmarshal([]byte(text), &given), json.Unmarshal([]byte(again), &ours)); err != nil {
		return allocation{}, err
	}
	if !reflect.DeepEqual(given, ours) {
		return allocation{}, errors.New("a field is missing or null")
	}
	return a, nil
}

// check reports the first thing that no allocation of ours would say.
func (a *allocation) check() error {
	if a.Version != allocationVersion {
		return fmt.Errorf("version: %d is not %d", a.Version, allocationVersion)
	}
	if t, err := time.Parse(time.RFC3339, a.BoundAt); err != nil || t.UTC().Format(time.RFC3339) != a.BoundAt {
		return fmt.Errorf("boundAt: %q is not a time like 2026-01-02T15:04:05Z", a.BoundAt)
	}
	if a.Epoch < 0 {
		return fmt.Errorf("epoch: %d is negative", a.Epoch)
	}
	seen := map[string]bool{}
	for i := range a.Containers {
		c := &a.Containers[i]
		if seen[c.Name] {
			return fmt.Errorf("container %s is named twice", c.Name)
		}
		seen[c.Name] = true
		if err := c.check(); err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
	}
	return nil
}

func (c *allocatedCards) check() error {
	if len(c.Cards) == 0 || len(c.Cards) > gpu.MostCards {
		return fmt.Errorf("%d cards are outside 1..%d", len(c.Cards), gpu.MostCards)
	}
	seen := map[gpu.CardID]bool{}
	for i := range c.Cards {
		card := &c.Cards[i]
		if err := card.check(); err != nil {
			return fmt.Errorf("card %q: %w", card.UUID, err)
		}
		if seen[card.UUID] {
			return fmt.Errorf("card %q is named twice", card.UUID)
		}
		seen[card.UUID] = true
		if card.Vendor != c.Cards[0].Vendor {
			return fmt.Errorf("cards of %s and of %s", c.Cards[0].Vendor, card.Vendor)
		}
	}
	return nil
}

func (c *allocatedCard) check() error {
	v, ok := gpu.ParseVendor(string(c.Vendor))
	least := gpu.MiB(1)
	if c.Exclusive {
		least = 0 // the memory of a counted card may be unknown
	}
	switch {
	case !ok || v != c.Vendor:
		return fmt.Errorf("vendor: %q is none", c.Vendor)
	case !cardName(string(c.UUID)):
		return errors.New("uuid: is not a card's")
	case c.Index < 0 || c.Index > mostIndex:
		return fmt.Errorf("index: %d is outside 0..%d", c.Index, mostIndex)
	case c.MemoryMiB < least || c.MemoryMiB > mostShare:
		return fmt.Errorf("memoryMiB: %d is outside %d..%d", c.MemoryMiB, least, mostShare)
	case c.Cores < 0 || c.Cores > gpu.MostCores:
		return fmt.Errorf("cores: %d is outside 0..%d", c.Cores, gpu.MostCores)
	}
	return c.checkIsolation()
}

// checkIsolation: whoever has a card alone needs no bounds, and whoever has not
// needs something that keeps them.
func (c *allocatedCard) checkIsolation() error {
	switch c.Isolation {
	case gpu.IsolationExclusive:
		if c.Exclusive {
			return nil
		}
	case gpu.IsolationHard, gpu.IsolationDriver, gpu.IsolationSoft:
		if !c.Exclusive {
			return nil
		}
	}
	return fmt.Errorf("isolation: %q does not go with exclusive %t", c.Isolation, c.Exclusive)
}

// grants returns what the allocation gives to each container, or why it is not
// an answer to these asks.
func (a *allocation) grants(asks []gpu.Ask) ([]gpu.Grant, error) {
	if len(a.Containers) != len(asks) {
		return nil, fmt.Errorf("%d containers have cards, %d ask for some", len(a.Containers), len(asks))
	}
	byName := make(map[string]*gpu.Ask, len(asks))
	for i := range asks {
		byName[asks[i].Container] = &asks[i]
	}
	var grants []gpu.Grant
	for i := range a.Containers {
		c := &a.Containers[i]
		ask := byName[c.Name] // names are distinct on both sides, so none is left over
		if ask == nil {
			return nil, fmt.Errorf("container %s has cards and asks for none", c.Name)
		}
		if err := c.answers(ask); err != nil {
			return nil, fmt.Errorf("container %s: %w", c.Name, err)
		}
		grants = append(grants, c.grant(ask))
	}
	return grants, nil
}

func (c *allocatedCards) grant(ask *gpu.Ask) gpu.Grant {
	g := gpu.Grant{Container: c.Name, Number: ask.Number, Role: ask.Role, Resource: ask.Plugin, Shares: make([]gpu.Share, len(c.Cards))}
	for i, s := range c.Cards {
		g.Shares[i] = gpu.Share{
			Card: s.UUID, Vendor: s.Vendor, Index: s.Index, Memory: s.MemoryMiB,
			Cores: s.Cores, Exclusive: s.Exclusive, Isolation: s.Isolation,
		}
	}
	return g
}

// answers reports what the cards lack as an answer to ask. A size that was not
// named depends on the card and on the policy of that day, and is not judged.
func (c *allocatedCards) answers(ask *gpu.Ask) error {
	if len(c.Cards) != ask.Count {
		return fmt.Errorf("has %d cards, asks for %d", len(c.Cards), ask.Count)
	}
	if c.Init != (ask.Role != gpu.App) {
		return fmt.Errorf("init is %t", c.Init)
	}
	for i := range c.Cards {
		card := &c.Cards[i]
		switch {
		case ask.Vendor != "" && card.Vendor != ask.Vendor:
			return fmt.Errorf("card %s is of %s, not of %s", card.UUID, card.Vendor, ask.Vendor)
		case card.Exclusive != ask.Whole:
			return fmt.Errorf("card %s: exclusive is %t", card.UUID, card.Exclusive)
		case ask.Whole && card.MemoryMiB < ask.Memory, !ask.Whole && ask.Memory > 0 && card.MemoryMiB != ask.Memory:
			return fmt.Errorf("card %s: %d MiB, asks for %d", card.UUID, card.MemoryMiB, ask.Memory)
		case !ask.Whole && ask.Cores > 0 && card.Cores != ask.Cores:
			return fmt.Errorf("card %s: %d percent of compute, asks for %d", card.UUID, card.Cores, ask.Cores)
		}
	}
	return nil
}
