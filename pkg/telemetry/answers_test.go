package telemetry_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/telemetry"
)

// now is when everything is asked. The servers' clocks say something else.
var now = time.Unix(2_000_000_000, 0).UTC() // read only

// asking is a configuration of one query, of a temperature.
func asking(url string) telemetry.Config {
	c := telemetry.Default()
	c.Prometheus.URL, c.MaxAnswerMiB = url, 1
	c.Exporters[0].Metrics = []telemetry.Metric{{Figure: telemetry.Temperature, Query: "HEAT", Unit: "celsius"}}
	return c
}

func read(t *testing.T, c telemetry.Config) ([]telemetry.Sample, error) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := telemetry.NewPrometheus(c, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return p.Read(t.Context())
}

// says is a server that answers everybody alike.
func says(t *testing.T, status int, kind, text string) string {
	t.Helper()
	return serves(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	})
}

func serves(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// vector is the answer of a server by whose clock it is the second 1000, in the
// order of Prometheus' own: label sets with their values and the values' times.
func vector(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

// both are the two entries of a series, which was measured at a second.
func both(labels, value, at string) string {
	return fmt.Sprintf(`{"metric":{"__name__":"HEAT","heteroflow_part":"value",%[1]s},"value":[1000,"%[2]s"]},`+
		`{"metric":{"heteroflow_part":"time",%[1]s},"value":[1000,"%[3]s"]}`, labels, value, at)
}

// heat is a sample of a temperature.
func heat(node, card string, value float64, age time.Duration) telemetry.Sample {
	return telemetry.Sample{Kind: telemetry.Temperature, Node: gpu.NodeID(node), Card: gpu.CardID(card), Index: -1, Value: value, At: now.Add(-age)}
}

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		answer string
		labels telemetry.Labels // the default ones if there is none
		want   []telemetry.Sample
	}{
		"nothing": {answer: vector()},
		"the new spelling": {answer: vector(both(`"gpu":"0","UUID":"A","hostname":"n1"`, "31", "990")),
			want: []telemetry.Sample{heat("n1", "A", 31, 10*time.Second)}},
		"the old spelling": {answer: vector(both(`"gpu":"0","UUID":"A","Hostname":"n1"`, "31", "990")),
			want: []telemetry.Sample{heat("n1", "A", 31, 10*time.Second)}},
		"parts of a second count": {answer: vector(both(`"UUID":"A"`, "31.5", "999.75")),
			want: []telemetry.Sample{heat("", "A", 31.5, 250*time.Millisecond)}},
		"no older than now": {answer: vector(both(`"UUID":"A"`, "31", "2000")),
			want: []telemetry.Sample{heat("", "A", 31, 0)}},
		"a warning beside it": {answer: strings.Replace(vector(both(`"UUID":"A"`, "31", "1000")), `{"status"`, `{"warnings":["half a truth"],"status"`, 1),
			want: []telemetry.Sample{heat("", "A", 31, 0)}},
		"an instance is not its card": {answer: vector(both(`"UUID":"A","GPU_I_ID":"7"`, "58", "1000"), both(`"UUID":"A","GPU_I_ID":""`, "31", "1000")),
			want: []telemetry.Sample{heat("", "A", 31, 0)}},
		"a value without its time": {answer: vector(`{"metric":{"heteroflow_part":"value","UUID":"A"},"value":[1000,"31"]}`)},
		"a time without its value": {answer: vector(`{"metric":{"heteroflow_part":"time","UUID":"A"},"value":[1000,"999"]}`)},
		"the time of another": {answer: vector(`{"metric":{"heteroflow_part":"value","UUID":"A"},"value":[1000,"31"]}`,
			`{"metric":{"heteroflow_part":"time","UUID":"B"},"value":[1000,"999"]}`)},
		"a time that is no number":   {answer: vector(both(`"UUID":"A"`, "31", "NaN")), want: []telemetry.Sample{heat("", "A", 31, 2*time.Hour)}},
		"a time before all times":    {answer: vector(both(`"UUID":"A"`, "31", "-Inf")), want: []telemetry.Sample{heat("", "A", 31, 2*time.Hour)}},
		"a time of another age":      {answer: vector(both(`"UUID":"A"`, "31", "-1e15")), want: []telemetry.Sample{heat("", "A", 31, 2*time.Hour)}},
		"a time after all times":     {answer: vector(both(`"UUID":"A"`, "31", "+Inf")), want: []telemetry.Sample{heat("", "A", 31, 0)}},
		"neither value nor time":     {answer: vector(`{"metric":{"UUID":"A"},"value":[1000,"31"]}`)},
		"of no card":                 {answer: vector(both(`"job":"x"`, "31", "1000"))},
		"a number without a node":    {answer: vector(both(`"gpu":"3"`, "31", "1000")), labels: telemetry.Labels{Node: []string{"host"}, Index: []string{"gpu"}}},
		"a number that is none":      {answer: vector(both(`"gpu":"x","host":"n1"`, "31", "1000")), labels: telemetry.Labels{Node: []string{"host"}, Index: []string{"gpu"}}},
		"a number that is too small": {answer: vector(both(`"gpu":"-1","host":"n1"`, "31", "1000")), labels: telemetry.Labels{Node: []string{"host"}, Index: []string{"gpu"}}},
		"by its number": {answer: vector(both(`"gpu":"3","host":"n1"`, "31", "1000")), labels: telemetry.Labels{Node: []string{"host"}, Index: []string{"gpu"}},
			want: []telemetry.Sample{{Kind: telemetry.Temperature, Node: "n1", Index: 3, Value: 31, At: now}}},
		"the first label that is there": {answer: vector(both(`"a":"","b":"B","c":"C"`, "31", "1000")), labels: telemetry.Labels{Card: []string{"a", "b", "c"}},
			want: []telemetry.Sample{heat("", "B", 31, 0)}},
		"one card twice": {answer: vector(both(`"UUID":"A","pod":"p"`, "31", "1000"), both(`"UUID":"A","pod":"q"`, "33", "999")),
			want: []telemetry.Sample{heat("", "A", 31, 0), heat("", "A", 33, time.Second)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := asking(says(t, http.StatusOK, "application/json", tc.answer))
			if tc.labels.Card != nil || tc.labels.Node != nil {
				c.Exporters[0].Labels = tc.labels
			}
			got, err := read(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is answered instead of figures brings none, and an error that names the
// query.
func TestAnswersThatAreNone(t *testing.T) {
	elsewhere := serves(t, func(http.ResponseWriter, *http.Request) { t.Error("who was not named is asked") })
	const js = "application/json"
	tests := map[string]struct{ url, want string }{
		"a page for people":  {says(t, http.StatusOK, "text/html", "<!DOCTYPE html><title>Sign in</title>"), "bad_response"},
		"nothing":            {says(t, http.StatusOK, js, ""), "bad_response"},
		"half of it":         {says(t, http.StatusOK, js, vector(both(`"UUID":"A"`, "31", "1000"))[:120]), "bad_response"},
		"a value of no kind": {says(t, http.StatusOK, js, vector(`{"metric":{"heteroflow_part":"value"},"value":[1000,{}]}`)), "HEAT"},
		"a matrix":           {says(t, http.StatusOK, js, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), "matrix"},
		"a scalar":           {says(t, http.StatusOK, js, `{"status":"success","data":{"resultType":"scalar","result":[1000,"3"]}}`), "scalar"},
		"a text":             {says(t, http.StatusOK, js, `{"status":"success","data":{"resultType":"string","result":[1000,"3"]}}`), "string"},
		"a kind unheard of":  {says(t, http.StatusOK, js, `{"status":"success","data":{"resultType":"tensor","result":[]}}`), "tensor"},
		"no":                 {says(t, http.StatusUnprocessableEntity, js, `{"status":"error","errorType":"execution","error":"too many samples"}`), "too many samples"},
		"no, and yes":        {says(t, http.StatusUnprocessableEntity, js, vector(both(`"UUID":"A"`, "31", "1000"))), "inconsistent"},
		"not now":            {says(t, http.StatusServiceUnavailable, "text/plain", "restarting"), "503"},
		"not you":            {says(t, http.StatusUnauthorized, "text/plain", "Unauthorized"), "401"},
		"somewhere else":     {serves(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }), "302"},
		"there, with what is it": {serves(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}), "307"},
		"without end": {serves(t, endless), "longer than maxAnswerMiB"},
		"small, and large inside": {serves(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed(32 << 20))
		}), "longer than maxAnswerMiB"},
		"breaking off": {serves(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "HEAT"},
		"nobody there": {"http://127.0.0.1:1", "refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, asking(tc.url))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "HEAT") || len(got) > 0 {
				t.Errorf("%v, error %v; want none, and an error with %q and the query", got, err, tc.want)
			}
		})
	}
}

