package admission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// capped are rules where pods of namespace ml may ask for that priority.
func capped(most int) Rules {
	r := rules()
	r.MaxPriority = func(namespace string) (int, bool) {
		switch namespace {
		case "ml":
			return most, true
		case "unseen":
			return most, false
		}
		return 100, true
	}
	return r
}

// in is the creation of a pod in a namespace, which the pod itself does not name.
func in(namespace string, pod []byte) *admissionv1.AdmissionRequest {
	q := creation(pod)
	q.Namespace = namespace
	return q
}

const numbered = "heteroflow.io/containers: '{\"main\":0}'"

// oursAt is a pod of our scheduler with what stands in its spec and annotations.
func oursAt(annotations, spec string) string {
	return asking(annotations+numbered, "schedulerName: heteroflow-scheduler, "+spec)
}

func TestPrioritiesAreLowered(t *testing.T) {
	const warning = "priority 90 is lowered to 70, the most that the Tenant of namespace ml allows (spec.maxPriority)"
	lowered := oursAt("heteroflow.io/priority: '70', ", "priorityClassName: heteroflow-70, priority: 70, ")
	tests := map[string]struct {
		namespace string
		most      int
		pod, want string
		warning   string
	}{
		"by annotation": {"ml", 70, oursAt("heteroflow.io/priority: '90', ", ""), lowered, warning},
		"by annotation and class": {
			"ml", 70, oursAt("heteroflow.io/priority: '90', ", "priorityClassName: heteroflow-90, priority: 90, "), lowered, warning,
		},
		"by class alone": {
			"ml", 70, oursAt("", "priorityClassName: heteroflow-90, priority: 90, "),
			oursAt("", "priorityClassName: heteroflow-70, priority: 70, "), warning,
		},
		"the default, of which nobody has to be told": {
			"ml", 30, oursAt("", ""), oursAt("", "priorityClassName: heteroflow-30, priority: 30, "), "",
		},
		"to nothing": {
			"ml", 0, oursAt("heteroflow.io/priority: '1', ", ""), oursAt("heteroflow.io/priority: '0', ", "priorityClassName: heteroflow-0, priority: 0, "),
			"priority 1 is lowered to 0, the most that the Tenant of namespace ml allows (spec.maxPriority)",
		},
		"as high as it may be": {
			"ml", 70, oursAt("heteroflow.io/priority: '70', ", ""), lowered, "",
		},
		"a lower class stays": {
			"ml", 70, oursAt("", "priorityClassName: heteroflow-60, priority: 60, "), oursAt("", "priorityClassName: heteroflow-60, priority: 60, "), "",
		},
		"a lower class stays, whatever its value is": {
			"ml", 70, oursAt("", "priorityClassName: heteroflow-60, "), oursAt("", "priorityClassName: heteroflow-60, "), "",
		},
		"a class of its own is left to be refused": {
			"ml", 70, oursAt("", "priorityClassName: mine, priority: 1000, "), oursAt("", "priorityClassName: mine, priority: 1000, "), "",
		},
		"a contradiction is left to be refused": {
			"ml", 70, oursAt("heteroflow.io/priority: '90', ", "priorityClassName: heteroflow-95, "),
			oursAt("heteroflow.io/priority: '90', ", "priorityClassName: heteroflow-95, "), "",
		},
		"another namespace": {
			"alone", 70, oursAt("heteroflow.io/priority: '90', ", ""),
			oursAt("heteroflow.io/priority: '90', ", "priorityClassName: heteroflow-90, priority: 90, "), "",
		},
		"a namespace that is not known yet is left to be refused": {
			"unseen", 70, oursAt("heteroflow.io/priority: '90', ", ""),
			oursAt("heteroflow.io/priority: '90', ", "priorityClassName: heteroflow-90, priority: 90, "), "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after, answer := mutatedBy(t, capped(tc.most), in(tc.namespace, raw(t, tc.pod)))
			if diff := cmp.Diff(document(t, raw(t, tc.want)), document(t, after)); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			if got := strings.Join(answer.Warnings, "\n"); got != tc.warning {
				t.Errorf("warnings %q, want %q", got, tc.warning)
			}
			if _, again := mutatedBy(t, capped(tc.most), in(tc.namespace, after)); again.Patch != nil || again.Warnings != nil {
				t.Errorf("asked again: %s, warnings %q", again.Patch, again.Warnings)
			}
		})
	}
}

