package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/metrics"
)

// mostReview bounds a request for admission: an update carries a pod twice, as
// JSON, and the API server takes requests of up to 3 MiB.
const mostReview = 8 << 20

// Reviews are read and judged so many at a time, whoever asks: with what a body is
// decoded to that bounds their memory. One takes a millisecond.
const (
	mostReviews = 64
	// bodyTime is how long a body may take to arrive once it has its turn, so that
	// nobody keeps the others out by being slow.
	bodyTime = 5 * time.Second
	// reviewTime is how long the API server waits if it does not say so.
	reviewTime = 10 * time.Second
)

var reviewType = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}

// admit answers one kind of requests for admission.
func (s *Server) admit(op metrics.AdmissionOperation, judge func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		arrived, outcome := time.Now(), metrics.AdmissionError
		defer func() { s.cfg.Metrics.Admitted(op, outcome, time.Since(arrived)) }() // deferred: a panic counts too
		done, err := s.reviewTurn(r)
		if err != nil {
			w.Header().Set("Retry-After", "1") // the API server does, while it has time
			refuse(w, err)
			return
		}
		defer done()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not where there is no connection
		q, err := reviewed(w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		answer, err := judge(q)
		if err != nil {
			refuse(w, err)
			return
		}
		answer.UID = q.UID
		outcome = admissionOutcome(answer)
		if outcome == metrics.AdmissionRefused {
			klog.FromContext(r.Context()).V(perDecision).Info("not admitted",
				"pod", klog.KRef(q.Namespace, q.Name), "operation", q.Operation, "cause", answer.Result.Message)
		}
		reply(w, admissionv1.AdmissionReview{TypeMeta: reviewType, Response: answer})
	}
}

// reviewTurn waits until the request may be read, for half of the time that the
// API server has: with the other half it may try again. The end of the request's
// context is not minded: it ends with this process's, whose last answers are due.
func (s *Server) reviewTurn(r *http.Request) (done func(), err error) {
	longest, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || longest <= 0 || longest > reviewTime {
		longest = reviewTime
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), longest/2)
	defer stop()
	if s.reviews.Acquire(ctx, 1) != nil {
		return nil, &badRequest{http.StatusTooManyRequests, fmt.Sprintf("%d requests are being answered, as many as there may be: try again", mostReviews)}
	}
	return func() { s.reviews.Release(1) }, nil
}

// reviewed reads the request.
func reviewed(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	if err := decodeUpTo(mostReview, w, r, &review); err != nil {
		return nil, err
	}
	switch {
	case review.TypeMeta != reviewType:
		return nil, bad("body: %q %q is not an %s of %s", review.APIVersion, review.Kind, reviewType.Kind, reviewType.APIVersion)
	case review.Request == nil:
		return nil, bad("request: is missing or null")
	case review.Request.UID == "":
		return nil, bad("request.uid: is missing or empty")
	}
	return review.Request, nil
}

func admissionOutcome(a *admissionv1.AdmissionResponse) metrics.AdmissionOutcome {
	switch {
	case !a.Allowed:
		return metrics.AdmissionRefused
	case len(a.Patch) > 0:
		return metrics.AdmissionPatched
	}
	return metrics.AdmissionAllowed
}
