package window

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	"heteroflow.io/heteroflow/pkg/window"
)

// apiserver answers requests for the objects that it has, and keeps what is changed of the
// right version: path -> JSON. A scale is served of what has spec.replicas.
type apiserver struct {
	objects map[string]map[string]any
	kinds   map[string][]metav1.APIResource // path of an API version -> what there is
	version int
	asked   []string
}

const ns = "/namespaces/ns/"

func newServer() *apiserver {
	return &apiserver{objects: map[string]map[string]any{}, kinds: map[string][]metav1.APIResource{
		"/api/v1": {{Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}, {Name: "replicationcontrollers/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true}},
		"/apis/apps/v1": {
			{Name: "daemonsets", Kind: "DaemonSet", Namespaced: true}, {Name: "deployments", Kind: "Deployment", Namespaced: true},
			{Name: "deployments/status", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
		},
		"/apis/autoscaling/v2": {{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}},
	}}
}

// put keeps an object, with a version of its own.
func (s *apiserver) put(path, text string) {
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s.store(path, o)
}

func (s *apiserver) store(path string, o map[string]any) {
	s.version++
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	m["namespace"], m["name"], m["resourceVersion"] = "ns", path[strings.LastIndex(path, "/")+1:], strconv.Itoa(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("u%d", s.version)
	}
	o["kind"], o["apiVersion"] = s.kind(path)
	s.objects[path] = o
}

// kind returns the kind of what is at the path.
func (s *apiserver) kind(path string) (kind, apiVersion string) {
	api, rest, _ := strings.Cut(path, ns)
	resource, _, _ := strings.Cut(rest, "/")
	for _, k := range s.kinds[api] {
		if k.Name == resource {
			kind = k.Kind
		}
	}
	return kind, strings.TrimPrefix(strings.TrimPrefix(api, "/apis/"), "/api/")
}

func (s *apiserver) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	code, answer := s.answer(r.Method, r.URL.Path, body)
	header := http.Header{"Content-Type": {"application/json"}}
	text, err := json.Marshal(answer)
	if code == http.StatusNotFound && answer == nil {
		header, text = http.Header{"Content-Type": {"text/plain"}}, []byte("404 page not found")
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

func (s *apiserver) answer(method, path string, body []byte) (int, any) {
	if kinds, ok := s.kinds[path]; ok {
		return http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, APIResources: kinds}
	}
	api, name, found := strings.Cut(path, ns)
	resource, name, one := strings.Cut(name, "/")
	name, sub, _ := strings.Cut(name, "/")
	if !found || !slices.ContainsFunc(s.kinds[api], func(k metav1.APIResource) bool { return k.Name == strings.TrimSuffix(resource+"/"+sub, "/") }) {
		return http.StatusNotFound, nil
	}
	if !one {
		return http.StatusOK, s.list(path)
	}
	object := s.objects[api+ns+resource+"/"+name]
	if object == nil {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return s.change(method, api+ns+resource+"/"+name, sub, object, body)
}

func status(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)}
}

func (s *apiserver) list(path string) any {
	items := []any{}
	for at, o := range s.objects {
		if strings.HasPrefix(at, path+"/") {
			items = append(items, o)
		}
	}
	kind, apiVersion := s.kind(path)
	return map[string]any{"kind": kind + "List", "apiVersion": apiVersion, "items": items, "metadata": map[string]any{}}
}

// change changes the object, if what comes is of its version.
func (s *apiserver) change(method, path, sub string, object map[string]any, body []byte) (int, any) {
	if method == http.MethodGet {
		return http.StatusOK, view(sub, object)
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	had, _ := object["metadata"].(map[string]any)
	has, _ := sent["metadata"].(map[string]any)
	if has["resourceVersion"] != had["resourceVersion"] || has["uid"] != had["uid"] {
		return status(http.StatusConflict, metav1.StatusReasonConflict)
	}
	before, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	change := body
	if method == http.MethodPut {
		spec, _ := sent["spec"].(map[string]any)
		change, _ = json.Marshal(map[string]any{"spec": map[string]any{"replicas": spec["replicas"]}})
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	s.put(path, string(after))
	return http.StatusOK, view(sub, s.objects[path])
}

// view is the object, or its scale. What is 0 is left out there.
func view(sub string, object map[string]any) any {
	if sub != "scale" {
		return object
	}
	spec, _ := object["spec"].(map[string]any)
	scale := map[string]any{}
	if n, _ := spec["replicas"].(float64); n > 0 {
		scale["replicas"] = n
	}
	return map[string]any{"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": object["metadata"], "spec": scale, "status": map[string]any{"replicas": 1, "later": "kept"}}
}

// api is the client of the server.
func (s *apiserver) api(t *testing.T, now *time.Time) *TargetAPI {
	t.Helper()
	c, d := &rest.Config{Host: "http://api", QPS: -1, Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &rest.Config{Host: "http://api", QPS: -1, Transport: s}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(d)
	if err != nil {
		t.Fatal(err)
	}
	return &TargetAPI{Client: client, Dynamic: dyn, Now: func() time.Time { return *now }}
}

const (
	deployments = "/apis/apps/v1" + ns + "deployments/"
	hpas        = "/apis/autoscaling/v2" + ns + "horizontalpodautoscalers/"
	keda        = "/apis/keda.sh/v1alpha1"
	objects     = keda + ns + "scaledobjects/"
	toChat      = `"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"chat"}`
)

func (s *apiserver) withKEDA() {
	s.kinds[keda] = []metav1.APIResource{{Name: "scaledobjects", Kind: "ScaledObject", Namespaced: true}}
}

func chat() v1alpha1.TaskGroupTarget {
	return v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
}

// What is seen of a target, whoever scales it.
func TestTargetIsRead(t *testing.T) {
	tests := map[string]struct {
		objects map[string]string
		keda    bool
		ref     v1alpha1.TaskGroupTarget
		want    window.State
		ignored string
		missing string
	}{
		"a Deployment":             {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`}, true, chat(), scaled(7), "", ""},
		"at 0":                     {map[string]string{deployments + "chat": `{"spec":{"replicas":0}}`}, true, chat(), scaled(0), "", ""},
		"without KEDA":             {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`}, false, chat(), scaled(7), "", ""},
		"a ReplicationController":  {map[string]string{"/api/v1" + ns + "replicationcontrollers/chat": `{"spec":{"replicas":2}}`}, false, v1alpha1.TaskGroupTarget{APIVersion: "v1", Kind: "ReplicationController", Name: "chat"}, scaled(2), "", ""},
		"an HPA":                   {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, hpas + "h": `{"spec":{"minReplicas":3,"maxReplicas":10,` + toChat + `}}`}, false, chat(), withHPA(7, 3, 10), "", ""},
		"an HPA without a minimum": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, hpas + "h": `{"spec":{"maxReplicas":10,` + toChat + `}}`}, false, chat(), withHPA(7, 1, 10), "", ""},
		"an HPA of another version of the API": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`,
			hpas + "h": `{"spec":{"maxReplicas":10,"scaleTargetRef":{"apiVersion":"apps/v1beta2","kind":"Deployment","name":"chat"}}}`}, false, chat(), withHPA(7, 1, 10), "", ""},
		"HPAs of others": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`,
			hpas + "a": `{"spec":{"maxReplicas":10,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"chat"}}}`,
			hpas + "b": `{"spec":{"maxReplicas":10,"scaleTargetRef":{"apiVersion":"acme.io/v1","kind":"Deployment","name":"chat"}}}`,
			hpas + "c": `{"spec":{"maxReplicas":10,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"talk"}}}`}, false, chat(), scaled(7), "", ""},
		"an HPA that has gone to sleep": {map[string]string{deployments + "chat": `{"spec":{}}`,
			hpas + "h": `{"spec":{"minReplicas":0,"maxReplicas":10,` + toChat + `},"status":{"conditions":[{"type":"ScaledToZero","status":"True"}]}}`}, false, chat(),
			window.State{HPA: &window.Bounds{Min: 0, Max: 10}, Asleep: true}, "", ""},
		"an HPA that has woken": {map[string]string{deployments + "chat": `{"spec":{"replicas":1}}`,
			hpas + "h": `{"spec":{"minReplicas":0,"maxReplicas":10,` + toChat + `},"status":{"conditions":[{"type":"ScaledToZero","status":"False"}]}}`}, false, chat(), withHPA(1, 0, 10), "", ""},
		"two HPAs": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, hpas + "b": `{"spec":{"maxReplicas":10,` + toChat + `}}`, hpas + "a": `{"spec":{"maxReplicas":8,` + toChat + `}}`},
			false, chat(), withHPA(7, 1, 8), "HorizontalPodAutoscaler b", ""},
		"KEDA": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, objects + "s": `{"spec":{` + toChat + `}}`,
			hpas + "keda-hpa-s": `{"metadata":{"ownerReferences":[{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","name":"s","uid":"x"}]},"spec":{"maxReplicas":10,` + toChat + `}}`}, true, chat(), withKEDA(7, ""), "", ""},
		"KEDA by its defaults": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, objects + "s": `{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"5"}},"spec":{"scaleTargetRef":{"name":"chat"}}}`},
			true, chat(), withKEDA(7, "5"), "", ""},
		"KEDA of others": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, objects + "s": `{"spec":{"scaleTargetRef":{"name":"talk"}}}`, objects + "r": `{"spec":{"scaleTargetRef":{"name":"chat","kind":"StatefulSet"}}}`, objects + "q": `{"spec":{"scaleTargetRef":[1]}}`},
			true, chat(), scaled(7), "", ""},
		"too many": {map[string]string{deployments + "chat": `{"spec":{"replicas":7}}`, objects + "s": `{"spec":{` + toChat + `}}`, objects + "t": `{"spec":{` + toChat + `}}`, objects + "u": `{"spec":{` + toChat + `}}`,
			hpas + "h": `{"spec":{"maxReplicas":10,` + toChat + `}}`, hpas + "i": `{"spec":{"maxReplicas":10,` + toChat + `}}`}, true, chat(),
			window.State{Replicas: 7, KEDA: new(string), HPA: &window.Bounds{Min: 1, Max: 10}}, "ScaledObject t, u; HorizontalPodAutoscaler i", ""},
		"no such Deployment":  {nil, true, chat(), window.State{}, "", "there is no Deployment chat"},
		"no scale":            {map[string]string{"/apis/apps/v1" + ns + "daemonsets/chat": `{}`}, true, v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "chat"}, window.State{}, "", "a DaemonSet of apps/v1 has no scale subresource in a namespace, so nothing can scale it"},
		"no such kind":        {nil, true, v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deploymint", Name: "chat"}, window.State{}, "", "the API server knows no kind Deploymint of apps/v1"},
		"no such API version": {nil, true, v1alpha1.TaskGroupTarget{APIVersion: "acme.io/v1", Kind: "Server", Name: "chat"}, window.State{}, "", "the API server knows no kind Server of acme.io/v1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, now := newServer(), start()
			if tc.keda {
				s.withKEDA()
			}
			for path, text := range tc.objects {
				s.put(path, text)
			}
			got, err := s.api(t, &now).Get(t.Context(), "ns", tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.State); diff != "" || got.Ignored != tc.ignored || got.Missing != tc.missing || (got.UID == "") != (tc.missing != "") {
				t.Errorf("missing %q, ignored %q, UID %q, state (-want +got):\n%s", got.Missing, got.Ignored, got.UID, diff)
			}
		})
	}
}