func TestPrioritiesAboveTheCapAreRefused(t *testing.T) {
	tests := map[string]struct {
		namespace, spec string
		most            int
		want            []string
	}{
		"a class of its own above it": {"ml", "priorityClassName: mine, priority: 71, ", 70,
			[]string{"spec.priorityClassName: mine is priority 71; the Tenant of namespace ml allows 70 (spec.maxPriority); write heteroflow-70 (a class"}},
		"at it":           {"ml", "priorityClassName: mine, priority: 70, ", 70, nil},
		"below zero":      {"ml", "priorityClassName: mine, priority: -5, ", 0, nil},
		"without a value": {"ml", "priorityClassName: mine, ", 0, nil},
		"a class of ours, not lowered": {"ml", "priorityClassName: heteroflow-90, priority: 90, ", 70,
			[]string{"spec.priorityClassName: heteroflow-90 is priority 90; the Tenant"}},
		"a class of ours without its value":   {"ml", "priorityClassName: heteroflow-90, ", 70, []string{"spec.priorityClassName: heteroflow-90 is priority 90"}},
		"a class of ours worth less":          {"ml", "priorityClassName: heteroflow-90, priority: 1, ", 70, nil},
		"a class called like ours":            {"ml", "priorityClassName: heteroflow-071, priority: 1, ", 70, nil},
		"a class of ours with another value":  {"ml", "priorityClassName: heteroflow-1, priority: 99, ", 70, []string{"heteroflow-1 is priority 99"}},
		"any class where there is no cap":     {"ml", "priorityClassName: system-node-critical, priority: 2000001000, ", 100, nil},
		"any class in another namespace":      {"alone", "priorityClassName: mine, priority: 1000, ", 70, nil},
		"in a namespace that is not known":    {"unseen", "priorityClassName: heteroflow-90, priority: 90, ", 70, []string{"heteroflow-90 is priority 90, and namespace unseen is not known yet, whose Tenant may allow less; try again"}},
		"low enough for whoever's it will be": {"unseen", "priorityClassName: heteroflow-70, priority: 70, ", 70, nil},
		"no class is another fault":           {"ml", "priority: 99, ", 70, []string{"spec.priorityClassName: is missing where admission sets one"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			message := validated(t, capped(tc.most), in(tc.namespace, raw(t, oursAt("", tc.spec))))
			checkSentences(t, message, tc.want)
			if got := strings.Count(message, "spec.priorityClassName: "); got != len(tc.want) {
				t.Errorf("%d sentences, want %d: %s", got, len(tc.want), message)
			}
		})
	}
	for name, pod := range map[string]string{
		"without cards":     "{spec: {priorityClassName: mine, priority: 99, containers: [{name: main}]}}",
		"another scheduler": asking("", "schedulerName: volcano, priorityClassName: mine, priority: 99, "),
	} {
		if message := validated(t, capped(1), in("ml", raw(t, pod))); message != "" {
			t.Errorf("%s: %s", name, message)
		}
	}
}

// foreseeing are rules under which every request has that outlook; what is asked is
// kept in asked.
func foreseeing(o engine.Outlook, asked *gpu.Request) Rules {
	r := rules()
	r.Foresee = func(q *gpu.Request) engine.Outlook {
		if asked != nil {
			*asked = *q
		}
		return o
	}
	return r
}

