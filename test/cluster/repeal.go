package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// SchedulerUser is who the extender is to the API server.
const SchedulerUser = "system:serviceaccount:heteroflow-system:heteroflow-scheduler"

// As is a client of another user. In the group of administrators it may do what
// it likes, as far as rights go: policies know it by its name.
func (c *Cluster) As(user string, groups ...string) (*kubernetes.Clientset, error) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
	return kubernetes.NewForConfig(config)
}

// Repeal takes all admission policies away, and returns when those of the chart
// are not asked any more.
func (c *Cluster) Repeal(ctx context.Context) error {
	scheduler, err := c.As(SchedulerUser)
	if err != nil {
		return err
	}
	registered := c.Client.AdmissionregistrationV1()
	if err := registered.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := registered.ValidatingAdmissionPolicies().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return Eventually(ctx, "the API server to forget the policies", func(ctx context.Context) error {
		for _, client := range []*kubernetes.Clientset{c.Client, scheduler} {
			if err := TryBinding(ctx, client, nil); !apierrors.IsNotFound(err) {
				return fmt.Errorf("a Binding of no pod: %w", err)
			}
		}
		return nil
	})
}

// TryBinding sends a Binding with our label for a pod that does not exist, and
// returns the answer: policies are asked before the pod is looked for.
func TryBinding(ctx context.Context, client *kubernetes.Clientset, annotations map[string]string) error {
	return client.CoreV1().Pods(metav1.NamespaceDefault).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "nobody-is-called-so",
			Labels: map[string]string{"heteroflow.io/bound-by": "heteroflow"}, Annotations: annotations,
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
