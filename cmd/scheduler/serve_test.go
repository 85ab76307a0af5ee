package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// oneTenant owns the namespace ns.
const oneTenant = `{"type":"ADDED","object":{"kind":"Tenant","apiVersion":"heteroflow.io/v1alpha1","metadata":{"name":"blue","generation":1},` +
	`"spec":{"namespaces":{"names":["ns"]},"maxPriority":20,"quota":{"cards":{"limit":8}}}}}` + "\n"

// api is an API server with what it streams of nodes and pods, the namespace ns
// and its tenant; other requests are up to rest.
func api(t *testing.T, nodes, pods string, rest http.HandlerFunc) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, known := map[string]struct{ kind, version, events string }{
			"/api/v1/nodes":                            {"Node", "v1", nodes},
			"/api/v1/pods":                             {"Pod", "v1", pods},
			"/api/v1/namespaces":                       {"Namespace", "v1", `{"type":"ADDED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns"}}}` + "\n"},
			"/api/v1/resourcequotas":                   {"ResourceQuota", "v1", ""},
			"/apis/heteroflow.io/v1alpha1/tenants":     {"Tenant", "heteroflow.io/v1alpha1", oneTenant},
			"/apis/heteroflow.io/v1alpha1/preemptions": {"Preemption", "heteroflow.io/v1alpha1", ""},
			"/apis/heteroflow.io/v1alpha1/taskgroups":  {"TaskGroup", "heteroflow.io/v1alpha1", ""},
		}[r.URL.Path]
		if !known || r.URL.Query().Get("watch") == "" {
			rest(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "%s"+`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n",
			list.events, list.kind, list.version)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return write(t, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", server.URL))
}

// emptyCluster is an API server without nodes or pods.
func emptyCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	return api(t, "", "", http.NotFound)
}

// wired is the program that these flags make, deciding alone.
func wired(t *testing.T, ctx context.Context, flags ...string) (*program, config) {
	t.Helper()
	cfg, err := parse(append(flags, "--leader-elect=false"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, cfg
}

// All parts together: it comes up, answers, and stops when told to.
func TestServes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	p, _ := wired(t, ctx, "--kubeconfig", emptyCluster(t))
	extender, public := listen(t), listen(t)
	ran := make(chan error, 1)
	go func() { ran <- p.run(ctx, listeners{extender: extender, public: public}) }()

	get := func(l net.Listener, path string) (int, string) {
		answer, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, answer)
	}
	for code := 0; code != http.StatusOK; { // ready once both lists have been read
		code, _ = get(extender, "/readyz")
	}
	if _, text := get(public, "/metrics"); !strings.Contains(text, "heteroflow_ready 1\n") {
		t.Error("/metrics does not say that it is ready")
	}
	answer, err := http.Post("http://"+extender.Addr().String()+"/filter", "application/json", strings.NewReader(
		`{"Pod":{"metadata":{"name":"p","namespace":"ns","uid":"u"},"spec":{"containers":[{"name":"c","resources":{"limits":{"heteroflow.io/gpu":"1"}}}]}},"NodeNames":["n1"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Nodes":null,"NodeNames":[],"FailedNodes":{"n1":"NodeNotRegistered"},"FailedAndUnresolvableNodes":null,"Error":""}`
	if code, text := read(t, answer); code != http.StatusOK || text != want {
		t.Errorf("filter = %d %s, want %s", code, text, want)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

const (
	oneNode = `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","annotations":{"heteroflow.io/devices":` +
		`"{\"version\":1,\"cards\":[{\"uuid\":\"GPU-a\",\"index\":0,\"vendor\":\"nvidia\",\"model\":\"A100\",\"memoryMiB\":40960,\"cores\":100,\"healthy\":true,\"mode\":\"slice\",\"isolation\":\"driver\"}]}"}},` +
		`"status":{"conditions":[{"type":"Ready","status":"True"}]}}}` + "\n"
	onePod = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":"p","uid":"u"},` +
		`"spec":{"containers":[{"name":"c","resources":{"limits":{"heteroflow.io/gpu":"1"}}}]}}}` + "\n"
)

// A bind that is in flight when the program is told to stop ends in full: its
// Binding, its answer, and the event about it.
func TestStoppingFinishesABind(t *testing.T) {
	binding, goOn, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	kubeconfig := api(t, oneNode, onePod, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "POST /api/v1/namespaces/ns/pods/p/binding":
			close(binding)
			<-goOn
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		case "POST /api/v1/namespaces/ns/events":
			close(told)
			_, _ = io.WriteString(w, `{"kind":"Event","apiVersion":"v1"}`)
		default:
			http.NotFound(w, r)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	p, _ := wired(t, ctx, "--kubeconfig", kubeconfig)
	extender := listen(t)
	ran := make(chan error, 1)
	go func() { ran <- p.run(ctx, listeners{extender: extender, public: listen(t)}) }()
	for !p.cluster.Ready() {
		runtime.Gosched()
	}
	go func() { <-binding; stop(); close(goOn) }()
	answer, err := http.Post("http://"+extender.Addr().String()+"/bind", "application/json",
		strings.NewReader(`{"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if code, text := read(t, answer); code != http.StatusOK || text != `{"Error":""}` {
		t.Errorf("bind = %d %s", code, text)
	}
	if err := <-ran; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
	select {
	case <-told:
	default:
		t.Error("the pod's owner was not told of its cards")
	}
}

// The first address that is taken ends the program.
func TestAddressTaken(t *testing.T) {
	taken := listen(t)
	defer func() { _ = taken.Close() }()
	kubeconfig := emptyCluster(t)
	cert, key := certificate(t)
	at := func(extender, metrics, admission string) []string {
		return []string{"--extender-address", extender, "--metrics-address", metrics, "--admission-address", admission, "--tls-cert-file", cert, "--tls-private-key-file", key}
	}
	const free = "127.0.0.1:0"
	for flag, args := range map[string][]string{
		"--extender-address":  at(taken.Addr().String(), free, free),
		"--metrics-address":   at(free, taken.Addr().String(), free),
		"--admission-address": at(free, free, taken.Addr().String()),
	} {
		var complaint strings.Builder
		status := run(t.Context(), append(args, "--kubeconfig", kubeconfig), io.Discard, &complaint)
		if status != exitFailed || !strings.Contains(complaint.String(), flag+": listen tcp") {
			t.Errorf("%s: status %d, complaint %q", flag, status, complaint.String())
		}
	}
}

// certificate makes one for 127.0.0.1 in two files.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, string(cert)), write(t, string(key))
}

// With a certificate the API server is answered too, by the policy that the program
// was given, and by what is written about tenants.
func TestServesAdmission(t *testing.T) {
	cert, key := certificate(t)
	injecting := write(t, "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec: {injection: downwardAPI}\n")
	ctx, stop := context.WithCancel(t.Context())
	p, _ := wired(t, ctx, "--kubeconfig", emptyCluster(t), "--policy", injecting, "--tls-cert-file", cert, "--tls-private-key-file", key)
	webhooks := listen(t)
	ran := make(chan error, 1)
	go func() { ran <- p.run(ctx, listeners{extender: listen(t), public: listen(t), webhooks: webhooks}) }()
	for !p.cluster.Ready() {
		runtime.Gosched()
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots(t, cert)}}}
	for _, tc := range []struct{ what, path, metadata, gpus, allowed, says string }{
		{"by the policy", "validate", "", "1", "false", "write annotation heteroflow.io/gpu-type"},
		{"by the Tenant's quota", "validate", `,"annotations":{"heteroflow.io/gpu-type":"nvidia"}`, "9", "false",
			"containers[c]: asks for 9 cards; Tenant blue allows 8 (spec.quota.cards.limit)"},
		{"by the Tenant's cap", "mutate", `,"annotations":{"heteroflow.io/gpu-type":"nvidia","heteroflow.io/priority":"90"}`, "1", "true",
			"priority 90 is lowered to 20, the most that the Tenant of namespace ns allows (spec.maxPriority)"},
	} {
		answer, err := client.Post("https://"+webhooks.Addr().String()+"/webhook/"+tc.path, "application/json", strings.NewReader(fmt.Sprintf(
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"operation":"CREATE","namespace":"ns",`+
				`"object":{"metadata":{"name":"p"%s},"spec":{"schedulerName":"heteroflow-scheduler","containers":[{"name":"c","resources":{"limits":{"heteroflow.io/gpu":%q}}}]}}}}`, tc.metadata, tc.gpus)))
		if err != nil {
			t.Fatal(err)
		}
		if code, text := read(t, answer); code != http.StatusOK || !strings.Contains(text, `"allowed":`+tc.allowed) || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %s = %d %s, want %q", tc.what, tc.path, code, text, tc.says)
		}
	}
	client.CloseIdleConnections()
	stop()
	if err := <-ran; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

func roots(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("no certificate")
	}
	return pool
}

// A certificate that cannot be read ends the program before it serves anything.
func TestCertificateCannotBeRead(t *testing.T) {
	cert, key := certificate(t)
	for name, args := range map[string][]string{
		"no file":             {"--tls-cert-file", cert, "--tls-private-key-file", "/nowhere/key"},
		"one of another pair": {"--tls-cert-file", cert, "--tls-private-key-file", cert},
		"exchanged":           {"--tls-cert-file", key, "--tls-private-key-file", cert},
	} {
		var complaint strings.Builder
		status := run(t.Context(), append(args, "--kubeconfig", emptyCluster(t)), io.Discard, &complaint)
		if status != exitFailed || !strings.Contains(complaint.String(), "--tls-cert-file, --tls-private-key-file: ") {
			t.Errorf("%s: status %d, complaint %q", name, status, complaint.String())
		}
	}
}

// An answer may take as long as a bind and the search for its outcome.
func TestAnswersMayTakeAsLongAsABind(t *testing.T) {
	p, cfg := wired(t, t.Context(), "--kubeconfig", emptyCluster(t))
	if p.longest <= cfg.bindTimeout+cfg.readback || p.longest > 30*time.Second {
		t.Errorf("longest answer %v, want more than %v, and no more than kube-scheduler's httpTimeout of 30s", p.longest, cfg.bindTimeout+cfg.readback)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, answer *http.Response) (int, string) {
	t.Helper()
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
