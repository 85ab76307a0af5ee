package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

// measured stands in for a Prometheus: it answers as one would whose exporter had
// measured these values just now.
type measured struct {
	mu     sync.Mutex
	values map[string]float64 // metric -> value of the one card; nil: the server is broken
	card   string
}

func (m *measured) set(metric string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[metric] = value
}

func (m *measured) fail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values = nil
}

// asksFor finds the metric in a query that wants its values and their times.
var asksFor = regexp.MustCompile(`^label_replace\(\((\w+)\), .* or label_replace\(timestamp\(`)

// ServeHTTP implements http.Handler.
func (m *measured) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	metric := asksFor.FindStringSubmatch(r.FormValue("query"))
	if m.values == nil || metric == nil {
		http.Error(w, "broken", http.StatusServiceUnavailable)
		return
	}
	now := float64(time.Now().UnixMilli()) / 1000
	result := []any{}
	if v, known := m.values[metric[1]]; known {
		for part, value := range map[string]float64{"value": v, "time": now} {
			result = append(result, map[string]any{
				"metric": map[string]string{"UUID": m.card, "Hostname": "some-machine", "heteroflow_part": part},
				"value":  []any{now, fmt.Sprint(value)},
			})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
}

// known waits until the scheduler knows so many figures of a kind.
func (s *scene) known(figure string, of int) {
	s.Helper()
	want := fmt.Sprintf("\nheteroflow_telemetry_known{figure=%q} %d\n", figure, of)
	s.eventually(fmt.Sprintf("%d figures of %s", of, figure), func() error {
		answer, err := http.Get(s.MetricsURL())
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && !strings.Contains(string(text), want) {
			err = fmt.Errorf("the metrics have no %q", want)
		}
		return err
	})
}

// saysOf waits until an event on the pod has all the words.
func (s *scene) saysOf(pod string, words ...string) {
	s.Helper()
	s.eventually("an event that says why", func() error {
		told := s.told(s.pod(pod))
		for _, text := range told {
			missing := false
			for _, w := range words {
				missing = missing || !strings.Contains(text, w)
			}
			if !missing {
				return nil
			}
		}
		return fmt.Errorf("none of %q has all of %q", told, words)
	})
}

// TestTelemetry has one card, of which is measured what the test says: too hot it
// gets no pod, and what others use of its memory is not there. Who waits for either
// is woken when it is over, and when there is no telemetry any more.
func TestTelemetry(t *testing.T) {
	source := &measured{card: "GPU-heat-nvidia-0", values: map[string]float64{"DCGM_FI_DEV_GPU_TEMP": 85}}
	server := httptest.NewServer(source)
	t.Cleanup(server.Close)
	s := begin(t, cluster.Extender{Linger: linger, Verbosity: 2, Telemetry: fmt.Sprintf(
		"prometheus: {url: %q}\nperiod: 1s\ntimeout: 1s\nstale: 3s\n", server.URL)})
	s.add(simnode.Spec{Name: "heat", Cards: simnode.Cards("heat", 1, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	s.known("temperature", 1)

	s.create(podFor("cool", amount{sliceMemory, 10000}))
	s.refusedFor("cool", "Overheated")
	s.saysOf("cool", "Overheated", "85", "79")
	source.set("DCGM_FI_DEV_GPU_TEMP", 60)
	began := time.Now()
	s.runs("cool")
	s.Logf("woken %.1f s after the card had cooled", time.Since(began).Seconds())

	// 70,000 MiB are used, of which 10,000 are known and 8,192 kept back.
	source.set("DCGM_FI_DEV_FB_USED", 70000)
	s.known("memoryUsed", 1)
	s.create(podFor("large", amount{sliceMemory, 40000}))
	s.refusedFor("large", "InsufficientGPUMemory")
	source.set("DCGM_FI_DEV_FB_USED", 9000)
	s.runs("large")

	source.set("DCGM_FI_DEV_GPU_UTIL", 99)
	s.known("utilisation", 1)
	s.create(podFor("idle", amount{sliceMemory, 1000}))
	s.refusedFor("idle", "LoadThresholdExceeded")
	s.saysOf("idle", "LoadThresholdExceeded", "99", "95")
	began = time.Now()
	source.fail()
	s.runs("idle")
	s.Logf("nothing was known %.1f s after the end of telemetry, or less", time.Since(began).Seconds())
	s.known("utilisation", 0)
	s.verify()
}
