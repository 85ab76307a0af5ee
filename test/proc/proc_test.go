package proc

import (
	"testing"
	"time"
)

const statusText = "Name:\tetcd\nVmPeak:\t 9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t9\n"

func TestParseSample(t *testing.T) {
	tests := map[string]struct {
		stat, status string
		want         Sample
		wantErr      bool
	}{
		"a process": {
			stat:   "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 150 50 3 4 20 0 9 0 100",
			status: statusText, want: Sample{CPU: 2 * time.Second, Resident: 1024, Peak: 2048}},
		"a name like fields": {
			stat:   "42 (a) S 1 (b) 9) S 1 2 3 0 -1 4 5 6 7 8 100 1 3 4 20 0 9 0 100",
			status: statusText, want: Sample{CPU: 1010 * time.Millisecond, Resident: 1024, Peak: 2048}},
		"another name like fields": {
			stat:   "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1",
			status: statusText, want: Sample{CPU: 30 * time.Millisecond, Resident: 1024, Peak: 2048}},
		"nothing":           {stat: "", status: statusText, wantErr: true},
		"a short line":      {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 150", status: statusText, wantErr: true},
		"no name":           {stat: "42 etcd S 1 2 3 0 -1 4 5 6 7 8 150 50 3 4", status: statusText, wantErr: true},
		"no number":         {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 x 50 3 4", status: statusText, wantErr: true},
		"less than nothing": {stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 -5 50 3 4", status: statusText, wantErr: true},
		"one without memory, which has ended": {
			stat: "42 (etcd) Z 1 2 3 0 -1 4 5 6 7 8 1 2 3 4", status: "Name:\tetcd\n", wantErr: true},
		"more resident than at most": {
			stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 1 2 3 4", status: "VmRSS: 6 kB\nVmHWM: 5 kB\n", wantErr: true},
		"nothing resident": {
			stat: "42 (etcd) S 1 2 3 0 -1 4 5 6 7 8 1 2 3 4", status: "VmRSS: 0 kB\nVmHWM: 5 kB\n", wantErr: true},
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
