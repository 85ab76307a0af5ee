package metrics

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Kind is how a metric behaves over time.
type Kind string

// The kinds, spelled as Prometheus does.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Label is one label of a metric. Values are all that it can have, or say what
// they are where they cannot be listed.
type Label struct {
	Name   string
	Values []string
	About  string
}

// Family is one metric with all its labels.
type Family struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []Label
}

// labelNames returns the names alone, in order.
func (f *Family) labelNames() []string {
	names := make([]string, len(f.Labels))
	for i, l := range f.Labels {
		names[i] = l.Name
	}
	return names
}

// Verb is a route of the extender; VerbOther is anything else that was asked
// for, so that a stranger's paths cannot make new time series.
type Verb string

// The verbs.
const (
	VerbFilter Verb = "filter"
	VerbScore  Verb = "score"
	VerbBind   Verb = "bind"
	VerbOther  Verb = "other"
)

// FilterOutcome is how a filter call ended.
type FilterOutcome string

// Passed pods ask for no card.
const (
	Feasible FilterOutcome = "feasible"
	Refused  FilterOutcome = "refused"
	Invalid  FilterOutcome = "invalid"
	Passed   FilterOutcome = "passed"
)

// BindOutcome is how a bind call ended.
type BindOutcome string

// Already: the pod was bound so before. Conflict: the pod or the room changed
// in the meantime. Refused: the checks or the API server said no. Unknown: it
// may have happened. Error: anything else.
const (
	BindBound    BindOutcome = "bound"
	BindAlready  BindOutcome = "already"
	BindConflict BindOutcome = "conflict"
	BindRefused  BindOutcome = "refused"
	BindUnknown  BindOutcome = "unknown"
	BindError    BindOutcome = "error"
)

// AdmissionOperation is what admission is asked for.
type AdmissionOperation string

// The operations.
const (
	Mutate   AdmissionOperation = "mutate"
	Validate AdmissionOperation = "validate"
)

// AdmissionOutcome is how a request for admission ended.
type AdmissionOutcome string

// Patched: allowed with changes. Error: the request could not be understood.
const (
	AdmissionAllowed AdmissionOutcome = "allowed"
	AdmissionPatched AdmissionOutcome = "patched"
	AdmissionRefused AdmissionOutcome = "refused"
	AdmissionError   AdmissionOutcome = "error"
)

// Whose expiry is told.
const (
	CertificateServed    = "served"
	CertificateAuthority = "authority"
)

// CardState is where a card stands. Every card is in exactly one.
type CardState string

// The states, in the order in which they are looked for.
const (
	CardUnhealthy CardState = "unhealthy"
	CardExclusive CardState = "exclusive"
	CardShared    CardState = "shared"
	CardClosed    CardState = "closed"
	CardFree      CardState = "free"
)

// MemoryKind tells what there is from what is taken.
type MemoryKind string

// Held may pass usable: a whole card takes the reserve too.
const (
	MemoryUsable MemoryKind = "usable"
	MemoryHeld   MemoryKind = "held"
)

// ForwardResult is how one try to have a request answered by the leader ended.
type ForwardResult string

// NotLeading: the replica asked does not decide (yet). Unreachable: there is no
// connection to it. Broken: the answer did not come, or not whole. Overtaken:
// another replica came to lead meanwhile. After these it is tried again, until
// the request is GivenUp.
const (
	ForwardAnswered    ForwardResult = "answered"
	ForwardNotLeading  ForwardResult = "not_leading"
	ForwardUnreachable ForwardResult = "unreachable"
	ForwardBroken      ForwardResult = "broken"
	ForwardOvertaken   ForwardResult = "overtaken"
	ForwardGivenUp     ForwardResult = "given_up"
)

func verbs() []Verb { return []Verb{VerbFilter, VerbScore, VerbBind, VerbOther} }

func filterOutcomes() []FilterOutcome { return []FilterOutcome{Feasible, Refused, Invalid, Passed} }

