package e2e

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// Files of the chart.
const (
	authorProof = "policy-authorproof.yaml"
	fence       = "policy-fence.yaml"
	epochs      = "heteroflow.io_epochs.yaml"
)

// police puts files of the chart in force, and takes the policies among them away
// at the end of the test.
func (s *scene) police(templates ...string) {
	s.Helper()
	s.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.check("end of the policies", s.Repeal(ctx))
	})
	s.must("policies", s.Install(s.ctx, templates...))
}

// as is a client of another user, who may do what he likes as far as rights go.
func (s *scene) as(user string, groups ...string) *kubernetes.Clientset {
	s.Helper()
	client, err := s.As(user, groups...)
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
