package window

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// Targets is what is asked of the API server about what is scaled, and who else scales
// it. What changes something is of the version that was read.
type Targets interface {
	Get(ctx context.Context, namespace string, ref v1alpha1.TaskGroupTarget) (*Target, error)
	SetReplicas(ctx context.Context, t *Target, replicas int32) error
	SetHPA(ctx context.Context, t *Target, bounds window.Bounds) error
	// SetKEDA writes the annotation paused-replicas; "" removes it.
	SetKEDA(ctx context.Context, t *Target, paused string) error
}

// Target is what is scaled, as it was read. It is not changed.
type Target struct {
	Namespace string
	UID       types.UID // "": there is none
	Missing   string    // why there is none, for people
	State     window.State
	// Ignored are autoscalers of it that are left alone, since there is another of the
	// kind; "": none.
	Ignored string

	kind        schema.GroupVersionResource
	scale       *unstructured.Unstructured
	hpa, scaled version // of the HPA and of the ScaledObject, where State has one
}

// version is an object as it was read.
type version struct {
	name, resource string
	uid            types.UID
}

func versionOf(o metav1.Object) version {
	return version{o.GetName(), o.GetResourceVersion(), o.GetUID()}
}

// TargetAPI asks by client-go. It is not safe for concurrent use.
type TargetAPI struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Now     func() time.Time

	kinds kinds
}

var _ Targets = (*TargetAPI)(nil)

// Get reads the scale, and then who else sets it.
func (a *TargetAPI) Get(ctx context.Context, namespace string, ref v1alpha1.TaskGroupTarget) (*Target, error) {
	t := &Target{Namespace: namespace}
	if err := a.getScale(ctx, t, &ref); err != nil || t.Missing != "" {
		return t, err
	}
	if err := a.getKEDA(ctx, t, &ref); err != nil {
		return nil, fmt.Errorf("list ScaledObjects: %w", err)
	}
	if err := a.getHPA(ctx, t, &ref); err != nil {
		return nil, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return t, nil
}

// getScale reads the scale of the target. That there is none is believed only by what the
// API server says of its kind now: for a group that is deleted, nothing is then restored.
func (a *TargetAPI) getScale(ctx context.Context, t *Target, ref *v1alpha1.TaskGroupTarget) error {
	kind, missing, err := a.kind(ctx, ref)
	if err != nil || missing != "" {
		t.Missing = missing
		return err
	}
	scale, err := a.readScale(ctx, kind, t.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		if t.Missing, err = a.recheck(ctx, ref); err != nil || t.Missing != "" {
			return err
		}
		t.Missing = fmt.Sprintf("there is no %s %s", ref.Kind, ref.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	replicas, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas") // left out: 0
	if err != nil {
		return fmt.Errorf("read the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	t.UID, t.kind, t.scale, t.State.Replicas = scale.GetUID(), kind, scale, int32(replicas)
	return nil
}

func (a *TargetAPI) readScale(ctx context.Context, kind schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	return a.Dynamic.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}, "scale")
}

// SetReplicas updates the scale that was read.
func (a *TargetAPI) SetReplicas(ctx context.Context, t *Target, replicas int32) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	scale := t.scale.DeepCopy()
	if err := unstructured.SetNestedField(scale.Object, int64(replicas), "spec", "replicas"); err != nil {
		return err
	}
	_, err := a.Dynamic.Resource(t.kind).Namespace(t.Namespace).Update(ctx, scale, metav1.UpdateOptions{}, "scale")
	return err
}

// SetHPA patches the bounds.
func (a *TargetAPI) SetHPA(ctx context.Context, t *Target, bounds window.Bounds) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	patch, err := t.hpa.patch(nil, map[string]any{"minReplicas": bounds.Min, "maxReplicas": bounds.Max})
	if err != nil {
		return err
	}
	_, err = a.Client.AutoscalingV2().HorizontalPodAutoscalers(t.Namespace).Patch(ctx, t.hpa.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// SetKEDA patches the annotation.
func (a *TargetAPI) SetKEDA(ctx context.Context, t *Target, paused string) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	annotations := map[string]any{pausedReplicas: paused}
	if paused == "" {
		annotations[pausedReplicas] = nil // takes it away
	}
	patch, err := t.scaled.patch(annotations, nil)
	if err != nil {
		return err
	}
	_, err = a.Dynamic.Resource(scaledObjects()).Namespace(t.Namespace).Patch(ctx, t.scaled.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// patch changes nothing but what it names, and that only of the version that was read.
func (v *version) patch(annotations, spec map[string]any) ([]byte, error) {
	metadata := map[string]any{"uid": v.uid, "resourceVersion": v.resource}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	patch := map[string]any{"metadata": metadata}
	if spec != nil {
		patch["spec"] = spec
	}
	return json.Marshal(patch)
}
