package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/codec"
)

// wire is the other end of the connection: it keeps what was sent, and answers.
type wire struct {
	sent   string
	answer *metav1.Status // nil: what was asked for is done
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body := "{}"
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	w.sent = fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body)
	answer, code := any(&corev1.Pod{}), http.StatusOK
	if w.answer != nil {
		w.answer.Status = metav1.StatusFailure
		w.answer.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer, code = w.answer, int(w.answer.Code)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if w.answer != nil && w.answer.Code == http.StatusTooManyRequests {
		header.Set("Retry-After", "10") // which is not waited for
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

func (w *wire) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: w, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Whatever is changed is changed of the very version that was read: that is what keeps
// an eviction from hitting a pod that has been spared, or another of its name.
func TestRequestsAreOfOneVersion(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "v", UID: "u1", ResourceVersion: "7"}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "uj", ResourceVersion: "8"}}
	for name, tc := range map[string]struct {
		do   func(PodAPI, JobAPI) error
		want string
	}{
		"evict": {func(p PodAPI, _ JobAPI) error { return p.Evict(t.Context(), pod, false) },
			`POST /api/v1/namespaces/ns/pods/v/eviction {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"v","namespace":"ns"},"deleteOptions":{"preconditions":{"uid":"u1","resourceVersion":"7"}}}`},
		"evict for a trial": {func(p PodAPI, _ JobAPI) error { return p.Evict(t.Context(), pod, true) },
			`POST /api/v1/namespaces/ns/pods/v/eviction {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"v","namespace":"ns"},"deleteOptions":{"preconditions":{"uid":"u1"},"dryRun":["All"]}}`},
		"mark": {func(p PodAPI, _ JobAPI) error {
			_, err := p.Annotate(t.Context(), pod, map[string]any{"a": "b", "c": nil})
			return err
		}, `PATCH /api/v1/namespaces/ns/pods/v {"metadata":{"annotations":{"a":"b","c":null},"resourceVersion":"7","uid":"u1"}}`},
		"kill": {func(p PodAPI, _ JobAPI) error { return p.Kill(t.Context(), pod) },
			`DELETE /api/v1/namespaces/ns/pods/v {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"u1"}}`},
		"suspend": {func(_ PodAPI, j JobAPI) error {
			return j.Suspend(t.Context(), job, true, map[string]any{codec.AnnotationSuspendedBy: "p"})
		}, `PATCH /apis/batch/v1/namespaces/ns/jobs/j {"metadata":{"annotations":{"heteroflow.io/suspended-by":"p"},"resourceVersion":"8","uid":"uj"},"spec":{"suspend":true}}`},
		"resume": {func(_ PodAPI, j JobAPI) error {
			return j.Suspend(t.Context(), job, false, map[string]any{codec.AnnotationSuspendedBy: nil})
		}, `PATCH /apis/batch/v1/namespaces/ns/jobs/j {"metadata":{"annotations":{"heteroflow.io/suspended-by":null},"resourceVersion":"8","uid":"uj"},"spec":{"suspend":false}}`},
		"suspend, and leave the annotations": {func(_ PodAPI, j JobAPI) error { return j.Suspend(t.Context(), job, true, nil) },
			`PATCH /apis/batch/v1/namespaces/ns/jobs/j {"metadata":{"resourceVersion":"8","uid":"uj"},"spec":{"suspend":true}}`},
		"deadline": {func(p PodAPI, _ JobAPI) error { return p.SetDeadline(t.Context(), pod, 7200) },
			`PATCH /api/v1/namespaces/ns/pods/v {"metadata":{"resourceVersion":"7","uid":"u1"},"spec":{"activeDeadlineSeconds":7200}}`},
		"hasten": {func(p PodAPI, _ JobAPI) error { return p.Hasten(t.Context(), pod, 30) },
			`DELETE /api/v1/namespaces/ns/pods/v {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":30,"preconditions":{"uid":"u1","resourceVersion":"7"}}`},
		"create": {func(p PodAPI, _ JobAPI) error {
			_, err := p.Create(t.Context(), "ns", []byte(`{"metadata":{"name":"v"},"spec":{"containers":null}}`))
			return err
		}, `POST /api/v1/namespaces/ns/pods {"kind":"Pod","apiVersion":"v1","metadata":{"name":"v"},"spec":{"containers":null},"status":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{}
			if err := tc.do(PodAPI{w.client(t)}, JobAPI{w.client(t)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.TrimSpace(w.sent)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// A budget that keeps a pod is told apart from whatever else is refused.
func TestBlocked(t *testing.T) {
	budget := &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}}
	for name, tc := range map[string]struct {
		answer  metav1.Status
		blocked bool
	}{
		"a budget":     {metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Details: budget}, true},
		"two budgets":  {metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}, true},
		"a webhook":    {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "admission webhook denied the request"}, true},
		"no trial":     {metav1.Status{Code: 400, Reason: metav1.StatusReasonBadRequest, Message: "admission webhook does not support dry run"}, true},
		"too many":     {metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "the server has received too many requests"}, false},
		"out of order": {metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError, Message: "etcd"}, false},
		"changed":      {metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{answer: &tc.answer}
			err := PodAPI{w.client(t)}.Evict(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "v", UID: "u1"}}, false)
			if err == nil || errors.Is(err, ErrBlocked) != tc.blocked {
				t.Errorf("Evict = %v, blocked should be %v", err, tc.blocked)
			}
		})
	}
}

// A server that does not answer, or is too busy to, is told apart from one that says no.
func TestAnswered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for err, want := range map[error]bool{
		apierrors.NewConflict(pods, "p", io.EOF):                           true,
		apierrors.NewForbidden(pods, "p", io.EOF):                          true,
		fmt.Errorf("evict: %w", apierrors.NewNotFound(pods, "p")):          true,
		apierrors.NewTooManyRequests("slow down", 1):                       false,
		apierrors.NewInternalError(io.EOF):                                 false,
		apierrors.NewServiceUnavailable("etcd"):                            false,
		fmt.Errorf("read: %w", apierrors.NewServerTimeout(pods, "get", 1)): false,
		io.EOF: false,
		fmt.Errorf("read the pod: %w", context.DeadlineExceeded): false,
	} {
		if got := Answered(err); got != want {
			t.Errorf("Answered(%v) = %v, want %v", err, got, want)
		}
	}
}

func TestJobOver(t *testing.T) {
	says := func(of batchv1.JobConditionType, is corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}, {Type: of, Status: is}}}}
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"new":           {&batchv1.Job{}, false},
		"complete":      {says(batchv1.JobComplete, corev1.ConditionTrue), true},
		"failed":        {says(batchv1.JobFailed, corev1.ConditionTrue), true},
		"not failed":    {says(batchv1.JobFailed, corev1.ConditionFalse), false},
		"about to fail": {says(batchv1.JobFailureTarget, corev1.ConditionTrue), false},
		"deleted":       {&batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, true},
	} {
		if got := JobOver(tc.job); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
