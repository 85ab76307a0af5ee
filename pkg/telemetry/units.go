package telemetry

import (
	"maps"
	"net"
	"slices"
)

// units returns what a figure may come in, and what one of that is in the unit of
// its kind.
func units(k Kind) map[string]float64 {
	const mib = 1 << 20
	switch k {
	case MemoryUsed:
		return map[string]float64{"bytes": 1.0 / mib, "KiB": 1.0 / 1024, "MiB": 1, "GiB": 1024, "kB": 1e3 / mib, "MB": 1e6 / mib, "GB": 1e9 / mib}
	case Utilisation, NodeCPU, NodeMemory:
		return map[string]float64{"percent": 1, "ratio": 100}
	case Temperature:
		return map[string]float64{"celsius": 1, "millicelsius": 1e-3}
	case Power, PowerLimit:
		return map[string]float64{"watts": 1, "milliwatts": 1e-3, "microwatts": 1e-6}
	}
	return nil
}

func scale(k Kind, unit string) (float64, bool) {
	factor, ok := units(k)[unit]
	return factor, ok
}

func unitsOf(k Kind) []string { return slices.Sorted(maps.Keys(units(k))) }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
