package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// Epochs reads and raises the cluster's Epoch, by the client of the Lease and within
// its bounds, which no other request of ours shares.
type Epochs struct {
	Client kubernetes.Interface
	Now    func() time.Time
}

var epochsPath = "/apis/" + v1alpha1.APIVersion + "/" + v1alpha1.EpochResource

// Current returns the Epoch, nil if there is none.
func (e *Epochs) Current(ctx context.Context) (*v1alpha1.Epoch, error) {
	epoch, err := ask(ctx, e.Client.CoreV1().RESTClient().Get().AbsPath(epochsPath, v1alpha1.EpochName))
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the Epoch: the custom resource %s.%s is not installed: %w", v1alpha1.EpochResource, v1alpha1.GroupName, err)
	case err != nil:
		return nil, fmt.Errorf("read the Epoch: %w", err)
	}
	return epoch, nil
}

// Raise makes the Epoch that follows was, nil for none, for that holder, unless
// another has raised it since. It is above least. One that is made anew starts
// from the clock: one that was deleted had been raised less than once a second.
func (e *Epochs) Raise(ctx context.Context, was *v1alpha1.Epoch, least int64, holder string) (int64, error) {
	next := &v1alpha1.Epoch{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.EpochKind},
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EpochName},
		Spec:       v1alpha1.EpochSpec{Number: max(least+1, e.Now().Unix()), Holder: holder},
	}
	request := e.Client.CoreV1().RESTClient().Post().AbsPath(epochsPath)
	if was != nil {
		next.ObjectMeta = *was.ObjectMeta.DeepCopy() // its resource version is the condition
		next.Spec.Number = max(least, was.Spec.Number) + 1
		request = e.Client.CoreV1().RESTClient().Put().AbsPath(epochsPath, v1alpha1.EpochName)
	}
	body, err := json.Marshal(next)
	if err != nil {
		return 0, err
	}
	raised, err := ask(ctx, request.SetHeader("Content-Type", "application/json").Body(body))
	if err != nil {
		return 0, fmt.Errorf("raise the Epoch to %d: %w", next.Spec.Number, err)
	}
	return raised.Spec.Number, nil
}

// ask speaks JSON, as the API server does not know our resources in protobuf.
func ask(ctx context.Context, request *rest.Request) (*v1alpha1.Epoch, error) {
	answer := request.SetHeader("Accept", "application/json").Do(ctx)
	if err := answer.Error(); err != nil { // as the API server says it; Raw would make one up
		return nil, err
	}
	raw, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	epoch := &v1alpha1.Epoch{}
	if err := json.Unmarshal(raw, epoch); err != nil {
		return nil, fmt.Errorf("answer of the API server: %w", err)
	}
	return epoch, nil
}