// What a server says of an error is told, as far as it is not as long as an answer.
func TestErrorsAreShort(t *testing.T) {
	text := `{"status":"error","errorType":"execution","error":"` + strings.Repeat("ä", 100_000) + `"}`
	_, err := read(t, asking(says(t, http.StatusUnprocessableEntity, "application/json", text)))
	if err == nil || !strings.Contains(err.Error(), "execution: ää") || len(err.Error()) > 600 || !utf8.ValidString(err.Error()) {
		t.Errorf("error %.1000v", err)
	}
}

// endless writes as long as somebody reads.
func endless(w http.ResponseWriter, r *http.Request) {
	for piece := bytes.Repeat([]byte(" "), 64<<10); r.Context().Err() == nil; {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// packed is so many spaces, compressed to a thousandth.
func packed(bytesInside int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bytes.Repeat([]byte(" "), bytesInside))
	_ = z.Close()
	return b.Bytes()
}

// An answer of exactly the size that is allowed is one.
func TestAnswerOfTheLargestSize(t *testing.T) {
	text := vector(both(`"UUID":"A"`, "31", "1000"))
	text += strings.Repeat(" ", 1<<20-len(text))
	for more, want := range map[string]int{"": 1, " ": 0} {
		got, err := read(t, asking(says(t, http.StatusOK, "application/json", text+more)))
		if len(got) != want || (err == nil) != (want == 1) {
			t.Errorf("%d bytes bring %v, error %v", len(text)+len(more), got, err)
		}
	}
}

// Who asks is not held up by a server that does not answer.
func TestReadKeepsToItsTime(t *testing.T) {
	arrived := make(chan struct{})
	c := asking(serves(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees who hangs up only once this is read
		close(arrived)
		<-r.Context().Done()
	}))
	p, err := telemetry.NewPrometheus(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-arrived; stop() }()
	if got, err := p.Read(ctx); err == nil || len(got) > 0 {
		t.Errorf("Read = %v, %v", got, err)
	}
}

