package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// collector reads a frozen snapshot when it is scraped, so that the figures of
// one scrape belong together and nothing has to be kept in step with the ledger.
type collector struct {
	view   View
	cards  *prometheus.Desc
	memory *prometheus.Desc
	holds  *prometheus.Desc
	ready  *prometheus.Desc
}

func newCollector(v View) *collector {
	return &collector{
		view:   v,
		cards:  desc(nameCards),
		memory: desc(nameCardMemory),
		holds:  desc(nameHolds),
		ready:  desc(nameReady),
	}
}

func desc(name string) *prometheus.Desc {
	f := family(name)
	return prometheus.NewDesc(f.Name, f.Help, f.labelNames(), nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.cards, c.memory, c.holds, c.ready} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	t := tally(c.view.Ledger())
	for vendor, v := range t.vendors {
		for _, state := range cardStates() {
			send(c.cards, float64(v.cards[state]), string(vendor), string(state))
		}
		for _, kind := range memoryKinds() {
			send(c.memory, float64(v.memory[kind]), string(vendor), string(kind))
		}
	}
	for _, state := range holdStates() {
		send(c.holds, float64(t.holds[state]), state)
	}
	send(c.ready, oneIf(c.view.Ready()))
}

// totals are the sums over one snapshot.
type totals struct {
	vendors map[gpu.Vendor]*vendorTotals // only vendors that are there
	holds   map[string]int               // by the state's name
}

type vendorTotals struct {
	cards  map[CardState]int
	memory map[MemoryKind]gpu.MiB
}

func tally(s ledger.Snapshot) totals {
	t := totals{vendors: map[gpu.Vendor]*vendorTotals{}, holds: map[string]int{}}
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			t.add(&n.Cards[i])
		}
		for _, h := range n.Holds {
			t.holds[h.State.String()]++
		}
	}
	return t
}

func (t *totals) add(c *ledger.Card) {
	v := t.vendors[c.Vendor]
	if v == nil {
		v = &vendorTotals{cards: map[CardState]int{}, memory: map[MemoryKind]gpu.MiB{}}
		t.vendors[c.Vendor] = v
	}
	v.cards[cardState(c)]++
	v.memory[MemoryUsable] += c.Usable
	v.memory[MemoryHeld] += c.Used.Memory
}

// cardState names what an operator would want to know first.
func cardState(c *ledger.Card) CardState {
	switch {
	case !c.Healthy:
		return CardUnhealthy
	case c.Used.Exclusive:
		return CardExclusive
	case len(c.Holders) > 0:
		return CardShared
	case c.Closed || c.Cordoned || len(c.Claims) > 0:
		return CardClosed
	default:
		return CardFree
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
