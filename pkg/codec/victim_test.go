package codec

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 12, 0, seconds, 0, time.UTC))
}

// yields is a bound pod without cards that may be ended for others.
func yields(p *corev1.Pod) {
	priority := int32(20)
	p.Spec.SchedulerName, p.Spec.NodeName, p.Spec.Priority = SchedulerName, "n1", &priority
	p.Status.Phase = corev1.PodRunning
	annotated(AnnotationPreemptible, "true")(p)
}

func prioritised(n int32) change { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func controlledBy(apiVersion, kind string, uid types.UID, controls bool) change {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: uid, Controller: &controls}}
	}
}

// runsSince adds a container that has been running since, and one that has ended.
func runsSince(seconds ...int) change {
	return func(p *corev1.Pod) {
		ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, ended)
		for _, s := range seconds {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
				corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(s)}}})
		}
	}
}

func deleted(p *corev1.Pod) { s := at(0); p.DeletionTimestamp = &s }

// plainVictim is what Bound says of yields.
func plainVictim(change func(*preempt.Pod)) preempt.Pod {
	p := preempt.Pod{
		ID: "7d9c", Namespace: "team-a", Name: "train-0", Node: "n1", Priority: 20, Type: gpu.Batch, Preemptible: true, Ours: true,
		Bare: true, Lineage: "7d9c", Phase: preempt.Running, Grace: 30 * time.Second,
	}
	change(&p)
	return p
}

