package e2e

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/test/proc"
)

// TestReadsItself compares with nothing: it is there for the form of the files.
func TestReadsItself(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	r, err := readAll(map[string]int{"parent": os.Getppid()})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.of[loader]; s.Resident < 1024 || s.Peak < s.Resident || r.busy < s.CPU {
		t.Errorf("this process is %+v on a machine that was busy for %s", s, r.busy)
	}
	if _, found := r.of["parent"]; !found {
		t.Error("the other process is missing")
	}
	if _, err := proc.Load(); err != nil {
		t.Error(err)
	}
	if _, err := readAll(map[string]int{"nobody": -1}); err == nil {
		t.Error("a process that does not exist was read")
	}
}

func TestUsed(t *testing.T) {
	before := reading{busy: 100 * time.Second, of: map[string]proc.Sample{
		"old": {CPU: 10 * time.Second, Resident: 1, Peak: 2}, "gone": {CPU: 5 * time.Second},
	}}
	after := reading{busy: 110 * time.Second, of: map[string]proc.Sample{
		"old": {CPU: 12 * time.Second, Resident: 3, Peak: 4}, "new": {CPU: 3 * time.Second, Resident: 5, Peak: 6},
	}}
	want := map[string]Use{
		"old":  {CPU: 2 * time.Second, Resident: 3, Peak: 4},
		"new":  {CPU: 3 * time.Second, Resident: 5, Peak: 6},
		others: {CPU: 5 * time.Second},
	}
	if diff := cmp.Diff(want, used(before, after)); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
	after.busy = before.busy
	if got := used(before, after)[others].CPU; got != 0 {
		t.Errorf("others used %s, which is less than nothing", got)
	}
}
