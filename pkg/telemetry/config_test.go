package telemetry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "telemetry.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const server = "prometheus: {url: 'https://prometheus:9090'}\n"

// TestConfigIsLaidOverTheDefaults: what a file leaves out is as Default has it, and
// exporters are replaced as a whole.
func TestConfigIsLaidOverTheDefaults(t *testing.T) {
	got, err := ReadConfig(written(t, server+"stale: 2m"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Prometheus.URL, want.Stale.Duration = "https://prometheus:9090", 2*time.Minute
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = ReadConfig(written(t, server+`exporters:
- name: mine
  labels: {node: [node], index: [card]}
  metrics: [{figure: power, query: draw, unit: milliwatts}]
`))
	if err != nil || len(got.Exporters) != 1 || got.Exporters[0].Name != "mine" || len(got.Exporters[0].Labels.Part) != 0 {
		t.Errorf("%+v, %v, want the one exporter and nothing of the default one", got.Exporters, err)
	}
}

func TestFaultsOfTheConfig(t *testing.T) {
	exporter := func(labels, metrics string) string {
		return server + "exporters: [{name: x, labels: {" + labels + "}, metrics: [" + metrics + "]}]"
	}
	const power = "{figure: power, query: q, unit: watts}"
	for name, tc := range map[string]struct{ text, says string }{
		"empty":                      {"", "prometheus.url"},
		"a typo":                     {server + "perriod: 1s", "perriod"},
		"another scheme":             {"prometheus: {url: 'ftp://x'}", "prometheus.url"},
		"no host":                    {"prometheus: {url: 'http://'}", "prometheus.url"},
		"a password in the URL":      {"prometheus: {url: 'https://a:b@x'}", "prometheus.url"},
		"a token in the clear":       {"prometheus: {url: 'http://x', bearerTokenFile: /t}", "prometheus.bearerTokenFile"},
		"a certificate without key":  {"prometheus: {url: 'https://x', certFile: /c}", "prometheus.certFile, keyFile"},
		"period too short":           {server + "period: 10ms", "period: 10ms"},
		"timeout too long":           {server + "timeout: 2h", "timeout: 2h"},
		"stale before the next":      {server + "stale: 15s", "stale: 15s"},
		"no answer at all":           {server + "maxAnswerMiB: 0", "maxAnswerMiB: 0"},
		"nobody exports":             {server + "exporters: []", "exporters: have 0"},
		"no name":                    {server + "exporters: [{labels: {card: [u]}, metrics: [" + power + "]}]", "exporters[0].name"},
		"no metric":                  {exporter("card: [u]", ""), "exporters[0].metrics"},
		"no such figure":             {exporter("card: [u]", "{figure: heat, query: q, unit: celsius}"), "exporters[0].metrics[0].figure"},
		"no such unit of it":         {exporter("card: [u]", "{figure: power, query: q, unit: MiB}"), "exporters[0].metrics[0].unit"},
		"no query":                   {exporter("card: [u]", "{figure: power, unit: watts}"), "exporters[0].metrics[0].query"},
		"a card by its number alone": {exporter("index: [i]", power), "exporters[0].labels: name card"},
		"a node by nothing":          {exporter("card: [u]", "{figure: nodeCPU, query: q, unit: ratio}"), "exporters[0].labels.node"},
	} {
		t.Run(name, func(t *testing.T) {
			file := written(t, tc.text)
			if _, err := ReadConfig(file); err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), file) {
				t.Errorf("%v, want it to name the file and %s", err, tc.says)
			}
		})
	}
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestFaultsKeepSecrets: a fault of a URL does not tell the password that is in it.
func TestFaultsKeepSecrets(t *testing.T) {
	for _, url := range []string{"https://me:s3cret@host", "ftp://me:s3cret@host", "https://me:s3cret @host", "https://me:s3cret/@host", "https://me:%zz-s3cret@host"} {
		_, err := ReadConfig(written(t, "prometheus: {url: '"+url+"'}"))
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestTokenOverLoopback: what does not leave the machine may go in the clear.
func TestTokenOverLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1:9090", "localhost:9090", "[::1]:9090"} {
		if _, err := ReadConfig(written(t, "prometheus: {url: 'http://"+host+"', bearerTokenFile: /t}")); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestExampleIsRead: the example has every field.
func TestExampleIsRead(t *testing.T) {
	if _, err := ReadConfig("../../examples/telemetry.yaml"); err != nil {
		t.Error(err)
	}
}
