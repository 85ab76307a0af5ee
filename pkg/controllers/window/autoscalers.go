package window

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

const (
	kedaGroup = "keda.sh"
	// pausedReplicas is the annotation by which KEDA holds a target at a number.
	pausedReplicas = "autoscaling.keda.sh/paused-replicas"
)

// scaledObjects is where KEDA's are.
func scaledObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kedaGroup, Version: "v1alpha1", Resource: "scaledobjects"}
}

// getKEDA finds the ScaledObject of the target, the first by name where there are some.
// Without KEDA there is none.
func (a *TargetAPI) getKEDA(ctx context.Context, t *Target, ref *v1alpha1.TaskGroupTarget) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	list, err := a.Dynamic.Resource(scaledObjects()).Namespace(t.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no such kind
	}
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !same(scaledTarget(&o), ref) })
	slices.SortFunc(found, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	if len(found) == 0 {
		return nil
	}
	paused := found[0].GetAnnotations()[pausedReplicas]
	t.State.KEDA, t.scaled = &paused, versionOf(&found[0])
	t.ignore("ScaledObject", namesOf(found[1:], (*unstructured.Unstructured).GetName))
	return nil
}

// scaledTarget returns what a ScaledObject scales, by the defaults that KEDA has.
func scaledTarget(o *unstructured.Unstructured) *v1alpha1.TaskGroupTarget {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", field) // what is no text names nothing
		return value
	}
	return &v1alpha1.TaskGroupTarget{APIVersion: cmp.Or(text("apiVersion"), "apps/v1"), Kind: cmp.Or(text("kind"), "Deployment"), Name: text("name")}
}

// getHPA finds the HorizontalPodAutoscaler of the target, the first by name where there
// are some. One that KEDA has made is KEDA's.
func (a *TargetAPI) getHPA(ctx context.Context, t *Target, ref *v1alpha1.TaskGroupTarget) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	list, err := a.Client.AutoscalingV2().HorizontalPodAutoscalers(t.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(list.Items, func(h autoscalingv2.HorizontalPodAutoscaler) bool { return !same(hpaTarget(&h), ref) || ofKEDA(&h) })
	slices.SortFunc(found, func(a, b autoscalingv2.HorizontalPodAutoscaler) int { return cmp.Compare(a.Name, b.Name) })
	if len(found) == 0 {
		return nil
	}
	h := &found[0]
	t.State.HPA, t.hpa = &window.Bounds{Min: 1, Max: h.Spec.MaxReplicas}, versionOf(h)
	if h.Spec.MinReplicas != nil {
		t.State.HPA.Min = *h.Spec.MinReplicas
	}
	t.State.Asleep = slices.ContainsFunc(h.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue
	})
	t.ignore("HorizontalPodAutoscaler", namesOf(found[1:], (*autoscalingv2.HorizontalPodAutoscaler).GetName))
	return nil
}

func hpaTarget(h *autoscalingv2.HorizontalPodAutoscaler) *v1alpha1.TaskGroupTarget {
	r := &h.Spec.ScaleTargetRef
	return &v1alpha1.TaskGroupTarget{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

// ofKEDA reports whether a ScaledObject has made it.
func ofKEDA(h *autoscalingv2.HorizontalPodAutoscaler) bool {
	return slices.ContainsFunc(h.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "ScaledObject" && groupOf(o.APIVersion) == kedaGroup
	})
}

// ignore notes the autoscalers of the kind that are left alone.
func (t *Target) ignore(kind string, names []string) {
	if len(names) == 0 {
		return
	}
	if t.Ignored != "" {
		t.Ignored += "; "
	}
	t.Ignored += fmt.Sprintf("%s %s", kind, strings.Join(names, ", "))
}

// namesOf returns the names of objects.
func namesOf[T any](objects []T, name func(*T) string) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = name(&objects[i])
	}
	return names
}
