package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// readObject is the object that the YAML says.
func readObject[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// governed are the rules of a scheduler that knows these objects. A pod of
// namespace ml holds two slices of 1000 MiB.
func governed(t *testing.T) Rules {
	w, faults := codec.World(
		[]*v1alpha1.Tenant{
			readObject[v1alpha1.Tenant](t, "{metadata: {name: blue}, spec: {namespaces: {names: [ml, web, both]}, maxPriority: 70, quota: {cards: {limit: 8}}}}"),
			readObject[v1alpha1.Tenant](t, "{metadata: {name: idle}, spec: {active: false, namespaces: {names: [idle, both]}}}"),
			readObject[v1alpha1.Tenant](t, "{metadata: {name: red}, spec: {namespaces: {names: [shared]}}}"),
			readObject[v1alpha1.Tenant](t, "{metadata: {name: gold}, spec: {namespaces: {names: [shared]}}}"),
		},
		[]*corev1.Namespace{
			readObject[corev1.Namespace](t, "{metadata: {name: ml}}"), readObject[corev1.Namespace](t, "{metadata: {name: web}}"),
			readObject[corev1.Namespace](t, "{metadata: {name: both}}"), readObject[corev1.Namespace](t, "{metadata: {name: idle}}"),
			readObject[corev1.Namespace](t, "{metadata: {name: shared}}"), readObject[corev1.Namespace](t, "{metadata: {name: alone}}"),
		},
		[]*corev1.ResourceQuota{
			readObject[corev1.ResourceQuota](t, "{metadata: {namespace: ml, name: gpus}, spec: {hard: {limits.nvidia.com/gpumem: 4000, requests.nvidia.com/gpumem-percentage: 1}}}"),
		},
	)
	if len(faults.Tenants) > 0 || len(faults.Quotas) != 1 {
		t.Fatalf("faults %+v", faults)
	}
	directory := tenancy.New(w)
	books := ledger.New(directory)
	books.SetNode(ledger.Facts{ID: "n1", Cards: []gpu.Card{{ID: "GPU-c", Vendor: gpu.Nvidia, Memory: 5000, Usable: 5000, Cores: 100, Mode: gpu.ModeWhole}}})
	held := gpu.Placement{Pod: "old", Namespace: "ml", Node: "n1", Grants: []gpu.Grant{{Container: "main", Shares: []gpu.Share{
		{Card: "GPU-a", Vendor: gpu.Nvidia, Memory: 1000}, {Card: "GPU-b", Vendor: gpu.Nvidia, Memory: 1000},
	}}}}
	books.Confirm(held)
	books.SetService(ledger.Service{Group: codec.GroupOf("web", "chat"), Name: "web/chat"})
	r := rules()
	r.Foresee, r.MaxPriority = engine.New(engine.Config{Ledger: books}).Foresee, directory.MaxPriority
	return r
}

// A member of a TaskGroup that is not there waits for it, and is told so. Members of a
// service are not ended for how long they have run.
func TestMembersOfTaskGroups(t *testing.T) {
	r := governed(t)
	const waits = "TaskGroup %s is not there (yet): the pod waits for it (GangIncomplete)"
	tests := map[string]struct {
		namespace, annotations string
		warnings               []string
	}{
		"of a service":            {"web", "heteroflow.io/task-group: chat", nil},
		"of another namespace's":  {"ml", "heteroflow.io/task-group: chat", []string{fmt.Sprintf(waits, "ml/chat")}},
		"of none that is known":   {"web", "heteroflow.io/task-group: ' train '", []string{fmt.Sprintf(waits, "web/train")}},
		"of none, with a runtime": {"web", "heteroflow.io/task-group: train, heteroflow.io/max-runtime: 1h", []string{fmt.Sprintf(waits, "web/train")}},
		"of a service, with a runtime": {"web", "heteroflow.io/task-group: chat, heteroflow.io/max-runtime: 1h", []string{
			"annotation heteroflow.io/max-runtime has no effect: the pod is a member of TaskGroup web/chat, a service, and may run for ever",
		}},
		"of a service, and inference": {"web", "heteroflow.io/task-group: chat, heteroflow.io/task-type: inference, heteroflow.io/max-runtime: 1h", []string{
			"annotation heteroflow.io/max-runtime has no effect: the pod is inference (heteroflow.io/task-type), which may run for ever",
		}},
		"of none at all": {"web", "heteroflow.io/max-runtime: 1h", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, says := range []string{"", "namespace: forged, "} { // the request's namespace counts
				pod := raw(t, "{metadata: {name: p, "+says+"annotations: {"+tc.annotations+"}}, spec: {containers: [{name: main, resources: {limits: {heteroflow.io/gpu-memory: 10}}}]}}")
				after, _ := mutatedBy(t, r, in(tc.namespace, pod))
				answer, err := r.Validate(in(tc.namespace, after))
				if err != nil {
					t.Fatal(err)
				}
				checkAnswer(t, answer, nil, tc.warnings)
			}
		})
	}
}

