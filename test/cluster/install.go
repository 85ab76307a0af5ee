package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Namespace that the chart is installed in.
const systemNamespace = "heteroflow-system"

// Install applies files of the chart, by their names under templates/ and crds/,
// as Helm would with the default values. It returns when they are in force:
// custom resources can be made, and policies are asked. Webhooks are called at
// the extender's own address, but Install does not wait for them, as Admit does.
func (c *Cluster) Install(ctx context.Context, templates ...string) error {
	return c.InstallWith(ctx, "", templates...)
}

// InstallWith is Install with values that differ from the chart's, as YAML.
func (c *Cluster) InstallWith(ctx context.Context, values string, templates ...string) error {
	objects, err := c.Chart(ctx, values, templates...)
	if err != nil {
		return err
	}
	return c.install(ctx, objects)
}

// install applies objects in an order in which all can be.
func (c *Cluster) install(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := c.Namespace(ctx, systemNamespace); err != nil {
		return err
	}
	var definitions, policies, rest []*unstructured.Unstructured
	for _, o := range objects {
		switch kind := o.GetKind(); {
		case kind == "CustomResourceDefinition":
			definitions = append(definitions, o)
		case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
			policies = append(policies, o)
		default:
			rest = append(rest, o)
		}
	}
	if err := c.define(ctx, definitions); err != nil {
		return err
	}
	if err := c.applyAll(ctx, rest); err != nil {
		return err
	}
	return c.enforce(ctx, policies)
}

// Try applies all that the chart makes of these values as a dry run: the API server
// does everything but keep it.
func (c *Cluster) Try(ctx context.Context, values string) error {
	objects, err := c.Chart(ctx, values)
	if err != nil {
		return err
	}
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		if err := a.send(ctx, o, metav1.DryRunAll); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// Chart returns what the chart makes of these values: the named files, or all.
// Webhooks are called at the extender's own address.
func (c *Cluster) Chart(ctx context.Context, values string, templates ...string) ([]*unstructured.Unstructured, error) {
	manifests, err := c.render(ctx, values, templates)
	if err != nil {
		return nil, err
	}
	objects, err := decode(bytes.NewReader(manifests))
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	for _, o := range objects {
		if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
			continue
		}
		if err := localiseWebhooks(o, "https://"+c.admissionAddress, c.certificate); err != nil {
			return nil, fmt.Errorf("chart: %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return objects, nil
}

// render has test/chart render the chart: Helm's library is not linked here.
func (c *Cluster) render(ctx context.Context, values string, templates []string) ([]byte, error) {
	args := []string{"-namespace", systemNamespace, "-only", strings.Join(templates, ",")}
	if values != "" {
		path := filepath.Join(c.dir, "values.yaml")
		if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "-values", path)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.root, "test", "chart", "render.sh"), args...)
	var complaint bytes.Buffer
	cmd.Stderr = io.MultiWriter(&complaint, os.Stderr) // a build takes its time and says so
	manifests, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return manifests, nil
}

// sentinel is a policy that refuses one ConfigMap of a name that nobody uses.
const sentinel = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], resourceNames: [%[1]s]}
  validations:
  - {expression: "false", message: "%[1]s is in force"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// enforce applies policies and waits until the API server asks them. It reads
// them from a watch and does not tell when; but what it asks, it has read in the
// order of writing. So a last policy is written, and is seen to refuse.
func (c *Cluster) enforce(ctx context.Context, policies []*unstructured.Unstructured) error {
	if len(policies) == 0 {
		return nil
	}
	last := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sentinel-%d", c.sentinels.Add(1))}}
	guard, err := decode(strings.NewReader(fmt.Sprintf(sentinel, last.Name)))
	if err != nil {
		return err
	}
	if err := c.applyAll(ctx, append(policies, guard...)); err != nil {
		return err
	}
	return Eventually(ctx, "the policies to be in force", func(ctx context.Context) error {
		trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := c.Client.CoreV1().ConfigMaps(systemNamespace).Create(ctx, last, trial)
		switch {
		case err == nil:
			return errors.New("the last of them refuses nothing yet")
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			return nil
		}
		return err
	})
}
