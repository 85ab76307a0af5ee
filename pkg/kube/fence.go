package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/pkg/codec"
)

// FencePolicy is the name of the ValidatingAdmissionPolicy that refuses Bindings
// of other epochs.
const FencePolicy = "heteroflow-fence"

// Fence finds out whether the API server refuses the Bindings of other epochs.
type Fence struct {
	Client    kubernetes.Interface
	Namespace string // where the proof is tried: one that is there
}

// Supported reports whether the API server has policies that could do it.
func (f *Fence) Supported(context.Context) (bool, error) {
	list, err := f.Client.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the API server for its admission policies: %w", err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == "validatingadmissionpolicies" {
			return true, nil
		}
	}
	return false, nil
}

// ErrNoFence means that the API server does what it would not with a fence for
// that epoch, not only that it could not be asked.
var ErrNoFence = errors.New("the fence is not in force")

// Prove returns nil if the API server takes Bindings of this epoch and refuses
// those of another. It tries, with a pod that does not exist and dry: what the
// fence lets pass is answered with "not found".
func (f *Fence) Prove(ctx context.Context, epoch int64) error {
	switch err := f.try(ctx, epoch); {
	case FenceRefused(err):
		return fmt.Errorf("%w: a Binding of the current epoch %d is not let pass: %w", ErrNoFence, epoch, err)
	case !unknownPod(err):
		return fmt.Errorf("the fence could not be tried: a Binding of the current epoch %d is not let pass: %w", epoch, orNone(err))
	}
	switch err := f.try(ctx, epoch-1); {
	case FenceRefused(err):
		return nil
	case unknownPod(err):
		return fmt.Errorf("%w: a Binding of epoch %d is let pass while it is %d; is the ValidatingAdmissionPolicy %s there, and its binding?", ErrNoFence, epoch-1, epoch, FencePolicy)
	default:
		return fmt.Errorf("the fence could not be tried: %w", orNone(err))
	}
}

const nobody = "heteroflow-fence-proof"

func (f *Fence) try(ctx context.Context, epoch int64) error {
	b := newBinding(f.Namespace, nobody, nobody)
	b.Annotations = map[string]string{codec.AnnotationEpoch: fmt.Sprint(epoch)}
	return f.Client.CoreV1().Pods(f.Namespace).Bind(ctx, b, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func unknownPod(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && apierrors.IsNotFound(err) && answer.Status().Details != nil && answer.Status().Details.Kind == "pods"
}

// FenceRefused reports whether the error is that of a Binding which the fence has
// refused.
func FenceRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+FencePolicy+"'")
}

var errBound = errors.New("it is answered as done")

func orNone(err error) error {
	if err == nil {
		return errBound
	}
	return err
}
