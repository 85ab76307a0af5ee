package scenario

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// metric is what dcgm-exporter calls the temperature of a card.
const metric = "DCGM_FI_DEV_GPU_TEMP"

// Gauges stand in for Prometheus: they answer its query of the newest samples with
// the temperatures that Set was given last, and what else is asked for with
// nothing. They are safe for concurrent use.
type Gauges struct {
	floor  Floor
	server *http.Server
	url    string

	mu    sync.Mutex
	cards [][cardsPerNode]float64 // guarded by mu; replaced, never edited
	at    time.Time               // guarded by mu; zero: there are none yet
}

// NewGauges serves at a loopback address until Close.
func NewGauges(f Floor) (*Gauges, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gauges{floor: f, url: "http://" + listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", g.query)
	g.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = g.server.Serve(listener) }() // until it is closed
	return g, nil
}

// Close ends the server.
func (g *Gauges) Close() error { return g.server.Close() }

// config is the extender's: our temperatures every second.
func (g *Gauges) config() string {
	return fmt.Sprintf(`
prometheus: {url: %q}
period: 1s
timeout: 5s
stale: 15s
exporters:
- name: dcgm
  labels: {node: [Hostname], card: [UUID]}
  metrics: [{figure: temperature, query: %s, unit: celsius}]
`, g.url, metric)
}

// Set has the cards' temperatures told from now on; nil: none.
func (g *Gauges) Set(cards [][cardsPerNode]float64, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cards, g.at = append([][cardsPerNode]float64(nil), cards...), at
}

// sample is one series of an answer: the time, and the value as text.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (g *Gauges) query(w http.ResponseWriter, r *http.Request) {
	samples := []sample{}
	if strings.Contains(r.FormValue("query"), metric) {
		samples = g.samples(time.Now())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // whoever has gone needs no answer
		"status": "success",
		"data":   map[string]any{"resultType": "vector", "result": samples},
	})
}

// samples are the values and, as the extender asks for them, their times.
func (g *Gauges) samples(now time.Time) []sample {
	g.mu.Lock()
	cards, at := g.cards, g.at
	g.mu.Unlock()
	all := make([]sample, 0, 2*len(cards)*cardsPerNode)
	asked := unix(now)
	for node := range cards {
		name := nodeName(node)
		for i, c := range g.floor.cards(name) {
			for part, value := range map[string]float64{"value": cards[node][i], "time": unix(at)} {
				all = append(all, sample{
					Metric: map[string]string{"heteroflow_part": part, "Hostname": name, "UUID": c.UUID, "gpu": strconv.Itoa(i)},
					Value:  [2]any{asked, strconv.FormatFloat(value, 'f', 3, 64)},
				})
			}
		}
	}
	return all
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
