package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/test/cluster"
)

// post asks h as kube-scheduler does.
func post[A any](t *testing.T, h http.Handler, path string, args any) (answer A) {
	t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	return answer
}

func asked(names ...string) extender.ExtenderArgs {
	return extender.ExtenderArgs{Pod: pod(0), NodeNames: &names}
}

func TestNoopFilter(t *testing.T) {
	tests := map[string]struct {
		mode  Mode
		names []string
		want  [][]string // of calls one after the other
	}{
		"all of them, every time":  {All, []string{"a", "b", "c"}, [][]string{{"a", "b", "c"}, {"a", "b", "c"}}},
		"one in turn":              {One, []string{"a", "b"}, [][]string{{"a"}, {"b"}, {"a"}}},
		"the only one":             {One, []string{"a"}, [][]string{{"a"}, {"a"}}},
		"none of none":             {One, []string{}, [][]string{{}}},
		"all of none, not nothing": {All, []string{}, [][]string{{}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := (&Noop{Mode: tc.mode}).Handler()
			for i, want := range tc.want {
				got := post[extender.ExtenderFilterResult](t, h, "/filter", asked(tc.names...))
				if diff := cmp.Diff(extender.ExtenderFilterResult{NodeNames: &want}, got); diff != "" {
					t.Errorf("call %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestNoopScoresAllAlike(t *testing.T) {
	got := post[extender.HostPriorityList](t, (&Noop{Mode: All}).Handler(), "/score", asked("a", "b"))
	if diff := cmp.Diff(extender.HostPriorityList{{Host: "a"}, {Host: "b"}}, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

// apiserver keeps Bindings, one for each pod.
type apiserver map[types.UID]corev1.Binding

func (a apiserver) bind(_ context.Context, b *corev1.Binding) error {
	if _, bound := a[b.UID]; bound {
		return errors.New("is bound already")
	}
	a[b.UID] = *b
	return nil
}

func TestNoopBinds(t *testing.T) {
	api := apiserver{}
	h := (&Noop{Mode: One, Bind: api.bind}).Handler()
	args := extender.ExtenderBindingArgs{PodName: "p", PodNamespace: "ns", PodUID: "u", Node: "n1"}
	if got := post[extender.ExtenderBindingResult](t, h, "/bind", args); got.Error != "" {
		t.Errorf("bind: %s", got.Error)
	}
	want := apiserver{"u": {
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}}
	if diff := cmp.Diff(want, api); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if got := post[extender.ExtenderBindingResult](t, h, "/bind", args); got.Error != "is bound already" {
		t.Errorf("what the API server refuses is answered with %q", got.Error)
	}
}

func TestNoopRefusesOtherRequests(t *testing.T) {
	tests := map[string]struct {
		method, path, body string
		want               int
	}{
		"ready":        {http.MethodGet, "/readyz", "", http.StatusOK},
		"a broken one": {http.MethodPost, "/filter", "{", http.StatusBadRequest},
		"a read":       {http.MethodGet, "/filter", "", http.StatusMethodNotAllowed},
		"another path": {http.MethodPost, "/preempt", "{}", http.StatusNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			(&Noop{Mode: All}).Handler().ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, bytes.NewReader([]byte(tc.body))))
			if w.Code != tc.want {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tc.want)
			}
		})
	}
}

func TestServeNoopUntilItIsStopped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}]," +
		" users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ServeNoop(ctx, One, address, kubeconfig) }()
	err = cluster.Eventually(ctx, "the extender", func(ctx context.Context) error {
		_, err := fetch(ctx, "http://"+address+"/readyz")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ServeNoop = %v, want context.Canceled", err)
	}
}

func TestServeNoopRefuses(t *testing.T) {
	if err := ServeNoop(t.Context(), "some", "127.0.0.1:0", ""); err == nil {
		t.Error("a mode that there is not")
	}
	if err := ServeNoop(t.Context(), All, "127.0.0.1:0", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no kubeconfig")
	}
}
