package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

var (
	epochResource  = schema.GroupVersionResource{Group: "heteroflow.io", Version: "v1alpha1", Resource: "epochs"}
	definitionName = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// TestFence asks the API server, under the chart's fence, to bind pods as
// schedulers of other epochs would, and of none, and where the Epoch or even its
// definition is missing.
func TestFence(t *testing.T) {
	s := begin(t, defaults)
	s.add(simnode.Spec{Name: "fence", Cards: simnode.Cards("fence", 1, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	client, err := dynamic.NewForConfig(s.Config)
	s.must("client", err)
	s.police(epochs, fence)
	e := &epochWriter{s, client.Resource(epochResource)}
	s.must("an Epoch of an earlier test", e.remove())

	s.part("no Epoch", func(s *scene) { s.fenced("no-epoch", "1", "no params found") })
	e.grows(t)
	s.part("the epoch of the moment", func(s *scene) { s.must("Binding", s.fencedBind("current", "12")) })
	for _, other := range []string{"11", "13", "", "012", "12 ", "twelve"} {
		s.part(fmt.Sprintf("epoch %q", other), func(s *scene) { s.fenced("other", other, "superseded by b, of epoch 12") })
	}
	s.part("no epoch at all", func(s *scene) { s.fenced("unmarked", "none", "of epoch none, has been superseded by b") })
	s.part("the next", func(s *scene) {
		s.must("raise", e.write(13, "c"))
		s.eventually("the end of the one before", func() error { return s.superseded("12", "c, of epoch 13") })
		s.must("Binding", s.fencedBind("next", "13"))
	})
	s.part("a deleted Epoch", func(s *scene) {
		s.must("delete", e.remove())
		s.eventually("the end of the epoch", func() error { return s.superseded("13", "no params found") })
		s.fenced("deleted", "13", "no params found")
	})
	s.part("no definition", func(s *scene) {
		definitions := client.Resource(definitionName)
		s.must("delete", definitions.Delete(s.ctx, "epochs.heteroflow.io", metav1.DeleteOptions{}))
		s.eventually("the end of the definition", func() error { return s.superseded("13", "failed to") })
		s.fenced("undefined", "13", "")
		s.eventually("the definition to go", func() error { // what is made anew before that goes with it
			if _, err := definitions.Get(s.ctx, "epochs.heteroflow.io", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return errors.Join(err, errors.New("it is still there"))
			}
			return nil
		})
		s.must("make it anew", s.Install(s.ctx, epochs))
	})
}

// fenced wants a Binding of ours refused and another scheduler's let through.
func (s *scene) fenced(pod, epoch, words string) {
	s.Helper()
	err := s.fencedBind(pod, epoch)
	if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), words) {
		s.Errorf("a Binding of epoch %q: %v, want it refused with %q", epoch, err, words)
	}
	other := podFor(pod + "-other")
	s.bindByHand(other, "fence")
	s.remove(other.Name, true)
}

// superseded returns nil once Bindings of that epoch are refused with the words.
func (s *scene) superseded(epoch, words string) error {
	err := cluster.TryBinding(s.ctx, s.as(cluster.SchedulerUser), map[string]string{ours + "epoch": epoch})
	if err == nil || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("a Binding of epoch %s: %w", epoch, err)
	}
	return nil
}

// fencedBind makes a pod and binds it as a scheduler of ours of that epoch, in
// both ways there are; none leaves the annotation out.
func (s *scene) fencedBind(name, epoch string) error {
	s.Helper()
	var errs []error
	for _, resource := range []string{"pods", "bindings"} {
		p := podFor(name + "-" + resource)
		p.Spec.SchedulerName = "nobody"
		s.create(p)
		b := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: p.Name, Labels: map[string]string{boundBy: "heteroflow"}},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "fence"},
		}
		if epoch != "none" {
			b.Annotations = map[string]string{ours + "epoch": epoch}
		}
		post := s.as(cluster.SchedulerUser).CoreV1().RESTClient().Post().Namespace(s.ns).Resource(resource)
		if resource == "pods" {
			post = post.Name(p.Name).SubResource("binding")
		}
		err := post.Body(b).Do(s.ctx).Error()
		if bound := s.pod(p.Name).Spec.NodeName != ""; bound != (err == nil) {
			s.Errorf("pod %s is bound: %t, and the answer was %v", p.Name, bound, err)
		}
		errs = append(errs, err)
		s.remove(p.Name, true)
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		s.Errorf("pods/binding and bindings differ: %v", errs)
	}
	return errors.Join(errs...)
}

// epochWriter writes the Epoch as an administrator may.
type epochWriter struct {
	*scene
	client dynamic.ResourceInterface
}

// grows: an Epoch never goes back, nor is a number given to two holders.
func (e *epochWriter) grows(t *testing.T) {
	e.must("the first", e.write(11, "a"))
	for name, tc := range map[string]struct {
		number int64
		holder string
	}{
		"a smaller number":               {10, "a"},
		"the same number for another":    {11, "b"},
		"no number that there could be":  {0, "a"},
		"a larger number, but no holder": {12, ""},
	} {
		if err := e.write(tc.number, tc.holder); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it refused as invalid", name, err)
		}
	}
	e.must("the same again", e.write(11, "a"))
	e.must("the next", e.write(12, "b"))
	if _, err := e.client.Create(e.ctx, e.object("another", 99, "a"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a second Epoch: %v, want it refused as invalid", err)
	}
	e.eventually("the fence to know it", func() error { return e.superseded("11", "b, of epoch 12") })
}

func (e *epochWriter) object(name string, number int64, holder string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "heteroflow.io/v1alpha1", "kind": "Epoch",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"number": number, "holder": holder},
	}}
}

func (e *epochWriter) write(number int64, holder string) error {
	force := metav1.ApplyOptions{FieldManager: "test", Force: true}
	_, err := e.client.Apply(e.ctx, "scheduler", e.object("scheduler", number, holder), force)
	return err
}

func (e *epochWriter) remove() error {
	err := e.client.Delete(context.WithoutCancel(e.ctx), "scheduler", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
