package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// creations is how many requests Add and Clear have under way at once.
const creations = 16

// Add makes nodes and takes their pods under its care.
func (n *Nodes) Add(ctx context.Context, specs ...Spec) error {
	var g errgroup.Group
	g.SetLimit(creations)
	for _, s := range specs {
		n.own(s.Name, true) // before a pod can be bound to it
		g.Go(func() error {
			_, err := n.client.CoreV1().Nodes().Create(ctx, s.object(), metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// Cordon makes the node unschedulable, or takes that back.
func (n *Nodes) Cordon(ctx context.Context, name string, cordoned bool) error {
	return n.patch(ctx, name, map[string]any{"spec": map[string]any{"unschedulable": cordoned}})
}

// SetReady sets the node's Ready condition. No taint goes with it: the cluster
// of the tests has no node lifecycle controller.
func (n *Nodes) SetReady(ctx context.Context, name string, ready bool) error {
	conditions := []corev1.NodeCondition{readyCondition(ready)}
	return n.patch(ctx, name, map[string]any{"status": map[string]any{"conditions": conditions}}, "status")
}

// Lose has the node's kubelet fall silent: the node and its pods become not ready, as
// the node lifecycle controller has it, and nobody ends a pod there any more.
func (n *Nodes) Lose(ctx context.Context, name string) error {
	n.silence(name, true)
	if err := n.SetReady(ctx, name, false); err != nil {
		return err
	}
	pods, err := n.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		p := &pods.Items[i]
		_, err := n.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Vanish takes the node away with its kubelet. Its pods stay as they are: nobody collects
// them.
func (n *Nodes) Vanish(ctx context.Context, name string) error {
	n.silence(name, true)
	return n.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// SetCards publishes another inventory.
func (n *Nodes) SetCards(ctx context.Context, name string, cards []Card) error {
	return n.Annotate(ctx, name, DevicesAnnotation, encodeDevices(cards))
}

// Annotate sets one annotation of the node.
func (n *Nodes) Annotate(ctx context.Context, name, key, value string) error {
	return n.patch(ctx, name, map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
}

func (n *Nodes) patch(ctx context.Context, name string, change map[string]any, subresources ...string) error {
	b, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, subresources...)
	return err
}

// Remove deletes the node, and its pods as pod garbage collection does: marked
// as failed, then removed by force, whatever their containers do.
func (n *Nodes) Remove(ctx context.Context, name string) error {
	n.own(name, false)
	if err := n.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	pods, err := n.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		errs = append(errs, n.collect(ctx, &pods.Items[i]))
	}
	return errors.Join(errs...)
}

// collect removes one pod of a node that is gone.
func (n *Nodes) collect(ctx context.Context, pod *corev1.Pod) error {
	if !ended(pod) {
		failed := []byte(`{"status":{"phase":"Failed"}}`)
		_, err := n.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, failed, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("mark %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return n.remove(ctx, pod)
}

// Clear deletes all nodes that were added. Their pods stay.
func (n *Nodes) Clear(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(creations)
	for _, name := range n.names() {
		n.own(name, false)
		g.Go(func() error {
			err := n.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
