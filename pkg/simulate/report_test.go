package simulate

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// someRun holds that much whatever has arrived, from 90 % on.
func someRun(held, first8 float64, failed8 int) Run {
	run := Run{First: 90, First8: first8, Failed: map[Shape]int{{Cards: 8, Milli: 1000}: failed8, {Cards: 1, Milli: 500}: 4, {}: 1}}
	for b := range run.Allocated {
		run.Allocated[b] = math.NaN()
		if b >= 90 {
			run.Allocated[b] = held
		}
	}
	return run
}

func someResults() []Result {
	return []Result{
		{"default", "ours", []Run{someRun(94, 97, 3), someRun(96, math.NaN(), 0)}},
		{"default", "fgd", []Run{someRun(95, math.NaN(), 0)}},
		{"<new>", "ours", []Run{someRun(91, 92, 1), someRun(91, 94, 2)}},
	}
}

// The mean of 94 and 96 is 95, and their standard deviation the root of 2. A run in
// which no pod with 8 cards was refused has no part in when the first one was.
func TestLines(t *testing.T) {
	const want = `openb default policy=ours seeds=2 alloc95=95.00 alloc100=95.00 sd100=1.41 alloc130=95.00 fgd100=95.23 first8=97.00 failed8=1.50
openb default policy=fgd seeds=1 alloc95=95.00 alloc100=95.00 sd100=- alloc130=95.00 fgd100=95.23 first8=- failed8=0.00
openb <new> policy=ours seeds=2 alloc95=91.00 alloc100=91.00 sd100=0.00 alloc130=91.00 fgd100=- first8=93.00 failed8=1.50
`
	var b strings.Builder
	if err := Lines(&b, someResults()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestReport(t *testing.T) {
	var b strings.Builder
	if err := Report(&b, someResults()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`| GPU held, %, when 100 % had arrived | ours | fgd | published: fgd | bestfit | random |
| --- | --- | --- | --- | --- | --- |
| default | 95.00 ± 1.41 | 95.00 ± - | 95.23 | 92.86 | 86.30 |
| <new> | 91.00 ± 0.00 | - | - | - | - |
`,
		`| found no room, pods in a run | policy | no GPU | part of one | 1 | 2 | 4 | 8 |
| --- | --- | --- | --- | --- | --- | --- | --- |
| default | ours | 1.00 | 4.00 | 0.00 | 0.00 | 0.00 | 1.50 |
`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks\n%s\nit is\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "NaN") {
			t.Errorf("no figure: %s", line)
		}
	}
}

// The drawing is well-formed whatever the names, has a panel for each trace and a line
// for each result, and no point that is none or lies outside its panel.
func TestPlot(t *testing.T) {
	var b strings.Builder
	if err := Plot(&b, someResults()); err != nil {
		t.Fatal(err)
	}
	lines, panels := 0, 0
	for in := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch start, _ := token.(xml.StartElement); start.Name.Local {
		case "polyline":
			lines++
			for _, a := range start.Attr {
				if a.Name.Local == "points" {
					checkPoints(t, a.Value)
				}
			}
		case "g":
			panels++
		}
	}
	if lines != 3 || panels != 2 {
		t.Errorf("%d lines in %d panels, want 3 in 2", lines, panels)
	}
	if err := Plot(io.Discard, nil); err != nil {
		t.Errorf("nothing cannot be drawn: %v", err)
	}
}

func checkPoints(t *testing.T, points string) {
	t.Helper()
	if n := len(strings.Fields(points)); n != 41 { // 90 to 130
		t.Errorf("%d points, want 41", n)
	}
	for _, p := range strings.Fields(points) {
		if strings.Contains(p, "NaN") || strings.HasPrefix(p, "-") || strings.Contains(p, ",-") {
			t.Errorf("point %s", p)
		}
	}
}

func TestExperimentIsTheSameEachTime(t *testing.T) {
	trace, err := Read(files(someNodes, somePods), "t")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := Policies(PolicyNames())
	if err != nil {
		t.Fatal(err)
	}
	var lines [2]strings.Builder
	for i := range lines {
		results, err := Experiment(t.Context(), trace, policies, []int64{42, 43, 44})
		if err != nil {
			t.Fatal(err)
		}
		if err := Lines(&lines[i], results); err != nil {
			t.Fatal(err)
		}
		if pods := Decisions(results); pods < 3*3*len(policies) {
			t.Errorf("%d decisions of 3 pods and more, 3 seeds and %d policies", pods, len(policies))
		}
	}
	if diff := cmp.Diff(lines[0].String(), lines[1].String()); diff != "" {
		t.Errorf("another time (-first +second):\n%s", diff)
	}
}
