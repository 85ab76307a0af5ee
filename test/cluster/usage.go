package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has taken of the machine.
type Usage struct {
	Resident, Peak int64         // bytes of memory
	Processor      time.Duration // since its start
}

// ExtenderUsage reads what our scheduler has taken, where the kernel has /proc.
func (c *Cluster) ExtenderUsage() (Usage, error) {
	if c.extender == nil {
		return Usage{}, errors.New("the extender does not run")
	}
	proc := fmt.Sprintf("/proc/%d/", c.extender.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Resident: kib(status, "VmRSS:") << 10, Peak: kib(status, "VmHWM:") << 10, Processor: ticks(stat)}
	if u.Resident == 0 || u.Peak < u.Resident {
		return Usage{}, fmt.Errorf("%sstatus: no memory is named in %q", proc, status)
	}
	return u, nil
}

// kib reads a line such as "VmRSS:   5120 kB"; 0 if it is not there.
func kib(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		if len(fields) > 1 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

// ticks reads the time in user and in system mode, fields 14 and 15, which the
// kernel counts in hundredths of a second. The name, field 2, may hold anything.
func ticks(stat []byte) time.Duration {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
