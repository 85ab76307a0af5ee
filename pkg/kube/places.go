package kube

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Places keeps the books to a topology file, in which stands where nodes are that
// have no labels for it.
type Places struct {
	File  string
	Every time.Duration // between two looks at it
	Books *Books
	Nodes corelisters.NodeLister
	// Unreadable is told of contents that cannot be read, once each.
	Unreadable func()

	seen []byte
}

// Read reads the file for the first time. A file that cannot be read is no reason to
// begin without it.
func (p *Places) Read() error {
	text, err := os.ReadFile(p.File)
	if err != nil {
		return err
	}
	all, err := codec.Locations(text)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	p.seen = text
	p.Books.place(all, nil)
	return nil
}

// Run looks at the file until ctx ends. What cannot be read changes nothing.
func (p *Places) Run(ctx context.Context) error {
	t := time.NewTicker(p.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			p.look()
		}
	}
}

func (p *Places) look() {
	text, err := os.ReadFile(p.File)
	if err != nil {
		text = []byte(err.Error())
	}
	if bytes.Equal(text, p.seen) {
		return
	}
	p.seen = text
	var all map[gpu.NodeID]topology.Location
	if err == nil {
		all, err = codec.Locations(text)
	}
	if err != nil {
		p.Unreadable()
		p.Books.Logger.Error(err, "the topology file cannot be read: nodes are where it said before", "file", p.File)
		return
	}
	p.Books.place(all, p.Nodes)
	p.Books.Logger.Info("the topology file has changed", "file", p.File, "nodes", len(all))
}

// place has the nodes be where the file says, as far as their labels say nothing.
// Those that are known already are found by nodes.
func (b *Books) place(all map[gpu.NodeID]topology.Location, nodes corelisters.NodeLister) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.places
	b.places = all
	if nodes == nil {
		return
	}
	known, err := nodes.List(labels.Everything()) // newer than what the books were told, or the same
	if err != nil {
		b.Logger.Error(err, "nodes cannot be listed")
	}
	now := b.Ledger.Snapshot() // one for all of them: nodes come and go under our lock alone
	for _, node := range known {
		id := gpu.NodeID(node.Name)
		if _, there := now.Node(id); there && before[id] != all[id] {
			b.nodeSeen(node)
		}
	}
}

// located fills in what the labels of a node leave out.
func (b *Books) located(id gpu.NodeID, l topology.Location) topology.Location {
	file := b.places[id]
	for _, part := range []struct {
		into *string
		from string
	}{{&l.Region, file.Region}, {&l.Zone, file.Zone}, {&l.Rack, file.Rack}, {&l.Switch, file.Switch}} {
		if *part.into == "" {
			*part.into = part.from
		}
	}
	return l
}
