package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiServer speaks as much of the API as is needed here, over real HTTP. It has
// nodes and pods to list and to watch; everything else is up to other.
type apiServer struct {
	*httptest.Server
	streams bool // takes watches that begin with a list
	other   http.HandlerFunc
	nodes   []corev1.Node
	pods    []corev1.Pod
	news    chan string // watch events of pods, as JSON

	mu    sync.Mutex
	asked []string // guarded by mu: "pods list resourceVersion=...", in the order of arrival
}

func newAPIServer(t testing.TB, change ...func(*apiServer)) *apiServer {
	t.Helper()
	s := &apiServer{streams: true, other: http.NotFound, news: make(chan string)}
	for _, c := range change {
		c(s)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := newClient(s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newClient speaks JSON, which tests can read.
func newClient(host string, through http.RoundTripper) (kubernetes.Interface, error) {
	json := rest.ContentConfig{ContentType: "application/json"}
	return kubernetes.NewForConfig(&rest.Config{Host: host, QPS: -1, Transport: through, ContentConfig: json})
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	resource, isList := strings.CutPrefix(r.URL.Path, "/api/v1/")
	query := r.URL.Query()
	switch {
	case !isList || r.Method != http.MethodGet || resource != "pods" && resource != "nodes":
		s.other(w, r)
	case query.Get("watch") == "":
		s.note(resource+" list", query)
		s.list(w, resource)
	case query.Get("sendInitialEvents") == "true" && !s.streams:
		s.note(resource+" stream", query)
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: is not known")
	default:
		s.note(resource+" watch", query)
		s.watch(w, r, resource, query.Get("sendInitialEvents") == "true")
	}
}

func (s *apiServer) note(what string, query url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := what
	for _, key := range []string{"resourceVersion", "resourceVersionMatch", "sendInitialEvents"} {
		if value, ok := query[key]; ok {
			line += " " + key + "=" + value[0]
		}
	}
	s.asked = append(s.asked, line)
}

// questions returns what was asked about a resource, in order.
func (s *apiServer) questions(resource string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(q string) bool { return !strings.HasPrefix(q, resource) })
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	meta := metav1.ListMeta{ResourceVersion: "100"}
	if resource == "nodes" {
		answer(w, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: meta, Items: s.nodes})
		return
	}
	answer(w, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta, Items: s.pods})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string, initial bool) {
	w.Header().Set("Content-Type", "application/json")
	flusher := w.(http.Flusher)
	kind := map[string]string{"nodes": "Node", "pods": "Pod"}[resource]
	if initial {
		for i := range s.nodes {
			if resource == "nodes" {
				_, _ = fmt.Fprintln(w, watchEvent("ADDED", kind, &s.nodes[i]))
			}
		}
		for i := range s.pods {
			if resource == "pods" {
				_, _ = fmt.Fprintln(w, watchEvent("ADDED", kind, &s.pods[i]))
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", kind)
	}
	flusher.Flush()
	news := s.news
	if resource != "pods" {
		news = nil
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-news:
			_, _ = fmt.Fprintln(w, line)
			flusher.Flush()
		}
	}
}

// watchEvent is one watch event.
func watchEvent(kind, of string, object any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		panic(err)
	}
	fields["kind"], fields["apiVersion"] = of, "v1"
	raw, err = json.Marshal(map[string]any{"type": kind, "object": fields})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}
