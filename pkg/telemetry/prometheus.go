package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Prometheus is a Source that asks a server for the newest sample of every series.
// Each metric is one query, which answers with the samples and with their times.
type Prometheus struct {
	api     v1.API
	queries []query
	now     func() time.Time
}

type query struct {
	labels Labels
	metric Metric
	factor float64
}

// NewPrometheus returns the source of a valid configuration.
func NewPrometheus(c Config, now func() time.Time) (*Prometheus, error) {
	transport, err := c.Prometheus.transport(int64(c.MaxAnswerMiB) << 20)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	client, err := api.NewClient(api.Config{Address: c.Prometheus.URL, Client: &http.Client{
		Transport: transport,
		// Who asks with a token tells it to the address that was named, and to no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("prometheus.url: %w", err)
	}
	p := &Prometheus{api: v1.NewAPI(client), now: now}
	for i := range c.Exporters {
		for _, m := range c.Exporters[i].Metrics {
			factor, _ := scale(m.Figure, m.Unit)
			p.queries = append(p.queries, query{c.Exporters[i].Labels, m, factor})
		}
	}
	return p, nil
}

// atOnce is how many queries are under way: few, since whoever answers them has
// others to answer too.
const atOnce = 2

// Read asks all queries. The samples of those that were answered come with the
// errors of the others.
func (p *Prometheus) Read(ctx context.Context) ([]Sample, error) {
	var mu sync.Mutex
	var all []Sample
	var errs []error
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range p.queries {
		q := &p.queries[i]
		g.Go(func() error {
			samples, err := p.ask(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, samples...)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", q.metric.Query, short(err)))
			}
			return nil
		})
	}
	_ = g.Wait()
	return all, errors.Join(errs...)
}

// mostSaid is how much of an error is kept: it may be what the server says, and as
// long as an answer.
const mostSaid = 500

func short(err error) error {
	if text := err.Error(); len(text) > mostSaid {
		return errors.New(strings.ToValidUTF8(text[:mostSaid], "") + "...")
	}
	return err
}

// part is the label by which an answer tells values from their times.
const part = "heteroflow_part"

// dated asks for the query's values and for the times of their samples in one. Of
// what is no plain series the time is that of the question.
func dated(query string) string {
	return fmt.Sprintf(`label_replace((%[1]s), "%[2]s", "value", "", "") or label_replace(timestamp(%[1]s), "%[2]s", "time", "", "")`, query, part)
}

func (p *Prometheus) ask(ctx context.Context, q *query) ([]Sample, error) {
	asked := p.now()
	// Without a time the server takes its own, and its clock may differ from ours:
	// what counts of a sample is its age.
	answer, _, err := p.api.Query(ctx, dated(q.metric.Query), time.Time{})
	if err != nil {
		return nil, err
	}
	vector, ok := answer.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("the answer is a %s, and not a vector", answer.Type())
	}
	return q.samples(vector, asked), nil
}

// ancient is more than may be configured, in seconds, and less than what a Duration
// holds.
const ancient = float64(2 * longest / time.Second)

// samples joins values with their times.
func (q *query) samples(vector model.Vector, asked time.Time) []Sample {
	times := make(map[model.Fingerprint]float64, len(vector)/2)
	for _, s := range vector {
		if s.Metric[part] == "time" {
			times[series(s.Metric)] = float64(s.Value)
		}
	}
	var all []Sample
	for _, s := range vector {
		if s.Metric[part] != "value" || s.Histogram != nil {
			continue
		}
		at, dated := times[series(s.Metric)]
		if !dated {
			continue // nobody knows how old it is
		}
		age := max(0, float64(s.Timestamp)/1000-at) // in seconds
		if !(age < ancient) {                       // or is no number
			age = ancient
		}
		if one, ok := q.sample(s.Metric); ok {
			one.Value, one.At = float64(s.Value)*q.factor, asked.Add(-time.Duration(age*float64(time.Second)))
			all = append(all, one)
		}
	}
	return all
}

// series tells series of an answer apart. Functions drop the name of the metric.
func series(m model.Metric) model.Fingerprint {
	m = m.Clone()
	delete(m, model.MetricNameLabel)
	delete(m, part)
	return m.Fingerprint()
}

// sample says what the series is about; false if of nothing that is known here.
func (q *query) sample(m model.Metric) (Sample, bool) {
	if first(m, q.labels.Part) != "" {
		return Sample{}, false
	}
	s := Sample{Kind: q.metric.Figure, Node: gpu.NodeID(first(m, q.labels.Node)), Index: -1}
	if s.Kind.ofNode() {
		return s, s.Node != ""
	}
	s.Card = gpu.CardID(first(m, q.labels.Card))
	if i, err := strconv.Atoi(first(m, q.labels.Index)); err == nil {
		s.Index = i
	}
	return s, s.Card != "" || s.Node != "" && s.Index >= 0
}

// first returns the value of the first of these labels that is not empty.
func first(m model.Metric, names []string) string {
	for _, name := range names {
		if v := m[model.LabelName(name)]; v != "" {
			return string(v)
		}
	}
	return ""
}

func (e *Endpoint) transport(most int64) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil // what is measured does not leave for elsewhere because of a variable
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		pem, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile: there is no certificate in %s", e.CAFile)
		}
	}
	if e.CertFile != "" {
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
			return &pair, err
		}
	}
	return &bounded{next: t, token: e.BearerTokenFile, most: most}, nil
}

// bounded adds the token to requests, and ends answers that are too long.
type bounded struct {
	next  http.RoundTripper
	token string // a file; "" for none
	most  int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		token, err := os.ReadFile(b.token)
		if err != nil {
			return nil, fmt.Errorf("bearerTokenFile: %w", err)
		}
		sent := strings.TrimSpace(string(token))
		if sent == "" {
			return nil, fmt.Errorf("bearerTokenFile: %s is empty", b.token)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+sent)
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{ReadCloser: answer.Body, left: b.most}
	return answer, nil
}

var errTooLong = errors.New("the answer is longer than maxAnswerMiB")

type limited struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
