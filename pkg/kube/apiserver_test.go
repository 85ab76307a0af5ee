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
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
)

// apiServer speaks as much of the API as is needed here, over real HTTP. It has
// what clusters follow to list and to watch; everything else is up to other.
type apiServer struct {
	*httptest.Server
	streams     bool // takes watches that begin with a list
	other       http.HandlerFunc
	nodes       []corev1.Node
	pods        []corev1.Pod
	namespaces  []corev1.Namespace
	quotas      []corev1.ResourceQuota
	tenants     []v1alpha1.Tenant
	preemptions []v1alpha1.Preemption
	groups      []v1alpha1.TaskGroup
	news        chan string            // watch events of pods, as JSON
	written     map[string]chan string // those of what rules are made of, by resource
	lacks       atomic.Bool            // the kind Tenant
	lacksMore   atomic.Bool            // the kind Preemption
	lacksGroups atomic.Bool            // the kind TaskGroup

	mu    sync.Mutex
	asked []string // guarded by mu: "pods list resourceVersion=...", in the order of arrival
}

func newAPIServer(t testing.TB, change ...func(*apiServer)) *apiServer {
	t.Helper()
	s := &apiServer{streams: true, other: http.NotFound, news: make(chan string), written: map[string]chan string{}}
	for _, resource := range []string{"namespaces", "resourcequotas", "tenants", "preemptions", "taskgroups"} {
		s.written[resource] = make(chan string)
	}
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

// own is a client for the kinds of our group.
func (s *apiServer) own(t testing.TB) versioned.Interface { return newKinds(t, s.URL, nil) }

func newKinds(t testing.TB, host string, through http.RoundTripper) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(&rest.Config{Host: host, QPS: -1, Transport: through})
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
	resource := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/heteroflow.io/v1alpha1/"), "/api/v1/")
	kind, followed := kindOf(resource)
	query := r.URL.Query()
	switch {
	case !followed || r.Method != http.MethodGet:
		s.other(w, r)
	case kind == v1alpha1.TenantKind && s.lacks.Load(), kind == v1alpha1.PreemptionKind && s.lacksMore.Load(), kind == v1alpha1.TaskGroupKind && s.lacksGroups.Load():
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	case query.Get("watch") == "":
		s.note(resource+" list", query)
		answer(w, map[string]any{"kind": kind + "List", "apiVersion": versionOf(kind), "metadata": metav1.ListMeta{ResourceVersion: "100"}, "items": s.objects(resource)})
	case query.Get("sendInitialEvents") == "true" && !s.streams:
		s.note(resource+" stream", query)
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: is not known")
	default:
		s.note(resource+" watch", query)
		s.watch(w, r, resource, query.Get("sendInitialEvents") == "true")
	}
}

// kindOf returns the kind of a resource that clusters follow.
func kindOf(resource string) (kind string, followed bool) {
	kind, followed = map[string]string{
		"nodes": "Node", "pods": "Pod", "namespaces": "Namespace", "resourcequotas": "ResourceQuota", "tenants": v1alpha1.TenantKind,
		"preemptions": v1alpha1.PreemptionKind, "taskgroups": v1alpha1.TaskGroupKind,
	}[resource]
	return kind, followed
}

func versionOf(kind string) string {
	if kind == v1alpha1.TenantKind || kind == v1alpha1.PreemptionKind || kind == v1alpha1.TaskGroupKind {
		return v1alpha1.SchemeGroupVersion.String()
	}
	return "v1"
}

func (s *apiServer) objects(resource string) []any {
	switch resource {
	case "nodes":
		return anyOf(s.nodes)
	case "pods":
		return anyOf(s.pods)
	case "namespaces":
		return anyOf(s.namespaces)
	case "resourcequotas":
		return anyOf(s.quotas)
	case "preemptions":
		return anyOf(s.preemptions)
	case "taskgroups":
		return anyOf(s.groups)
	}
	return anyOf(s.tenants)
}

func anyOf[T any](all []T) []any {
	objects := make([]any, len(all))
	for i := range all {
		objects[i] = &all[i]
	}
	return objects
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

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string, initial bool) {
	w.Header().Set("Content-Type", "application/json")
	flusher := w.(http.Flusher)
	kind, _ := kindOf(resource)
	if initial {
		for _, object := range s.objects(resource) {
			_, _ = fmt.Fprintln(w, watchEvent("ADDED", kind, object))
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n",
			kind, versionOf(kind))
	}
	flusher.Flush()
	news := s.written[resource]
	if resource == "pods" {
		news = s.news
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
	fields["kind"], fields["apiVersion"] = of, versionOf(of)
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
