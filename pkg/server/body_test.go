package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

func TestMalformedBodies(t *testing.T) {
	tests := map[string]struct {
		path, body, want string // want is part of the text
	}{
		"empty":                         {"/filter", ``, "body: unexpected end of JSON input"},
		"not JSON":                      {"/filter", `{"Pod":`, "body: unexpected end"},
		"null":                          {"/filter", `null`, "Pod: is missing or null"},
		"a list":                        {"/filter", `[]`, "body: json: cannot unmarshal array"},
		"a number":                      {"/bind", `7`, "body: json: cannot unmarshal number"},
		"something behind it":           {"/filter", `{"Pod":{},"NodeNames":[]} {}`, "body: invalid character '{' after top-level value"},
		"garbage behind it":             {"/bind", `{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":"d"}x`, "body: invalid character 'x' after"},
		"no pod":                        {"/filter", `{"NodeNames":["n"]}`, "Pod: is missing or null"},
		"null pod":                      {"/score", `{"Pod":null,"NodeNames":["n"]}`, "Pod: is missing or null"},
		"no nodes":                      {"/filter", `{"Pod":{}}`, "Nodes, NodeNames: both are missing or null"},
		"null nodes":                    {"/score", `{"Pod":{},"Nodes":null,"NodeNames":null}`, "Nodes, NodeNames: both are missing or null"},
		"names that are numbers":        {"/filter", `{"Pod":{},"NodeNames":[1]}`, "NodeNames"},
		"nodes that are a list":         {"/filter", `{"Pod":{},"Nodes":[]}`, "Nodes"},
		"a quantity that is no such":    {"/filter", `{"Pod":{"spec":{"containers":[{"resources":{"limits":{"cpu":"lots"}}}]}},"NodeNames":[]}`, "quantit"},
		"a quantity as small as a trap": {"/filter", `{"Pod":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-999999999"}}}]}},"NodeNames":[]}`, "body: 1e-999999999 is no quantity"},
		"bind without a pod":            {"/bind", `{"PodNamespace":"b","PodUID":"c","Node":"d"}`, "PodName: is missing or empty"},
		"bind without a namespace":      {"/bind", `{"PodName":"a","PodUID":"c","Node":"d"}`, "PodNamespace: is missing or empty"},
		"bind without a UID":            {"/bind", `{"PodName":"a","PodNamespace":"b","Node":"d"}`, "PodUID: is missing or empty"},
		"bind without a node":           {"/bind", `{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":""}`, "Node: is missing or empty"},
		"bind of null":                  {"/bind", `null`, "PodName: is missing or empty"},
		"nested without end":            {"/filter", `{"Pod":` + strings.Repeat(`{"a":`, 20000) + `1`, "body: "},
	}
	r := newRig(untouchable{})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, text := post(t, r.extender, tc.path, tc.body)
			if code != http.StatusBadRequest || !strings.Contains(text, tc.want) {
				t.Errorf("POST %s = %d %q, want 400 with %q", tc.path, code, text, tc.want)
			}
		})
	}
}

func TestWrongContentMethodAndPath(t *testing.T) {
	tests := map[string]struct {
		method, path, content string
		want                  int
	}{
		"a form":                    {"POST", "/filter", "application/x-www-form-urlencoded", 400},
		"nonsense":                  {"POST", "/bind", ";;", 400},
		"JSON with a charset":       {"POST", "/filter", "application/json; charset=utf-8", 200},
		"no content type":           {"POST", "/filter", "", 200},
		"GET":                       {"GET", "/filter", "application/json", 405},
		"PUT":                       {"PUT", "/bind", "application/json", 405},
		"OPTIONS":                   {"OPTIONS", "/bind", "application/json", 405},
		"POST of health":            {"POST", "/healthz", "application/json", 405},
		"unknown path":              {"POST", "/preempt", "application/json", 404},
		"a slash too many":          {"POST", "/filter/", "application/json", 404},
		"another case":              {"POST", "/Filter", "application/json", 404},
		"metrics are not here":      {"GET", "/metrics", "application/json", 404},
		"a path with dots and more": {"GET", "/../../etc/passwd", "", 404},
	}
	r := newRig(newCluster(nil))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(tc.method, tc.path, strings.NewReader(`{"Pod":{},"NodeNames":[]}`))
			if tc.content != "" {
				request.Header.Set("Content-Type", tc.content)
			}
			answer := httptest.NewRecorder()
			r.extender.ServeHTTP(answer, request)
			if answer.Code != tc.want {
				t.Errorf("%s %s = %d %s, want %d", tc.method, tc.path, answer.Code, answer.Body, tc.want)
			}
		})
	}
	if text := r.scrape(t); strings.Contains(text, "passwd") {
		t.Error("a stranger's path became a label")
	}
}

