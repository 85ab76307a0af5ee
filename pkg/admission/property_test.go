package admission

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/policy"
)

// pods are such as come in: some ask for cards, some carry keys of ours, rightly
// or not.
var pods = rapid.Custom(func(t *rapid.T) *corev1.Pod {
	names := rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(t, "names")
	inits := rapid.IntRange(0, 2).Draw(t, "init containers")
	pod := &corev1.Pod{}
	for i, name := range names[:rapid.IntRange(1, 4).Draw(t, "containers")] {
		c := corev1.Container{Name: name, Env: rapid.SliceOfN(variable, 0, 4).Draw(t, "env")}
		c.Resources.Limits = rapid.SampledFrom(limits).Draw(t, "limits")
		if i < inits {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	pod.Annotations = rapid.MapOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(values))), rapid.Just(""), 0, 4).Draw(t, "annotations")
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		pod.Annotations[key] = rapid.SampledFrom(values[key]).Draw(t, key)
	}
	pod.Labels = rapid.MapOfN(rapid.SampledFrom([]string{"app", codec.BoundByLabel}), rapid.Just("x"), 0, 2).Draw(t, "labels")
	pod.Spec.SchedulerName = rapid.SampledFrom([]string{"", "default-scheduler", "heteroflow-scheduler", "volcano"}).Draw(t, "scheduler")
	pod.Spec.PriorityClassName = rapid.SampledFrom([]string{"", "", "mine", "heteroflow-70"}).Draw(t, "class")
	return pod
})

var variable = rapid.Custom(func(t *rapid.T) corev1.EnvVar {
	return corev1.EnvVar{
		Name:  rapid.SampledFrom([]string{"A", "NVIDIA_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "HETEROFLOW_MEMORY_MIB", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}).Draw(t, "name"),
		Value: rapid.SampledFrom([]string{"", "all", "$(A)"}).Draw(t, "value"),
	}
})

var limits = func() (all []corev1.ResourceList) {
	for _, list := range []map[string]string{
		{}, {"cpu": "1"}, {"heteroflow.io/gpu": "1"}, {"heteroflow.io/gpu-memory": "1000"}, {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "0"},
		{"nvidia.com/gpumem": "1000"}, {"huawei.com/Ascend910B2": "1"}, {"heteroflow.io/gpus": "1"}, {"nvidia.com/gpu": "99"}, {"limits.cpu": "1"},
	} {
		quantities := corev1.ResourceList{}
		for name, amount := range list {
			quantities[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		all = append(all, quantities)
	}
	return all
}()

var values = map[string][]string{
	"a/b~c":                           {"x"},
	codec.AnnotationContainers:        {`{"a":0}`, `{"b":5,"x":0}`, `{"a":1,"b":1}`, `{"c":-1}`, `null`, `x`, `{"d":9999,"a":0,"b":1,"c":2}`},
	codec.AnnotationPriority:          {"70", "0", "101", ""},
	codec.AnnotationGPUType:           {"nvidia", "ASCEND", "nobody"},
	codec.AnnotationAllocation:        {"{}"},
	codec.AnnotationHAMiNode:          {"n1"},
	"heteroflow.io/visible-devices-3": {"GPU-a"},
	"heteroflow.io/whatever":          {""},
}

// Whatever comes in: a second call changes nothing; what is changed is what may
// be; numbers are distinct and stay; nothing of the scheduler's is left.
func TestMutationProperties(t *testing.T) {
	all := []Rules{rules(), rules(downward), rules(downward, func(s *policy.Settings) { s.SliceCores = policy.SliceCoresProportional })}
	rapid.Check(t, func(rt *rapid.T) {
		r, before := rapid.SampledFrom(all).Draw(rt, "rules"), pods.Draw(rt, "pod")
		given, err := json.Marshal(before)
		if err != nil {
			rt.Fatal(err)
		}
		once, _ := mutated(t, r, given)
		if twice, answer := mutated(t, r, once); answer.Patch != nil {
			rt.Fatalf("a second call changes it by %s\n%s\n%s", answer.Patch, once, twice)
		}
		after, err := readPod("pod", once)
		if err != nil {
			rt.Fatal(err)
		}
		if annotations, labels := codec.Carried(after); len(annotations)+len(labels) > 0 {
			rt.Fatalf("still carries %v %v", annotations, labels)
		}
		wantNumbers(rt, before, after)
		if got, want := untouched(after), untouched(before); !reflect.DeepEqual(got, want) {
			rt.Fatalf("what is none of admission's business was changed:\n%v\n%v", want, got)
		}
	})
}

// wantNumbers: a pod of ours numbers each of its containers.
func wantNumbers(t *rapid.T, before, after *corev1.Pod) {
	if !codec.AsksForCards(before) || before.Spec.SchedulerName == "volcano" {
		return
	}
	var numbers map[string]int
	if err := json.Unmarshal([]byte(after.Annotations[codec.AnnotationContainers]), &numbers); err != nil {
		t.Fatal(err)
	}
	_, recorded := before.Annotations[codec.AnnotationContainers]
	seen := map[int]bool{}
	for place, c := range slices.Concat(after.Spec.InitContainers, after.Spec.Containers) {
		n, ok := numbers[c.Name]
		if !ok || seen[n] || !recorded && n != place {
			t.Fatalf("container %s at %d has number %d (%t) in %v", c.Name, place, n, ok, numbers)
		}
		seen[n] = true
	}
	if len(seen) != len(numbers) {
		t.Fatalf("numbers of containers that are not there: %v", numbers)
	}
}

// untouched is the pod without what admission may change.
func untouched(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	for key := range p.Annotations {
		if strings.Contains(key, "hami.io/") || key == codec.AnnotationContainers || key == codec.AnnotationAllocation || strings.Contains(key, "visible-devices") {
			delete(p.Annotations, key)
		}
	}
	delete(p.Labels, codec.BoundByLabel)
	p.Spec.SchedulerName, p.Spec.PriorityClassName, p.Spec.Priority = "", "", nil
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].Env = slices.DeleteFunc(list[i].Env, func(e corev1.EnvVar) bool { return e.Name != "A" })
		}
	}
	if len(p.Annotations) == 0 {
		p.Annotations = nil
	}
	if len(p.Labels) == 0 {
		p.Labels = nil
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if len(list[i].Env) == 0 {
				list[i].Env = nil
			}
			list[i].Resources.Limits = nil // quantities differ in what they remember of their text
		}
	}
	return p
}

