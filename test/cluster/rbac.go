package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// allow gives the extender and kube-scheduler the rights that the chart gives
// them. There they are one account; here kube-scheduler is a user of its own, so
// that the extender is seen to need no right of kube-scheduler's.
func (c *Cluster) allow(ctx context.Context) error {
	ours, err := c.Chart(ctx, "", "rbac.yaml")
	if err != nil {
		return err
	}
	theirs, err := c.Chart(ctx, "", "rbac-kube-scheduler.yaml")
	if err != nil {
		return err
	}
	for _, o := range theirs {
		if strings.HasSuffix(o.GetKind(), "Binding") {
			o.Object["subjects"] = []any{map[string]any{
				"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"}}
		}
	}
	return c.install(ctx, append(ours, theirs...))
}

// Apply applies all objects of a YAML file, as kubectl apply --server-side does.
func (c *Cluster) Apply(ctx context.Context, path string) error {
	objects, err := read(path)
	if err != nil {
		return err
	}
	return c.applyAll(ctx, objects)
}

// ApplyIn applies those objects of a YAML file that are of these kinds, in the namespace
// if they name none.
func (c *Cluster) ApplyIn(ctx context.Context, namespace, path string, kinds ...string) error {
	objects, err := read(path)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
	}
	return c.applyAll(ctx, objects)
}

// read returns all objects of a YAML file.
func read(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	objects, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func (c *Cluster) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := a.apply(ctx, o); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// decode reads all documents of a YAML stream; empty ones are skipped.
func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// applier finds the resource of an object's kind and applies it.
type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func (c *Cluster) newApplier() (*applier, error) {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return nil, err
	}
	return &applier{client, restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured) error {
	return a.send(ctx, o)
}

// send applies an object; dryRun is empty, or says that nothing is to be kept.
func (a *applier) send(ctx context.Context, o *unstructured.Unstructured, dryRun ...string) error {
	resource, err := a.resource(o)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "heteroflow-test", Force: true, DryRun: dryRun})
	return err
}

func (a *applier) remove(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := a.resource(o)
	if err != nil {
		return err
	}
	return resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
}

// resource is where objects of this kind, and in this one's namespace, are.
func (a *applier) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return a.client.Resource(mapping.Resource), nil
}
