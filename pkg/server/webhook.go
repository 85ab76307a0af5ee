package server

import (
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

var reviewType = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}

// admit answers one kind of requests for admission.
func (s *Server) admit(op metrics.AdmissionOperation, judge func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		arrived, outcome := time.Now(), metrics.AdmissionError
		defer func() { s.cfg.Metrics.Admitted(op, outcome, time.Since(arrived)) }() // deferred: a panic counts too
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