func bindOutcomes() []BindOutcome {
	return []BindOutcome{BindBound, BindAlready, BindConflict, BindRefused, BindUnknown, BindError}
}

func admissionOperations() []AdmissionOperation { return []AdmissionOperation{Mutate, Validate} }

func admissionOutcomes() []AdmissionOutcome {
	return []AdmissionOutcome{AdmissionAllowed, AdmissionPatched, AdmissionRefused, AdmissionError}
}

func forwardResults() []ForwardResult {
	return []ForwardResult{ForwardAnswered, ForwardNotLeading, ForwardUnreachable, ForwardBroken, ForwardOvertaken, ForwardGivenUp}
}

// routes are the verbs without VerbOther.
func routes() []Verb { return []Verb{VerbFilter, VerbScore, VerbBind} }

func cardStates() []CardState {
	return []CardState{CardUnhealthy, CardExclusive, CardShared, CardClosed, CardFree}
}

func memoryKinds() []MemoryKind { return []MemoryKind{MemoryUsable, MemoryHeld} }

func holdStates() []string {
	states := []ledger.State{ledger.Held, ledger.Bound, ledger.Draining, ledger.Lingering, ledger.Claimed}
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return names
}

// The names. Dashboards and alerts rely on them: add, never rename.
const (
	nameRequests        = "heteroflow_extender_requests_total"
	nameDuration        = "heteroflow_extender_request_duration_seconds"
	nameNodesRefused    = "heteroflow_filter_nodes_refused_total"
	nameFilterOutcomes  = "heteroflow_filter_outcomes_total"
	nameBindOutcomes    = "heteroflow_bind_outcomes_total"
	nameBindInFlight    = "heteroflow_bind_in_flight"
	nameAdmissions      = "heteroflow_admission_requests_total"
	nameAdmissionTime   = "heteroflow_admission_duration_seconds"
	nameForwarded       = "heteroflow_forwarded_requests_total"
	nameHeld            = "heteroflow_request_hold_seconds"
	nameCertificate     = "heteroflow_certificate_expiry_timestamp_seconds"
	nameCards           = "heteroflow_cards"
	nameCardMemory      = "heteroflow_card_memory_mib"
	nameHolds           = "heteroflow_holds"
	nameEventsDropped   = "heteroflow_events_dropped_total"
	nameInventoryErrors = "heteroflow_inventory_errors_total"
	nameTopologyErrors  = "heteroflow_topology_errors_total"
	namePodsTouched     = "heteroflow_pods_touched_total"
	namePodsNominated   = "heteroflow_pods_nominated_total"
	nameForgeries       = "heteroflow_forgeries_total"
	nameMismatches      = "heteroflow_ledger_mismatches"
	nameReady           = "heteroflow_ready"
)

// Families lists every metric of ours, in the order of the documents. Those of
// the Go runtime and of the process come on top.
func Families() []Family {
	return slices.Concat(countedFamilies(), leadershipFamilies(), tenantFamilies(), telemetryFamilies(), preemptionFamilies(), windowFamilies(), rebuildFamilies(), runtimeFamilies())
}

