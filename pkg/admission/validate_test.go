package admission

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heteroflow.io/heteroflow/pkg/policy"
)

// asking is a pod whose one container asks for a card.
func asking(annotations, spec string) string {
	return "{metadata: {name: p, annotations: {" + annotations + "}}, spec: {" + spec + "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
}

func validated(t *testing.T, r Rules, q *admissionv1.AdmissionRequest) (message string) {
	t.Helper()
	answer, err := r.Validate(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.UID != q.UID || answer.Allowed != (answer.Result == nil) {
		t.Fatalf("UID %q, allowed %t, result %v", answer.UID, answer.Allowed, answer.Result)
	}
	if answer.Allowed {
		return ""
	}
	if answer.Result.Code != http.StatusBadRequest {
		t.Errorf("code %d, want 400", answer.Result.Code)
	}
	return answer.Result.Message
}

func TestValidateNewPods(t *testing.T) {
	tests := map[string]struct {
		pod  string
		node bool // a kubelet asks
		want []string
	}{
		"a pod without cards":             {pod: "{spec: {nodeName: n1, containers: [{name: main}]}}"},
		"a key of ours and a node":        {pod: "{metadata: {annotations: {heteroflow.io/priority: '1'}}, spec: {nodeName: n1, containers: [{name: main}]}}"},
		"one that asks for a card":        {pod: asking("", "")},
		"after it was made ours":          {pod: asking("heteroflow.io/priority: '70', heteroflow.io/containers: '{\"main\":0}'", "schedulerName: heteroflow-scheduler, priorityClassName: heteroflow-70, priority: 70, ")},
		"a class alone":                   {pod: asking("", "priorityClassName: mine, ")},
		"unknown key, said once":          {pod: asking("heteroflow.io/zzzzzz: x", ""), want: []string{"unknown annotation heteroflow.io/zzzzzz"}},
		"unknown key, no cards":           {pod: "{metadata: {annotations: {heteroflow.io/zzzzzz: x}}, spec: {containers: [{name: main}]}}", want: []string{"unknown annotation heteroflow.io/zzzzzz"}},
		"unknown key, other scheduler":    {pod: asking("heteroflow.io/zzzzzz: x", "schedulerName: volcano, "), want: []string{"unknown annotation heteroflow.io/zzzzzz"}},
		"a value that is none":            {pod: asking("heteroflow.io/node-policy: binpak", ""), want: []string{`annotation heteroflow.io/node-policy: "binpak" is not one of`}},
		"training that is preemptible":    {pod: asking("heteroflow.io/task-type: training, heteroflow.io/preemptible: 'true'", ""), want: []string{"contradicts heteroflow.io/task-type"}},
		"a resource as a label":           {pod: "{metadata: {labels: {heteroflow.io/gpu-type: nvidia}}, spec: {containers: [{name: main}]}}", want: []string{"heteroflow.io/gpu-type"}},
		"a request that is invalid":       {pod: "{metadata: {}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 16Gi}}}]}}", want: []string{"containers[main]: nvidia.com/gpumem: "}},
		"a literal limits.":               {pod: "{metadata: {}, spec: {containers: [{name: main, resources: {limits: {limits.nvidia.com/gpu: 1}}}]}}", want: []string{"limits.nvidia.com/gpu: is not a resource"}},
		"another scheduler's request":     {pod: "{spec: {schedulerName: volcano, containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 16Gi}}}]}}"},
		"a node":                          {pod: asking("", "nodeName: n1, "), want: []string{"spec.nodeName: must not be set"}},
		"a node, other scheduler":         {pod: asking("", "schedulerName: volcano, nodeName: n1, "), want: []string{"spec.nodeName: must not be set"}},
		"a mirror pod":                    {pod: asking("heteroflow.io/zzzzzz: x", "nodeName: n1, "), node: true},
		"a kubelet's pod without a node":  {pod: asking("heteroflow.io/zzzzzz: x", ""), node: true, want: []string{"unknown annotation"}},
		"two priorities":                  {pod: asking("heteroflow.io/priority: '70'", "priorityClassName: heteroflow-50, "), want: []string{"spec.priorityClassName: heteroflow-50 and annotation heteroflow.io/priority: 70 are conflicting"}},
		"two priorities, other scheduler": {pod: asking("heteroflow.io/priority: '70'", "schedulerName: volcano, priorityClassName: heteroflow-50, ")},
		"every fault at once": {
			pod:  asking("heteroflow.io/priority: '70', heteroflow.io/zzzzzz: x, heteroflow.io/numa-bind: maybe", "nodeName: n1, priorityClassName: mine, "),
			want: []string{"unknown annotation heteroflow.io/zzzzzz", "heteroflow.io/numa-bind: ", "spec.nodeName: ", "spec.priorityClassName: mine"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after, _ := mutated(t, rules(), raw(t, tc.pod))
			q := creation(after)
			if tc.node {
				q.UserInfo.Groups = []string{"system:authenticated", "system:nodes"}
			}
			checkSentences(t, validated(t, rules(), q), tc.want)
		})
	}
}

// checkSentences wants as many sentences as parts, one with each, in order.
func checkSentences(t *testing.T, message string, want []string) {
	t.Helper()
	rest := message
	for _, part := range want {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is not in (or not in this order in) %q", part, message)
		}
		if strings.Contains(after, part) {
			t.Errorf("%q stands twice in %q", part, message)
		}
		rest = after
	}
	if (message == "") != (len(want) == 0) {
		t.Errorf("message %q, want %d sentences", message, len(want))
	}
}

