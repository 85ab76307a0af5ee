package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/proc"
)

// The processes besides those of the cluster: the one that makes the pods and
// watches, and whatever else the machine does.
const (
	loader = "loader"
	others = "others"
)

// processes are in the order in which they are shown.
func processes() []string {
	return []string{cluster.ControlPlane, cluster.KubeScheduler, cluster.ExtenderName, loader, others}
}

// Use is what a process cost in a round.
type Use struct {
	CPU            time.Duration
	Resident, Peak int // memory in KiB: at the round's end, and at most since the process started
}

// reading is what all processes had used at one time.
type reading struct {
	busy time.Duration // of the whole machine
	of   map[string]proc.Sample
}

func readAll(pids map[string]int) (reading, error) {
	r := reading{of: map[string]proc.Sample{}}
	pids = maps.Clone(pids)
	pids[loader] = os.Getpid()
	for name, pid := range pids {
		s, err := proc.Read(pid)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.of[name] = s
	}
	var err error
	r.busy, err = proc.Busy()
	return r, err
}

// used is the difference between two readings. A process that is not in the first
// has started since.
func used(before, after reading) map[string]Use {
	use, left := map[string]Use{}, after.busy-before.busy
	for _, name := range slices.Sorted(maps.Keys(after.of)) {
		s := after.of[name]
		cpu := s.CPU - before.of[name].CPU
		use[name] = Use{CPU: cpu, Resident: s.Resident, Peak: s.Peak}
		left -= cpu
	}
	use[others] = Use{CPU: max(0, left)} // the two are counted at slightly different times
	return use
}
