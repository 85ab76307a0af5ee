package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/policy"
)

// rules are those of a cluster with the default policy, changed by change.
func rules(change ...func(*policy.Settings)) Rules {
	r := Rules{Settings: policy.Default(), Scheduler: "heteroflow-scheduler"}
	for _, c := range change {
		c(&r.Settings)
	}
	return r
}

func downward(s *policy.Settings) { s.Injection = policy.InjectionDownwardAPI }

// raw is a pod's YAML as the API server sends it.
func raw(t testing.TB, pod string) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(pod))
	if err != nil {
		t.Fatalf("%v in\n%s", err, pod)
	}
	return text
}

func creation(pod []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{UID: "u", Kind: podKind, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: pod}}
}

// mutated returns the pod as the API server would change it by the answer.
func mutated(t testing.TB, r Rules, pod []byte) (after []byte, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	return mutatedBy(t, r, creation(pod))
}

func mutatedBy(t testing.TB, r Rules, q *admissionv1.AdmissionRequest) (after []byte, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	pod := q.Object.Raw
	answer, err := r.Mutate(q)
	if err != nil {
		t.Fatal(err)
	}
	if !answer.Allowed || (answer.PatchType == nil) != (answer.Patch == nil) {
		t.Fatalf("allowed is %t, patch type %v for %s", answer.Allowed, answer.PatchType, answer.Patch)
	}
	if answer.Patch == nil {
		return pod, answer
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatalf("%v in %s", err, answer.Patch)
	}
	if after, err = patch.Apply(pod); err != nil {
		t.Fatalf("%v by %s on %s", err, answer.Patch, pod)
	}
	return after, answer
}