// A pod of ours that is not as Mutate makes it was made by others, or we were not
// asked.
func TestValidateWhatWasNotMutated(t *testing.T) {
	const (
		ours     = "schedulerName: heteroflow-scheduler, "
		numbered = "heteroflow.io/containers: '{\"main\":0}'"
		named    = "heteroflow.io/priority: '70', " + numbered
	)
	tests := map[string]struct {
		pod  string
		want []string
	}{
		"nothing was done":               {asking("", ""), []string{`spec.schedulerName: is "" where admission sets heteroflow-scheduler`, "spec.priorityClassName: is missing where admission sets one"}},
		"taken back from our scheduler":  {asking(numbered, "schedulerName: default-scheduler, priorityClassName: heteroflow-50, "), []string{`spec.schedulerName: is "default-scheduler" where admission sets heteroflow-scheduler; another webhook changes it, or /webhook/mutate is not asked`}},
		"given to another scheduler":     {asking(numbered, "schedulerName: volcano, "), nil},
		"without a class":                {asking(numbered, ours), []string{"spec.priorityClassName: is missing where admission sets one; another webhook"}},
		"without the class it names":     {asking(named, ours), []string{"spec.priorityClassName: is missing where admission sets one; another webhook"}},
		"with another":                   {asking(named, ours+"priorityClassName: mine, "), []string{"spec.priorityClassName: mine and annotation heteroflow.io/priority: 70 are conflicting"}},
		"a class of the author's":        {asking(numbered, ours+"priorityClassName: mine, "), nil},
		"a priority that cannot be read": {asking("heteroflow.io/priority: high, "+numbered, ours), []string{"annotation heteroflow.io/priority: "}},
		"on a node, which is enough":     {asking("", "nodeName: n1, "), []string{"spec.nodeName: must not be set"}},
		"without cards":                  {"{metadata: {annotations: {heteroflow.io/priority: '1'}}, spec: {schedulerName: default-scheduler, containers: [{name: main}]}}", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			message := validated(t, rules(), creation(raw(t, tc.pod)))
			checkSentences(t, message, tc.want)
			const sets = "where admission sets"
			if got, want := strings.Count(message, sets), strings.Count(strings.Join(tc.want, ""), sets); got != want {
				t.Errorf("%d things were not done, want %d: %s", got, want, message)
			}
		})
	}
}

func TestValidateInjection(t *testing.T) {
	container := func(limits string) string {
		return "{metadata: {name: p}, spec: {containers: [{name: main, resources: {limits: {" + limits + "}}}]}}"
	}
	tests := map[string]struct {
		pod  string
		want []string
	}{
		"a vendor's name":          {container("huawei.com/Ascend910B2: 2"), nil},
		"no vendor":                {container("heteroflow.io/gpu: 1"), []string{"container main: may get cards of any vendor, whose variable is not known before; write annotation heteroflow.io/gpu-type"}},
		"one slice in percent":     {container("nvidia.com/gpumem-percentage: 50"), nil},
		"two slices in percent":    {container("nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50"), []string{"container main: its slices may differ in memory"}},
		"two slices of compute":    {container("nvidia.com/gpu: 2, nvidia.com/gpucores: 50"), []string{"container main: its slices may differ in memory"}},
		"two slices in MiB":        {container("nvidia.com/gpu: 2, nvidia.com/gpumem: 1000"), nil},
		"two whole cards":          {container("nvidia.com/gpu: 2"), nil},
		"a fault is not said anew": {container("heteroflow.io/gpu: 65"), []string{"containers[main]: heteroflow.io/gpu: 65"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after, _ := mutated(t, rules(downward), raw(t, tc.pod))
			checkSentences(t, validated(t, rules(downward), creation(after)), tc.want)
		})
	}
	proportional := func(s *policy.Settings) { downward(s); s.SliceCores = policy.SliceCoresProportional }
	after, _ := mutated(t, rules(proportional), raw(t, container("nvidia.com/gpu: 2, nvidia.com/gpumem: 1000")))
	checkSentences(t, validated(t, rules(proportional), creation(after)), []string{"container main: its slices may differ in compute"})
}

