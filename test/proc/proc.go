// Package proc reads what processes have taken of the machine, as Linux tells it
// under /proc. Other than by the clock, work is measured alike on a busy machine.
package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time under /proc: the kernel shows hundredths of
// a second to programs, whatever its own clock does.
const tick = time.Second / 100

// Sample is what /proc says of a process.
type Sample struct {
	CPU            time.Duration // in user and in system mode, since it started
	Resident, Peak int           // memory in KiB, now and at its most
}

// Read looks at a process that runs.
func Read(pid int) (Sample, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Sample{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Sample{}, err
	}
	s, err := parseSample(string(stat), string(status))
	if err != nil {
		return Sample{}, fmt.Errorf("/proc/%d: %w", pid, err)
	}
	return s, nil
}

func parseSample(stat, status string) (Sample, error) {
	cpu, err := parseCPU(stat)
	if err != nil {
		return Sample{}, err
	}
	resident, err := parseKiB(status, "VmRSS")
	if err != nil {
		return Sample{}, err
	}
	peak, err := parseKiB(status, "VmHWM")
	if err == nil && (resident == 0 || peak < resident) {
		err = fmt.Errorf("status: %d KiB resident, of %d at most", resident, peak)
	}
	return Sample{cpu, resident, peak}, err
}

// parseCPU adds up the user and system time of /proc/PID/stat: its fields 14 and
// 15. The second is the name, in parentheses, and may have anything in it, so
// they are counted from the last parenthesis.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if !strings.Contains(stat, ")") || len(fields) < 13 {
		return 0, fmt.Errorf("stat: %q is too short", stat)
	}
	return parseTicks(fields[11:13])
}

func parseTicks(fields []string) (sum time.Duration, err error) {
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("stat: %q is no number of ticks", f)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// parseKiB finds an amount of memory in /proc/PID/status.
func parseKiB(status, name string) (int, error) {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, name+":")
		if !found {
			continue
		}
		text, found := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		n, err := strconv.Atoi(text)
		if !found || err != nil || n < 0 {
			return 0, fmt.Errorf("status: %s is %q, want kB", name, strings.TrimSpace(rest))
		}
		return n, nil
	}
	return 0, fmt.Errorf("status: no %s", name)
}

// Busy is how much time all processors together have spent at work.
func Busy() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}

// parseBusy adds up the first line of /proc/stat, but for its fourth and fifth
// figure, which are idle time, and those after the eighth, which are in the first
// two already.
func parseBusy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("stat: the first line is %q", line)
	}
	return parseTicks(append(fields[1:4:4], fields[6:9]...))
}

// Load is the machine's, over the last 1, 5 and 15 minutes.
func Load() (string, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "", errors.New("/proc/loadavg: is too short")
	}
	return strings.Join(fields[:3], " "), nil
}
