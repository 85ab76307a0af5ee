package codec

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// owned makes the pod one of an owner's.
func ownedBy(kind, uid string, controls bool) change {
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{
			APIVersion: "batch/v1", Kind: kind, Name: "train", UID: types.UID(uid), Controller: &controls,
		})
	}
}

func TestGroup(t *testing.T) {
	job, label, annotation := ownedBy("Job", "1-2", true), carrying("ai.training/job-id", "llm"), annotated("heteroflow.io/task-group", " llm ")
	tests := map[string]struct {
		changes []change
		want    gpu.GroupID
	}{
		"alone":                       {nil, ""},
		"of a Job":                    {[]change{job}, "team-a/uid=1-2"},
		"of a job of another API":     {[]change{ownedBy("PyTorchJob", "3", true)}, "team-a/uid=3"},
		"of a set":                    {[]change{ownedBy("ReplicaSet", "4", true)}, ""},
		"of a Job that does not rule": {[]change{ownedBy("Job", "5", false)}, ""},
		"of a Job without identity":   {[]change{ownedBy("Job", "", true)}, ""},
		"by label":                    {[]change{label}, "team-a/ai.training/job-id=llm"},
		"by label before its Job":     {[]change{job, label}, "team-a/ai.training/job-id=llm"},
		"by annotation before all":    {[]change{job, label, annotation}, "team-a/heteroflow.io/task-group=llm"},
		"an empty label":              {[]change{job, carrying("ai.training/job-id", "")}, "team-a/uid=1-2"},
		"of another namespace":        {[]change{label, func(p *corev1.Pod) { p.Namespace = "team-b" }}, "team-b/ai.training/job-id=llm"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(append([]change{app("main", "heteroflow.io/gpu", "1")}, tc.changes...)...)
			r, err := Request(pod, policy.Default())
			sameFaults(t, err)
			if r.Group != tc.want {
				t.Errorf("group %q, want %q", r.Group, tc.want)
			}
			none, err := Request(podWith(append([]change{app("main", "cpu", "1")}, tc.changes...)...), policy.Default())
			sameFaults(t, err)
			if none.Group != "" {
				t.Errorf("who asks for no card is of group %q", none.Group)
			}
		})
	}
}

// What a pod asked for before it was bound and what it is counted for afterwards
// are one group. A pod whose record is not believed is of none: it is not known to
// work with anybody here.
func TestGroupOfABoundPod(t *testing.T) {
	for name, mark := range map[string]change{
		"Job": ownedBy("Job", "1-2", true), "label": carrying("ai.training/job-id", "llm"), "neither": func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			waits := podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "100"), mark)
			r, err := Request(waits, policy.Default())
			sameFaults(t, err)
			bound := bind(t, waits, placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 3000))))
			maps.Copy(bound.Labels, waits.Labels) // as the API server merges them
			if p := Placement(bound); len(p.Foreign) > 0 || p.Group != r.Group {
				t.Errorf("bound as of %q, asked as of %q, foreign %v", p.Group, r.Group, p.Foreign)
			}
			delete(bound.Labels, BoundByLabel)
			if p := Placement(bound); p.Group != "" {
				t.Errorf("who is not bound by us is of %q", p.Group)
			}
		})
	}
}
