package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ErrBlocked means that the pod may not be evicted now: a PodDisruptionBudget keeps it,
// or a webhook does, or a right is missing.
var ErrBlocked = errors.New("the pod may not be evicted now")

// deedTime bounds one request of a controller's.
const deedTime = 5 * time.Second

// PodAPI is how controllers read and change pods. What changes one is of the pod that
// was read: another of its name, or another version, is a conflict.
type PodAPI struct{ Client kubernetes.Interface }

// Get reads the pod from the API server.
func (a PodAPI) Get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	return a.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Annotate sets annotations; nil takes one away.
func (a PodAPI) Annotate(ctx context.Context, pod *corev1.Pod, annotations map[string]any) (*corev1.Pod, error) {
	return a.patch(ctx, pod, map[string]any{"metadata": metadata(pod, annotations)})
}

// SetDeadline has the kubelet end the pod once it has run for so many seconds.
func (a PodAPI) SetDeadline(ctx context.Context, pod *corev1.Pod, seconds int64) error {
	_, err := a.patch(ctx, pod, map[string]any{"metadata": metadata(pod, nil), "spec": map[string]any{"activeDeadlineSeconds": seconds}})
	return err
}

func (a PodAPI) patch(ctx context.Context, pod *corev1.Pod, change map[string]any) (*corev1.Pod, error) {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return a.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// metadata is what a patch of the version that was read says. Of no annotations it
// says nothing: null would take all away.
func metadata(o metav1.Object, annotations map[string]any) map[string]any {
	says := map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}
	if len(annotations) > 0 {
		says["annotations"] = annotations
	}
	return says
}

// Evict evicts with the pod's own grace, or says whether it would; of a trial the
// version does not matter.
func (a PodAPI) Evict(ctx context.Context, pod *corev1.Pod, dryRun bool) error {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	e := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}},
	}
	if dryRun { // of whatever version: nothing comes of it
		e.DeleteOptions.DryRun, e.DeleteOptions.Preconditions.ResourceVersion = []string{metav1.DryRunAll}, nil
	}
	// Not by the client for evictions: it waits, and the round with it, where the API
	// server says that a budget is being worked out.
	err := a.Client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").NamespaceIfScoped(pod.Namespace, true).
		Resource("pods").Name(pod.Name).SubResource("eviction").Body(e).MaxRetries(0).Do(ctx).Error()
	if keeps(err) {
		return fmt.Errorf("evict %s/%s: %w: %s", pod.Namespace, pod.Name, ErrBlocked, err.Error())
	}
	return err
}

// keeps reports whether the pod is why the eviction was refused. More
// than one PodDisruptionBudget for it is a fault of theirs that the API server has no reason for.
func keeps(err error) bool {
	return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) ||
		apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// Kill deletes the pod of that UID, of whatever version, with no grace at all.
func (a PodAPI) Kill(ctx context.Context, pod *corev1.Pod) error {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	none := int64(0)
	return a.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
}

// Hasten has a pod that is being deleted end so many seconds after it was asked to, if
// that is sooner than it would.
func (a PodAPI) Hasten(ctx context.Context, pod *corev1.Pod, seconds int64) error {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	return a.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &seconds, Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}})
}

// Create makes a pod.
func (a PodAPI) Create(ctx context.Context, namespace string, manifest []byte) (*corev1.Pod, error) {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(manifest, pod); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return a.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
}

// JobAPI is how controllers read and change Jobs.
type JobAPI struct{ Client kubernetes.Interface }

// Get reads the Job from the API server.
func (a JobAPI) Get(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	return a.Client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Suspend suspends or resumes the Job of that version and sets annotations, in one
// request; nil takes one away.
func (a JobAPI) Suspend(ctx context.Context, j *batchv1.Job, suspend bool, annotations map[string]any) error {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	patch, err := json.Marshal(map[string]any{"metadata": metadata(j, annotations), "spec": map[string]any{"suspend": suspend}})
	if err != nil {
		return err
	}
	_, err = a.Client.BatchV1().Jobs(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Answered reports whether the API server has understood what was asked, and has said no
// to just that: it is no use to ask the same at once, and some to ask about others.
func Answered(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err)
}

// JobOver reports whether the Job has finished, or is being deleted.
func JobOver(j *batchv1.Job) bool {
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return j.DeletionTimestamp != nil
}

// NodeAPI is how controllers read nodes.
type NodeAPI struct{ Client kubernetes.Interface }

// Get reads the node from the API server.
func (a NodeAPI) Get(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, stop := context.WithTimeout(ctx, deedTime)
	defer stop()
	return a.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}
