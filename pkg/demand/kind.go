package demand

import (
	"cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Kind is what cards have in common that do alike for any request.
type Kind struct {
	Vendor             gpu.Vendor
	Model              string
	Plugin             string // see gpu.Card
	Memory, Usable     gpu.MiB
	Cores, UsableCores gpu.Cores
	Mode               gpu.Mode
	Isolation          gpu.Isolation
}

// KindOf returns the card's kind.
func KindOf(c *gpu.Card) Kind {
	return Kind{c.Vendor, c.Model, c.Plugin, c.Memory, c.Usable, c.Cores, c.UsableCores, c.Mode, c.Isolation}
}

// Supply says how many cards there are of each kind, kind -> cards.
type Supply map[Kind]int

// card returns a card of the kind.
func (k *Kind) card() gpu.Card {
	return gpu.Card{
		Vendor: k.Vendor, Model: k.Model, Plugin: k.Plugin, Memory: k.Memory, Usable: k.Usable,
		Cores: k.Cores, UsableCores: k.UsableCores, Mode: k.Mode, Isolation: k.Isolation,
	}
}

func (k Kind) compare(o Kind) int {
	return cmp.Or(
		cmp.Compare(k.Vendor, o.Vendor), cmp.Compare(k.Model, o.Model), cmp.Compare(k.Plugin, o.Plugin),
		cmp.Compare(k.Memory, o.Memory), cmp.Compare(k.Usable, o.Usable), cmp.Compare(k.Cores, o.Cores),
		cmp.Compare(k.UsableCores, o.UsableCores), cmp.Compare(k.Mode, o.Mode), cmp.Compare(k.Isolation, o.Isolation),
	)
}