func TestLongBodies(t *testing.T) {
	filled := func(mib int) string {
		pod := newPod("p", 0)
		pod.Annotations = map[string]string{"pad": strings.Repeat("x", mib<<20)}
		body, err := json.Marshal(extender.ExtenderArgs{Pod: pod, NodeNames: names("n1")})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	r := newRig(untouchable{})
	if code, text := post(t, r.extender, "/filter", filled(10)); code != http.StatusOK {
		t.Errorf("10 MiB: %d %.100s", code, text)
	}
	if code, text := post(t, r.extender, "/filter", filled(17)); code != http.StatusRequestEntityTooLarge || text != "body: longer than 16777216 bytes\n" {
		t.Errorf("17 MiB: %d %.100s", code, text)
	}
	r.wantMetric(t, `heteroflow_extender_requests_total{code="413",verb="filter"} 1`)
}

// faulty panics at every question.
type faulty struct{ untouchable }

func TestPanicEndsOneRequestAlone(t *testing.T) {
	r := newRig(faulty{})
	server := httptest.NewUnstartedServer(r.extender)
	server.Config.BaseContext = func(net.Listener) context.Context {
		return klog.NewContext(context.Background(), logr.Discard()) // it would log the stacks
	}
	server.Start()
	defer server.Close()
	send := func(path, body string) int {
		answer, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode
	}
	asks := `{"Pod":{"spec":{"containers":[{"resources":{"limits":{"heteroflow.io/gpu":"1"}}}]}},"NodeNames":["n"]}`
	if code := send("/filter", asks); code != http.StatusInternalServerError {
		t.Errorf("filter = %d, want 500", code)
	}
	if code := send("/bind", `{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":"d"}`); code != http.StatusInternalServerError {
		t.Errorf("bind = %d, want 500", code)
	}
	if code := send("/filter", `{"Pod":{},"NodeNames":[]}`); code != http.StatusOK {
		t.Errorf("the next = %d, want 200", code)
	}
	r.wantMetric(t, `heteroflow_extender_requests_total{code="500",verb="filter"} 1`)
	r.wantMetric(t, `heteroflow_bind_in_flight 0`)
	r.wantMetric(t, `heteroflow_bind_outcomes_total{outcome="error"} 1`)
}

func TestHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		change []func(*Config)
		ready  int
	}{
		"ready":     {nil, http.StatusOK},
		"not ready": {[]func(*Config){unready}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(untouchable{}, tc.change...)
			for listener, h := range map[string]http.Handler{"extender": r.extender, "public": r.public} {
				for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": tc.ready} {
					answer := httptest.NewRecorder()
					h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
					if answer.Code != want {
						t.Errorf("%s %s = %d, want %d", listener, path, answer.Code, want)
					}
				}
			}
		})
	}
}

// The public listener must not bind pods.
func TestPublicHasNoExtenderRoutes(t *testing.T) {
	r := newRig(untouchable{})
	for _, path := range []string{"/filter", "/score", "/bind"} {
		if code, _ := post(t, r.public, path, `{}`); code != http.StatusNotFound {
			t.Errorf("POST %s = %d, want 404", path, code)
		}
	}
}

// allow fails the fuzz on any other status.
func allow(t *testing.T, code int, text string) {
	t.Helper()
	switch code {
	case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
	default:
		t.Fatalf("status %d: %s", code, text)
	}
}

func FuzzFilter(f *testing.F) {
	for _, args := range []extender.ExtenderArgs{
		{Pod: newPod("p", 1), NodeNames: names("n1", "n2", "n1", "")},
		{Pod: newPod("p", 1), Nodes: nodeList("n1", "n2")},
		{Pod: &corev1.Pod{}, NodeNames: &[]string{}},
	} {
		body, err := json.Marshal(args)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"Pod":{"metadata":{"annotations":{"heteroflow.io/bad":""}}},"Nodes":{"items":null}}`))
	f.Add([]byte(`{"pod":{"spec":{"containers":[{"resources":{"limits":{"heteroflow.io/gpu":"1e99"}}}]}},"nodenames":[null]}`))
	r := newRig(newCluster(map[gpu.NodeID]int{"n1": 1}), func(c *Config) {
		c.Decode = func(pod *corev1.Pod) (gpu.Request, error) { return codec.Request(pod, policy.Default()) }
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		code, text := post(t, r.extender, "/filter", string(body))
		allow(t, code, text)
		code, text = post(t, r.extender, "/score", string(body))
		allow(t, code, text)
	})
}

func FuzzBind(f *testing.F) {
	f.Add([]byte(`{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":"n1"}`))
	f.Add([]byte(`{"PodName":null,"PodUID":{}}`))
	r := newRig(bindsAnything{})
	f.Fuzz(func(t *testing.T, body []byte) {
		code, text := post(t, r.extender, "/bind", string(body))
		allow(t, code, text)
	})
}

// bindsAnything keeps nothing, so that a long fuzz does not grow.
type bindsAnything struct{ untouchable }

func (bindsAnything) Bind(context.Context, engine.Target) (engine.Bound, error) {
	return engine.Bound{Already: true}, nil
}
