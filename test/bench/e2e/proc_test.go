package e2e

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const statusText = "Name:\tetcd\nVmPeak:\t 9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t9\n"

func TestParseSample(t *testing.T) {
	tests := map[string]struct {
		stat, status string
		want         sample
		wantErr      bool
	}{
		"a process": {
			stat:   "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 150 50 3 4 20 0 9 0 100",
			status: statusText, want: sample{cpu: 2 * time.Second, resident: 1024, peak: 2048}},
		"a name like fields": {
			stat:   "42 (a) S 1 (b) 9) S 1 2 3 0 -1 4 5 6 7 8 100 1 3 4 20 0 9 0 100",
			status: statusText, want: sample{cpu: 1010 * time.Millisecond, resident: 1024, peak: 2048}},
		"nothing":           {stat: "", status: statusText, wantErr: true},
		"a short line":      {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 150", status: statusText, wantErr: true},
		"no name":           {stat: "42 etcd S 1 2 3 0 -1 4 5 6 7 8 150 50 3 4", status: statusText, wantErr: true},
		"no number":         {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 x 50 3 4", status: statusText, wantErr: true},
		"less than nothing": {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 -5 50 3 4", status: statusText, wantErr: true},
		"one without memory, which has ended": {
			stat: "42 (etcd) Z 1 2 3 0 -1 4 5 6 7 8 1 2 3 4", status: "Name:\tetcd\n", wantErr: true},
		"memory in another unit": {
			stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 1 2 3 4", status: "VmRSS: 5 MB\nVmHWM: 5 kB\n", wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseSample(tc.stat, tc.status)
			if (err != nil) != tc.wantErr {
				t.Fatalf("parseSample: %v, want an error: %t", err, tc.wantErr)
			}
			if err == nil && got != tc.want {
				t.Errorf("parseSample = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestParseBusy(t *testing.T) {
	tests := map[string]struct {
		stat    string
		want    time.Duration
		wantErr bool
	}{
		"what is not idle":        {stat: "cpu  100 200 300 9999 9999 10 20 30 100 0\ncpu0 1 2 3\n", want: 6600 * time.Millisecond},
		"an old kernel":           {stat: "cpu  100 0 0 5 5 0 0 0\n", want: time.Second},
		"nothing":                 {stat: "", wantErr: true},
		"one processor's line":    {stat: "cpu0 100 0 0 5 5 0 0 0\n", wantErr: true},
		"too short":               {stat: "cpu 100 0 0 5 5 0 0\n", wantErr: true},
		"a figure that is no one": {stat: "cpu 100 x 0 5 5 0 0 0\n", wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseBusy(tc.stat)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("parseBusy = %s, %v, want %s, an error: %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

// TestReadsItself compares with nothing: it is there for the form of the files.
func TestReadsItself(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	r, err := readAll(map[string]int{"parent": os.Getppid()})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.of[loader]; s.resident < 1024 || s.peak < s.resident || r.busy < s.cpu {
		t.Errorf("this process is %+v on a machine that was busy for %s", s, r.busy)
	}
	if _, found := r.of["parent"]; !found {
		t.Error("the other process is missing")
	}
	if _, err := loadAverage(); err != nil {
		t.Error(err)
	}
	if _, err := readAll(map[string]int{"nobody": -1}); err == nil {
		t.Error("a process that does not exist was read")
	}
}

func TestUsed(t *testing.T) {
	before := reading{busy: 100 * time.Second, of: map[string]sample{
		"old": {cpu: 10 * time.Second, resident: 1, peak: 2}, "gone": {cpu: 5 * time.Second},
	}}
	after := reading{busy: 110 * time.Second, of: map[string]sample{
		"old": {cpu: 12 * time.Second, resident: 3, peak: 4}, "new": {cpu: 3 * time.Second, resident: 5, peak: 6},
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