// countedFamilies are all but those of which other files tell.
func countedFamilies() []Family {
	verb := Label{Name: "verb", Values: texts(verbs())}
	vendor := Label{Name: "vendor", Values: texts(gpu.Vendors())}
	operation := Label{Name: "operation", Values: texts(admissionOperations())}
	reason := Label{Name: "reason", Values: reasonCodes(), About: "see [reasons](reasons.md)"}
	return []Family{
		{nameRequests, Counter, "Requests for the extender's routes, those sent on by other replicas included, by route and HTTP status.",
			[]Label{verb, {Name: "code", About: "the HTTP status"}}},
		{nameDuration, Histogram, "Time from a request's arrival to its answer.", []Label{verb}},
		{nameNodesRefused, Counter, "Nodes that filter calls refused, by each node's own reason.", []Label{reason}},
		{nameFilterOutcomes, Counter, "Filter calls: some node fits, none does, the request is invalid, or it asks for no card.",
			[]Label{{Name: "outcome", Values: texts(filterOutcomes())}}},
		{nameBindOutcomes, Counter, "Bind calls: bound now, bound so already, overtaken by a change, refused, outcome unknown, or failed otherwise.",
			[]Label{{Name: "outcome", Values: texts(bindOutcomes())}}},
		{nameBindInFlight, Gauge, "Bind calls being worked on.", nil},
		{nameAdmissions, Counter, "Requests for admission: allowed as it is, allowed with changes, refused, or not understood.",
			[]Label{operation, {Name: "outcome", Values: texts(admissionOutcomes())}}},
		{nameAdmissionTime, Histogram, "Time from an admission request's arrival to its answer.", []Label{operation}},
		{nameForwarded, Counter, "Tries of this replica to have a request answered by the one that leads: answered, or why not; given up counts requests, all others tries.",
			[]Label{{Name: "verb", Values: texts(routes())}, {Name: "result", Values: texts(forwardResults())}}},
		{nameHeld, Histogram, "How long requests were held because no replica was there to decide. Those that did not have to wait are not counted.",
			[]Label{{Name: "verb", Values: texts(routes())}}},
		{nameCertificate, Gauge, "When the certificate in use, or the authority that it is trusted by, expires, in seconds since 1970.",
			[]Label{{Name: "certificate", Values: []string{CertificateServed, CertificateAuthority}}}},
		{nameCards, Gauge, "Cards in the ledger. Closed: without a holder of ours, but claimed for one that is to come, taken off for a foreign one, or cordoned.",
			[]Label{vendor, {Name: "state", Values: texts(cardStates())}}},
		{nameCardMemory, Gauge, "Card memory in MiB: usable for slices, and held. Held may pass usable, for a whole card takes the reserve too.",
			[]Label{vendor, {Name: "kind", Values: texts(memoryKinds())}}},
		{nameHolds, Gauge, "Pods in the ledger by the state of their hold, pods without cards included.",
			[]Label{{Name: "state", Values: holdStates()}}},
		{nameEventsDropped, Counter, "Pod events that were not written: the queue was full or the API server refused them.", nil},
		{nameInventoryErrors, Counter, "Node inventories that could not be read; such a node counts as having no cards.", nil},
		{nameTopologyErrors, Counter, "Descriptions of how a node's cards are joined, and versions of the topology file, that could not be read.",
			[]Label{{Name: "of", Values: []string{TopologyOfNode, TopologyOfFile}}}},
		{namePodsTouched, Counter, "Pods touched: woken because a node has room for them, or because the outcome of a Binding was not known.", nil},
		{namePodsNominated, Counter, "Nodes nominated for a pod: woken likewise, and kube-scheduler is pointed to the node, which its sample may leave out.", nil},
		{nameForgeries, Counter, "Pods on which somebody else had written what only the scheduler writes: before they were bound, with a record of cards that is not believed, or by a change later.",
			[]Label{{Name: "kind", Values: texts(forgeries())}}},
		{nameMismatches, Gauge, "Pods about which the ledger and the API server's pods disagree for longer than a bind takes, and cards that are held by more than they have room for.", nil},
		{nameReady, Gauge, "1 when the ledger has been built from the API server, else 0.", nil},
	}
}

// family returns the metric of that name. The names are constants of this file,
// so a missing one is a fault of the program, which every test would meet.
func family(name string) Family {
	all := Families()
	return all[slices.IndexFunc(all, func(f Family) bool { return f.Name == name })]
}

// texts turns typed label values into text.
func texts[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func reasonCodes() []string {
	infos := gpu.Reasons()
	codes := make([]string, len(infos))
	for i := range infos {
		codes[i] = string(infos[i].Reason)
	}
	return codes
}
