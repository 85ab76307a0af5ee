package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Config says where figures come from, and how they are asked for.
type Config struct {
	Prometheus Endpoint        `json:"prometheus"`
	Period     metav1.Duration `json:"period"`  // between two readings
	Timeout    metav1.Duration `json:"timeout"` // of one reading, all its queries together
	Stale      metav1.Duration `json:"stale"`   // age at which a figure counts as not known
	// MaxAnswerMiB bounds what one query may answer.
	MaxAnswerMiB int      `json:"maxAnswerMiB"`
	Exporters    []Export `json:"exporters"`
}

// Endpoint is where Prometheus answers, and by what it knows us.
type Endpoint struct {
	URL             string `json:"url"`
	BearerTokenFile string `json:"bearerTokenFile,omitempty"` // read anew for each request
	CAFile          string `json:"caFile,omitempty"`
	CertFile        string `json:"certFile,omitempty"` // ours, with KeyFile; read anew for each connection
	KeyFile         string `json:"keyFile,omitempty"`
}

// Export is what one kind of exporter tells, and how.
type Export struct {
	Name    string   `json:"name"`
	Labels  Labels   `json:"labels"`
	Metrics []Metric `json:"metrics"`
}

// Labels are the names of labels, of which the first counts that a series has.
type Labels struct {
	Node  []string `json:"node,omitempty"`
	Card  []string `json:"card,omitempty"`  // the card's UUID, as its node registers it
	Index []string `json:"index,omitempty"` // its number on the node
	// Part are labels of series that are about a part of a card; those are passed
	// over.
	Part []string `json:"part,omitempty"`
}

// Metric is one figure.
type Metric struct {
	Figure Kind   `json:"figure"`
	Query  string `json:"query"`
	Unit   string `json:"unit"`
}

// Default returns the configuration of what a file leaves out: the figures of
// NVIDIA's dcgm-exporter, in both spellings of its labels.
func Default() Config {
	return Config{
		Period: metav1.Duration{Duration: 15 * time.Second}, Timeout: metav1.Duration{Duration: 10 * time.Second},
		Stale: metav1.Duration{Duration: time.Minute}, MaxAnswerMiB: 64,
		Exporters: []Export{{
			Name:   "dcgm",
			Labels: Labels{Node: []string{"Hostname", "hostname", "node"}, Card: []string{"UUID", "uuid"}, Part: []string{"GPU_I_ID"}},
			Metrics: []Metric{
				{MemoryUsed, "DCGM_FI_DEV_FB_USED", "MiB"},
				{Utilisation, "DCGM_FI_DEV_GPU_UTIL", "percent"},
				{Temperature, "DCGM_FI_DEV_GPU_TEMP", "celsius"},
				{Power, "DCGM_FI_DEV_POWER_USAGE", "watts"},
				{PowerLimit, "DCGM_FI_DEV_POWER_MGMT_LIMIT", "watts"},
			},
		}},
	}
}

// ReadConfig reads a file of it. What it leaves out keeps its default; exporters
// that it names replace the default one. Every fault is named.
func ReadConfig(file string) (Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	c := Default()
	exporters := c.Exporters
	c.Exporters = nil // lists are merged by place otherwise
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	if c.Exporters == nil {
		c.Exporters = exporters
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// The bounds of a configuration.
const (
	mostQueries = 64
	longest     = time.Hour
	mostAnswer  = 1024 // MiB
)

// Validate reports every fault at once.
func (c *Config) Validate() error {
	errs := c.Prometheus.faults()
	for _, d := range []struct {
		name  string
		value metav1.Duration
	}{{"period", c.Period}, {"timeout", c.Timeout}, {"stale", c.Stale}} {
		if d.value.Duration < time.Second || d.value.Duration > longest {
			errs = append(errs, fmt.Errorf("%s: %v is outside 1s..%v", d.name, d.value.Duration, longest))
		}
	}
	if c.Stale.Duration <= c.Period.Duration {
		errs = append(errs, fmt.Errorf("stale: %v is not more than the period, %v", c.Stale.Duration, c.Period.Duration))
	}
	if c.MaxAnswerMiB < 1 || c.MaxAnswerMiB > mostAnswer {
		errs = append(errs, fmt.Errorf("maxAnswerMiB: %d is outside 1..%d", c.MaxAnswerMiB, mostAnswer))
	}
	queries := 0
	for i := range c.Exporters {
		errs = append(errs, c.Exporters[i].faults(fmt.Sprintf("exporters[%d]", i))...)
		queries += len(c.Exporters[i].Metrics)
	}
	if queries < 1 || queries > mostQueries {
		errs = append(errs, fmt.Errorf("exporters: have %d metrics, which is outside 1..%d", queries, mostQueries))
	}
	return errors.Join(errs...)
}

func (e *Endpoint) faults() (errs []error) {
	u, err := url.Parse(e.URL)
	switch { // none says what the URL is: there may be a password in it
	case err != nil:
		errs = append(errs, errors.New("prometheus.url: cannot be parsed as a URL"))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		errs = append(errs, errors.New("prometheus.url: is not one of http or https with a host"))
	case u.User != nil:
		errs = append(errs, errors.New("prometheus.url: has a user in it; name a bearerTokenFile or a certFile"))
	case e.BearerTokenFile != "" && u.Scheme == "http" && !loopback(u.Hostname()):
		errs = append(errs, errors.New("prometheus.bearerTokenFile: a token is sent by https alone"))
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		errs = append(errs, errors.New("prometheus.certFile, keyFile: one is of no use without the other"))
	}
	return errs
}

func (e *Export) faults(at string) (errs []error) {
	if e.Name == "" {
		errs = append(errs, fmt.Errorf("%s.name: is missing", at))
	}
	if len(e.Metrics) == 0 {
		errs = append(errs, fmt.Errorf("%s.metrics: there is none", at))
	}
	for i, m := range e.Metrics {
		field := fmt.Sprintf("%s.metrics[%d]", at, i)
		if !slices.Contains(Kinds(), m.Figure) {
			errs = append(errs, fmt.Errorf("%s.figure: %q is none of %v", field, m.Figure, Kinds()))
		} else if _, ok := scale(m.Figure, m.Unit); !ok {
			errs = append(errs, fmt.Errorf("%s.unit: %q is none of %v", field, m.Unit, unitsOf(m.Figure)))
		}
		if m.Query == "" {
			errs = append(errs, fmt.Errorf("%s.query: is missing", field))
		}
		if m.Figure.ofNode() && len(e.Labels.Node) == 0 {
			errs = append(errs, fmt.Errorf("%s.labels.node: is missing, and %s is of a node", at, m.Figure))
		}
		if !m.Figure.ofNode() && len(e.Labels.Card) == 0 && (len(e.Labels.Node) == 0 || len(e.Labels.Index) == 0) {
			errs = append(errs, fmt.Errorf("%s.labels: name card, or both node and index: %s is of a card", at, m.Figure))
		}
	}
	return errs
}
