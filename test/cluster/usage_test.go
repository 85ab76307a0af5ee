package cluster

import (
	"testing"
	"time"
)

func TestUsageOfAProcess(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
	if resident, peak, none := kib(status, "VmRSS:"), kib(status, "VmHWM:"), kib(status, "VmSwap:"); resident != 1024 || peak != 2048 || none != 0 {
		t.Errorf("resident %d, peak %d, swap %d KiB, want 1024, 2048, 0", resident, peak, none)
	}
	// A name may hold blanks and brackets.
	stat := []byte("7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20")
	if got := ticks(stat); got != 2*time.Second {
		t.Errorf("%v of processor time, want 2s", got)
	}
	if got := ticks([]byte("7 (a) S 1")); got != 0 {
		t.Errorf("%v from a short line, want 0", got)
	}
}
