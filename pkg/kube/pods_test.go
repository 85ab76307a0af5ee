package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// lister has these pods.
func lister(t testing.TB, pods ...*corev1.Pod) corelisters.PodLister {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, p := range pods {
		if err := index.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewPodLister(index)
}

// serves answers GET of a pod.
func serves(pod *corev1.Pod) func(*apiServer) {
	return func(s *apiServer) {
		s.other = func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/api/v1/namespaces/ns/pods/broken":
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "out of order")
			case pod == nil || r.URL.Path != "/api/v1/namespaces/ns/pods/"+pod.Name || r.URL.RawQuery != "":
				refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such pod")
			default:
				answer(w, pod)
			}
		}
	}
}

func TestPods(t *testing.T) {
	type short struct {
		UID     gpu.PodID
		Node    gpu.NodeID
		Asks    int
		Ours    bool
		Gone    bool
		Invalid bool
	}
	bad := unbound("p")
	bad.Annotations = map[string]string{"heteroflow.io/gpu-type": "abacus"}
	tests := map[string]struct {
		cached, live *corev1.Pod
		cacheOnly    short // what Pod says
		wantErr      error
	}{
		"cached":           {cached: unbound("p"), cacheOnly: short{UID: "uid-p", Asks: 1}},
		"not cached yet":   {live: unbound("p"), cacheOnly: short{UID: "uid-p", Asks: 1}},
		"cached wins":      {cached: unbound("p"), live: boundPod(t, "p"), cacheOnly: short{UID: "uid-p", Asks: 1}},
		"nowhere":          {wantErr: engine.ErrNoPod},
		"bound by us":      {cached: boundPod(t, "p"), cacheOnly: short{UID: "uid-p", Node: "n1", Asks: 1, Ours: true}},
		"bound by hand":    {cached: boundPod(t, "p", func(p *corev1.Pod) { p.Annotations = nil }), cacheOnly: short{UID: "uid-p", Node: "n1", Asks: 1}},
		"being deleted":    {cached: boundPod(t, "p", terminating(30)), cacheOnly: short{UID: "uid-p", Node: "n1", Asks: 1, Ours: true, Gone: true}},
		"failed unbound":   {cached: withPhase(unbound("p"), corev1.PodFailed), cacheOnly: short{UID: "uid-p", Asks: 1, Gone: true}},
		"called failed":    {cached: boundPod(t, "p", collected), cacheOnly: short{UID: "uid-p", Node: "n1", Asks: 1, Ours: true, Gone: true}},
		"invalid":          {cached: bad, cacheOnly: short{UID: "uid-p", Invalid: true}},
		"asks for no card": {cached: withoutCards(unbound("p")), cacheOnly: short{UID: "uid-p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var cached []*corev1.Pod
			if tc.cached != nil {
				cached = append(cached, tc.cached)
			}
			pods := &Pods{Client: newAPIServer(t, serves(tc.live)).client(t), Lister: lister(t, cached...), Settings: policy.Default()}
			got, err := pods.Pod(t.Context(), "ns", "p")
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if s := (short{got.Request.Pod, got.Node, len(got.Request.Asks), got.Ours, got.Gone, got.Invalid != nil}); s != tc.cacheOnly {
				t.Errorf("pod %+v, want %+v", s, tc.cacheOnly)
			}
		})
	}
}

// What became of a Binding is never looked up in a cache.
func TestLiveAsksTheAPIServer(t *testing.T) {
	pods := &Pods{Client: newAPIServer(t, serves(boundPod(t, "p"))).client(t), Lister: lister(t, unbound("p")), Settings: policy.Default()}
	got, err := pods.Live(t.Context(), "ns", "p")
	if err != nil || got.Node != "n1" || !got.Ours {
		t.Errorf("Live = %+v, %v; want the bound pod", got, err)
	}
	if _, err := pods.Live(t.Context(), "ns", "other"); !errors.Is(err, engine.ErrNoPod) {
		t.Errorf("another: %v, want ErrNoPod", err)
	}
	if _, err := pods.Live(t.Context(), "ns", "broken"); err == nil || errors.Is(err, engine.ErrNoPod) {
		t.Errorf("a fault: %v, which must not look like an answer", err)
	}
}

// A touch changes the pod, whatever it was touched with before, and only that
// very pod.
func TestTouchChangesThatPod(t *testing.T) {
	var patches []string
	server := newAPIServer(t, func(s *apiServer) {
		s.other = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method != http.MethodPatch || r.Header.Get("Content-Type") != string(types.StrategicMergePatchType) {
				t.Errorf("%s as %s: %v", r.Method, r.Header.Get("Content-Type"), err)
			}
			switch r.URL.Path {
			case "/api/v1/namespaces/ns/pods/p/status":
				patches = append(patches, string(body))
				answer(w, unbound("p"))
			case "/api/v1/namespaces/ns/pods/other/status":
				refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "Precondition failed: UID in precondition")
			default:
				refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such pod")
			}
		}
	})
	now, told := start(), 0
	pods := &Pods{Client: server.client(t), Lister: lister(t), Settings: policy.Default(), Now: func() time.Time { now = now.Add(1); return now },
		Touched: func() { told++ }}
	to := func(name string) engine.Target {
		return engine.Target{Pod: gpu.PodID("uid-" + name), Namespace: "ns", Name: name}
	}
	for range 2 {
		got, err := pods.Touch(t.Context(), to("p"), "room")
		if err != nil || got.Request.Pod != "uid-p" || got.Node != "" {
			t.Errorf("Touch = %+v, %v; want the pod", got, err)
		}
	}
	if told != 2 {
		t.Errorf("told of %d touches, want 2", told)
	}
	if len(patches) != 2 || patches[0] == patches[1] {
		t.Errorf("patches %q, want two that differ within a second", patches)
	}
	if !strings.Contains(patches[0], `"metadata":{"uid":"uid-p"}`) {
		t.Errorf("patch %s does not name the UID", patches[0])
	}
	if _, err := pods.Touch(t.Context(), to("other"), "room"); err == nil || errors.Is(err, engine.ErrNoPod) {
		t.Errorf("another pod of the name: %v; want an error that leaves it open", err)
	}
	if _, err := pods.Touch(t.Context(), to("gone"), "room"); !errors.Is(err, engine.ErrNoPod) {
		t.Errorf("a pod that is gone: %v, want ErrNoPod", err)
	}
}

func withPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	pod.Status.Phase = phase
	return pod
}

func withoutCards(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	delete(pod.Annotations, codec.AnnotationGPUType)
	return pod
}