func TestOutlook(t *testing.T) {
	of := func(whose, name string, m gpu.Measure) *gpu.Limit {
		return &gpu.Limit{Quota: whose, Name: name, Measure: m, Most: 8}
	}
	tests := map[string]struct {
		outlook  engine.Outlook
		want     []string // of the refusal
		warnings []string
	}{
		"nothing in the way": {},
		"more than a Tenant may ever hold": {
			outlook: engine.Outlook{Never: &gpu.Excess{Limit: of("Tenant blue", "cards", gpu.Devices), Used: 3, Asked: 9}},
			want:    []string{"initContainers[fetch], containers[main]: asks for 9 cards; Tenant blue allows 8 (spec.quota.cards.limit)"},
		},
		"more than a ResourceQuota may ever hold": {
			outlook: engine.Outlook{Never: &gpu.Excess{Limit: of("ResourceQuota ml/gpus", "limits.nvidia.com/gpumem", gpu.Memory), Asked: 9}},
			want:    []string{"asks for 9 MiB of card memory; ResourceQuota ml/gpus allows 8 (spec.hard[limits.nvidia.com/gpumem])"},
		},
		"too many whole cards": {
			outlook: engine.Outlook{Never: &gpu.Excess{Limit: of("ResourceQuota ml/gpus", "heteroflow.io/gpu", gpu.WholeCards), Asked: 9}},
			want:    []string{"asks for 9 whole cards; ResourceQuota ml/gpus allows 8 (spec.hard[heteroflow.io/gpu])"},
		},
		"too much compute": {
			outlook: engine.Outlook{Never: &gpu.Excess{Limit: of("Tenant blue", "cores", gpu.Compute), Asked: 9}},
			want:    []string{"asks for 9 percent of a card's compute; Tenant blue allows 8 (spec.quota.cores.limit)"},
		},
		"more than there is now": {
			outlook:  engine.Outlook{Now: &gpu.Excess{Limit: of("Tenant blue", "cards", gpu.Devices), Used: 7, Asked: 2}},
			warnings: []string{"the pod waits until there is room in a quota (QuotaExceeded): cards of Tenant blue: 7 of 8 used, 2 asked"},
		},
		"closed, and claimed twice": {
			outlook: engine.Outlook{Closed: gpu.TenantInactive, Unknown: true, Waits: true},
			warnings: []string{
				"the pod gets no cards for now (TenantInactive): the tenant of namespace ml is not active, does not exist, or is not known yet",
				"more than one Tenant claims namespace ml: its pods share cards with nobody",
				"TaskGroup ml/chat is not there (yet): the pod waits for it (GangIncomplete)",
			},
		},
	}
	pod := raw(t, "{metadata: {namespace: forged, annotations: {heteroflow.io/task-group: chat}}, spec: {initContainers: [{name: fetch, resources: {limits: {nvidia.com/gpu: 1}}}, {name: plain}], containers: [{name: main, resources: {limits: {nvidia.com/gpu: 9}}}]}}")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asked gpu.Request
			r := foreseeing(tc.outlook, &asked)
			after, _ := mutatedBy(t, r, in("ml", pod))
			answer, err := r.Validate(in("ml", after))
			if err != nil {
				t.Fatal(err)
			}
			if asked.Namespace != "ml" || asked.Group != codec.GroupOf("ml", "chat") || len(asked.Asks) != 2 {
				t.Errorf("asked for namespace %q, group %q and %d containers", asked.Namespace, asked.Group, len(asked.Asks))
			}
			checkAnswer(t, answer, tc.want, tc.warnings)
		})
	}
}

