package simulate

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The plot shows the part of the experiment in which policies differ, in percent of
// what all cards have.
const (
	plotFrom, plotTo     = 70.0, 130.0 // arrived
	plotLeast, plotMost  = 70.0, 100.0 // held
	panelWide, panelHigh = 380.0, 260.0
	margin               = 44.0
	panelsAcross         = 3
	legendEach           = 110.0
)

// colours can be told apart by those who see no red or green. They are used in turn.
var colours = [...]string{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#000000"}

// Plot writes a drawing (SVG) of what was held against what had arrived, the mean over
// the seeds: a panel for each trace, a line for each policy.
func Plot(w io.Writer, results []Result) error {
	traces, policies := axes(results)
	across := min(panelsAcross, max(1, len(traces)))
	down := (len(traces) + across - 1) / across
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n",
		max(float64(across)*panelWide, float64(len(policies))*legendEach)+margin, float64(down)*panelHigh+margin)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	legend(&b, policies)
	for i, trace := range traces {
		fmt.Fprintf(&b, `<g transform="translate(%g %g)">`+"\n", float64(i%across)*panelWide+margin, float64(i/across)*panelHigh+margin)
		frame(&b, trace)
		for j, policy := range policies {
			for k := range results {
				if r := &results[k]; r.Trace == trace && r.Policy == policy {
					trend(&b, r, colours[j%len(colours)])
				}
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func legend(b *strings.Builder, policies []string) {
	for i, policy := range policies {
		x := margin + float64(i)*legendEach
		fmt.Fprintf(b, `<path d="M%g 16h22" stroke="%s" stroke-width="3"/><text x="%g" y="20">%s</text>`+"\n",
			x, colours[i%len(colours)], x+28, html.EscapeString(policy))
	}
}

// frame draws the axes of a panel, with a line for what would be held if nothing
// were ever refused.
func frame(b *strings.Builder, title string) {
	const wide, high = panelWide - margin, panelHigh - margin
	fmt.Fprintf(b, `<text x="%g" y="-6" font-weight="bold">%s: GPU held, %%, by arrived, %%</text>`+"\n", 0.0, html.EscapeString(title))
	for v := plotLeast; v <= plotMost; v += 10 {
		fmt.Fprintf(b, `<path d="M0 %[1]gh%[2]g" stroke="#ddd"/><text x="-6" y="%[3]g" text-anchor="end">%[4]g</text>`+"\n", down(v), wide, down(v)+4, v)
	}
	for v := plotFrom; v <= plotTo; v += 10 {
		fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%g</text>`+"\n", along(v), high+16, v)
	}
	fmt.Fprintf(b, `<path d="M%g %gL%g %g" stroke="#999" stroke-dasharray="3 3"/>`+"\n", along(plotLeast), down(plotLeast), along(plotMost), down(plotMost))
}

func trend(b *strings.Builder, r *Result, colour string) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
	for arrived := int(plotFrom); arrived <= int(plotTo); arrived++ {
		if held := average(r.At(arrived)); !math.IsNaN(held) && held >= plotLeast {
			fmt.Fprintf(b, "%.1f,%.1f ", along(float64(arrived)), down(held))
		}
	}
	b.WriteString(`"/>` + "\n")
}

func along(arrived float64) float64 {
	return (arrived - plotFrom) / (plotTo - plotFrom) * (panelWide - margin)
}

func down(held float64) float64 {
	return (plotMost - held) / (plotMost - plotLeast) * (panelHigh - margin)
}
