package prometheus

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/telemetry"
)

// late is how far behind one exporter's own times are.
const late = 40 * time.Second

// TestPrometheus is one server and several exporters; the last part breaks one.
func TestPrometheus(t *testing.T) {
	old := strings.ReplaceAll(testdata(t, "dcgm_Hostname_capital.txt"), "GPU-00000000", "GPU-b0000000")
	dcgm := fixed(testdata(t, "dcgm_hostname.txt"))
	behind := &page{text: func(now time.Time) string {
		return fmt.Sprintf("DCGM_FI_DEV_MEMORY_TEMP{UUID=\"late\"} 70 %d\n", now.Add(-late).UnixMilli())
	}}
	odd := fixed("odd{UUID=\"nan\"} NaN\nodd{UUID=\"inf\"} +Inf\nodd{UUID=\"minus\"} -1\nodd{other=\"none\"} 5\n")
	url := start(t, dcgm.serve(t), fixed(strings.ReplaceAll(old, "node-a", "node-b")).serve(t), behind.serve(t), odd.serve(t),
		fixed(testdata(t, "vendors.txt")).serve(t))

	t.Run("both spellings of dcgm-exporter", func(t *testing.T) {
		c := telemetry.Default()
		var want []telemetry.Sample
		for node, card := range map[string]string{"node-a": "GPU-00000000", "node-b": "GPU-b0000000"} {
			want = append(want, one(node, card+"-1111-2222-3333-000000000000", map[telemetry.Kind]float64{
				telemetry.MemoryUsed: 12, telemetry.Utilisation: 0, telemetry.Temperature: 31, telemetry.Power: 54.77})...)
		}
		for _, s := range brings(t, url, c, want) {
			if age := time.Since(s.At); age < 0 || age > 10*time.Second {
				t.Errorf("%v is %v old, and is measured every 500 ms", s, age)
			}
		}
	})
	t.Run("every exporter of the example", func(t *testing.T) {
		c, err := telemetry.ReadConfig("../../examples/telemetry.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c.Exporters = slices.DeleteFunc(c.Exporters, func(e telemetry.Export) bool { return e.Name == "dcgm" })
		brings(t, url, c, vendors())
	})
	t.Run("a sample that is late", func(t *testing.T) {
		want := one("", "late", map[telemetry.Kind]float64{telemetry.Temperature: 70})
		for _, s := range brings(t, url, asking("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP{UUID=~\"l.*\"}"), append(want, want...)) {
			if age := time.Since(s.At); age < late || age > late+10*time.Second {
				t.Errorf("%v is %v old, want %v or a little more", s, age, late)
			}
		}
	})
	t.Run("the time of an expression is that of the question", func(t *testing.T) {
		want := one("", "late", map[telemetry.Kind]float64{telemetry.Temperature: 71})
		for _, s := range brings(t, url, asking("DCGM_FI_DEV_MEMORY_TEMP + 1"), want) {
			if age := time.Since(s.At); age < 0 || age > 10*time.Second {
				t.Errorf("%v is %v old", s, age)
			}
		}
	})
	t.Run("odd values come as they are, and series without a card do not", func(t *testing.T) {
		brings(t, url, asking("odd"), slices.Concat(
			one("", "nan", map[telemetry.Kind]float64{telemetry.Temperature: math.NaN()}),
			one("", "inf", map[telemetry.Kind]float64{telemetry.Temperature: math.Inf(1)}),
			one("", "minus", map[telemetry.Kind]float64{telemetry.Temperature: -1})))
	})
	t.Run("a fault of one query leaves the others", func(t *testing.T) {
		for name, query := range map[string]string{
			"is none":                "odd{",
			"is no vector":           "3",
			"has one labelset twice": `{__name__=~"DCGM_FI_DEV_FB_(USED|FREE)"}`,
		} {
			got, err := read(t, url, asking(query, "DCGM_FI_DEV_MEMORY_TEMP"))
			if err == nil || !strings.Contains(err.Error(), query) || len(got) != 1 {
				t.Errorf("%s: %v, error %v; want one sample, and an error that names the query", name, got, err)
			}
		}
	})
	t.Run("an exporter that breaks takes its samples along", func(t *testing.T) {
		dcgm.take()
		brings(t, url, asking("DCGM_FI_DEV_FB_USED"), one("node-b", "GPU-b0000000-1111-2222-3333-000000000000",
			map[telemetry.Kind]float64{telemetry.Temperature: 12}))
	})
}

// vendors are the samples of testdata/vendors.txt.
func vendors() []telemetry.Sample {
	const (
		memory, load, heat = telemetry.MemoryUsed, telemetry.Utilisation, telemetry.Temperature
		power, limit       = telemetry.Power, telemetry.PowerLimit
	)
	return slices.Concat(
		one("", "VDIE-0", map[telemetry.Kind]float64{memory: 3408, load: 12, heat: 41, power: 91.5}),
		one("mlu-a", "MLU-0", map[telemetry.Kind]float64{memory: 1024, load: 7, heat: 39, power: 80, limit: 550}),
		one("dcu-a", "DCU-0", map[telemetry.Kind]float64{memory: 2000, load: 55, heat: 50, power: 120}),
		one("mx-a", "MX-0", map[telemetry.Kind]float64{memory: 858, load: 3, heat: 45, power: 69.25}),
		one("gcu-a", "GCU-0", map[telemetry.Kind]float64{memory: 1024, load: 80, heat: 34.5, power: 56, limit: 225}),
		one("ix-a", "IX-0", map[telemetry.Kind]float64{memory: 513, load: 1, heat: 52, power: 66}),
		one("", "IX-1", map[telemetry.Kind]float64{heat: 51}),
		one("cpu-a", "", map[telemetry.Kind]float64{telemetry.NodeMemory: 75}),
	)
}

// one is what is told of one card, without times.
func one(node, card string, figures map[telemetry.Kind]float64) (all []telemetry.Sample) {
	for kind, v := range figures {
		all = append(all, telemetry.Sample{Kind: kind, Node: gpu.NodeID(node), Card: gpu.CardID(card), Index: -1, Value: v})
	}
	return all
}

// asking is a configuration of these queries, of a temperature.
func asking(queries ...string) telemetry.Config {
	c := telemetry.Default()
	c.Exporters[0].Metrics = nil
	for _, q := range queries {
		c.Exporters[0].Metrics = append(c.Exporters[0].Metrics, telemetry.Metric{Figure: telemetry.Temperature, Query: q, Unit: "celsius"})
	}
	return c
}

func read(t *testing.T, url string, c telemetry.Config) ([]telemetry.Sample, error) {
	t.Helper()
	c.Prometheus = telemetry.Endpoint{URL: url}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := telemetry.NewPrometheus(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p.Read(t.Context())
}

// brings waits until a reading brings these samples and no others, and returns them.
func brings(t *testing.T, url string, c telemetry.Config, want []telemetry.Sample) (got []telemetry.Sample) {
	t.Helper()
	options := []gocmp.Option{
		cmpopts.SortSlices(func(a, b telemetry.Sample) int {
			return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind))
		}),
		cmpopts.IgnoreFields(telemetry.Sample{}, "At"), cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-6),
	}
	eventually(t, "these samples", func() (err error) {
		if got, err = read(t, url, c); err != nil {
			return err
		}
		if diff := gocmp.Diff(want, got, options...); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	return got
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