// From the objects that administrators write to what the author of a pod reads.
func TestAdmissionByTheObjectsOfACluster(t *testing.T) {
	r := governed(t)
	slices := func(count, memory string) string {
		return "nvidia.com/gpu: " + count + ", nvidia.com/gpumem: " + memory
	}
	tests := map[string]struct {
		namespace, limits string
		refused, warnings []string
	}{
		"room":                      {namespace: "ml", limits: slices("2", "1000")},
		"no more cards than all":    {namespace: "web", limits: slices("9", "1"), refused: []string{"containers[main]: asks for 9 cards; Tenant blue allows 8 (spec.quota.cards.limit)"}},
		"no more cards for now":     {namespace: "web", limits: slices("7", "1"), warnings: []string{"the pod waits until there is room in a quota (QuotaExceeded): cards of Tenant blue: 2 of 8 used, 7 asked"}},
		"memory times devices":      {namespace: "ml", limits: slices("5", "1000"), refused: []string{"asks for 5000 MiB of card memory; ResourceQuota ml/gpus allows 4000 (spec.hard[limits.nvidia.com/gpumem])"}},
		"memory held by others too": {namespace: "ml", limits: slices("3", "1000"), warnings: []string{"the pod waits until there is room in a quota (QuotaExceeded): limits.nvidia.com/gpumem of ResourceQuota ml/gpus: 2000 of 4000 used, 3000 asked"}},
		"a card larger than all": {namespace: "ml", limits: "nvidia.com/gpu: 1", warnings: []string{
			"the pod waits until there is room in a quota (QuotaExceeded): limits.nvidia.com/gpumem of ResourceQuota ml/gpus: 2000 of 4000 used, 5000 asked",
		}},
		"no tenant and no quota": {namespace: "alone", limits: slices("9", "90000")},
		"not active": {namespace: "idle", limits: slices("1", "1"), warnings: []string{
			"the pod gets no cards for now (TenantInactive): the tenant of namespace idle is not active, does not exist, or is not known yet",
		}},
		"claimed twice": {namespace: "shared", limits: slices("1", "1"), warnings: []string{"more than one Tenant claims namespace shared: its pods share cards with nobody"}},
		"limits of both that claim it": {namespace: "both", limits: slices("9", "1"), refused: []string{
			"asks for 9 cards; Tenant blue allows 8 (spec.quota.cards.limit)",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := raw(t, "{metadata: {name: p}, spec: {containers: [{name: main, resources: {limits: {"+tc.limits+"}}}]}}")
			after, _ := mutatedBy(t, r, in(tc.namespace, pod))
			answer, err := r.Validate(in(tc.namespace, after))
			if err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, answer, tc.refused, tc.warnings)
		})
	}
	pod := raw(t, asking("heteroflow.io/priority: '90'", ""))
	_, answer := mutatedBy(t, r, in("web", pod))
	checkAnswer(t, answer, nil, []string{"priority 90 is lowered to 70, the most that the Tenant of namespace web allows (spec.maxPriority)"})
}