// All metrics are asked for, two at once at most; those that are answered count
// beside one that is not.
func TestQueries(t *testing.T) {
	var mu sync.Mutex
	asked, under, most := map[string]bool{}, 0, 0
	c := telemetry.Default()
	c.Prometheus.URL = serves(t, func(w http.ResponseWriter, r *http.Request) {
		metric := strings.Split(strings.TrimPrefix(r.FormValue("query"), "label_replace(("), ")")[0]
		mu.Lock()
		asked[metric] = true
		under++
		most = max(most, under)
		mu.Unlock()
		runtime.Gosched() // a third one would come while two are here
		mu.Lock()
		under--
		mu.Unlock()
		if metric == "DCGM_FI_DEV_GPU_UTIL" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, vector(both(`"UUID":"A"`, "31", "1000")))
	})
	got, err := read(t, c)
	if err == nil || !strings.Contains(err.Error(), "DCGM_FI_DEV_GPU_UTIL") {
		t.Errorf("error %v", err)
	}
	kinds := slices.SortedFunc(slices.Values(got), func(a, b telemetry.Sample) int { return cmp.Compare(a.Kind, b.Kind) })
	for i, want := range []telemetry.Kind{telemetry.MemoryUsed, telemetry.Power, telemetry.PowerLimit, telemetry.Temperature} {
		if i >= len(kinds) || kinds[i].Kind != want {
			t.Errorf("samples %v, the one at %d is not of %s", kinds, i, want)
		}
	}
	if len(asked) != 5 || most > 2 {
		t.Errorf("asked for %v, %d at once", slices.Sorted(maps.Keys(asked)), most)
	}
}

// A value comes in the unit of its kind, whatever the exporter's is.
func TestUnits(t *testing.T) {
	tests := map[string]struct {
		kind telemetry.Kind
		unit string
		want float64
	}{
		"bytes": {telemetry.MemoryUsed, "bytes", 2}, "KiB": {telemetry.MemoryUsed, "KiB", 2048}, "GiB": {telemetry.MemoryUsed, "GiB", 2 << 30},
		"MB": {telemetry.MemoryUsed, "MB", 2e6}, "ratio": {telemetry.Utilisation, "ratio", 2 << 20 * 100},
		"millicelsius": {telemetry.Temperature, "millicelsius", 2097.152}, "milliwatts": {telemetry.Power, "milliwatts", 2097.152},
	}
	for name, tc := range tests {
		c := asking(says(t, http.StatusOK, "application/json", vector(both(`"UUID":"A"`, fmt.Sprint(2<<20), "1000"))))
		c.Exporters[0].Metrics[0].Figure, c.Exporters[0].Metrics[0].Unit = tc.kind, tc.unit
		got, err := read(t, c)
		if err != nil || len(got) != 1 || got[0].Value < tc.want*0.9999 || got[0].Value > tc.want*1.0001 {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// The token is read for each request, so that another one is used once it is there.
func TestTokenIsReadAnew(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	c := asking(serves(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		fmt.Fprint(w, vector())
	}))
	c.Prometheus.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	if _, err := read(t, c); err == nil || !strings.Contains(err.Error(), "bearerTokenFile") {
		t.Errorf("without the file: error %v", err)
	}
	for _, token := range []string{"one\n", "two"} {
		if err := os.WriteFile(c.Prometheus.BearerTokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, c); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff([]string{"Bearer one", "Bearer two"}, seen); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

// A token that cannot be sent is not told either.
func TestTokensThatCannotBeSent(t *testing.T) {
	c := asking(serves(t, func(http.ResponseWriter, *http.Request) { t.Error("it is asked nevertheless") }))
	c.Prometheus.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"", "\n", "s3cret\ns3cret", "s3cret\x00"} {
		if err := os.WriteFile(c.Prometheus.BearerTokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, c); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("with %q: error %v", token, err)
		}
	}
}
