package policy

import (
	"errors"
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/pipeline"
)

// rebuildName is the name by which a policy switches whether members of services are
// replaced. Like preempt it is listed among the plugins, and is none of them.
const rebuildName = "rebuild"

// Rebuild says when members of services are replaced whose node is gone or not ready.
type Rebuild struct {
	Grace  time.Duration // for so long it has to be so
	AtOnce int           // of one service; 1 or more
}

// rebuildArgs is its part of the policy.
type rebuildArgs struct {
	// Grace is how long a node has been gone, or not ready.
	Grace string `json:"grace"`
	// AtOnce bounds how many members of one service are being replaced at a time.
	AtOnce int `json:"atOnce"`
}

const (
	mostRebuildGrace = 24 * time.Hour
	mostAtOnce       = 1000
)

// Rebuild returns by which rules members of services are replaced; false: none is.
func (s Settings) Rebuild() (rules Rebuild, enabled bool) {
	p := s.plugin(rebuildName)
	if !p.Enabled {
		return Rebuild{}, false
	}
	rules, _ = readRebuild(p.Args) // valid, as all of the settings
	return rules, true
}

// readRebuild reads the arguments, and names every fault.
func readRebuild(text []byte) (Rebuild, error) {
	args := rebuildArgs{Grace: "60s", AtOnce: 1}
	if err := pipeline.ReadArgs(text, &args); err != nil {
		return Rebuild{}, err
	}
	grace, err := within("grace", args.Grace, mostRebuildGrace)
	if n := args.AtOnce; n < 1 || n > mostAtOnce {
		err = errors.Join(err, fmt.Errorf("atOnce: %d is outside 1..%d", n, mostAtOnce))
	}
	if err != nil {
		return Rebuild{}, err
	}
	return Rebuild{Grace: grace, AtOnce: args.AtOnce}, nil
}
