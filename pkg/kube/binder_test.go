package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
)

const bindingPath = "/api/v1/namespaces/ns/pods/p/binding"

// onBinding answers Bindings of ns/p and nothing else.
func onBinding(answer http.HandlerFunc) func(*apiServer) {
	return func(s *apiServer) {
		s.other = func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != bindingPath {
				refuse(w, http.StatusTeapot, "", "not a Binding")
				return
			}
			answer(w, r)
		}
	}
}

// says answers with a status of the API server's.
func says(code int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		refuse(w, code, "", message)
	}
}

// cut reads the Binding and closes the connection.
func cut(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// cutAnswer closes the connection in the middle of a good answer.
func cutAnswer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"kind":"Status"`)
	panic(http.ErrAbortHandler)
}

func newBinder(t testing.TB, client kubernetes.Interface, cached ...*corev1.Pod) *Binder {
	t.Helper()
	return &Binder{Client: client, Lister: lister(t, cached...), Now: start}
}

// What an answer means decides whether cards are given back at once: to call a
// Binding refused that has happened is to give its cards away twice.
func TestBindErrors(t *testing.T) {
	conflict := `Operation cannot be fulfilled on pods/binding "p": `
	tests := map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"no such pod":              {says(404, `pods "p" not found`), engine.ErrRefused},
		"forbidden, or a policy":   {says(403, "superseded"), engine.ErrRefused},
		"not who we say we are":    {says(401, "Unauthorized"), engine.ErrRefused},
		"malformed":                {says(400, "bad"), engine.ErrRefused},
		"invalid":                  {says(422, "target.name: Required"), engine.ErrRefused},
		"too large":                {says(413, "too large"), engine.ErrRefused},
		"assigned already":         {says(409, conflict+`pod p is already assigned to node "n2"`), engine.ErrRefused},
		"being deleted":            {says(409, conflict+"pod p is being deleted, cannot be assigned to a host"), engine.ErrRefused},
		"gated":                    {says(409, conflict+"pod p has non-empty .spec.schedulingGates"), engine.ErrRefused},
		"another pod of the name":  {says(409, conflict+"StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b"), engine.ErrRefused},
		"etcd too slow, as a 409":  {says(409, conflict+"context deadline exceeded"), engine.ErrUnknown},
		"etcd leaderless, as 409":  {says(409, conflict+"etcdserver: request timed out"), engine.ErrUnknown},
		"a 409 of an unknown kind": {says(409, "hm"), engine.ErrUnknown},
		"request timeout":          {says(408, "slow"), engine.ErrUnknown},
		"internal":                 {says(500, "etcdserver: leader changed"), engine.ErrUnknown},
		"bad gateway":              {says(502, ""), engine.ErrUnknown},
		"unavailable":              {says(503, ""), engine.ErrUnknown},
		"gateway timeout":          {says(504, ""), engine.ErrUnknown},
		"connection cut":           {cut, engine.ErrUnknown},
		"answer cut":               {cutAnswer, engine.ErrUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int32
			server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) { sent.Add(1); tc.answer(w, r) }))
			err := newBinder(t, server.client(t), unbound("p")).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if errors.Is(err, engine.ErrRefused) && errors.Is(err, engine.ErrUnknown) {
				t.Errorf("error %v is both", err)
			}
			if n := sent.Load(); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
		})
	}
}

// A server that says when to come back makes client-go come back by itself. The
// second Binding would meet the first, and its 409 look like a refusal.
func TestBindIsNotRepeatedAfterAFault(t *testing.T) {
	var bound atomic.Bool
	server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) {
		if bound.Swap(true) {
			says(409, `pod p is already assigned to node "n1"`)(w, r)
			return
		}
		w.Header().Set("Retry-After", "0")
		says(500, "the answer got lost")(w, r)
	}))
	err := newBinder(t, server.client(t), unbound("p")).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
	if !errors.Is(err, engine.ErrUnknown) {
		t.Errorf("error %v, want unknown: the pod is bound", err)
	}
}

func TestBindThatHangsIsUnknown(t *testing.T) {
	arrived := make(chan struct{})
	server := newAPIServer(t, onBinding(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-arrived; stop() }()
	err := newBinder(t, server.client(t), unbound("p")).Bind(ctx, whole("p", "GPU-a", 0), nil)
	if !errors.Is(err, engine.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want unknown, for the context has ended", err)
	}
}

func TestNothingSentIsRefused(t *testing.T) {
	tests := map[string]func(t *testing.T) error{
		"context has ended": func(t *testing.T) error {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			return newBinder(t, newAPIServer(t).client(t), unbound("p")).Bind(ctx, whole("p", "GPU-a", 0), nil)
		},
		"nobody listens": func(t *testing.T) error {
			server := newAPIServer(t)
			client := server.client(t)
			server.Close()
			return newBinder(t, client, unbound("p")).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
		},
		"annotations too large": func(t *testing.T) error {
			pod := unbound("p")
			pod.Annotations = map[string]string{"note": strings.Repeat("x", mostAnnotations-500)}
			return newBinder(t, newAPIServer(t).client(t), pod).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
		},
		"too large, not cached": func(t *testing.T) error {
			pod := unbound("p")
			pod.Annotations = map[string]string{"note": strings.Repeat("x", mostAnnotations-500)}
			return newBinder(t, newAPIServer(t, serves(pod)).client(t)).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
		},
		"too large, another one cached": func(t *testing.T) error {
			pod, old := unbound("p"), unbound("p")
			pod.Annotations = map[string]string{"note": strings.Repeat("x", mostAnnotations-500)}
			old.UID = "uid-old"
			return newBinder(t, newAPIServer(t, serves(pod)).client(t), old).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
		},
		"no such pod": func(t *testing.T) error {
			return newBinder(t, newAPIServer(t, serves(nil)).client(t)).Bind(t.Context(), whole("p", "GPU-a", 0), nil)
		},
	}
	for name, bind := range tests {
		t.Run(name, func(t *testing.T) {
			if err := bind(t); !errors.Is(err, engine.ErrRefused) || errors.Is(err, engine.ErrUnknown) {
				t.Errorf("error %v, want refused", err)
			}
		})
	}
}

// The record replaces one that a copied pod brings along: it counts once.
func TestSizeCountsReplacedAnnotationsOnce(t *testing.T) {
	placement := whole("p", "GPU-a", 0)
	added, err := codec.Annotations(placement, start(), 0)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for key, value := range added {
		size += len(key) + len(value)
	}
	for name, tc := range map[string]struct {
		pad int
		ok  bool
	}{
		"exactly full": {mostAnnotations - size - len("note"), true},
		"one over":     {mostAnnotations - size - len("note") + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := unbound("p")
			pod.Annotations = map[string]string{"note": strings.Repeat("x", tc.pad), codec.AnnotationAllocation: "old"}
			b := newBinder(t, newAPIServer(t, onBinding(created)).client(t), pod)
			if err := b.Bind(t.Context(), placement, pod.Annotations); (err == nil) != tc.ok {
				t.Errorf("error %v, want ok %v", err, tc.ok)
			}
		})
	}
}

func created(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
}

func TestBindSendsPodAndCardsAsOne(t *testing.T) {
	var got corev1.Binding
	server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		created(w, r)
	}))
	placement, pod := whole("p", "GPU-a", 0), unbound("p")
	pod.ResourceVersion = "7"
	if err := newBinder(t, server.client(t), pod).Bind(t.Context(), placement, pod.Annotations); err != nil {
		t.Fatal(err)
	}
	annotations, err := codec.Annotations(placement, start(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.Binding{
		TypeMeta: metav1.TypeMeta{Kind: "Binding", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "uid-p", ResourceVersion: "7", Annotations: annotations,
			Labels: map[string]string{"heteroflow.io/bound-by": "heteroflow"},
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Binding (-want +got):\n%s", diff)
	}
}

// A copy of a bound pod carries what its original's containers were shown: none
// of it survives the copy's own Binding.
func TestBindSupersedesAnEarlierLife(t *testing.T) {
	var got corev1.Binding
	server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		created(w, r)
	}))
	pod := unbound("p")
	pod.Annotations = map[string]string{
		"heteroflow.io/visible-devices-0": "GPU-z", "heteroflow.io/visible-devices-7": "GPU-z",
		"heteroflow.io/mem-limit-0": "5", "heteroflow.io/core-limit-0": "5", "mine": "stays",
	}
	if err := newBinder(t, server.client(t), pod).Bind(t.Context(), whole("p", "GPU-a", 0), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"heteroflow.io/visible-devices-0": "GPU-a", "heteroflow.io/visible-devices-7": "",
		"heteroflow.io/mem-limit-0": "", "heteroflow.io/core-limit-0": "",
	}
	for key, value := range want {
		if is, ok := got.Annotations[key]; !ok || is != value {
			t.Errorf("%s = %q (%t), want %q", key, is, ok, value)
		}
	}
	if _, ok := got.Annotations["mine"]; ok {
		t.Error("the Binding carries an annotation that is not ours")
	}
}

// A Binding is for one version of its pod. Where the cache is behind, or another
// change is faster, it is sent again for the newest; nothing has happened before. But not
// where that is to be placed otherwise, or stays for longer than the one that was.
func TestBindGoesByTheNewestVersion(t *testing.T) {
	const outdated = `Operation cannot be fulfilled on pods/binding "p": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, ` +
		`ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: 7, ResourceVersion in object meta: 8`
	for name, tc := range map[string]struct {
		changes int    // while Bindings are on their way
		was, is string // the annotation of it that has changed, with its value
		sent    int
		want    error
	}{
		"the cache is behind":       {0, "", "", 2, nil},
		"changed twice meanwhile":   {2, "", "", 4, nil},
		"changed again and again":   {9, "", "", mostTries, engine.ErrRefused},
		"what is said to others":    {0, "", "example.com/a=b", 2, nil},
		"its cards of another life": {0, "", codec.AnnotationAllocation + "=x", 2, nil},
		"it is to stay for longer":  {0, codec.AnnotationMaxRuntime + "=1h", codec.AnnotationMaxRuntime + "=1000h", 1, engine.ErrRefused},
		"it is to stay for ever":    {0, codec.AnnotationMaxRuntime + "=1h", "", 1, engine.ErrRefused},
		"it is inference":           {0, "", codec.AnnotationTaskType + "=inference", 1, engine.ErrRefused},
		"it is of another group":    {0, codec.AnnotationTaskGroup + "=a", codec.AnnotationTaskGroup + "=b", 1, engine.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			newest, sent := 8, 0
			server := newAPIServer(t, func(s *apiServer) {
				s.other = func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet {
						pod := unbound("p")
						pod.ResourceVersion = strconv.Itoa(newest)
						pod.Annotations = noted(tc.is)
						answer(w, pod)
						return
					}
					var b corev1.Binding
					if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
						t.Error(err)
					}
					sent++
					if sent > 1 && tc.changes > 0 {
						tc.changes--
						newest++
					}
					if b.ResourceVersion != strconv.Itoa(newest) {
						refuse(w, http.StatusConflict, metav1.StatusReasonConflict, outdated)
						return
					}
					created(w, r)
				}
			})
			cached := unbound("p")
			cached.ResourceVersion = "7"
			cached.Annotations = noted(tc.was)
			err := newBinder(t, server.client(t), cached).Bind(t.Context(), whole("p", "GPU-a", 0), noted(tc.was))
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if sent != tc.sent {
				t.Errorf("sent %d times, want %d", sent, tc.sent)
			}
		})
	}
}

// What was said when it was placed counts, and not what the cache has come to know since.
func TestBindGoesByWhatWasSaid(t *testing.T) {
	sent := 0
	server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) { sent++; created(w, r) }))
	now := unbound("p")
	now.Annotations = noted(codec.AnnotationMaxRuntime + "=1000h")
	err := newBinder(t, server.client(t), now).Bind(t.Context(), whole("p", "GPU-a", 0), noted(codec.AnnotationMaxRuntime+"=1h"))
	if !errors.Is(err, engine.ErrRefused) || !strings.Contains(err.Error(), codec.AnnotationMaxRuntime) || sent != 0 {
		t.Errorf("%d Bindings sent, error %v", sent, err)
	}
}

// noted is this annotation, key=value; "" is none.
func noted(pair string) map[string]string {
	if pair == "" {
		return nil
	}
	key, value, _ := strings.Cut(pair, "=")
	return map[string]string{key: value}
}

// transport answers without a network, so that time can be virtual.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answers(code int, message string) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(code), Message: message,
		Status: map[bool]string{true: metav1.StatusSuccess, false: metav1.StatusFailure}[code < 300],
	})
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body)))}
}

// busy is what the API server's queues answer: plain text, with a header.
func busy() *http.Response {
	return &http.Response{
		StatusCode: http.StatusTooManyRequests,
		Header:     http.Header{"Content-Type": {"text/plain"}, "Retry-After": {"2"}},
		Body:       io.NopCloser(strings.NewReader("Too many requests, please try again later.")),
	}
}

// A 429 comes from the API server's queues: nothing has happened, so the Binding
// is sent again. What then comes back may be about an earlier one.
func TestBindIsRepeatedWhenTheServerIsBusy(t *testing.T) {
	tests := map[string]struct {
		codes   []int // in turn
		longest time.Duration
		want    error
		took    time.Duration
	}{
		"then it is not":          {[]int{429, 429, 201}, time.Minute, nil, 4 * time.Second},
		"and stays so":            {[]int{429, 429, 429, 429, 201}, time.Minute, engine.ErrUnknown, 6 * time.Second},
		"then says no":            {[]int{429, 404}, time.Minute, engine.ErrUnknown, 2 * time.Second},
		"not busy":                {[]int{201}, time.Minute, nil, 0},
		"for longer than we have": {[]int{429, 429, 429, 429}, 5 * time.Second, engine.ErrUnknown, 5 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				client, err := newClient("http://api", transport(func(*http.Request) (*http.Response, error) {
					sent++
					if tc.codes[sent-1] == http.StatusTooManyRequests {
						return busy(), nil
					}
					return answers(tc.codes[sent-1], ""), nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), tc.longest)
				defer stop()
				began := time.Now()
				err = newBinder(t, client, unbound("p")).Bind(ctx, whole("p", "GPU-a", 0), nil)
				if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
					t.Errorf("error %v, want %v", err, tc.want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// A connection that cannot be made has carried nothing.
func TestRefusedKnowsTheDial(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"dial": {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"read": {&net.OpError{Op: "read", Err: errors.New("connection reset")}, false},
		"else": {io.ErrUnexpectedEOF, false},
	} {
		if got := refused(tc.err); got != tc.want {
			t.Errorf("%s: refused = %v, want %v", name, got, tc.want)
		}
	}
}
