package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lived is a pod as an API server shows it while it runs, with all that was given to
// it for that life.
func lived(p *corev1.Pod) {
	yields(p)
	app("main", "nvidia.com/gpu", "1")(p)
	initContainer("fetch")(p)
	p.ResourceVersion, p.Generation, p.CreationTimestamp, p.GenerateName = "77", 3, at(0), "train-"
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	p.Finalizers = []string{"example.com/backup", metav1.FinalizerDeleteDependents}
	p.Labels = map[string]string{"app": "train", BoundByLabel: BoundByValue}
	annotated(AnnotationAllocation, "{}", AnnotationContainers, `{"fetch":0,"main":1}`, AnnotationEpoch, "3", AnnotationHAMiNode, "n1", AnnotationHAMiAllocated, "{}",
		"heteroflow.io/visible-devices-1", "GPU-a", AnnotationPreemptedBy, "{}", "hami.io/vgpu-devices-allocated", "x", AnnotationPriority, "20", "team.example/run", "7")(p)
	s := &p.Spec
	s.PriorityClassName, s.ServiceAccountName, s.Overhead = "heteroflow-20", "default", quantities("cpu", "1")
	never := corev1.PreemptNever
	s.PreemptionPolicy = &never
	s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	s.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "kube-api-access-mine", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	for _, c := range []*corev1.Container{&s.InitContainers[0], &s.Containers[0]} {
		c.Image = "train:1"
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data"}, {Name: "kube-api-access-x7k2p", ReadOnly: true}, {Name: "kube-api-access-mine"}}
	}
	s.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready"}}
	p.Status.PodIP = "10.0.0.1"
}

// TestManifest: the next life has what the author wrote, and nothing that a new pod
// must not have.
func TestManifest(t *testing.T) {
	pod := podWith(lived)
	before := pod.DeepCopy()
	text, err := Manifest(pod, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got corev1.Pod
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	mounts := []corev1.VolumeMount{{Name: "data"}, {Name: "kube-api-access-mine"}}
	want := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "train-0", Labels: map[string]string{"app": "train"}, Finalizers: []string{"example.com/backup"},
			Annotations: map[string]string{
				AnnotationContainers: `{"fetch":0,"main":1}`, AnnotationPriority: "20", "team.example/run": "7",
				AnnotationPreemptible: "false", AnnotationPreemptCount: "1", AnnotationPreemptedFrom: "7d9c",
			},
		},
		Spec: corev1.PodSpec{
			SchedulerName: SchedulerName, PriorityClassName: "heteroflow-20", ServiceAccountName: "default", Tolerations: pod.Spec.Tolerations,
			Volumes:        []corev1.Volume{before.Spec.Volumes[0], before.Spec.Volumes[2]},
			InitContainers: []corev1.Container{{Name: "fetch", Image: "train:1", VolumeMounts: mounts}},
			Containers:     []corev1.Container{{Name: "main", Image: "train:1", VolumeMounts: mounts, Resources: corev1.ResourceRequirements{Limits: quantities("nvidia.com/gpu", "1")}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the pod itself is changed (-was +is):\n%s", diff)
	}
	if p := Bound(&got); p.Count != 1 || p.Preemptible || p.Lineage != "7d9c" {
		t.Errorf("the next life could be ended again: %+v", p)
	}
}

// Made from a pod that was made so, it is the same.
func TestManifestIsAFixedPoint(t *testing.T) {
	text, err := Manifest(podWith(lived), 1)
	if err != nil {
		t.Fatal(err)
	}
	var next corev1.Pod
	if err := json.Unmarshal(text, &next); err != nil {
		t.Fatal(err)
	}
	next.UID = "7d9c" // as if it were the same pod
	again, err := Manifest(&next, 1)
	if diff := cmp.Diff(string(text), string(again)); err != nil || diff != "" {
		t.Errorf("%v (-first +second):\n%s", err, diff)
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		with change
		want string
	}{
		"static":   {annotated(corev1.MirrorPodAnnotationKey, "x"), "pod team-a/train-0: is static: only its kubelet makes it"},
		"owned":    {controlledBy("apps/v1", "ReplicaSet", "rs", true), "pod team-a/train-0: has an owner, or no UID: not to be made anew"},
		"no UID":   {func(p *corev1.Pod) { p.UID = "" }, "pod team-a/train-0: has an owner, or no UID: not to be made anew"},
		"too long": {annotated("team.example/note", strings.Repeat("x", MostManifest)), "manifest of pod team-a/train-0: is longer than 131072 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Manifest(podWith(lived, tc.with), 1)
			if err == nil || err.Error() != tc.want || text != nil {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
