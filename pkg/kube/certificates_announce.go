package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/certs"
)

// webhookResources are the two kinds of webhook configurations. What is of use
// here is written alike in both.
func webhookResources() []string {
	return []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
}

// callers is as much of a webhook configuration: whom the API server trusts as
// each webhook.
type callers struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Webhooks []caller          `json:"webhooks"`
}

type caller struct {
	Name         string       `json:"name"`
	ClientConfig clientConfig `json:"clientConfig"`
}

type clientConfig struct {
	CABundle []byte `json:"caBundle"`
}

// announce has the API server trust the set, beside what is shown here. right:
// all webhooks had the right bundle already. Configurations that do not exist do
// not count: nobody calls by them.
func (c *Certificates) announce(ctx context.Context, set certs.Set) (right bool, err error) {
	right = true
	var errs []error
	for _, resource := range webhookResources() {
		for _, name := range c.Webhooks {
			found, err := c.announceIn(ctx, resource, name, set)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", resource, name, err))
			}
			right = right && found
		}
	}
	return right, errors.Join(errs...)
}

func (c *Certificates) announceIn(ctx context.Context, resource, name string, set certs.Set) (right bool, err error) {
	found, err := c.callers(ctx, resource, name)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	wrong := c.mistaken(found.Webhooks, set)
	if len(wrong) == 0 {
		return true, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": found.Metadata.ResourceVersion}, // refused if another replica was faster
		"webhooks": wrong,                                                                // merged by name
	})
	if err != nil {
		return false, err
	}
	err = c.Client.AdmissionregistrationV1().RESTClient().Patch(types.StrategicMergePatchType).Resource(resource).Name(name).Body(patch).Do(ctx).Error()
	if err != nil {
		return false, err
	}
	c.Logger.Info("the API server is told whom to trust as a webhook", "resource", resource, "name", name)
	return false, nil
}

func (c *Certificates) callers(ctx context.Context, resource, name string) (found callers, err error) {
	answer := c.Client.AdmissionregistrationV1().RESTClient().Get().
		SetHeader("Accept", "application/json").Resource(resource).Name(name).Do(ctx)
	if err := answer.Error(); err != nil {
		return callers{}, err
	}
	text, err := answer.Raw()
	if err != nil {
		return callers{}, err
	}
	return found, json.Unmarshal(text, &found)
}

// mistaken are the webhooks that others are trusted as than should be, with those
// that should.
func (c *Certificates) mistaken(all []caller, set certs.Set) (wrong []caller) {
	for _, w := range all {
		bundle := certs.Bundle(w.ClientConfig.CABundle, c.Now(), set, c.shown)
		if !bytes.Equal(bundle, w.ClientConfig.CABundle) {
			w.ClientConfig.CABundle = bundle
			wrong = append(wrong, w)
		}
	}
	return wrong
}