// What was made of a pod and then changed by others does not pass.
func TestValidateVariables(t *testing.T) {
	after, _ := mutated(t, rules(downward), raw(t, "{metadata: {name: p}, spec: {containers: [{name: side}, {name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}"))
	const fault = ".env: the variables that show cards are not those that admission sets"
	tests := map[string]struct {
		old, new string
		want     []string
	}{
		"as it was made":            {"", "", nil},
		"another annotation":        {"visible-devices-1", "visible-devices-0", []string{"spec.containers.1" + fault}},
		"another word for none":     {`"void"`, `"all"`, []string{"spec.containers.0" + fault}},
		"other names of both":       {"NVIDIA_VISIBLE_DEVICES", "X", []string{"spec.containers.0" + fault, "spec.containers.1" + fault}},
		"one more, of another kind": {`"env":[`, `"env":[{"name":"A","value":"b"},`, nil},
		"one more, of the same":     {`"env":[`, `"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"},`, []string{"spec.containers.0" + fault, "spec.containers.1" + fault}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed := strings.ReplaceAll(string(after), tc.old, tc.new)
			checkSentences(t, validated(t, rules(downward), creation([]byte(changed))), tc.want)
		})
	}
}

func TestValidateUpdates(t *testing.T) {
	const ends = "deletionTimestamp: '2026-01-02T03:04:05Z', "
	pod := func(meta string) string {
		return "{metadata: {" + meta + "}, spec: {nodeName: n1, priorityClassName: mine, containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 16Gi}}}]}}"
	}
	tests := map[string]struct {
		before, after string
		want          []string
	}{
		"an old fault stays as it is":     {pod("annotations: {heteroflow.io/zzzzzz: x}, finalizers: [a/b]"), pod("annotations: {heteroflow.io/zzzzzz: x}"), nil},
		"a new fault":                     {pod(""), pod("annotations: {heteroflow.io/zzzzzz: x}"), []string{"unknown annotation heteroflow.io/zzzzzz"}},
		"a value made wrong":              {pod("annotations: {heteroflow.io/numa: '1'}"), pod("annotations: {heteroflow.io/numa: one}"), []string{"heteroflow.io/numa: "}},
		"a fault taken away":              {pod("annotations: {heteroflow.io/zzzzzz: x}"), pod(""), nil},
		"what the scheduler writes":       {pod(""), pod("labels: {heteroflow.io/bound-by: heteroflow}, annotations: {heteroflow.io/visible-devices-0: GPU-a}"), []string{"annotation heteroflow.io/visible-devices-0: is written by the scheduler alone", "label heteroflow.io/bound-by: is written by the scheduler alone"}},
		"another's cards":                 {pod("annotations: {heteroflow.io/visible-devices-0: GPU-a}"), pod("annotations: {heteroflow.io/visible-devices-0: GPU-b}"), []string{"annotation heteroflow.io/visible-devices-0: is written by the scheduler alone"}},
		"no cards any more":               {"{metadata: {annotations: {heteroflow.io/allocation: x}}}", "{metadata: {}}", []string{"annotation heteroflow.io/allocation: is written by the scheduler alone"}},
		"its last finalizer":              {pod(ends + "finalizers: [a/b], annotations: {heteroflow.io/allocation: x}"), pod(ends), nil},
		"bound, and annotated":            {pod("annotations: {heteroflow.io/allocation: x}"), pod("annotations: {heteroflow.io/allocation: x, a/b: c}"), nil},
		"a new fault on one that ends":    {pod(ends), pod(ends + "annotations: {heteroflow.io/zzzzzz: x}"), nil},
		"a new fault on one told to end":  {pod(""), pod(ends + "annotations: {heteroflow.io/zzzzzz: x}"), nil},
		"somebody else's key":             {pod(""), pod("annotations: {a/b: c}"), nil},
		"a new fault on one without card": {"{metadata: {name: p}}", "{metadata: {annotations: {heteroflow.io/zzzzzz: x}}}", []string{"unknown annotation"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := creation(raw(t, tc.after))
			q.Operation, q.OldObject = admissionv1.Update, runtime.RawExtension{Raw: raw(t, tc.before)}
			checkSentences(t, validated(t, rules(), q), tc.want)
		})
	}
}