// What is written changes nothing else, and only what was read.
func TestTargetIsWritten(t *testing.T) {
	s, now := newServer(), start()
	s.withKEDA()
	s.put(deployments+"chat", `{"spec":{"replicas":7,"later":"kept"}}`)
	s.put(hpas+"h", `{"metadata":{"annotations":{"a":"b"}},"spec":{"minReplicas":3,"maxReplicas":10,"later":"kept",`+toChat+`}}`)
	s.put(objects+"s", `{"metadata":{"annotations":{"a":"b"}},"spec":{`+toChat+`}}`)
	api := s.api(t, &now)
	read := func() *Target {
		got, err := api.Get(t.Context(), "ns", chat())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	writes := map[string]func(*Target) error{
		"replicas": func(o *Target) error { return api.SetReplicas(t.Context(), o, 0) },
		"hpa":      func(o *Target) error { return api.SetHPA(t.Context(), o, window.Bounds{Min: 0, Max: 4}) },
		"keda":     func(o *Target) error { return api.SetKEDA(t.Context(), o, "0") },
	}
	for name, write := range writes {
		old := read()
		for path := range s.objects {
			s.store(path, s.objects[path]) // somebody changes it
		}
		if err := write(old); !apierrors.IsConflict(err) {
			t.Errorf("%s of another version: %v", name, err)
		}
		if err := write(read()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	zero := "0"
	if diff := cmp.Diff(window.State{HPA: &window.Bounds{Min: 0, Max: 4}, KEDA: &zero}, read().State); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if err := api.SetKEDA(t.Context(), read(), ""); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		deployments + "chat": `{"later":"kept","replicas":0} null`,
		hpas + "h":           `{"later":"kept","maxReplicas":4,"minReplicas":0,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"chat"}} {"a":"b"}`,
		objects + "s":        `{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"chat"}} {"a":"b"}`,
	} {
		spec, err := json.Marshal(s.objects[path]["spec"])
		if err != nil {
			t.Fatal(err)
		}
		notes, err := json.Marshal(s.objects[path]["metadata"].(map[string]any)["annotations"])
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s", spec, notes); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// That something is not there is believed by what the API server says now: a kind that
// has gone, or come, is seen; and nobody is asked all the time.
func TestKindsComeAndGo(t *testing.T) {
	s, now := newServer(), start()
	api := s.api(t, &now)
	ref := v1alpha1.TaskGroupTarget{APIVersion: "acme.io/v1", Kind: "Server", Name: "chat"}
	see := func(want string) {
		t.Helper()
		got, err := api.Get(t.Context(), "ns", ref)
		if err != nil {
			t.Fatal(err)
		}
		if got.Missing != want {
			t.Errorf("missing %q, want %q", got.Missing, want)
		}
	}
	const unknown, unscaled = "the API server knows no kind Server of acme.io/v1", "a Server of acme.io/v1 has no scale subresource in a namespace, so nothing can scale it"
	see(unknown)
	s.kinds["/apis/acme.io/v1"] = []metav1.APIResource{{Name: "servers", Kind: "Server", Namespaced: true}}
	see(unknown)
	if n := len(s.asked); n != 1 {
		t.Errorf("asked %v", s.asked)
	}
	now = now.Add(fresh)
	see(unscaled)
	s.kinds["/apis/acme.io/v1"] = append(s.kinds["/apis/acme.io/v1"], metav1.APIResource{Name: "servers/scale", Kind: "Scale", Namespaced: true})
	now = now.Add(fresh)
	see("there is no Server chat")
	s.put("/apis/acme.io/v1"+ns+"servers/chat", `{"spec":{"replicas":3}}`)
	see("")
	now = now.Add(time.Hour)
	s.kinds["/apis/acme.io/v1"] = s.kinds["/apis/acme.io/v1"][:1]
	see(unscaled)
	delete(s.kinds, "/apis/acme.io/v1")
	now = now.Add(fresh)
	see(unknown)
}

// A question that is not answered is no answer.
func TestNoAnswerIsNoTarget(t *testing.T) {
	for _, path := range []string{"/apis/apps/v1", deployments + "chat/scale", "/apis/autoscaling/v2" + ns + "horizontalpodautoscalers", keda + ns + "scaledobjects"} {
		t.Run(path, func(t *testing.T) {
			s, now := newServer(), start()
			s.withKEDA()
			s.put(deployments+"chat", `{"spec":{"replicas":7}}`)
			api := s.api(t, &now)
			transport := broken{s, path}
			var err error
			if api.Client, err = kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: transport}); err != nil {
				t.Fatal(err)
			}
			if api.Dynamic, err = dynamic.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: transport}); err != nil {
				t.Fatal(err)
			}
			if got, err := api.Get(t.Context(), "ns", chat()); err == nil {
				t.Errorf("seen: %+v", got)
			}
		})
	}
}

