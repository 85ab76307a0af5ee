package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/test/cluster"
)

// Files of the chart, and who the scheduler is to the API server.
const (
	authorProof   = "policy-authorproof.yaml"
	fence         = "policy-fence.yaml"
	epochs        = "heteroflow.io_epochs.yaml"
	schedulerUser = "system:serviceaccount:heteroflow-system:heteroflow-scheduler"
)

// police puts files of the chart in force, and takes the policies among them away
// at the end of the test.
func (s *scene) police(templates ...string) {
	s.Helper()
	s.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.check("end of the policies", s.unpolice(ctx))
	})
	s.must("policies", s.Install(s.ctx, templates...))
}

// unpolice takes all policies away, and returns when a label that both of ours
// look for is let through.
func (s *scene) unpolice(ctx context.Context) error {
	registered := s.Client.AdmissionregistrationV1()
	if err := registered.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := registered.ValidatingAdmissionPolicies().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return cluster.Eventually(ctx, "the API server to forget the policies", func(ctx context.Context) error {
		for _, client := range []*kubernetes.Clientset{s.Client, s.as(schedulerUser)} {
			if err := bindTrial(ctx, client, "nobody-is-called-so", nil); !apierrors.IsNotFound(err) {
				return fmt.Errorf("a Binding of no pod: %w", err)
			}
		}
		return nil
	})
}

// bindTrial sends a labelled Binding of a pod that does not exist, without
// effect: the policies are asked before the pod is looked for.
func bindTrial(ctx context.Context, client *kubernetes.Clientset, pod string, annotations map[string]string) error {
	return client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod, Labels: map[string]string{boundBy: "heteroflow"}, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// as is a client of another user. In the group of administrators it may do what
// it likes, as far as rights go: policies know it by its name.
func (s *scene) as(user string, groups ...string) *kubernetes.Clientset {
	s.Helper()
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
	client, err := kubernetes.NewForConfig(config)
	s.must("client", err)
	return client
}

// forbidden checks that err is the refusal of a policy that says all the words.
func (s *scene) forbidden(what string, err error, words ...string) {
	s.Helper()
	if err == nil {
		s.Errorf("%s is let through", what)
		return
	}
	if !apierrors.IsForbidden(err) {
		s.Errorf("%s: refused, but not as forbidden: %v", what, err)
	}
	for _, word := range append(words, "ValidatingAdmissionPolicy 'heteroflow-") {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("%s: the refusal does not say %q: %v", what, word, err)
		}
	}
}
