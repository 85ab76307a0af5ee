package window

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
)

// Groups is what is asked of the API server about TaskGroups. What changes one is of the
// version that was read.
type Groups interface {
	Get(ctx context.Context, namespace, name string) (*v1alpha1.TaskGroup, error)
	UpdateStatus(ctx context.Context, g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error)
	// SetFinalizers has it keep these finalizers and no others.
	SetFinalizers(ctx context.Context, g *v1alpha1.TaskGroup, finalizers []string) (*v1alpha1.TaskGroup, error)
}

// GroupAPI asks by the generated client.
type GroupAPI struct{ Client typed.TaskGroupsGetter }

var _ Groups = GroupAPI{}

// Get reads the group from the API server.
func (a GroupAPI) Get(ctx context.Context, namespace, name string) (*v1alpha1.TaskGroup, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	return a.Client.TaskGroups(namespace).Get(ctx, name, metav1.GetOptions{})
}

// UpdateStatus writes the status.
func (a GroupAPI) UpdateStatus(ctx context.Context, g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	return a.Client.TaskGroups(g.Namespace).UpdateStatus(ctx, g, metav1.UpdateOptions{})
}

// SetFinalizers patches the finalizers alone: a spec of a later version has fields that
// an update would lose.
func (a GroupAPI) SetFinalizers(ctx context.Context, g *v1alpha1.TaskGroup, finalizers []string) (*v1alpha1.TaskGroup, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": g.UID, "resourceVersion": g.ResourceVersion, "finalizers": finalizers}})
	if err != nil {
		return nil, err
	}
	return a.Client.TaskGroups(g.Namespace).Patch(ctx, g.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}
