package policy

import (
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func drawFigure(t *rapid.T, label string, of ...int64) gpu.Figure {
	if pick(t, label+" is known", true, true, false) {
		return gpu.Measured(pick(t, label, of...))
	}
	return gpu.Figure{}
}

// drawReadings are those of a node whose cards have 8 or 10 MiB.
func drawReadings(t *rapid.T, cards []gpu.Card) ledger.Readings {
	r := ledger.Readings{
		CPU: drawFigure(t, "CPU", 0, 89, 89, 90), Memory: drawFigure(t, "memory", 0, 89, 89, 90),
		Cards: map[gpu.CardID]gpu.Reading{},
	}
	for _, c := range cards {
		r.Cards[c.ID] = gpu.Reading{
			MemoryUsed: drawFigure(t, "used", 0, 1, 3, 5, 8, 12), Utilisation: drawFigure(t, "utilisation", 0, 94, 95),
			Temperature: drawFigure(t, "temperature", 40, 78, 79, 120), Power: drawFigure(t, "power", 0, 300), PowerLimit: drawFigure(t, "limit", 0, 400),
		}
	}
	return r
}

// What is measured only ever takes cards away, and is blamed just where the request
// would fit but for that. What fits gets no card that is past a threshold, and no
// memory that somebody uses.
func TestMeasured(t *testing.T) {
	moreChecks(t)
	cold := Default()
	cold.Thresholds, cold.Plugins = Thresholds{}, without(cold.Plugins, "thermal")
	pipe, careless := Default().Pipeline(), cold.Pipeline()
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWorld(t), drawRequest(t)
		l := w.books()
		r.Tenant, _ = l.Snapshot().Owner(r.Namespace)
		l.SetReadings("n1", drawReadings(t, w.facts.Cards))
		n, _ := l.Snapshot().Node("n1")
		c := &pipeline.Cycle{Request: r}
		judged := pipe.Judge(c, n, &pipeline.Scratch{})
		anyhow := careless.Judge(c, n, &pipeline.Scratch{})
		p, assigned := pipe.Assign(c, n)
		heat := judged.Reason == gpu.Overheated || judged.Reason == gpu.LoadThresholdExceeded
		switch {
		case judged != assigned:
			t.Fatalf("judged %+v, assigned %+v", judged, assigned)
		case !anyhow.OK() && judged != anyhow:
			t.Fatalf("%+v where it would not fit anyhow: %+v", judged, anyhow)
		case anyhow.OK() && !judged.OK() && (!heat || judged.Gauge == "" || judged.Have < judged.Want):
			t.Fatalf("%+v where it would fit but for what is measured", judged)
		case judged.OK():
			mustBeIdle(t, n, r, &p)
			if err := l.Reserve(p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func without(plugins []Plugin, name string) (rest []Plugin) {
	for _, p := range plugins {
		if p.Name != name {
			rest = append(rest, p)
		}
	}
	return rest
}

// mustBeIdle checks the cards of a placement, and the node, by their readings.
func mustBeIdle(t *rapid.T, n *ledger.Node, r *gpu.Request, p *gpu.Placement) {
	if len(r.Asks) > 0 && (n.Readings.CPU.AtLeast(90) || n.Readings.Memory.AtLeast(90)) {
		t.Fatalf("on a node with %+v", n.Readings)
	}
	uses := p.Uses()
	for i := range n.Cards {
		c := &n.Cards[i]
		for _, u := range uses {
			if u.Card != c.ID {
				continue
			}
			rest := c.Usable
			if u.Use.Exclusive {
				rest = c.Memory
			}
			x := &c.Reading
			over := x.MemoryUsed.Known && x.MemoryUsed.Value*100 >= 95*int64(c.Memory)
			if over || x.Utilisation.AtLeast(95) || x.Temperature.AtLeast(79) {
				t.Fatalf("on a card with %+v", c)
			}
			if !u.Use.Exclusive && c.Used.Memory+c.Foreign()+u.Use.Memory > rest {
				t.Fatalf("%+v on a card with %+v, of which others use %d", u, c, c.Foreign())
			}
		}
	}
}