func TestBound(t *testing.T) {
	system := func(p *preempt.Pod) { p.System = true }
	tests := map[string]struct {
		with []change
		want func(*preempt.Pod)
	}{
		"plain":                         {nil, func(*preempt.Pod) {}},
		"with blanks":                   {[]change{annotated(AnnotationPreemptible, " true ")}, func(*preempt.Pod) {}},
		"created":                       {[]change{func(p *corev1.Pod) { p.CreationTimestamp = at(1) }}, func(p *preempt.Pod) { p.Created = at(1).Time }},
		"a priority above all":          {[]change{prioritised(101)}, func(p *preempt.Pod) { p.Priority = 100 }},
		"a priority below all":          {[]change{prioritised(-5)}, func(p *preempt.Pod) { p.Priority = 0 }},
		"no priority":                   {[]change{func(p *corev1.Pod) { p.Spec.Priority = nil }}, func(p *preempt.Pod) { p.Priority = 0 }},
		"the annotation is no priority": {[]change{annotated(AnnotationPriority, "1")}, func(*preempt.Pod) {}},
		"training":                      {[]change{annotated(AnnotationTaskType, "training")}, func(p *preempt.Pod) { p.Type = gpu.Training }},
		"inference":                     {[]change{annotated(AnnotationTaskType, "inference")}, func(p *preempt.Pod) { p.Type = gpu.Inference }},
		"a kind that is none":           {[]change{annotated(AnnotationTaskType, "Training")}, func(p *preempt.Pod) { p.Type, p.Preemptible = "Training", false }},
		"ended once":                    {[]change{annotated(AnnotationPreemptCount, "1")}, func(p *preempt.Pod) { p.Count = 1 }},
		"ended how often":               {[]change{annotated(AnnotationPreemptCount, "often")}, func(p *preempt.Pod) { p.Count = 1 }},
		"ended less than never":         {[]change{annotated(AnnotationPreemptCount, "-1")}, func(p *preempt.Pod) { p.Count = 1 }},
		"a second life":                 {[]change{annotated(AnnotationPreemptCount, "1", AnnotationPreemptedFrom, "first")}, func(p *preempt.Pod) { p.Count, p.Lineage = 1, "first" }},
		"another's":                     {[]change{func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }}, func(p *preempt.Pod) { p.Ours = false }},
		"cards on no record":            {[]change{app("main", "nvidia.com/gpu", "1")}, func(p *preempt.Pod) { p.Ours = false }},
		"of a system class":             {[]change{func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }}, system},
		"a system priority":             {[]change{prioritised(1_000_000_000)}, func(p *preempt.Pod) { p.Priority, p.System = 100, true }},
		"in kube-system":                {[]change{func(p *corev1.Pod) { p.Namespace = "kube-system" }}, func(p *preempt.Pod) { p.Namespace, p.System = "kube-system", true }},
		"static":                        {[]change{annotated(corev1.MirrorPodAnnotationKey, "x")}, system},
		"of a DaemonSet":                {[]change{controlledBy("apps/v1", "DaemonSet", "ds", true)}, func(p *preempt.Pod) { p.System, p.Bare, p.Lineage = true, false, "ds" }},
		"of a ReplicaSet":               {[]change{controlledBy("apps/v1", "ReplicaSet", "rs", true)}, func(p *preempt.Pod) { p.Bare, p.Lineage = false, "rs" }},
		"of who does not make it":       {[]change{controlledBy("v1", "ConfigMap", "cm", false)}, func(p *preempt.Pod) { p.Unmade = "it belongs to another object that does not make it anew" }},
		"of a group":                    {[]change{annotated(AnnotationTaskGroup, " ring ")}, func(p *preempt.Pod) { p.Unit = "team-a/group/ring" }},
		"of a Job that is suspended": {[]change{controlledBy("batch/v1", "Job", "job", true), annotated(AnnotationPreemptMode, "suspend")},
			func(p *preempt.Pod) {
				p.Bare, p.Lineage, p.Mode, p.Unit = false, "job", preempt.Suspend, "team-a/job/job"
			}},
		"of a group, of such a Job": {[]change{controlledBy("batch/v1", "Job", "job", true), annotated(AnnotationPreemptMode, "suspend", AnnotationTaskGroup, "ring")},
			func(p *preempt.Pod) { p.Bare, p.Lineage, p.Unit = false, "job", "team-a/group/ring" }},
		"of another kind of job": {[]change{controlledBy("kubeflow.org/v1", "PyTorchJob", "job", true), annotated(AnnotationPreemptMode, "suspend")},
			func(p *preempt.Pod) { p.Bare, p.Lineage = false, "job" }},
		"suspended, of nobody":   {[]change{annotated(AnnotationPreemptMode, "suspend")}, func(*preempt.Pod) {}},
		"with its own grace":     {[]change{func(p *corev1.Pod) { s := int64(5); p.Spec.TerminationGracePeriodSeconds = &s }}, func(p *preempt.Pod) { p.Grace = 5 * time.Second }},
		"with grace without end": {[]change{func(p *corev1.Pod) { s := int64(1) << 62; p.Spec.TerminationGracePeriodSeconds = &s }}, func(p *preempt.Pod) { p.Grace = mostGrace }},
		"without grace":          {[]change{func(p *corev1.Pod) { s := int64(0); p.Spec.TerminationGracePeriodSeconds = &s }}, func(p *preempt.Pod) { p.Grace = 0 }},
		"not started":            {[]change{func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }}, func(p *preempt.Pod) { p.Phase = preempt.Scheduled }},
		"between its first containers": {[]change{func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending; s := at(3); p.Status.StartTime = &s }, runsSince()},
			func(p *preempt.Pod) { p.Since = at(3).Time }},
		"for as long as the oldest":  {[]change{runsSince(9, 7, 8)}, func(p *preempt.Pod) { p.Since = at(7).Time }},
		"it crashes again and again": {[]change{func(p *corev1.Pod) { s := at(3); p.Status.StartTime = &s }}, func(p *preempt.Pod) { p.Since = at(3).Time }},
		"being deleted":              {[]change{deleted}, func(p *preempt.Pod) { p.Phase, p.Due = preempt.Ending, podWith(deleted).DeletionTimestamp.Time }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Bound(podWith(append([]change{yields}, tc.with...)...))
			if diff := cmp.Diff(plainVictim(tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of who is left alone in any case no more is read than who it is: so no more need be
// kept of it.
func TestBoundOfWhoIsLeftAlone(t *testing.T) {
	for name, leave := range map[string]change{
		"says nothing": func(p *corev1.Pod) { delete(p.Annotations, AnnotationPreemptible) },
		"says no":      annotated(AnnotationPreemptible, "false"),
		"says it ill":  annotated(AnnotationPreemptible, "True"),
	} {
		t.Run(name, func(t *testing.T) {
			whole := podWith(yields, leave, annotated(AnnotationTaskType, "inference", AnnotationTaskGroup, "ring"), controlledBy("batch/v1", "Job", "job", true), deleted)
			want := preempt.Pod{
				ID: "7d9c", Namespace: "team-a", Name: "train-0", Node: "n1", Type: gpu.Batch, Lineage: "7d9c",
				Unit: "team-a/group/ring", Phase: preempt.Ending, Due: whole.DeletionTimestamp.Time,
			}
			if diff := cmp.Diff(want, Bound(whole)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
