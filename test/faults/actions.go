package faults

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drop cuts the connection; the request goes nowhere.
func Drop(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// LoseAnswer forwards the request, waits for the answer, and cuts the connection.
func LoseAnswer(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Answer answers with a status of the API server's, without asking it.
func Answer(code int, message string) Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Message: message,
		})
	}
}

// Delay forwards the request after a while, whether or not the client still
// waits for it: on a real network, too, what is on its way arrives.
func Delay(d time.Duration) Action {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		late := keep(r)
		time.Sleep(d)
		pass.ServeHTTP(deaf{w}, late)
	}
}

// deaf is a ResponseWriter that does not tell when the client has gone: a reverse
// proxy would give the request up then.
type deaf struct{ http.ResponseWriter }

// Step stops requests until the test lets them go on.
type Step struct {
	// Reached has one value for each request that has been stopped.
	Reached chan struct{}
	goOn    chan struct{}
}

// NewStep returns a step at which nobody waits yet.
func NewStep() *Step { return &Step{make(chan struct{}, 1000), make(chan struct{})} }

// Release lets all go on, now and later. It is called once.
func (s *Step) Release() { close(s.goOn) }

// Before stops a request before it is forwarded. It is forwarded then although
// its client may have gone.
func (s *Step) Before(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	late := keep(r)
	s.Reached <- struct{}{}
	<-s.goOn
	pass.ServeHTTP(deaf{w}, late)
}

// After stops the answer to a request.
func (s *Step) After(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	answer := httptest.NewRecorder()
	pass.ServeHTTP(answer, r)
	s.Reached <- struct{}{}
	<-s.goOn
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}
