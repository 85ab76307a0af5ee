package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// waits is a pod of ours that kube-scheduler has found no node for.
func waits(p *corev1.Pod) {
	priority := int32(80)
	p.Spec.SchedulerName, p.Spec.Priority, p.CreationTimestamp = SchedulerName, &priority, at(1)
	condition(corev1.ConditionFalse, corev1.PodReasonUnschedulable)(p)
}

func condition(status corev1.ConditionStatus, reason string) change {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodScheduled, Status: status, Reason: reason}}
	}
}

func spec(change func(*corev1.PodSpec)) change { return func(p *corev1.Pod) { change(&p.Spec) } }

func volume(v corev1.VolumeSource) change {
	return spec(func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "data", VolumeSource: v}) })
}

func spreading(when corev1.UnsatisfiableConstraintAction) change {
	return spec(func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: when}}
	})
}

func TestWhoAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		with change
		want bool
	}{
		"refused by kube-scheduler": {annotated(), true},
		"not looked at yet":         {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"gated":                     {condition(corev1.ConditionFalse, corev1.PodReasonSchedulingGated), false},
		"gates are left":            {spec(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), false},
		"an error":                  {condition(corev1.ConditionFalse, corev1.PodReasonSchedulerError), false},
		"scheduled":                 {condition(corev1.ConditionTrue, corev1.PodReasonUnschedulable), false},
		"bound":                     {boundTo("n1"), false},
		"being deleted":             {deleted, false},
		"ended":                     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"another's":                 {spec(func(s *corev1.PodSpec) { s.SchedulerName = "default-scheduler" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := Asking(podWith(waits, app("main", "nvidia.com/gpu", "1"), tc.with), policy.Default(), nowhere); got != tc.want {
				t.Errorf("asks: %t", got)
			}
		})
	}
}

func TestAsking(t *testing.T) {
	pod := podWith(waits, app("main", "nvidia.com/gpu", "1", "cpu", "2"), controlledBy("batch/v1", "Job", "job", true), prioritised(2_000_000_000))
	a, ok := Asking(pod, policy.Default(), nowhere)
	want, err := Request(pod, policy.Default())
	if err != nil || !ok || a.Never != "" {
		t.Fatalf("%v, %t, %q", err, ok, a.Never)
	}
	want.Priority = 100 // of those that pods can ask for
	if diff := cmp.Diff(want, a.Request); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if a.Lineage != "job" || !a.Created.Equal(at(1).Time) {
		t.Errorf("lineage %q, created %v", a.Lineage, a.Created)
	}
	if a, _ := Asking(podWith(waits, annotated(AnnotationPreemptedFrom, "first")), policy.Default(), nowhere); a.Lineage != "first" {
		t.Errorf("lineage %q", a.Lineage)
	}
}

// Nobody is ended for a pod of which it cannot be said that it would run then.
func TestNobodyIsEndedFor(t *testing.T) {
	affinity := func(a corev1.Affinity) change { return spec(func(s *corev1.PodSpec) { s.Affinity = &a }) }
	required := []corev1.PodAffinityTerm{{TopologyKey: "zone"}}
	never := corev1.PreemptNever
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}
	tests := map[string]struct {
		with change
		want string
	}{
		"plain":                    {annotated(), ""},
		"training":                 {annotated(AnnotationTaskType, "training"), "it is training, which neither ends others nor is ended for them"},
		"inference":                {annotated(AnnotationTaskType, "inference"), ""},
		"a kind that is none":      {annotated(AnnotationTaskType, "x"), "its request is invalid"},
		"by its own policy":        {spec(func(s *corev1.PodSpec) { s.PreemptionPolicy = &never }), "its preemptionPolicy is Never"},
		"an invalid request":       {annotated(AnnotationNUMA, "x"), "its request is invalid"},
		"a wish that nobody meets": {annotated(AnnotationPorts, "1"), "no node can meet its wish (" + string(gpu.InsufficientPorts) + ")"},
		"a group":                  {annotated(AnnotationTaskGroup, "ring"), ""},
		"affinity":                 {affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}), "it requires an affinity to pods, which is not judged here"},
		"anti-affinity":            {affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}), "it requires an anti-affinity to pods, which is not judged here"},
		"a wish about pods":        {affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}), ""},
		"spread that must hold":    {spreading(corev1.DoNotSchedule), "it has spread constraints that must hold, which are not judged here"},
		"spread by default":        {spreading(""), "it has spread constraints that must hold, which are not judged here"},
		"spread as a wish":         {spreading(corev1.ScheduleAnyway), ""},
		"a group of Kubernetes'":   {spec(func(s *corev1.PodSpec) { s.SchedulingGroup = &corev1.PodSchedulingGroup{} }), "it is scheduled as one of a group, which is not judged here"},
		"a host port":              {spec(func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }), "it asks for ports of its node, which are not judged here"},
		"a port":                   {spec(func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}} }), ""},
		"a claim for a volume":     {volume(claim), "its volume data is by a PersistentVolumeClaim and may bind it to nodes, which is not judged here"},
		"a volume of the pod's":    {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), "its volume data may bind it to nodes, which is not judged here"},
		"a volume by a driver":     {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), "its volume data may bind it to nodes, which is not judged here"},
		"a scratch volume":         {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), ""},
		"a token":                  {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}), ""},
		"a resource claim":         {spec(func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }), "it has resourceClaims, which are not judged here"},
		"scratch storage":          {app("side", "ephemeral-storage", "1Gi"), "it asks for ephemeral-storage, which is not judged here"},
		"others' cards":            {app("side", "example.com/nic", "1"), "it asks for example.com/nic, which is not judged here"},
		"of an init container":     {initContainer("fetch", "example.com/nic", "1"), "it asks for example.com/nic, which is not judged here"},
		"huge pages of the pod": {spec(func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: quantities("hugepages-2Mi", "2Mi")}
		}), "it asks for hugepages-2Mi, which is not judged here"},
		"none of others' cards": {app("side", "example.com/nic", "0"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(waits, app("main", "nvidia.com/gpu", "1", "cpu", "2", "memory", "1Gi"), tc.with)
			a, ok := Asking(pod, policy.Default(), nowhere)
			if !ok || a.Never != tc.want {
				t.Errorf("asks: %t, never: %q, want %q", ok, a.Never, tc.want)
			}
		})
	}
	pod := podWith(waits, volume(claim))
	if a, _ := Asking(pod, policy.Default(), func(namespace, name string) bool { return namespace == "team-a" && name == "disk" }); a.Never != "" {
		t.Errorf("a volume that is anywhere: %q", a.Never)
	}
}

// nowhere knows of no volume that any node can have.
func nowhere(string, string) bool { return false }
