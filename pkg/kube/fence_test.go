package kube

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/codec"
)

// What an API server answers to a Binding of a pod that does not exist.
const (
	fenceSays  = `pods "heteroflow-fence-proof" is forbidden: ValidatingAdmissionPolicy 'heteroflow-fence' with binding 'heteroflow-fence' denied request: `
	superseded = fenceSays + "this scheduler, of epoch 6, has been superseded by b, of epoch 7"
	noParams   = fenceSays + "no params found for policy binding with `Deny` parameterNotFoundAction"
)

func notFound(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Message: kind + " not found", Details: &metav1.StatusDetails{Kind: kind},
		})
	}
}

func refused403(message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, message)
	}
}

func done(w http.ResponseWriter, _ *http.Request) {
	answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

// The fence is in force when the present epoch is let pass and another is not, and
// only then: whoever believes in one that is not there binds beside a zombie.
func TestProve(t *testing.T) {
	tests := map[string]struct {
		current, other http.HandlerFunc
		fault          string
		none           bool // there is none, for certain
	}{
		"in force":                     {notFound("pods"), refused403(superseded), "", false},
		"no policy":                    {notFound("pods"), notFound("pods"), "is the ValidatingAdmissionPolicy heteroflow-fence there", true},
		"no binding of the policy":     {notFound("pods"), notFound("pods"), "is the ValidatingAdmissionPolicy heteroflow-fence there", true},
		"no Epoch":                     {refused403(noParams), refused403(noParams), "no params found", true},
		"the new one is not known yet": {refused403(superseded), notFound("pods"), "has been superseded", true},
		"no such namespace":            {notFound("namespaces"), notFound("namespaces"), "namespaces not found", false},
		"no right to bind":             {refused403("cannot create resource pods/binding"), refused403("cannot create resource pods/binding"), "cannot create", false},
		"another policy refuses":       {notFound("pods"), refused403("ValidatingAdmissionPolicy 'other' denied request"), "could not be tried", false},
		"another policy refuses both":  {refused403("ValidatingAdmissionPolicy 'other' denied request"), refused403(superseded), "could not be tried", false},
		"out of order":                 {notFound("pods"), says(500, "etcd"), "could not be tried", false},
		"out of order from the first":  {says(500, "etcd"), says(500, "etcd"), "could not be tried", false},
		"bound, it says":               {done, done, "answered as done", false},
		"other is bound, it says":      {notFound("pods"), done, "answered as done", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var epochs []string
			server := newAPIServer(t, func(s *apiServer) {
				s.other = func(w http.ResponseWriter, r *http.Request) {
					b := tried(t, r)
					epochs = append(epochs, b.Annotations[codec.AnnotationEpoch])
					if b.Annotations[codec.AnnotationEpoch] == "7" {
						tc.current(w, r)
						return
					}
					tc.other(w, r)
				}
			})
			err := (&Fence{Client: server.client(t), Namespace: "system"}).Prove(t.Context(), 7)
			if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
			if errors.Is(err, ErrNoFence) != tc.none {
				t.Errorf("error %v; there is none for certain: want %t", err, tc.none)
			}
			if err == nil && !slices.Equal(epochs, []string{"7", "6"}) {
				t.Errorf("tried epochs %q", epochs)
			}
		})
	}
}

// tried checks that the request is a trial, which binds nobody.
func tried(t *testing.T, r *http.Request) corev1.Binding {
	t.Helper()
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/system/pods/heteroflow-fence-proof/binding" || r.URL.Query().Get("dryRun") != "All" {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	var b corev1.Binding
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &b); err != nil {
		t.Errorf("body %s: %v", body, err)
	}
	if b.Labels[codec.BoundByLabel] != codec.BoundByValue {
		t.Errorf("labels %v: the fence knows ours by one", b.Labels)
	}
	return b
}

func TestFenceIsSupported(t *testing.T) {
	list := func(names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "admissionregistration.k8s.io/v1"}
			for _, n := range names {
				l.APIResources = append(l.APIResources, metav1.APIResource{Name: n})
			}
			answer(w, l)
		}
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   bool
		fault  bool
	}{
		"as ever since 1.30":   {list("mutatingwebhookconfigurations", "validatingadmissionpolicies"), true, false},
		"before that":          {list("mutatingwebhookconfigurations"), false, false},
		"no such group":        {http.NotFound, false, false},
		"nobody knows for now": {says(500, "out of order"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, func(s *apiServer) { s.other = tc.answer })
			got, err := (&Fence{Client: server.client(t)}).Supported(t.Context())
			if got != tc.want || (err != nil) != tc.fault {
				t.Errorf("supported %t, %v", got, err)
			}
		})
	}
}

func TestFenceRefused(t *testing.T) {
	for text, want := range map[string]bool{superseded: true, noParams: true, "pods p is forbidden": false,
		"ValidatingAdmissionPolicy 'heteroflow-authorproof' denied": false} {
		if got := FenceRefused(orNone(&textError{text})); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if FenceRefused(nil) {
		t.Error("no error is taken for one")
	}
}

type textError struct{ text string }

func (e *textError) Error() string { return e.text }
