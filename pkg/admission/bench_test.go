package admission

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/codec"
)

// padding is what a common pod is full of.
const padding = `, volumeMounts: [{name: t, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}], imagePullPolicy: Always, terminationMessagePath: /dev/termination-log`

// BenchmarkMutate and BenchmarkValidate are whole answers, from the object as
// the API server sends it.
func BenchmarkMutate(b *testing.B)   { benchmark(b, Rules.Mutate) }
func BenchmarkValidate(b *testing.B) { benchmark(b, Rules.Validate) }

func benchmark(b *testing.B, answer func(Rules, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) {
	for name, limits := range map[string]string{"without cards": "cpu: 1", "with cards": "cpu: 1, nvidia.com/gpu: 2, nvidia.com/gpumem: 1000"} {
		b.Run(name, func(b *testing.B) {
			q := creation(raw(b, "{metadata: {name: p, labels: {app: x}}, spec: {schedulerName: default-scheduler, containers: [{name: main, resources: {limits: {"+limits+"}}"+padding+"}, {name: side"+padding+"}]}}"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := answer(rules(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("2000 pods", func(b *testing.B) {
		all := make([]*admissionv1.AdmissionRequest, 2000)
		for i := range all {
			all[i] = creation(raw(b, fmt.Sprintf("{metadata: {name: p%d}, spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpumem: %d}}"+padding+"}]}}", i, i+1)))
		}
		for b.Loop() {
			for _, q := range all {
				if _, err := answer(rules(), q); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkConcerns is the way of all pods that are none of ours, once decoded.
func BenchmarkConcerns(b *testing.B) {
	pod := plainPod()
	b.ReportAllocs()
	for b.Loop() {
		if codec.Concerns(pod) {
			b.Fatal("concerns us")
		}
	}
}

func TestPodsThatAreNoneOfOursCostNothing(t *testing.T) {
	pod := plainPod()
	if n := testing.AllocsPerRun(100, func() { codec.Concerns(pod) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func plainPod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{"sidecar.istio.io/inject": "true"}
	pod.Labels = map[string]string{"app": "x", "pod-template-hash": "y"}
	list := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}, {Name: "b"}}
	return pod
}
