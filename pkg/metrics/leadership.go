package metrics

import "github.com/prometheus/client_golang/prometheus"

// FenceState is what is known of the fence against schedulers that have been
// replaced.
type FenceState string

// Standby: it is the leader's business. Unproven: it is, or is said to be, not in
// force, and nobody is bound. Unsupported: the API server has no admission
// policies, and Bindings end with the Lease instead.
const (
	FenceStandby     FenceState = "standby"
	FenceUnproven    FenceState = "unproven"
	FenceProven      FenceState = "proven"
	FenceUnsupported FenceState = "unsupported"
)

func fenceStates() []FenceState {
	return []FenceState{FenceStandby, FenceUnproven, FenceProven, FenceUnsupported}
}

// Leadership is how a replica stands.
type Leadership struct {
	Leading bool
	Epoch   int64 // that this replica has raised; 0 before
	Holders int   // of the Lease, one after the other, since it looks
	Fence   FenceState
}

// leadership reads how the replica stands when it is scraped.
type leadership struct {
	read                           func() Leadership
	leading, epoch, holders, fence *prometheus.Desc
}

func newLeadership(read func() Leadership) *leadership {
	return &leadership{read: read, leading: desc(nameLeading), epoch: desc(nameEpoch), holders: desc(nameHolders), fence: desc(nameFence)}
}

// Describe implements prometheus.Collector.
func (l *leadership) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.leading, l.epoch, l.holders, l.fence} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (l *leadership) Collect(out chan<- prometheus.Metric) {
	now := l.read()
	out <- prometheus.MustNewConstMetric(l.leading, prometheus.GaugeValue, oneIf(now.Leading))
	out <- prometheus.MustNewConstMetric(l.epoch, prometheus.GaugeValue, float64(now.Epoch))
	out <- prometheus.MustNewConstMetric(l.holders, prometheus.CounterValue, float64(now.Holders))
	for _, state := range fenceStates() {
		out <- prometheus.MustNewConstMetric(l.fence, prometheus.GaugeValue, oneIf(state == now.Fence), string(state))
	}
}

// Clashed counts a pod that has lost its cards to one of a later epoch.
func (m *Metrics) Clashed() { m.clashes.Inc() }

// The names.
const (
	nameLeading = "heteroflow_leading"
	nameEpoch   = "heteroflow_epoch"
	nameHolders = "heteroflow_leaders_total"
	nameFence   = "heteroflow_fence"
	nameClashes = "heteroflow_bind_clashes_total"
)

// leadershipFamilies are those of this file.
func leadershipFamilies() []Family {
	return []Family{
		{nameLeading, Gauge, "1 on the replica that decides, else 0.", nil},
		{nameEpoch, Gauge, "The epoch that this replica has raised and binds in; 0 if it has not led.", nil},
		{nameHolders, Counter, "Replicas that this one has seen leading, one after the other. Its rate is that of changes.", nil},
		{nameFence, Gauge, "1 for the state of the fence that keeps replaced schedulers from binding: a leader whose fence is unproven does not bind. Unsupported: the API server has no admission policies.",
			[]Label{{Name: "state", Values: texts(fenceStates())}}},
		{nameClashes, Counter, "Pods evicted because a replaced scheduler had bound them to cards that were given away since.", nil},
	}
}
