package e2e

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what all rounds of a run came to.
type Report struct{ Rounds []Round }

// Lost counts pods that were not bound exactly once.
func (r *Report) Lost() (n int) {
	for i := range r.Rounds {
		n += len(r.Rounds[i].Wrong)
	}
	return n
}

// Faults says in words what went wrong, the first few things of each round.
func (r *Report) Faults() []string {
	const few = 5
	var faults []string
	for i := range r.Rounds {
		round := &r.Rounds[i]
		for _, wrong := range [][]string{round.Wrong, round.Unsound} {
			for _, text := range wrong[:min(few, len(wrong))] {
				faults = append(faults, round.Setup+": "+text)
			}
		}
	}
	return faults
}

// Print writes the tables, and then the lines that are compared with goals.
func (r *Report) Print(w io.Writer) error {
	for _, table := range []func(io.Writer){r.rates, r.processorTime, r.memory} {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		table(t)
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	binds := r.binds()
	fmt.Fprintf(w, "binds of ours: %s\n\n", describe(binds))
	for _, pair := range [][2]string{{ours, none}, {ours, bare}, {ours, noopAll}, {ours, noopOne}, {fenced, ours}} {
		if one, other := r.rate(pair[0]), r.rate(pair[1]); one > 0 && other > 0 {
			fmt.Fprintf(w, "ratio %s/%s: %.2f\n", pair[0], pair[1], one/other)
		}
	}
	_, err := fmt.Fprintf(w, "conflicts: %d of %d binds\nlost: %d\n", binds.Conflicts(), binds.Binds(), r.Lost())
	return err
}

// setups are the configurations that were measured, in their order.
func (r *Report) setups() []string {
	return slices.DeleteFunc(setups(), func(name string) bool { return len(r.of(name)) == 0 })
}

// of are the rounds of one configuration.
func (r *Report) of(name string) []Round {
	return slices.DeleteFunc(slices.Clone(r.Rounds), func(round Round) bool { return round.Setup != name })
}

func (r *Report) rate(name string) float64 {
	return median(each(r.of(name), func(round Round) float64 { return round.Rate }))
}

func (r *Report) binds() Outcomes {
	sum := Outcomes{}
	for i := range r.Rounds {
		sum.add(r.Rounds[i].Binds)
	}
	return sum
}

// describe lists the outcomes that there were, in order.
func describe(o Outcomes) string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(o)) {
		if o[how] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", o[how], how))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) rates(w io.Writer) {
	row(w, "", "pods/s", "middle 80 %", "each round")
	for _, name := range r.setups() {
		rounds := r.of(name)
		rates := each(rounds, func(round Round) string { return fmt.Sprintf("%.1f", round.Rate) })
		mid := median(each(rounds, func(round Round) float64 { return round.Middle }))
		row(w, name, fmt.Sprintf("%.1f", r.rate(name)), fmt.Sprintf("%.1f", mid), strings.Join(rates, " "))
	}
}

func (r *Report) processorTime(w io.Writer) {
	row(w, append([]string{"processor seconds of a round"}, processes()...)...)
	for _, name := range r.setups() {
		r.perProcess(w, name, processes(), func(uses []Use) string {
			return fmt.Sprintf("%.1f", median(each(uses, func(u Use) float64 { return u.CPU.Seconds() })))
		})
	}
}

func (r *Report) memory(w io.Writer) {
	shown := processes()[:3] // of the others nobody asks
	row(w, append([]string{"memory in MiB, at the end / at most"}, shown...)...)
	for _, name := range r.setups() {
		r.perProcess(w, name, shown, func(uses []Use) string {
			peaks := each(uses, func(u Use) int { return u.Peak })
			return fmt.Sprintf("%d / %d", median(each(uses, func(u Use) int { return u.Resident }))/1024, slices.Max(peaks)/1024)
		})
	}
}

// perProcess writes a configuration's row with a figure of each process.
func (r *Report) perProcess(w io.Writer, name string, shown []string, figure func([]Use) string) {
	cells := []string{name}
	for _, process := range shown {
		var uses []Use
		for _, round := range r.of(name) {
			if u, found := round.Use[process]; found {
				uses = append(uses, u)
			}
		}
		cell := "-" // it did not run
		if len(uses) > 0 {
			cell = figure(uses)
		}
		cells = append(cells, cell)
	}
	row(w, cells...)
}

func row(w io.Writer, cells ...string) {
	fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
}

// each applies f to all of them.
func each[A, B any](all []A, f func(A) B) []B {
	mapped := make([]B, len(all))
	for i, a := range all {
		mapped[i] = f(a)
	}
	return mapped
}
