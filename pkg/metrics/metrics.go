package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Metrics counts what the edges tell it. All methods are safe for concurrent
// use.
type Metrics struct {
	registry        *prometheus.Registry
	requests        *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	nodesRefused    *prometheus.CounterVec
	filterOutcomes  *prometheus.CounterVec
	bindOutcomes    *prometheus.CounterVec
	bindInFlight    prometheus.Gauge
	admissions      *prometheus.CounterVec
	admissionTime   *prometheus.HistogramVec
	forwarded       *prometheus.CounterVec
	held            *prometheus.HistogramVec
	certificates    *prometheus.GaugeVec
	eventsDropped   prometheus.Counter
	inventoryErrors prometheus.Counter
	topologyErrors  *prometheus.CounterVec
	podsTouched     prometheus.Counter
	podsNominated   prometheus.Counter
	mismatches      prometheus.Gauge
	clashes         prometheus.Counter
	forgeries       *prometheus.CounterVec

	preemptions *preemptions
	windows     *windows

	rebuilds      *prometheus.CounterVec
	rebuildHalted prometheus.Gauge
	runtimes      *prometheus.CounterVec

	telemetryReads   *prometheus.CounterVec
	telemetryTime    *prometheus.HistogramVec
	telemetryDropped *prometheus.CounterVec
	telemetryFresh   *prometheus.GaugeVec
}

// View is what is read, not counted, when the metrics are scraped.
type View struct {
	Ledger func() ledger.Snapshot
	Ready  func() bool
	// Tenancy returns who is a tenant, and what each may hold; nil where nothing is
	// known of that.
	Tenancy func() *tenancy.Directory
	// Leadership is nil for a scheduler that runs alone: then it leads when it is
	// ready.
	Leadership func() Leadership
}

// New registers all metrics on a registry of their own.
func New(v View) *Metrics {
	m := &Metrics{
		registry:        prometheus.NewRegistry(),
		requests:        counters(nameRequests),
		duration:        histograms(nameDuration),
		nodesRefused:    counters(nameNodesRefused),
		filterOutcomes:  counters(nameFilterOutcomes),
		bindOutcomes:    counters(nameBindOutcomes),
		bindInFlight:    gauge(nameBindInFlight),
		admissions:      counters(nameAdmissions),
		admissionTime:   histograms(nameAdmissionTime),
		forwarded:       counters(nameForwarded),
		held:            histograms(nameHeld),
		certificates:    gauges(nameCertificate),
		eventsDropped:   counter(nameEventsDropped),
		inventoryErrors: counter(nameInventoryErrors),
		topologyErrors:  counters(nameTopologyErrors),
		podsTouched:     counter(namePodsTouched),
		podsNominated:   counter(namePodsNominated),
		mismatches:      gauge(nameMismatches),
		clashes:         counter(nameClashes),
		forgeries:       counters(nameForgeries),

		preemptions: newPreemptions(),
		windows:     newWindows(),

		rebuilds:      newRebuilds(),
		rebuildHalted: gauge(nameRebuildHalted),
		runtimes:      newRuntimes(),

		telemetryReads:   counters(nameTelemetryReads),
		telemetryTime:    histograms(nameTelemetryTime),
		telemetryDropped: counters(nameTelemetryDropped),
		telemetryFresh:   gauges(nameTelemetryFresh),
	}
	m.startAtZero()
	if v.Leadership == nil {
		v.Leadership = func() Leadership { return Leadership{Leading: v.Ready(), Fence: FenceStandby} }
	}
	if v.Tenancy == nil {
		v.Tenancy = func() *tenancy.Directory { return nil }
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.duration, m.nodesRefused, m.filterOutcomes, m.bindOutcomes,
		m.bindInFlight, m.admissions, m.admissionTime, m.forwarded, m.held, m.certificates, m.eventsDropped, m.inventoryErrors, m.topologyErrors, m.podsTouched, m.podsNominated, m.mismatches, m.clashes, m.forgeries,
		m.telemetryReads, m.telemetryTime, m.telemetryDropped, m.telemetryFresh,
		newCollector(v), newLeadership(v.Leadership), newTenants(v),
	)
	m.registry.MustRegister(m.preemptions.collectors()...)
	m.registry.MustRegister(m.windows.collectors()...)
	m.registry.MustRegister(m.rebuilds, m.rebuildHalted, m.runtimes)
	return m
}