func checkAnswer(t *testing.T, answer *admissionv1.AdmissionResponse, refused, warnings []string) {
	t.Helper()
	message := ""
	if !answer.Allowed {
		message = answer.Result.Message
	}
	checkSentences(t, message, refused)
	if diff := cmp.Diff(warnings, answer.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Who is not placed by us, is there already, or asks for what cannot be understood
// has no outlook.
func TestOutlookIsOfNewPodsOfOursAlone(t *testing.T) {
	over := &gpu.Excess{Limit: &gpu.Limit{Quota: "Tenant blue", Name: "cards"}, Asked: 1}
	r := foreseeing(engine.Outlook{Never: over, Now: over, Closed: gpu.TenantInactive, Unknown: true}, nil)
	for name, pod := range map[string]string{
		"without cards":     "{spec: {containers: [{name: main}]}}",
		"another scheduler": asking("", "schedulerName: volcano, "),
	} {
		answer, err := r.Validate(in("ml", raw(t, pod)))
		if err != nil || !answer.Allowed || answer.Warnings != nil {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	pod := raw(t, oursAt("", "priorityClassName: mine, "))
	q := in("ml", pod)
	q.Operation, q.OldObject.Raw = admissionv1.Update, pod
	if answer, err := r.Validate(q); err != nil || !answer.Allowed || answer.Warnings != nil {
		t.Errorf("an update: %+v, %v", answer, err)
	}
	mirror := in("ml", raw(t, asking("", "nodeName: n1, ")))
	mirror.UserInfo.Groups = []string{nodes}
	if answer, err := r.Validate(mirror); err != nil || !answer.Allowed || answer.Warnings != nil {
		t.Errorf("a mirror pod: %+v, %v", answer, err)
	}
	broken := validated(t, r, in("ml", raw(t, "{spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 99}}}]}}")))
	checkSentences(t, broken, []string{"containers[main]: nvidia.com/gpu: 99"})
}

// Whatever its author asks for, a pod that is let in ranks no higher than its
// Tenant allows; and what Mutate makes of a pod without a class of its own is let in.
func TestNoPodRanksAboveTheCap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(0, 100).Draw(rt, "cap")
		r := capped(most)
		pod := pods.Draw(rt, "pod")
		if pod.Spec.PriorityClassName = rapid.SampledFrom([]string{"", "mine", "heteroflow-70", "heteroflow-100"}).Draw(rt, "class"); pod.Spec.PriorityClassName != "" {
			n, ours := codec.ClassPriority(pod.Spec.PriorityClassName)
			if !ours {
				n = rapid.IntRange(-10, 1000).Draw(rt, "value")
			}
			pod.Spec.Priority = new(int32(n)) // by the plugin that looks classes up
		}
		given, err := json.Marshal(pod)
		if err != nil {
			rt.Fatal(err)
		}
		once, _ := mutatedBy(t, r, in("ml", given))
		if twice, answer := mutatedBy(t, r, in("ml", once)); answer.Patch != nil || answer.Warnings != nil {
			rt.Fatalf("a second call: %s, %q\n%s\n%s", answer.Patch, answer.Warnings, once, twice)
		}
		answer, err := r.Validate(in("ml", once))
		if err != nil {
			rt.Fatal(err)
		}
		after, err := readPod("pod", once)
		if err != nil {
			rt.Fatal(err)
		}
		ranked := after.Spec.SchedulerName == r.Scheduler && codec.AsksForCards(after) && most < 100
		if answer.Allowed && ranked && after.Spec.Priority != nil && int(*after.Spec.Priority) > most {
			rt.Fatalf("priority %d is let in above %d", *after.Spec.Priority, most)
		}
		refusedForCap := !answer.Allowed && strings.Contains(answer.Result.Message, "spec.maxPriority")
		if refusedForCap && pod.Spec.PriorityClassName != "mine" && !strings.Contains(answer.Result.Message, "conflicting") && !strings.Contains(answer.Result.Message, codec.AnnotationPriority) {
			rt.Fatalf("could have been lowered: %s", answer.Result.Message)
		}
	})
}

func TestFields(t *testing.T) {
	r := gpu.Request{Asks: []gpu.Ask{{Container: "a", Role: gpu.Init}, {Container: "b", Role: gpu.Sidecar}, {Container: "c"}}}
	if got, want := fields(&r), "initContainers[a], initContainers[b], containers[c]"; got != want {
		t.Errorf("fields = %s, want %s", got, want)
	}
	units := []string{unit(gpu.Devices), unit(gpu.WholeCards), unit(gpu.Memory), unit(gpu.Compute)}
	if slices.Sort(units); len(slices.Compact(units)) != 4 {
		t.Errorf("two measures have one unit: %q", units)
	}
}
