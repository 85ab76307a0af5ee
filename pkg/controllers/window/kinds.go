package window

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// kinds is what the API server has said of the versions of APIs: apiVersion -> answer.
// The zero value is ready for use.
type kinds map[string]served

// served is what is served of one version; nil: it is not known.
type served struct {
	resources []metav1.APIResource
	at        time.Time
}

// fresh is how long nobody is asked again after a kind that there is not: it may be made
// any moment, and its name may be wrong for ever.
const fresh = 30 * time.Second

// kind returns where objects of the target's kind are, or why they cannot be scaled. A
// kind that is known is not asked after again.
func (a *TargetAPI) kind(ctx context.Context, ref *v1alpha1.TaskGroupTarget) (where schema.GroupVersionResource, missing string, err error) {
	if known, ok := a.kinds[ref.APIVersion]; ok {
		if where, missing = known.find(ref); missing == "" || a.Now().Before(known.at.Add(fresh)) && !a.Now().Before(known.at) {
			return where, missing, nil
		}
	}
	answer, err := a.ask(ctx, ref.APIVersion)
	if err != nil {
		return where, "", fmt.Errorf("discover %s: %w", ref.APIVersion, err)
	}
	where, missing = answer.find(ref)
	return where, missing, nil
}

// recheck asks anew whether the kind is there and can be scaled, unless that was done just
// now, and returns why not.
func (a *TargetAPI) recheck(ctx context.Context, ref *v1alpha1.TaskGroupTarget) (missing string, err error) {
	answer := a.kinds[ref.APIVersion]
	if age := a.Now().Sub(answer.at); age < 0 || age >= fresh {
		if answer, err = a.ask(ctx, ref.APIVersion); err != nil {
			return "", fmt.Errorf("discover %s: %w", ref.APIVersion, err)
		}
	}
	_, missing = answer.find(ref)
	return missing, nil
}

// ask asks the API server what is served of the version.
func (a *TargetAPI) ask(ctx context.Context, apiVersion string) (served, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	list, err := discovery.ToServerResourcesInterfaceWithContext(a.Client.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, apiVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return served{}, err
	}
	answer := served{at: a.Now()}
	if err == nil {
		answer.resources = list.APIResources
	}
	if a.kinds == nil {
		a.kinds = kinds{}
	}
	a.kinds[apiVersion] = answer
	return answer, nil
}

// find returns where objects of the target's kind are, or why they cannot be scaled.
func (s *served) find(ref *v1alpha1.TaskGroupTarget) (where schema.GroupVersionResource, missing string) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return where, err.Error()
	}
	for i := range s.resources {
		r := &s.resources[i]
		if r.Kind != ref.Kind || !r.Namespaced || s.scaleOf(r.Name) == nil {
			continue
		}
		return gv.WithResource(r.Name), ""
	}
	for i := range s.resources {
		if s.resources[i].Kind == ref.Kind {
			return where, fmt.Sprintf("a %s of %s has no scale subresource in a namespace, so nothing can scale it", ref.Kind, ref.APIVersion)
		}
	}
	return where, fmt.Sprintf("the API server knows no kind %s of %s", ref.Kind, ref.APIVersion)
}

// scaleOf returns the scale subresource of that resource, nil when it has none.
func (s *served) scaleOf(resource string) *metav1.APIResource {
	for i := range s.resources {
		if r := &s.resources[i]; r.Name == resource+"/scale" && r.Kind == "Scale" {
			return r
		}
	}
	return nil
}