// startAtZero makes the series whose labels are known, so that a rate over
// them sees the first event too.
func (m *Metrics) startAtZero() {
	for _, v := range verbs() {
		m.duration.WithLabelValues(string(v))
	}
	for _, o := range filterOutcomes() {
		m.filterOutcomes.WithLabelValues(string(o))
	}
	for _, o := range bindOutcomes() {
		m.bindOutcomes.WithLabelValues(string(o))
	}
	for _, v := range routes() {
		m.held.WithLabelValues(string(v))
		for _, r := range forwardResults() {
			m.forwarded.WithLabelValues(string(v), string(r))
		}
	}
	for _, f := range forgeries() {
		m.forgeries.WithLabelValues(string(f))
	}
	for _, of := range []string{TopologyOfNode, TopologyOfFile} {
		m.topologyErrors.WithLabelValues(of)
	}
	for _, o := range telemetryOutcomes() {
		m.telemetryReads.WithLabelValues(string(o))
	}
	for _, op := range admissionOperations() {
		m.admissionTime.WithLabelValues(string(op))
		for _, o := range admissionOutcomes() {
			m.admissions.WithLabelValues(string(op), string(o))
		}
	}
}

// Handler answers GET /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Request counts one answer of the extender listener.
func (m *Metrics) Request(v Verb, code int, took time.Duration) {
	m.requests.WithLabelValues(string(v), strconv.Itoa(code)).Inc()
	m.duration.WithLabelValues(string(v)).Observe(took.Seconds())
}

// NodesRefused counts nodes that a filter call refused.
func (m *Metrics) NodesRefused(r gpu.Reason, nodes int) {
	m.nodesRefused.WithLabelValues(string(r)).Add(float64(nodes))
}

// Filtered counts how a filter call ended.
func (m *Metrics) Filtered(o FilterOutcome) { m.filterOutcomes.WithLabelValues(string(o)).Inc() }

// BindStarted counts a bind call as in flight until Bound is called.
func (m *Metrics) BindStarted() { m.bindInFlight.Inc() }

// Bound counts how a bind call ended.
func (m *Metrics) Bound(o BindOutcome) {
	m.bindInFlight.Dec()
	m.bindOutcomes.WithLabelValues(string(o)).Inc()
}

// Admitted counts one answer of admission.
func (m *Metrics) Admitted(op AdmissionOperation, o AdmissionOutcome, took time.Duration) {
	m.admissions.WithLabelValues(string(op), string(o)).Inc()
	m.admissionTime.WithLabelValues(string(op)).Observe(took.Seconds())
}

// Forwarded counts one try to have a request answered by the leader.
func (m *Metrics) Forwarded(v Verb, r ForwardResult) {
	m.forwarded.WithLabelValues(string(v), string(r)).Inc()
}

// Held counts a request that has waited for a leader.
func (m *Metrics) Held(v Verb, waited time.Duration) {
	m.held.WithLabelValues(string(v)).Observe(waited.Seconds())
}

// Certificates says when the certificate in use and its authority expire.
func (m *Metrics) Certificates(served, authority time.Time) {
	m.certificates.WithLabelValues(CertificateServed).Set(float64(served.Unix()))
	m.certificates.WithLabelValues(CertificateAuthority).Set(float64(authority.Unix()))
}

// EventDropped counts an event that nobody will see.
func (m *Metrics) EventDropped() { m.eventsDropped.Inc() }

// InventoryError counts a node inventory that could not be read.
func (m *Metrics) InventoryError() { m.inventoryErrors.Inc() }

// Of what a topology could not be read.
const (
	TopologyOfNode = "node"
	TopologyOfFile = "file"
)

// TopologyError counts a topology that could not be read.
func (m *Metrics) TopologyError(of string) { m.topologyErrors.WithLabelValues(of).Inc() }

// PodTouched counts a pod that was touched.
func (m *Metrics) PodTouched() { m.podsTouched.Inc() }

// PodNominated counts a node that was nominated for a pod.
func (m *Metrics) PodNominated() { m.podsNominated.Inc() }

// Mismatches says how many pods the books disagree about.
func (m *Metrics) Mismatches(pods int) { m.mismatches.Set(float64(pods)) }

func counters(name string) *prometheus.CounterVec {
	f := family(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.labelNames())
}

func counter(name string) prometheus.Counter {
	f := family(name)
	return prometheus.NewCounter(prometheus.CounterOpts{Name: f.Name, Help: f.Help})
}

func gauge(name string) prometheus.Gauge {
	f := family(name)
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: f.Name, Help: f.Help})
}

func gauges(name string) *prometheus.GaugeVec {
	f := family(name)
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.labelNames())
}

// histograms starts at 0.1 ms: filter answers in less than a millisecond. The
// last bucket, 26 s, lies above a bind that runs into its deadline.
func histograms(name string) *prometheus.HistogramVec {
	f := family(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.Name, Help: f.Help,
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 19),
	}, f.labelNames())
}
