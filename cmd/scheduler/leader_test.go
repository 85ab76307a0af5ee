package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// realm is what a replica needs to lead: a Lease, and the Epoch. It has no
// admission policies, so there is no fence to prove.
type realm struct {
	mu       sync.Mutex
	lease    []byte        // guarded by mu; as it was written
	kind     string        // guarded by mu; its Content-Type
	released chan struct{} // closed when the Lease is written without its holder
}

// advertised is in the name of whoever holds the Lease.
const advertised = "127.0.0.1:1"

func (r *realm) serve(w http.ResponseWriter, q *http.Request) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/heteroflow-system/leases"
	switch q.Method + " " + q.URL.Path {
	case "POST " + leases, "PUT " + leases + "/heteroflow-scheduler":
		r.write(q)
		r.read(w, q)
	case "GET " + leases + "/heteroflow-scheduler":
		r.read(w, q)
	case "POST /apis/heteroflow.io/v1alpha1/epochs":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, q.Body)
	case "GET /api/v1/pods":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	case "GET /apis/heteroflow.io/v1alpha1/preemptions":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PreemptionList","apiVersion":"heteroflow.io/v1alpha1","metadata":{"resourceVersion":"7"},"items":[]}`)
	case "GET /apis/heteroflow.io/v1alpha1/taskgroups":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"TaskGroupList","apiVersion":"heteroflow.io/v1alpha1","metadata":{"resourceVersion":"7"},"items":[]}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

func (r *realm) write(q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease, _ = io.ReadAll(q.Body)
	r.kind = q.Header.Get("Content-Type")
	if !bytes.Contains(r.lease, []byte(advertised)) {
		close(r.released)
	}
}

func (r *realm) read(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease == nil {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", r.kind)
	_, _ = w.Write(r.lease)
}

// The Lease is given up when nothing can be bound any more, and not before. A
// request for admission that goes on, or somebody who reads figures slowly, does
// not keep the next leader waiting.
func TestTheLeaseDoesNotWaitForOthersRequests(t *testing.T) {
	cert, key := certificate(t)
	r := &realm{released: make(chan struct{})}
	cfg, err := parse([]string{"--kubeconfig", api(t, "", "", r.serve), "--tls-cert-file", cert, "--tls-private-key-file", key,
		"--replica-advertise", advertised, "--fence-delay", "0s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p, err := wire(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	desk := slow{make(chan error, 100)}
	p.tenants.Writer = desk
	l := listeners{extender: listen(t), public: listen(t), webhooks: listen(t)}
	ran := make(chan error, 1)
	go func() { ran <- p.run(ctx, l) }()
	<-p.leader.Led()
	secure, err := tls.Dial("tcp", l.webhooks.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	review, bind := half(t, secure, "/webhook/mutate"), half(t, dial(t, l.extender), "/bind")

	stop()
	for open := true; open; { // until it has stopped listening
		conn, err := net.Dial("tcp", l.public.Addr().String())
		if open = err == nil; open {
			_ = conn.Close()
		}
	}
	if !p.leader.State().Here {
		t.Error("it does not lead any more while a bind is open")
	}
	if answer := bind.finish(t); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the bind that was open is answered with %s", answer.Status)
	}
	select {
	case <-r.released:
	case err := <-ran:
		t.Fatalf("run = %v before the Lease is released", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the Lease is not released while a request for admission is open")
	}
	for left := false; !left; { // those of before have run out of time
		select {
		case err := <-desk.ended:
			left = errors.Is(err, context.Canceled)
		case <-time.After(20 * time.Second):
			t.Fatal("what only a leader does goes on when it does not lead any more")
		}
	}
	select {
	case err := <-ran:
		t.Errorf("run = %v while a request for admission is open", err)
	default:
	}
	if answer := review.finish(t); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the request that was open is answered with %s", answer.Status)
	}
	if err := <-ran; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

// slow writes no status before its context ends, and says how it did.
type slow struct{ ended chan error }

func (s slow) UpdateStatus(ctx context.Context, _ *v1alpha1.Tenant, _ metav1.UpdateOptions) (*v1alpha1.Tenant, error) {
	<-ctx.Done()
	s.ended <- ctx.Err()
	return nil, ctx.Err()
}

// halfway is a request whose body the server is waiting for.
type halfway struct {
	conn net.Conn
	back *bufio.Reader
}

// half sends a request up to its body. The server says "100 Continue" when it
// begins to read that.
func half(t *testing.T, conn net.Conn, path string) halfway {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	back := bufio.NewReader(conn)
	if line, err := back.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("answer %q, %v", line, err)
	}
	_, _ = back.ReadString('\n') // the empty line after it
	return halfway{conn, back}
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (h halfway) finish(t *testing.T) *http.Response {
	t.Helper()
	if _, err := io.WriteString(h.conn, "{}"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(h.back, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}