// broken refuses one path.
type broken struct {
	*apiserver
	path string
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == b.path {
		text := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"no"}`
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
	return b.apiserver.RoundTrip(r)
}

// The finalizers of a group are changed alone, of the version that was read.
func TestFinalizersAlone(t *testing.T) {
	s := newServer()
	const groups = "/apis/heteroflow.io/v1alpha1"
	s.kinds[groups] = []metav1.APIResource{{Name: "taskgroups", Kind: "TaskGroup", Namespaced: true}, {Name: "taskgroups/status", Kind: "TaskGroup", Namespaced: true}}
	s.put(groups+ns+"taskgroups/chat", `{"metadata":{"finalizers":["other"]},"spec":{"type":"inference","later":"kept"}}`)
	kinds, err := versioned.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	api := GroupAPI{kinds.HeteroflowV1alpha1()}
	old, err := api.Get(t.Context(), "ns", "chat")
	if err != nil {
		t.Fatal(err)
	}
	now, err := api.SetFinalizers(t.Context(), old, []string{"other", v1alpha1.TaskGroupFinalizer})
	if err != nil || !slices.Equal(now.Finalizers, []string{"other", v1alpha1.TaskGroupFinalizer}) {
		t.Errorf("%v, %v", now, err)
	}
	if _, err := api.SetFinalizers(t.Context(), old, nil); !apierrors.IsConflict(err) {
		t.Errorf("of an old version: %v", err)
	}
	if now, err = api.SetFinalizers(t.Context(), now, nil); err != nil || len(now.Finalizers) > 0 {
		t.Errorf("%v, %v", now, err)
	}
	if spec, _ := s.objects[groups+ns+"taskgroups/chat"]["spec"].(map[string]any); spec["later"] != "kept" {
		t.Errorf("spec = %v", spec)
	}
	if _, err := api.UpdateStatus(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("a status of an old version: %v", err)
	}
}
