package quality

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"heteroflow.io/heteroflow/pkg/simulate"
)

// Report is what came of the same arrivals in both places.
type Report struct {
	Trace             string
	Nodes             int
	Seed              int64
	Placed, Simulated simulate.Run
	// Second pods were refused at first and placed on a node that was nominated; Missed
	// were not placed though a node had room.
	Second, Missed int
	Took           time.Duration
	Wrong          []string // what the judge objects to
}

// Faults is what is wrong, whatever the figures; nil if nothing is.
func (r *Report) Faults() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(r.Wrong, "\n"))
}

// Print writes the tables, and a line for machines last.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("| GPU held, %%, when so much had arrived | 95 %% | 100 %% | 130 %% |")
	line("| --- | --- | --- | --- |")
	real, simulated := &r.Placed.Allocated, &r.Simulated.Allocated
	line("| kube-scheduler and the extender | %s | %s | %s |", text(real[95]), text(real[100]), text(real[130]))
	line("| simulator | %s | %s | %s |", text(simulated[95]), text(simulated[100]), text(simulated[130]))
	line("| difference | %s | %s | %s |", off(real[95], simulated[95]), off(real[100], simulated[100]), off(real[130], simulated[130]))
	line("")
	line("| found no room, pods | no GPU | part of one | 1 | 2 | 4 | 8 |")
	line("| --- | --- | --- | --- | --- | --- | --- |")
	line("| kube-scheduler and the extender | %s |", refusals(&r.Placed))
	line("| simulator | %s |", refusals(&r.Simulated))
	line("")
	line("%d pods were placed in %.0f s, %d of them on a node that was nominated; %d were not placed though a node had room",
		r.Placed.Placed, r.Took.Seconds(), r.Second, r.Missed)
	line("quality-e2e %s nodes=%d seed=%d alloc100=%s sim100=%s diff=%s",
		r.Trace, r.Nodes, r.Seed, text(real[100]), text(simulated[100]), off(real[100], simulated[100]))
	_, err := io.WriteString(w, b.String())
	return err
}

// refusals are the cells of a row: pods that found no room, by kind.
func refusals(run *simulate.Run) string {
	counts := map[string]int{}
	for s, n := range run.Failed {
		counts[s.Kind()] += n
	}
	var cells []string
	for _, kind := range simulate.Kinds() {
		cells = append(cells, fmt.Sprint(counts[kind]))
	}
	return strings.Join(cells, " | ")
}

// text is a figure, "-" where there is none.
func text(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func off(got, want float64) string {
	if d := got - want; !math.IsNaN(d) {
		return fmt.Sprintf("%+.2f", d)
	}
	return "-"
}
