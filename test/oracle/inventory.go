package oracle

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// card is one accelerator of a node's inventory.
type card struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Vendor    string `json:"vendor"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	Cores     int64  `json:"cores"`
	NUMA      *int   `json:"numa"`
	Healthy   bool   `json:"healthy"`
	Mode      string `json:"mode"`
	MaxSlices int    `json:"maxSlices"`
	Isolation string `json:"isolation"`

	usable int64 // MiB for all slices together
	plain  bool  // the stock device plugin picks the card
}

const (
	devicesAnnotation = prefix + "devices"
	plainResource     = "nvidia.com/gpu"
	defaultSlices     = 10
)

// inventory returns a node's cards, from its annotation or else from what the
// stock device plugin advertises.
func inventory(node *corev1.Node) ([]card, error) {
	cards, err := published(node)
	if err != nil {
		return nil, err
	}
	for i := range cards {
		c := &cards[i]
		if c.MaxSlices == 0 {
			c.MaxSlices = defaultSlices
		}
		c.usable = c.MemoryMiB - reserve(c.MemoryMiB, int64(len(cards)))
	}
	return cards, nil
}

func published(node *corev1.Node) ([]card, error) {
	text, found := node.Annotations[devicesAnnotation]
	if !found {
		return counted(node), nil
	}
	var list struct{ Cards []card }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%s: %w", devicesAnnotation, err)
	}
	return list.Cards, nil
}

// counted are cards known by number alone.
func counted(node *corev1.Node) []card {
	room := node.Status.Allocatable[plainResource]
	memory, _ := strconv.ParseInt(node.Labels["nvidia.com/gpu.memory"], 10, 64) // absent: 0
	var cards []card
	for i := range int(room.Value()) {
		cards = append(cards, card{
			UUID: fmt.Sprintf("%s-nvidia-%d", node.Name, i), Index: i, Vendor: "nvidia",
			Model: node.Labels["nvidia.com/gpu.product"], MemoryMiB: memory, Cores: 100,
			Healthy: true, Mode: "whole", MaxSlices: 1, plain: true,
		})
	}
	return cards
}

// reserve is what slices leave to the driver: a tenth of the card, rounded up,
// and at least the card's part of 500 MiB a node, rounded up.
func reserve(memory, cards int64) int64 {
	return max((memory+9)/10, (500+cards-1)/cards)
}

// whole reports whether the card can be given out as one piece.
func (c *card) whole() bool { return c.Mode == "whole" || c.Mode == "slice" || c.Mode == "" }

// sliced reports whether something keeps slices of the card within bounds.
func (c *card) sliced() bool {
	return c.Mode == "slice" && c.Isolation != "" && c.Isolation != "none"
}
