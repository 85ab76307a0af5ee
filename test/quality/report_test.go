package quality

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/simulate"
)

// Of two cards: one whole is placed, at 50 % arrived, and the second, at 100 %, where
// the simulator has it placed and kube-scheduler not. Of 130 % there is nothing.
func TestReport(t *testing.T) {
	trace := &simulate.Trace{Nodes: []simulate.Node{{Cards: 2}}}
	one := simulate.Shape{Cards: 1, Milli: 1000}
	both, first := simulate.NewTally(trace), simulate.NewTally(trace)
	both.Add(one, true)
	both.Add(one, true)
	first.Add(one, true)
	first.Add(one, false)
	r := &Report{
		Trace: "some", Nodes: 1, Seed: 7, Placed: first.Run(), Simulated: both.Run(),
		Second: 3, Missed: 1, Took: 90 * time.Second,
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	const want = `| GPU held, %, when so much had arrived | 95 % | 100 % | 130 % |
| --- | --- | --- | --- |
| kube-scheduler and the extender | - | 50.00 | - |
| simulator | - | 100.00 | - |
| difference | - | -50.00 | - |

| found no room, pods | no GPU | part of one | 1 | 2 | 4 | 8 |
| --- | --- | --- | --- | --- | --- | --- |
| kube-scheduler and the extender | 0 | 0 | 1 | 0 | 0 | 0 |
| simulator | 0 | 0 | 0 | 0 | 0 | 0 |

1 pods were placed in 90 s, 3 of them on a node that was nominated; 1 were not placed though a node had room
quality-e2e some nodes=1 seed=7 alloc100=50.00 sim100=100.00 diff=-50.00
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFigures(t *testing.T) {
	if got := off(96.25, 96.0) + text(math.NaN()) + off(math.NaN(), 1); got != "+0.25--" {
		t.Errorf("%q", got)
	}
}

func TestFaults(t *testing.T) {
	r := &Report{Missed: 5}
	if err := r.Faults(); err != nil {
		t.Errorf("a figure is a fault: %v", err)
	}
	r.Wrong = []string{"card oversold", "pod gone"}
	if err := r.Faults(); err == nil || err.Error() != "card oversold\npod gone" {
		t.Errorf("faults: %v", err)
	}
	if err := r.Print(broken{}); !errors.Is(err, errBroken) {
		t.Errorf("print: %v", err)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
