package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// onEpochs answers requests about epochs and nothing else.
func onEpochs(answer http.HandlerFunc) func(*apiServer) {
	return func(s *apiServer) {
		s.other = func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/apis/heteroflow.io/v1alpha1/epochs") {
				refuse(w, http.StatusTeapot, "", "not about epochs")
				return
			}
			answer(w, r)
		}
	}
}

func epochsAt(t *testing.T, answer http.HandlerFunc) *Epochs {
	t.Helper()
	return &Epochs{Client: newAPIServer(t, onEpochs(answer)).client(t), Now: start}
}

func anEpoch(number int64, holder, version string) *v1alpha1.Epoch {
	return &v1alpha1.Epoch{
		TypeMeta:   metav1.TypeMeta{APIVersion: "heteroflow.io/v1alpha1", Kind: "Epoch"},
		ObjectMeta: metav1.ObjectMeta{Name: "scheduler", UID: "u", ResourceVersion: version},
		Spec:       v1alpha1.EpochSpec{Number: number, Holder: holder},
	}
}

func TestCurrentEpoch(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   *v1alpha1.Epoch
		fault  string
	}{
		"there is one": {answer: func(w http.ResponseWriter, _ *http.Request) { answer(w, anEpoch(7, "a", "3")) }, want: anEpoch(7, "a", "3")},
		"there is none": {answer: func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, `epochs.heteroflow.io "scheduler" not found`)
		}},
		"there is not even the resource": {answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) },
			fault: "read the Epoch: the custom resource epochs.heteroflow.io is not installed"},
		"we may not": {answer: func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "user cannot get resource epochs")
		}, fault: "read the Epoch: user cannot get resource epochs"},
		"not an Epoch": {answer: func(w http.ResponseWriter, _ *http.Request) { answer(w, []int{1}) }, fault: "read the Epoch: answer of the API server"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := epochsAt(t, tc.answer).Current(t.Context())
			if (err == nil) != (tc.fault == "") || err != nil && !strings.HasPrefix(err.Error(), tc.fault) {
				t.Fatalf("error %v, want %q", err, tc.fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Epoch (-want +got):\n%s", diff)
			}
		})
	}
}

// A new Epoch starts from the clock, so that one which was deleted does not come
// back; another follows it, and is written only over the one that was read.
func TestRaise(t *testing.T) {
	clock := start().Unix()
	tests := map[string]struct {
		was          *v1alpha1.Epoch
		least        int64
		method, path string
		number       int64
		version, uid string
	}{
		"the first":               {method: "POST", path: "", number: clock},
		"after one deleted":       {least: 5, method: "POST", path: "", number: clock},
		"the clock has gone back": {least: clock + 10, method: "POST", path: "", number: clock + 11},
		"the next":                {was: anEpoch(7, "a", "3"), method: "PUT", path: "/scheduler", number: 8, version: "3", uid: "u"},
		"one that was put back":   {was: anEpoch(7, "a", "3"), least: 9, method: "PUT", path: "/scheduler", number: 10, version: "3", uid: "u"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.Epoch
			var method, path, kind string
			number, err := epochsAt(t, func(w http.ResponseWriter, r *http.Request) {
				method, path, kind = r.Method, strings.TrimPrefix(r.URL.Path, "/apis/heteroflow.io/v1alpha1/epochs"), r.Header.Get("Content-Type")
				body, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(body, &got); err != nil {
					t.Errorf("body %s: %v", body, err)
				}
				answer(w, got)
			}).Raise(t.Context(), tc.was, tc.least, "me")
			if err != nil || number != tc.number {
				t.Fatalf("raised to %d, %v; want %d", number, err, tc.number)
			}
			if method != tc.method || path != tc.path || kind != "application/json" {
				t.Errorf("%s %s as %s", method, path, kind)
			}
			want := anEpoch(tc.number, "me", tc.version)
			if want.UID = "u"; tc.uid == "" {
				want.UID = ""
			}
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRaiseIsOvertaken(t *testing.T) {
	_, err := epochsAt(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	}).Raise(t.Context(), anEpoch(7, "a", "3"), 0, "me")
	if err == nil || !strings.HasPrefix(err.Error(), "raise the Epoch to 8: ") {
		t.Errorf("error %v", err)
	}
}
