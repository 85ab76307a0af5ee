package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Lines writes one line for each result, for machines. Figures that there are none of
// are "-".
func Lines(w io.Writer, results []Result) error {
	var b strings.Builder
	for i := range results {
		r := &results[i]
		at100 := r.At(100)
		fmt.Fprintf(&b, "openb %s policy=%s seeds=%d alloc95=%s alloc100=%s sd100=%s alloc130=%s fgd100=%s first8=%s failed8=%s\n",
			r.Trace, r.Policy, len(r.Runs), mean(r.At(95)), mean(at100), text(spread(at100)), mean(r.At(130)),
			publishedText(r.Trace, "fgd"), mean(r.First8()), mean(r.Failed(Kind8)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// figure is one table: a number of each run.
type figure struct {
	title string
	of    func(*Result) []float64
	// published says that there are published figures of it.
	published bool
}

// figures are the tables, in their order.
func figures() []figure {
	at := func(arrived int) func(*Result) []float64 {
		return func(r *Result) []float64 { return r.At(arrived) }
	}
	return []figure{
		{"GPU held, %, when 100 % had arrived", at(100), true},
		{"GPU held, %, when 95 % had arrived", at(95), false},
		{"GPU held, %, when 130 % had arrived", at(130), false},
		{"arrived, %, when a pod with GPUs first found no room", (*Result).First, false},
		{"arrived, %, when a pod with 8 GPUs first found no room", (*Result).First8, false},
		{"pods with 8 GPUs that found no room, in a run", func(r *Result) []float64 { return r.Failed(Kind8) }, false},
	}
}

// Report writes a table of each figure: the mean over the seeds, and after it the
// standard deviation.
func Report(w io.Writer, results []Result) error {
	traces, policies := axes(results)
	var b strings.Builder
	for _, f := range figures() {
		head := append([]string{f.title}, policies...)
		if f.published {
			head = append(head, "published: fgd", "bestfit", "random")
		}
		row(&b, head)
		row(&b, slices.Repeat([]string{"---"}, len(head)))
		for _, trace := range traces {
			cells := []string{trace}
			for _, policy := range policies {
				cells = append(cells, cell(f, results, trace, policy))
			}
			if f.published {
				cells = append(cells, publishedText(trace, "fgd"), publishedText(trace, "bestfit"), publishedText(trace, "random"))
			}
			row(&b, cells)
		}
		b.WriteByte('\n')
	}
	refusals(&b, results)
	_, err := io.WriteString(w, b.String())
	return err
}

// refusals writes the table of who found no room, by kind.
func refusals(b *strings.Builder, results []Result) {
	row(b, []string{"found no room, pods in a run", "policy", "no GPU", "part of one", "1", "2", "4", "8"})
	row(b, slices.Repeat([]string{"---"}, 2+len(Kinds())))
	for i := range results {
		cells := []string{results[i].Trace, results[i].Policy}
		for _, kind := range Kinds() {
			cells = append(cells, mean(results[i].Failed(kind)))
		}
		row(b, cells)
	}
	b.WriteByte('\n')
}

func row(b *strings.Builder, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// axes are the names of traces and policies, each once, in the order of the results.
func axes(results []Result) (traces, policies []string) {
	for i := range results {
		if r := &results[i]; !slices.Contains(traces, r.Trace) {
			traces = append(traces, r.Trace)
		}
		if r := &results[i]; !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	return traces, policies
}

func cell(f figure, results []Result, trace, policy string) string {
	for i := range results {
		r := &results[i]
		if r.Trace != trace || r.Policy != policy {
			continue
		}
		return withSpread(f.of(r))
	}
	return "-"
}

func withSpread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s ± %s", mean(values), text(spread(values)))
}

func publishedText(trace, policy string) string {
	if held, ok := Published(trace, policy); ok {
		return text(held)
	}
	return "-"
}

// mean returns the mean as text, "-" of nothing.
func mean(values []float64) string { return text(average(values)) }

func text(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// average is not a number of nothing.
func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// spread is the standard deviation of what the values are a sample of; not a number
// of less than two.
func spread(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	m, sum := average(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
