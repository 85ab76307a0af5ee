package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// defineOurs makes the custom resources of the chart, so that what runs here finds
// them as it would where the chart was installed.
func (c *Cluster) defineOurs(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(c.root, "charts", "heteroflow", "crds", "*.yaml"))
	if err != nil {
		return err
	}
	var definitions []*unstructured.Unstructured
	for _, file := range files {
		objects, err := read(file)
		if err != nil {
			return err
		}
		definitions = append(definitions, objects...)
	}
	return c.define(ctx, definitions)
}

// Define makes the custom resources of a YAML file, and returns when objects of them
// can be made.
func (c *Cluster) Define(ctx context.Context, path string) error {
	definitions, err := read(path)
	if err != nil {
		return err
	}
	return c.define(ctx, definitions)
}

// define makes custom resources and waits until objects of them can be made.
func (c *Cluster) define(ctx context.Context, definitions []*unstructured.Unstructured) error {
	if len(definitions) == 0 {
		return nil
	}
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	for _, o := range definitions {
		if err := a.apply(ctx, o); err != nil {
			return fmt.Errorf("apply %s: %w", o.GetName(), err)
		}
	}
	for _, o := range definitions {
		resource, err := a.resource(o)
		if err != nil {
			return err
		}
		err = Eventually(ctx, "custom resource "+o.GetName(), func(ctx context.Context) error {
			now, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			return established(now)
		})
		if err != nil {
			return err
		}
	}
	return c.discovered(ctx, definitions)
}

// discovered waits until the API server tells of the kinds: it lists them some
// time after it serves them, and objects are applied by their kind.
func (c *Cluster) discovered(ctx context.Context, definitions []*unstructured.Unstructured) error {
	return Eventually(ctx, "the API server to list the custom resources", func(context.Context) error {
		a, err := c.newApplier()
		if err != nil {
			return err
		}
		var errs []error
		for _, o := range definitions {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			_, err := a.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// established returns nil once a definition is served.
func established(definition *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not served yet")
}
