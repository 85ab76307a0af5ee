package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the kernel's unit of processor time for other programs.
const tick = 10 * time.Millisecond

// Effort is the processor time that the control plane has taken so far, its store
// included. Other than by the clock, work is measured alike on a busy machine. It
// is known on Linux only.
func (c *Cluster) Effort() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.controlPlane.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return effort(string(text))
}

// effort reads it from a line of proc_pid_stat(5). The program's name may have
// blanks and parentheses in it; the two numbers stand 12th and 13th after it.
func effort(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/.../stat: %d fields after the name, want 13 or more", len(fields))
	}
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/.../stat: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
