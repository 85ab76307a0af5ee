package main

import (
	"os"
	"runtime/debug"
)

// collectAt is how much garbage there may be before it is collected, in percent
// of what is in use. Nearly all of that is the cache of nodes and pods, which
// changes little, so Go's own 100 would double it and save hardly any time.
const collectAt = 50

// boundGarbage applies collectAt unless the environment has GOGC.
func boundGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}
