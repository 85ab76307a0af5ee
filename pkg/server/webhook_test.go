package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// door answers by the name of the pod.
type door struct{}

func (door) Mutate(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if q.Name == "changed" {
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[]`), PatchType: &kind, Warnings: []string{"w"}}, nil
	}
	return door{}.Validate(q)
}

func (door) Validate(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	switch q.Name {
	case "refused":
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: 400, Message: "no"}}, nil
	case "wrong":
		return nil, errors.New("request.kind: is wrong")
	case "panic":
		panic("at the door")
	}
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}

func newDoor(t testing.TB) (*rig, http.Handler) {
	t.Helper()
	r := newRig(untouchable{}, unready, func(c *Config) { c.Admission = door{} })
	return r, quietly(r.server.Webhooks())
}

func reviewOf(pod string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","name":"` + pod + `","operation":"CREATE"}}`
}

// Admission needs no ledger: it answers although the server is not ready.
func TestAdmissionAnswers(t *testing.T) {
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1",`
	tests := map[string]struct {
		path, pod  string
		code       int
		want       string // the whole text
		op, counts string
	}{
		"mutate, unchanged":   {"/webhook/mutate", "p", 200, head + `"allowed":true}}`, "mutate", "allowed"},
		"mutate, changed":     {"/webhook/mutate", "changed", 200, head + `"allowed":true,"patch":"W10=","patchType":"JSONPatch","warnings":["w"]}}`, "mutate", "patched"},
		"the short path":      {"/webhook", "changed", 200, head + `"allowed":true,"patch":"W10=","patchType":"JSONPatch","warnings":["w"]}}`, "mutate", "patched"},
		"mutate, refused":     {"/webhook/mutate", "refused", 200, head + `"allowed":false,"status":{"metadata":{},"message":"no","code":400}}}`, "mutate", "refused"},
		"validate, allowed":   {"/webhook/validate", "changed", 200, head + `"allowed":true}}`, "validate", "allowed"},
		"validate, refused":   {"/webhook/validate", "refused", 200, head + `"allowed":false,"status":{"metadata":{},"message":"no","code":400}}}`, "validate", "refused"},
		"not to be judged":    {"/webhook/validate", "wrong", 400, "request.kind: is wrong\n", "validate", "error"},
		"a fault of our own":  {"/webhook/mutate", "panic", 500, "internal error\n", "mutate", "error"},
		"another such, there": {"/webhook/validate", "panic", 500, "internal error\n", "validate", "error"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, h := newDoor(t)
			code, text := post(t, h, tc.path, reviewOf(tc.pod))
			if code != tc.code {
				t.Errorf("status %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			r.wantMetric(t, `heteroflow_admission_requests_total{operation="`+tc.op+`",outcome="`+tc.counts+`"} 1`)
			r.wantMetric(t, `heteroflow_admission_duration_seconds_count{operation="`+tc.op+`"} 1`)
		})
	}
}

func TestReviewsThatCannotBeRead(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"empty":           {``, "body: unexpected end of JSON input"},
		"not JSON":        {`{"request":`, "body: unexpected end"},
		"null":            {`null`, `body: "" "" is not an AdmissionReview of admission.k8s.io/v1`},
		"an old version":  {`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}`, `body: "admission.k8s.io/v1beta1" "AdmissionReview" is not`},
		"another kind":    {`{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{"uid":"u"}}`, `body: "admission.k8s.io/v1" "Pod" is not`},
		"no request":      {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "request: is missing or null"},
		"no UID":          {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, "request.uid: is missing or empty"},
		"something after": {reviewOf("p") + "{}", "body: invalid character '{' after top-level value"},
		"a trap":          {strings.Replace(reviewOf("p"), `"CREATE"`, `"CREATE","object":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-999999999"}}}]}}`, 1), "body: 1e-999999999 is no quantity"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, h := newDoor(t)
			for _, path := range []string{"/webhook/mutate", "/webhook/validate", "/webhook"} {
				if code, text := post(t, h, path, tc.body); code != http.StatusBadRequest || !strings.HasPrefix(text, tc.want) {
					t.Errorf("POST %s = %d %q, want 400 and %q", path, code, text, tc.want)
				}
			}
			r.wantMetric(t, `heteroflow_admission_requests_total{operation="mutate",outcome="error"} 2`)
		})
	}
}

func TestLongReviews(t *testing.T) {
	_, h := newDoor(t)
	padded := func(mib int) string {
		return strings.Replace(reviewOf("p"), `"name":`, `"object":{"a":"`+strings.Repeat("x", mib<<20)+`"},"name":`, 1)
	}
	if code, text := post(t, h, "/webhook/mutate", padded(7)); code != http.StatusOK {
		t.Errorf("7 MiB: %d %.100s", code, text)
	}
	if code, text := post(t, h, "/webhook/mutate", padded(8)); code != http.StatusRequestEntityTooLarge || text != "body: longer than 8388608 bytes\n" {
		t.Errorf("more than 8 MiB: %d %.100s", code, text)
	}
}

// The API server's listener has its own routes and no others; it is ready at
// once, while the others wait for the ledger.
func TestWebhookRoutes(t *testing.T) {
	tests := map[string]struct {
		method, path string
		want         int
	}{
		"health":           {"GET", "/healthz", 200},
		"ready at once":    {"GET", "/readyz", 200},
		"GET":              {"GET", "/webhook/mutate", 405},
		"a slash too many": {"POST", "/webhook/", 404},
		"bind":             {"POST", "/bind", 404},
		"filter":           {"POST", "/filter", 404},
		"metrics":          {"GET", "/metrics", 404},
	}
	r, h := newDoor(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequest(tc.method, tc.path, strings.NewReader(`{}`)))
			if answer.Code != tc.want {
				t.Errorf("%s %s = %d %s, want %d", tc.method, tc.path, answer.Code, answer.Body, tc.want)
			}
		})
	}
	for _, h := range []http.Handler{r.extender, r.public} {
		if code, _ := post(t, h, "/webhook/mutate", reviewOf("p")); code != http.StatusNotFound {
			t.Errorf("another listener answers %d", code)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	for _, pod := range []string{"p", "changed", "refused", "wrong"} {
		f.Add([]byte(reviewOf(pod)))
	}
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"kind":"Pod"},"oldObject":null,"options":[],"dryRun":null}}`))
	_, h := newDoor(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if strings.Contains(string(body), "panic") {
			t.Skip()
		}
		for _, path := range []string{"/webhook/mutate", "/webhook/validate"} {
			code, text := post(t, h, path, string(body))
			allow(t, code, text)
			if code == http.StatusOK && !json.Valid([]byte(text)) {
				t.Fatalf("answer %s", text)
			}
		}
	})
}

// quietly discards the log of h, which would have the stacks of panics.
func quietly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(klog.NewContext(r.Context(), logr.Discard())))
	})
}
