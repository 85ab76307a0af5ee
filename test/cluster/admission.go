package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// certify makes the certificate with which the extender answers the API server.
// It is its own authority.
func (c *Cluster) certify(context.Context) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return err
	}
	c.certificate = certificate
	return errors.Join(
		os.WriteFile(c.certificateFile(), certificate, 0o600),
		os.WriteFile(c.keyFile(), key, 0o600))
}

func (c *Cluster) certificateFile() string { return filepath.Join(c.dir, "admission.crt") }
func (c *Cluster) keyFile() string         { return filepath.Join(c.dir, "admission.key") }

// Admit has the API server send pods to the extender's webhooks, and makes the
// PriorityClasses, as the chart says. It returns when both webhooks are asked; the
// extender has to run.
func (c *Cluster) Admit(ctx context.Context) error {
	if err := c.Install(ctx, "priorityclasses.yaml", webhooksFile); err != nil {
		return err
	}
	if err := c.Namespace(ctx, probeNamespace); err != nil {
		return err
	}
	return Eventually(ctx, "the API server to ask the webhooks", c.asked)
}

// Unadmit takes the webhooks away, and returns when the API server no longer
// asks them. The PriorityClasses stay.
func (c *Cluster) Unadmit(ctx context.Context) error {
	webhooks, err := c.Chart(ctx, "", webhooksFile)
	if err != nil {
		return err
	}
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	for _, o := range webhooks {
		if err := a.remove(ctx, o); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return Eventually(ctx, "the API server to forget the webhooks", func(ctx context.Context) error {
		switch mutated, refused, err := c.probe(ctx); {
		case err != nil:
			return err
		case mutated || refused:
			return fmt.Errorf("a pod is still changed (%t) or refused (%t)", mutated, refused)
		}
		return nil
	})
}

// asked returns nil when both webhooks are at work.
func (c *Cluster) asked(ctx context.Context) error {
	switch mutated, refused, err := c.probe(ctx); {
	case err != nil:
		return err
	case !mutated || !refused:
		return fmt.Errorf("a pod is changed: %t; a wrong one is refused: %t", mutated, refused)
	}
	return nil
}

// webhooksFile is the chart's file with the webhook configurations.
const webhooksFile = "webhooks.yaml"

// probeNamespace is where pods are created on trial.
const probeNamespace = "default"

// probe creates two pods on trial: a good one, and one with a key that nobody
// knows. It tells whether the first comes back changed and the second is refused.
func (c *Cluster) probe(ctx context.Context) (mutated, refused bool, err error) {
	trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	good := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Annotations: map[string]string{"heteroflow.io/priority": "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/app"}}},
	}
	good.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	changed, err := c.Client.CoreV1().Pods(probeNamespace).Create(ctx, good, trial)
	if err != nil {
		return false, false, err
	}
	bad := good.DeepCopy()
	bad.Annotations = map[string]string{"heteroflow.io/nobody-knows": "1"}
	_, err = c.Client.CoreV1().Pods(probeNamespace).Create(ctx, bad, trial)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return false, false, err
	}
	return changed.Spec.SchedulerName != corev1.DefaultSchedulerName, err != nil, nil
}

// localiseWebhooks has the API server call the webhooks of a configuration at a
// URL instead of a Service, which needs a network that tests do not have. The
// path is kept, and nothing else is changed.
func localiseWebhooks(o *unstructured.Unstructured, url string, ca []byte) error {
	webhooks, found, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil || !found || len(webhooks) == 0 {
		return errors.Join(errors.New("no list of webhooks"), err)
	}
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		path, _ := service["path"].(string)
		if got := slices.Sorted(maps.Keys(client)); !slices.Equal(got, []string{"service"}) || path == "" {
			return fmt.Errorf("webhook %v: clientConfig has %v and path %q, want a service with a path alone", webhook["name"], got, path)
		}
		webhook["clientConfig"] = map[string]any{"url": url + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
	}
	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}
