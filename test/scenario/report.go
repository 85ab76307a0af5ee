package scenario

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what all runs came to.
type Report struct{ Outcomes []Outcome }

// Faults says what went wrong, the first few things of each run.
func (r *Report) Faults() (faults []string) {
	const few = 5
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		for _, wrong := range o.Wrong[:min(few, len(o.Wrong))] {
			faults = append(faults, fmt.Sprintf("%s, seed %d: %s", o.Setup, o.Seed, wrong))
		}
	}
	return faults
}

// figures of an outcome, in the order of the tables.
func figures() []figure {
	kind := func(name string) func(*Outcome) float64 {
		return func(o *Outcome) float64 { return o.Kinds[name].Percent() }
	}
	return []figure{
		{"whole cards in time, %", func(o *Outcome) float64 { return o.Whole().Percent() }},
		{"of these: one card, %", kind("single")},
		{"2, 4 or 8 cards, %", kind("several")},
		{"of groups, %", kind("group")},
		{"slices in time, %", kind("slice")},
		{"hottest node, degC", func(o *Outcome) float64 { return o.Node }},
		{"hottest card, degC", func(o *Outcome) float64 { return o.Card }},
		{"card-minutes above 82", func(o *Outcome) float64 { return o.Throttled }},
		{"pairs in one rack, %", func(o *Outcome) float64 { return o.Pairs.Percent() }},
		{"pods in the group's rack, %", func(o *Outcome) float64 { return o.Members.Percent() }},
		{"cards held, %", func(o *Outcome) float64 { return 100 * o.Held }},
		{"a slice waits, s", func(o *Outcome) float64 { return o.Seconds }},
	}
}

type figure struct {
	name string
	of   func(*Outcome) float64
}

// Print writes the table, medians with each run, and then the lines that are read
// by machines.
func (r *Report) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\n", strings.Join(r.setups(), "\t"))
	for _, f := range figures() {
		cells := []string{f.name}
		for _, name := range r.setups() {
			values := r.values(name, f.of)
			each := make([]string, len(values))
			for i, v := range values {
				each[i] = fmt.Sprintf("%.1f", v)
			}
			cells = append(cells, fmt.Sprintf("%.1f (%s)", median(values), strings.Join(each, " ")))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range r.setups() {
		whole := median(r.values(name, func(o *Outcome) float64 { return o.Whole().Percent() }))
		hottest := r.values(name, func(o *Outcome) float64 { return o.Node })
		near := median(r.values(name, func(o *Outcome) float64 { return o.Pairs.Percent() }))
		if _, err := fmt.Fprintf(w, "scenario %s whole=%.1f hottest=%.1f samerack=%.1f runs=%d\n", name, whole, median(hottest), near, len(hottest)); err != nil {
			return err
		}
	}
	return nil
}

// setups are those that were run, in their order.
func (r *Report) setups() (names []string) {
	for i := range r.Outcomes {
		if name := r.Outcomes[i].Setup; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *Report) values(setup string, of func(*Outcome) float64) (all []float64) {
	for i := range r.Outcomes {
		if r.Outcomes[i].Setup == setup {
			all = append(all, of(&r.Outcomes[i]))
		}
	}
	return all
}

// median is the middle one, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// String is the outcome in one line.
func (o *Outcome) String() string {
	w := o.Whole()
	return fmt.Sprintf("whole cards %d of %d in time (%.1f %%), hottest node %.1f degC, pairs in one rack %.1f %%, cards held %.1f %%",
		w.Of, w.All, w.Percent(), o.Node, o.Pairs.Percent(), 100*o.Held)
}
