package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/test/cluster"
)

// ran is a round of a configuration, all of whose processes used about the same.
func ran(name string, rate float64, cpu time.Duration) Round {
	use := map[string]Use{}
	for _, process := range processes() {
		use[process] = Use{CPU: cpu, Resident: 100 << 10, Peak: int(rate) << 10}
	}
	if name == none || name == bare {
		delete(use, cluster.ExtenderName)
	}
	return Round{Setup: name, Rate: rate, Middle: rate + 1, Use: use}
}

func TestReport(t *testing.T) {
	const want = `
            pods/s  middle 80 %         each round
      none   140.0        141.0  140.0 120.0 150.0
      bare   200.0        201.0  200.0 180.0 210.0
  noop-all    70.0         71.0     70.0 60.0 80.0
  noop-one   138.0        139.0  138.0 120.0 140.0
      ours   126.0        127.0  120.0 126.0 130.0
    fenced   120.0        121.0              120.0

  processor seconds of a round  controlplane  kube-scheduler  extender  loader  others
                          none           2.0             2.0         -     2.0     2.0
                          bare           2.0             2.0         -     2.0     2.0
                      noop-all           3.0             3.0       3.0     3.0     3.0
                      noop-one           4.0             4.0       4.0     4.0     4.0
                          ours           5.5             5.5       5.5     5.5     5.5
                        fenced           6.0             6.0       6.0     6.0     6.0

  memory in MiB, at the end / at most  controlplane  kube-scheduler   extender
                                 none     100 / 150       100 / 150          -
                                 bare     100 / 210       100 / 210          -
                             noop-all      100 / 80        100 / 80   100 / 80
                             noop-one     100 / 140       100 / 140  100 / 140
                                 ours     100 / 130       100 / 130  100 / 130
                               fenced     100 / 120       100 / 120  100 / 120

binds of ours: 9000 bound, 40 conflict, 2 refused

ratio ours/none: 0.90
ratio ours/bare: 0.63
ratio ours/noop-all: 1.80
ratio ours/noop-one: 0.91
ratio fenced/ours: 0.95
conflicts: 42 of 9042 binds
lost: 0
`
	r := Report{Rounds: []Round{
		ran(none, 140, time.Second), ran(bare, 200, time.Second), ran(noopAll, 70, 3*time.Second), ran(noopOne, 138, 4*time.Second), ran(ours, 120, 5500*time.Millisecond),
		ran(none, 120, 2*time.Second), ran(bare, 180, 2*time.Second), ran(noopAll, 60, 3*time.Second), ran(noopOne, 120, 4*time.Second), ran(ours, 126, 5500*time.Millisecond),
		ran(none, 150, 9*time.Second), ran(bare, 210, 9*time.Second), ran(noopAll, 80, 3*time.Second), ran(noopOne, 140, 4*time.Second), ran(ours, 130, 5500*time.Millisecond),
		ran(fenced, 120, 6*time.Second),
	}}
	for i, binds := range map[int]Outcomes{
		4: {"bound": 3000, "conflict": 40, "error": 0}, 9: {"bound": 3000, "refused": 2}, 14: {"bound": 2000}, 15: {"bound": 1000},
	} {
		r.Rounds[i].Binds = binds
	}
	if diff := cmp.Diff(want, "\n"+printed(t, &r)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if faults := r.Faults(); len(faults) != 0 {
		t.Errorf("faults %v", faults)
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReportOfLostPods: a figure of a round in which pods were lost is still
// shown, and the loss with it.
func TestReportOfLostPods(t *testing.T) {
	many := make([]string, 300)
	for i := range many {
		many[i] = "pod has no node"
	}
	r := Report{Rounds: []Round{
		{Setup: none, Wrong: many},
		{Setup: ours, Rate: 5, Wrong: []string{"pod a"}, Unsound: []string{"card b"}, Binds: Outcomes{"bound": 5}},
	}}
	want := []string{"", "conflicts: 0 of 5 binds", "lost: 301"}
	lines := strings.Split(strings.TrimSuffix(printed(t, &r), "\n"), "\n")
	if diff := cmp.Diff(want, lines[max(0, len(lines)-3):]); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
	faults := r.Faults()
	if len(faults) != 7 || faults[6] != "ours: card b" || faults[5] != "ours: pod a" {
		t.Errorf("faults %q, want the first 5 of none and both of ours", faults)
	}
}

// TestReportOfUnsoundCards: nothing was lost, and the run has failed all the same.
func TestReportOfUnsoundCards(t *testing.T) {
	r := Report{Rounds: []Round{{Setup: ours, Unsound: []string{"card is oversold"}}}}
	if r.Lost() != 0 || len(r.Faults()) != 1 {
		t.Errorf("lost %d, faults %v, want 0 and one", r.Lost(), r.Faults())
	}
}
