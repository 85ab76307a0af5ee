package simnode

import (
	"encoding/json"
	"fmt"
)

// DevicesAnnotation carries a node's inventory.
const DevicesAnnotation = "heteroflow.io/devices"

// Card is one accelerator as the inventory writes it.
type Card struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Vendor    string `json:"vendor"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	Cores     int    `json:"cores"`
	NUMA      *int   `json:"numa,omitempty"`
	PCIBusID  string `json:"pciBusID,omitempty"`
	Healthy   bool   `json:"healthy"`
	Mode      string `json:"mode,omitempty"`
	MaxSlices int    `json:"maxSlices,omitempty"`
	Isolation string `json:"isolation,omitempty"`
	Parent    string `json:"parent,omitempty"`
	Profile   string `json:"profile,omitempty"`
}

// Cards returns n equal cards of a node, healthy, in one piece or in slices as
// pods ask, half of them on either NUMA node. A node's own name makes their
// UUIDs unique in the cluster.
func Cards(node string, n int, vendor, model string, memoryMiB int64) []Card {
	cards := make([]Card, n)
	for i := range cards {
		numa := i * 2 / n
		cards[i] = Card{
			UUID:      fmt.Sprintf("GPU-%s-%s-%d", node, vendor, i),
			Index:     i,
			Vendor:    vendor,
			Model:     model,
			MemoryMiB: memoryMiB,
			Cores:     100,
			NUMA:      &numa,
			PCIBusID:  fmt.Sprintf("0000:%02x:00.0", 16+i),
			Healthy:   true,
			Mode:      "slice",
			MaxSlices: 10,
			Isolation: "soft",
		}
	}
	return cards
}

// encodeDevices returns the value of the inventory's annotation.
func encodeDevices(cards []Card) string {
	b, err := json.Marshal(struct {
		Version int    `json:"version"`
		Cards   []Card `json:"cards"`
	}{1, cards})
	if err != nil {
		panic(err) // plain strings and numbers always encode
	}
	return string(b)
}
