package codec

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// ErrTopology says that what a node tells of the links between its cards cannot
// be read. It counts as telling nothing.
var ErrTopology = errors.New("topology")

// connect reads how the cards are joined: from our annotation, where there is
// none from HAMi's. Cards that are known by their count alone are not joined by
// anybody: which of them a pod gets their device plugin decides.
func connect(f *ledger.Facts, node *corev1.Node) error {
	ours, found := node.Annotations[AnnotationTopology]
	scores, scored := node.Annotations[AnnotationHAMiScore]
	counted := func(c gpu.Card) bool { return c.Counted }
	if !found && !scored || len(f.Cards) == 0 || slices.ContainsFunc(f.Cards, counted) {
		return nil
	}
	cards := ledger.InOrder(f.Cards)
	b, err := topology.NewBuilder(cards)
	key := AnnotationTopology
	switch {
	case err != nil:
		return err
	case found:
		err = readTopology(b, ours, toolOf(cards))
	default:
		key, err = AnnotationHAMiScore, readScores(b, scores)
	}
	if err != nil {
		return fmt.Errorf("annotation %s: %w", key, err)
	}
	f.Cards, f.Links = cards, b.Links()
	for i := range cards {
		if cards[i].NUMA == gpu.NoNUMA {
			cards[i].NUMA = f.Links.NUMA(i)
		}
	}
	return nil
}

// toolOf returns whose tool has printed a matrix of these cards: where they are
// of several vendors, NVIDIA's.
func toolOf(cards []gpu.Card) gpu.Vendor {
	for i := range cards {
		if cards[i].Vendor != cards[0].Vendor {
			return gpu.Nvidia
		}
	}
	return cards[0].Vendor
}

// links is the JSON of the annotation heteroflow.io/gpu-topology. Fields that we
// do not know are for other readers.
type links struct {
	Links  [][]string       `json:"links"` // two UUIDs, and what the tool prints between them
	NUMA   map[string]int64 `json:"numa"`
	Matrix string           `json:"matrix"` // what the tool prints as a whole
}

// readTopology tells b what the annotation says. Cards that the node does not have
// may be among them.
func readTopology(b *topology.Builder, text string, vendor gpu.Vendor) error {
	var l links
	if err := openJSON(text, &l); err != nil {
		return err
	}
	if l.Links != nil {
		b.Told()
	}
	for i, pair := range l.Links {
		if len(pair) != 3 || !cardName(pair[0]) || !cardName(pair[1]) || pair[0] == pair[1] {
			return fmt.Errorf("links[%d]: is not the UUIDs of two cards and what joins them", i)
		}
		b.Pair(gpu.CardID(pair[0]), gpu.CardID(pair[1]), pair[2])
	}
	for _, id := range slices.Sorted(maps.Keys(l.NUMA)) { // so that the fault is always the same
		node := l.NUMA[id]
		if node < gpu.NoNUMA || node > mostNUMA {
			return fmt.Errorf("numa[%s]: %d is outside %d..%d", quoted(id), node, gpu.NoNUMA, mostNUMA)
		}
		b.NUMA(gpu.CardID(id), int(node))
	}
	if l.Matrix == "" {
		return nil
	}
	m, err := topology.ParseMatrix(l.Matrix)
	if err != nil {
		return fmt.Errorf("matrix: %w", err)
	}
	b.Matrix(vendor, m)
	return nil
}

// readScores tells b what HAMi's NVIDIA plugin has registered of pairs of cards
// (hami-protocol.md A.1).
func readScores(b *topology.Builder, text string) error {
	var list []struct {
		UUID  string         `json:"uuid"`
		Score map[string]int `json:"score"`
	}
	if err := openJSON(text, &list); err != nil {
		return err
	}
	for i := range list {
		d := &list[i]
		if !cardName(d.UUID) {
			return fmt.Errorf("[%d].uuid: %s is not a UUID", i, quoted(d.UUID))
		}
		for other, score := range d.Score {
			b.Score(gpu.CardID(d.UUID), gpu.CardID(other), score)
		}
	}
	return nil
}