// What admission calls an asking pod is what has asks or faults at the extender.
func TestAskingIsWhatTheExtenderReads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pod := pods.Draw(rt, "pod")
		pod.Annotations, pod.Labels = nil, nil
		request, err := codec.Request(pod, policy.Default())
		if got, want := codec.AsksForCards(pod), err != nil || request.AsksForCards(); got != want {
			rt.Fatalf("AsksForCards is %t, Request has %d asks and %v", got, len(request.Asks), err)
		}
	})
}

// What is let in by Validate after Mutate can be read by the extender, and what
// is refused is so for what its author wrote.
func TestAdmittedPodsCanBeScheduled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom([]Rules{rules(), rules(downward)}).Draw(rt, "rules")
		given, err := json.Marshal(pods.Draw(rt, "pod"))
		if err != nil {
			rt.Fatal(err)
		}
		once, _ := mutated(t, r, given)
		answer, err := r.Validate(creation(once))
		if err != nil {
			rt.Fatal(err)
		}
		after, err := readPod("pod", once)
		if err != nil {
			rt.Fatal(err)
		}
		if !answer.Allowed && strings.Contains(answer.Result.Message, undone) {
			rt.Fatalf("not as Mutate made it: %s", answer.Result.Message)
		}
		if !answer.Allowed || after.Spec.SchedulerName != r.Scheduler {
			return
		}
		if request, err := codec.Request(after, r.Settings); err != nil || request.AsksForCards() != codec.AsksForCards(after) {
			rt.Fatalf("admitted, but Request has %d asks and %v", len(request.Asks), err)
		}
	})
}

// FuzzAdmission: whatever the object, answers fit it and there is no panic.
func FuzzAdmission(f *testing.F) {
	for _, pod := range []string{
		asking("heteroflow.io/priority: '7', heteroflow.io/epoch: '0'", ""),
		made(numbers, "initContainers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES}]}], containers: [{name: b, resources: {limits: {nvidia.com/gpumem: 1}}}]"),
		"{metadata: {annotations: {}}, spec: {containers: [null, {env: [null]}], initContainers: null}}",
	} {
		f.Add(raw(f, pod))
	}
	f.Add([]byte(`{"spec":{"containers":[{"name":"a"}],"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}},"env":[{},{}],"env":[{}]}],"Containers":[]}}`))
	r := rules(downward)
	f.Fuzz(func(t *testing.T, pod []byte) {
		if !json.Valid(pod) || strings.Contains(string(pod), `e-`) || strings.Contains(string(pod), `E-`) {
			t.Skip() // the server lets neither through
		}
		q := creation(pod)
		if answer, err := r.Mutate(q); err == nil && answer.Patch != nil && wellFormed(pod) {
			mutated(t, r, pod)
		}
		_, _ = r.Validate(q)
		q.Operation, q.OldObject = admissionv1.Update, q.Object
		if answer, err := r.Validate(q); err == nil && !answer.Allowed {
			t.Errorf("an update without a change was refused: %s", answer.Result.Message)
		}
	})
}

// wellFormed reports whether the pod is as the API server writes one, which
// always has a metadata and a spec.
func wellFormed(pod []byte) bool {
	var parts struct {
		Metadata *struct{} `json:"metadata"`
		Spec     *struct{} `json:"spec"`
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(pod, &parts) == nil && parts.Metadata != nil && parts.Spec != nil
}