// Where the default limit is enforced, who has got cards by it does not run for longer by a
// word that comes later; who has not got them yet, or may run for ever, may say what it likes.
func TestTheDefaultLimitStays(t *testing.T) {
	const by = "the pod has got its cards by the default of 2h0m0s (defaultTaskTimeout)"
	longer := []string{"annotation heteroflow.io/max-runtime: cannot be longer: " + by}
	tests := map[string]struct {
		before, after string // annotations
		want          []string
	}{
		"longer":                       {"", "heteroflow.io/max-runtime: 121m", longer},
		"as long":                      {"", "heteroflow.io/max-runtime: 2h", nil},
		"shorter":                      {"", "heteroflow.io/max-runtime: 1h", nil},
		"another wish":                 {"", "heteroflow.io/numa: '1'", nil},
		"inference":                    {"", "heteroflow.io/task-type: inference", []string{"annotation heteroflow.io/task-type: cannot become inference, which runs for ever: " + by}},
		"a member":                     {"", "heteroflow.io/task-group: chat", []string{"annotation heteroflow.io/task-group: cannot be given now, as members may run for ever: " + by}},
		"of inference":                 {"heteroflow.io/task-type: inference", "heteroflow.io/task-type: inference, heteroflow.io/max-runtime: 9h", nil},
		"of a member":                  {"heteroflow.io/task-group: chat", "heteroflow.io/task-group: chat, heteroflow.io/max-runtime: 9h", nil},
		"a limit of its own, as it is": {"heteroflow.io/max-runtime: 9h", "heteroflow.io/max-runtime: 9h, heteroflow.io/numa: '1'", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, on := range []struct {
				spec     string
				enforced bool
				want     []string
			}{{"nodeName: n1, ", true, tc.want}, {"", true, nil}, {"nodeName: n1, ", false, nil}, {"nodeName: n1, schedulerName: another, ", true, nil}} {
				r := rules()
				r.Settings.DefaultTaskTimeout, r.Settings.EnforceTaskTimeout = 2*time.Hour, on.enforced
				q := creation(raw(t, asking(tc.after, on.spec)))
				q.Operation, q.OldObject = admissionv1.Update, runtime.RawExtension{Raw: raw(t, asking(tc.before, on.spec))}
				checkSentences(t, validated(t, r, q), on.want)
			}
		})
	}
}

// What is no request about a pod is answered by nobody.
func TestRequestsThatCannotBeUnderstood(t *testing.T) {
	tests := map[string]struct {
		change func(*admissionv1.AdmissionRequest)
		want   string
	}{
		"another kind":        {func(q *admissionv1.AdmissionRequest) { q.Kind.Kind = "Binding" }, "request.kind: v1 Binding is not a v1 Pod"},
		"another group":       {func(q *admissionv1.AdmissionRequest) { q.Kind.Group = "apps" }, "request.kind: apps/v1 Pod is not a v1 Pod"},
		"another version":     {func(q *admissionv1.AdmissionRequest) { q.Kind.Version = "v2" }, "request.kind: v2 Pod is not a v1 Pod"},
		"a subresource":       {func(q *admissionv1.AdmissionRequest) { q.SubResource = "status" }, "request.subResource: status is not the pod itself"},
		"a deletion":          {func(q *admissionv1.AdmissionRequest) { q.Operation = admissionv1.Delete }, `request.operation: "DELETE" is not`},
		"no operation":        {func(q *admissionv1.AdmissionRequest) { q.Operation = "" }, `request.operation: "" is not`},
		"no object":           {func(q *admissionv1.AdmissionRequest) { q.Object.Raw = nil }, "request.object: is missing"},
		"no pod":              {func(q *admissionv1.AdmissionRequest) { q.Object.Raw = []byte(`[]`) }, "request.object: "},
		"an update of what":   {func(q *admissionv1.AdmissionRequest) { q.Operation = admissionv1.Update }, "request.oldObject: is missing"},
		"a quantity of words": {func(q *admissionv1.AdmissionRequest) { q.Object.Raw = []byte(`{"spec":{"overhead":{"cpu":"lots"}}}`) }, "request.object: quantit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := creation(raw(t, asking("", "")))
			tc.change(q)
			_, mutating := rules().Mutate(q)
			_, validating := rules().Validate(q)
			for _, err := range []error{mutating, validating} {
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			}
		})
	}
}

func TestSentences(t *testing.T) {
	err := errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("a")))
	if diff := cmp.Diff("a; b", sentences(err)); diff != "" {
		t.Errorf("sentences (-want +got):\n%s", diff)
	}
}

// Ten thousand faults are told of by the first of them, each once.
func TestManyFaultsAreNotAllTold(t *testing.T) {
	var errs []error
	for i := range 10_000 {
		errs = append(errs, fmt.Errorf("fault %d", i/2))
	}
	all := strings.Split(sentences(errors.Join(errs...)), "; ")
	if len(all) != mostSentences+1 || all[0] != "fault 0" || all[mostSentences-1] != fmt.Sprintf("fault %d", mostSentences-1) || all[mostSentences] != "and more" {
		t.Errorf("%d sentences: %.300q", len(all), all)
	}
}
