package preempt

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
)

// Pods is what is asked of the API server about pods. What changes one is of the pod
// that was read: another of its name, or another version, is a conflict.
type Pods interface {
	Get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Annotate sets annotations; nil takes one away.
	Annotate(ctx context.Context, pod *corev1.Pod, annotations map[string]any) (*corev1.Pod, error)
	// Evict evicts with the pod's own grace, or says whether it would; of a trial the
	// version does not matter.
	Evict(ctx context.Context, pod *corev1.Pod, dryRun bool) error
	// Kill deletes a pod, of whatever version, without grace.
	Kill(ctx context.Context, pod *corev1.Pod) error
	Create(ctx context.Context, namespace string, manifest []byte) (*corev1.Pod, error)
}

// Plans is what is asked of the API server about Preemptions.
type Plans interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.Preemption, error)
	Create(ctx context.Context, p *v1alpha1.Preemption, o metav1.CreateOptions) (*v1alpha1.Preemption, error)
	UpdateStatus(ctx context.Context, p *v1alpha1.Preemption, o metav1.UpdateOptions) (*v1alpha1.Preemption, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

var _ Plans = typed.PreemptionInterface(nil)

// Jobs is what is asked of the API server about Jobs.
type Jobs interface {
	Get(ctx context.Context, namespace, name string) (*batchv1.Job, error)
	// Suspend suspends or resumes the Job of that version, and sets annotations; nil
	// takes one away.
	Suspend(ctx context.Context, j *batchv1.Job, suspend bool, annotations map[string]any) error
}

var (
	_ Pods = kube.PodAPI{}
	_ Jobs = kube.JobAPI{}
)
