package gpu

// Figure is something that was measured. The zero Figure is that nobody knows.
type Figure struct {
	Known bool
	Value int64
}

// Measured returns a figure that is known.
func Measured(v int64) Figure { return Figure{Known: true, Value: v} }

// AtLeast reports whether the figure is known to be v or more.
func (f Figure) AtLeast(v int64) bool { return f.Known && f.Value >= v }

// Reading is what was measured of a card lately, whoever is on it.
type Reading struct {
	MemoryUsed  Figure // MiB
	Utilisation Figure // percent
	Temperature Figure // degrees Celsius
	Power       Figure // watts
	PowerLimit  Figure // watts
}

// Gauge names what is measured, for people.
type Gauge string

// What nodes and cards can have too much of.
const (
	NodeCPU         Gauge = "CPU of the node"
	NodeMemory      Gauge = "memory of the node"
	CardMemory      Gauge = "GPU memory"
	CardUtilisation Gauge = "GPU utilisation"
	CardTemperature Gauge = "GPU temperature"
	MeanTemperature Gauge = "mean GPU temperature"
)

// Unit is that of its figures.
func (g Gauge) Unit() string {
	if g == CardTemperature || g == MeanTemperature {
		return "°C"
	}
	return "percent"
}