func document(t testing.TB, text []byte) (v any) {
	t.Helper()
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMutate(t *testing.T) {
	tests := map[string]struct {
		pod  string
		want string // the same pod afterwards; "": unchanged
	}{
		"a pod without cards": {pod: "{metadata: {name: p}, spec: {schedulerName: default-scheduler, containers: [{name: main}]}}"},
		"one that asks for none of it": {
			pod: "{metadata: {name: p}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 0}}}]}}",
		},
		"plain names are their device plugin's": {
			pod: "{metadata: {name: p}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}]}}",
		},
		"a new pod": {
			pod: "{metadata: {name: p}, spec: {schedulerName: default-scheduler, priority: 0, containers: [{name: main, resources: {limits: {heteroflow.io/gpu: 1}}}]}}",
			want: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler,
			  priorityClassName: heteroflow-50, priority: 50, containers: [{name: main, resources: {limits: {heteroflow.io/gpu: 1}}}]}}`,
		},
		"annotations that are there stay, and so do fields that we do not know": {
			pod: "{metadata: {name: p, annotations: {a/b: c}, futureMeta: {x: [1]}}, futureTop: 12345678901234567890, spec: {futureSpec: yes, containers: [{name: main, futureField: 1.0, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
			want: `{metadata: {name: p, annotations: {a/b: c, heteroflow.io/containers: '{"main":0}'}, futureMeta: {x: [1]}}, futureTop: 12345678901234567890, spec: {futureSpec: yes, schedulerName: heteroflow-scheduler,
			  priorityClassName: heteroflow-50, priority: 50, containers: [{name: main, futureField: 1.0, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"every container has a number, init containers first": {
			pod: "{metadata: {name: p}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, initContainers: [{name: fetch}], containers: [{name: log}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
			want: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"fetch":0,"log":1,"main":2}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine,
			  initContainers: [{name: fetch}], containers: [{name: log}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a container that came in between gets the next number, one that has gone is dropped": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"gone":0,"main":1}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine,
			  containers: [{name: new}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}, {name: newer}]}}`,
			want: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"main":1,"new":0,"newer":2}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine,
			  containers: [{name: new}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}, {name: newer}]}}`,
		},
		"a record that cannot be read is made anew": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"main":7,"main":8}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine,
			  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
			want: `{metadata: {name: p, annotations: {heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine,
			  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a copy of a bound pod loses what it carries": {
			pod: `{metadata: {name: p, labels: {heteroflow.io/bound-by: heteroflow, app: x}, annotations: {heteroflow.io/allocation: '{}', heteroflow.io/epoch: '0', hami.io/bind-node: n1,
			  hami.io/device-allocated: '{}', heteroflow.io/visible-devices-0: GPU-a, heteroflow.io/mem-limit-0: '1', heteroflow.io/core-limit-10: '1', heteroflow.io/port: '1', heteroflow.io/preempt-count: '1', heteroflow.io/containers: '{"main":3}'}},
			  spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-50, priority: 50, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
			want: `{metadata: {name: p, labels: {app: x}, annotations: {heteroflow.io/containers: '{"main":3}'}},
			  spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-50, priority: 50, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"so does one without cards": {
			pod:  `{metadata: {name: p, labels: {heteroflow.io/bound-by: heteroflow}, annotations: {hami.io/bind-node: n1}}, spec: {containers: [{name: main}]}}`,
			want: `{metadata: {name: p, labels: {}, annotations: {}}, spec: {containers: [{name: main}]}}`,
		},
		"and one of another scheduler, which is left alone otherwise": {
			pod:  `{metadata: {name: p, annotations: {hami.io/bind-node: n1}}, spec: {schedulerName: volcano, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
			want: `{metadata: {name: p, annotations: {}}, spec: {schedulerName: volcano, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a pod that names its node is not scheduled": {
			pod: "{metadata: {name: p}, spec: {nodeName: n1, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
		},
		"a priority": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/priority: '90', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priority: 0, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
			want: `{metadata: {name: p, annotations: {heteroflow.io/priority: '90', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-90, priority: 90,
			  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"priority 0 is one": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/priority: '0', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
			want: `{metadata: {name: p, annotations: {heteroflow.io/priority: '0', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-0, priority: 0,
			  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a priority and its class": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/priority: '90', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-90, priority: 90, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a priority and another class is left to be refused": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/priority: '90', heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-70, priority: 70, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
		"a priority that is none is left to be refused": {
			pod: `{metadata: {name: p, annotations: {heteroflow.io/priority: high, heteroflow.io/containers: '{"main":0}'}}, spec: {schedulerName: heteroflow-scheduler, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { checkMutation(t, rules(), tc.pod, tc.want) })
	}
}

// checkMutation also asks a second time, as the API server may: nothing is left
// to be changed.
func checkMutation(t *testing.T, r Rules, pod, want string) {
	t.Helper()
	if want == "" {
		want = pod
	}
	after, _ := mutated(t, r, raw(t, pod))
	if diff := cmp.Diff(document(t, raw(t, want)), document(t, after)); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	if _, again := mutated(t, r, after); again.Patch != nil || again.Warnings != nil {
		t.Errorf("asked again: %s, warnings %q", again.Patch, again.Warnings)
	}
}

func TestWhatIsTakenOffIsSaid(t *testing.T) {
	_, answer := mutated(t, rules(), raw(t, `{metadata: {labels: {heteroflow.io/bound-by: x}, annotations: {heteroflow.io/epoch: '0', heteroflow.io/allocation: x}}}`))
	want := []string{"written by the scheduler alone, so taken off: heteroflow.io/allocation, heteroflow.io/epoch, heteroflow.io/bound-by"}
	if diff := cmp.Diff(want, answer.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// An update may not be changed: the pod has been admitted, and most of it cannot
// change any more.
func TestUpdatesAreNotMutated(t *testing.T) {
	pod := raw(t, "{metadata: {annotations: {heteroflow.io/epoch: '0'}}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}")
	q := creation(pod)
	q.Operation, q.OldObject.Raw = admissionv1.Update, pod
	answer, err := rules().Mutate(q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&admissionv1.AdmissionResponse{UID: "u", Allowed: true}, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestPointer(t *testing.T) {
	if got, want := pointer([]string{"metadata", "annotations", "a/b~1"}), "/metadata/annotations/a~1b~01"; got != want {
		t.Errorf("pointer = %s, want %s", got, want)
	}
}
