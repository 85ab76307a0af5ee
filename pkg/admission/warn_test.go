package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestWarnings(t *testing.T) {
	pod := func(annotations, spec string) string {
		return "{metadata: {annotations: {" + annotations + "}}, spec: {" + spec + "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
	}
	idle := func(annotations string) string {
		return "{metadata: {annotations: {" + annotations + "}}, spec: {containers: [{name: main}]}}"
	}
	ourIdle := func(annotations string) string {
		return "{metadata: {annotations: {" + annotations + "}}, spec: {schedulerName: heteroflow-scheduler, containers: [{name: main}]}}"
	}
	const (
		bound     = "nodeName: n1, "
		wish      = "heteroflow.io/numa: '1'"
		other     = "heteroflow.io/numa: '2'"
		late      = "annotation heteroflow.io/numa has no effect any more: the pod has its node and its cards"
		limit     = "heteroflow.io/max-runtime: 1h, "
		inference = "heteroflow.io/task-type: inference"
		endless   = "annotation heteroflow.io/max-runtime has no effect: the pod is inference (heteroflow.io/task-type), which may run for ever"
		waste     = "annotation heteroflow.io/numa has no effect: the pod asks for no card"
	)
	tests := map[string]struct {
		before string // "": the pod is new
		pod    string
		node   bool // a kubelet asks
		want   []string
	}{
		"a wish that is heard":              {pod: pod(wish, "")},
		"a priority of a new pod":           {pod: pod("heteroflow.io/priority: '7'", "")},
		"of a pod without cards":            {pod: idle(wish), want: []string{waste}},
		"several of them":                   {pod: idle("heteroflow.io/priority: '1', " + wish), want: []string{waste, "annotation heteroflow.io/priority has no effect: the pod asks for no card"}},
		"ours, which may be ended":          {pod: ourIdle("heteroflow.io/preemptible: 'true', heteroflow.io/task-type: batch")},
		"ours, and where it is to be":       {pod: ourIdle("heteroflow.io/preemptible: 'true', " + wish), want: []string{waste}},
		"another's, which says it may be":   {pod: idle("heteroflow.io/preemptible: 'true'"), want: []string{"annotation heteroflow.io/preemptible has no effect: the pod asks for no card"}},
		"HAMi's on a pod without cards":     {pod: idle("hami.io/numa-hint: '1'")},
		"for another scheduler":             {pod: pod(wish, "schedulerName: volcano, "), want: []string{"annotation heteroflow.io/numa has no effect: the pod is for the scheduler volcano"}},
		"HAMi's for another scheduler":      {pod: pod("hami.io/numa-hint: '1'", "schedulerName: volcano, ")},
		"on a mirror pod":                   {pod: idle(wish), node: true, want: []string{waste}},
		"on a mirror pod, which has a node": {pod: "{metadata: {annotations: {" + wish + "}}, spec: {nodeName: n1, containers: [{name: main}]}}", node: true},
		"nothing is changed":                {before: pod(wish, bound), pod: pod(wish, bound)},
		"added while it waits":              {before: pod("", ""), pod: pod(wish, "")},
		"added too late":                    {before: pod("", bound), pod: pod(wish, bound), want: []string{late}},
		"changed too late":                  {before: pod(wish, bound), pod: pod(other, bound), want: []string{late}},
		"taken back too late":               {before: pod(wish, bound), pod: pod("", bound), want: []string{late}},
		"a runtime of a new pod":            {pod: pod("heteroflow.io/max-runtime: 1h, heteroflow.io/task-type: batch", "")},
		"a runtime of inference":            {pod: pod(limit+inference, ""), want: []string{endless}},
		"a runtime, given to inference":     {before: pod(inference, bound), pod: pod(limit+inference, bound), want: []string{endless}},
		"a runtime, taken from inference":   {before: pod(limit+inference, bound), pod: pod(inference, bound)},
		"a runtime of who may be a member":  {pod: pod(limit+"heteroflow.io/task-group: chat", "")},
		"not about the place":               {before: pod("", bound), pod: pod("heteroflow.io/max-runtime: 1h", bound)},
		"a priority, at any time":           {before: pod("", ""), pod: pod("heteroflow.io/priority: '7'", ""), want: []string{"annotation heteroflow.io/priority has no effect any more: spec.priority of a pod cannot change"}},
		"added to a pod without cards":      {before: idle(""), pod: idle(wish), want: []string{waste}},
		"taken from a pod without cards":    {before: idle(wish), pod: idle("")},
		"on one without cards, as before":   {before: idle(wish), pod: idle(wish + ", a/b: c")},
		"taken from another scheduler's":    {before: pod(wish, "schedulerName: volcano, "+bound), pod: pod("", "schedulerName: volcano, "+bound)},
		"somebody else's key":               {before: pod("", bound), pod: pod("a/b: c", bound)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after, _ := mutated(t, rules(), raw(t, tc.pod))
			q := creation(after)
			if tc.before != "" {
				q = creation(raw(t, tc.pod))
				q.Operation, q.OldObject = admissionv1.Update, runtime.RawExtension{Raw: raw(t, tc.before)}
			}
			if tc.node {
				q.UserInfo.Groups = []string{nodes}
			}
			answer, err := rules().Validate(q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&admissionv1.AdmissionResponse{UID: "u", Allowed: true, Warnings: tc.want}, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// What is refused is not warned about: its author has to change it first.
func TestRefusalsDoNotWarn(t *testing.T) {
	answer, err := rules().Validate(creation(raw(t, "{metadata: {annotations: {heteroflow.io/numa: x}}, spec: {containers: [{name: main}]}}")))
	if err != nil || answer.Allowed || answer.Warnings != nil {
		t.Errorf("allowed %t with %q, %v", answer.Allowed, answer.Warnings, err)
	}
}

// Pods that are none of ours are not searched at any cost.
func TestPodsThatAreNoneOfOursAreNotWarned(t *testing.T) {
	v, r := &review{create: true, pod: plainPod(), before: &corev1.Pod{}}, rules()
	if n := testing.AllocsPerRun(100, func() { r.warnings(v) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
