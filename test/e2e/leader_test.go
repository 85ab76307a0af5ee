package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/test/cluster"
)

// quick is an election in which a leader that has gone is missed after 3 s.
var quick = cluster.Election{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, FenceDelay: time.Second}

// usual is what the flags say where they are not given.
var usual = cluster.Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond, FenceDelay: time.Second}

// electing is how replicas run.
func electing(e cluster.Election) cluster.Extender {
	x := defaults
	x.Elect = e
	return x
}

// fleet is a scene with several replicas in place of the one extender, and the
// fence in force.
type fleet struct {
	*scene
	front    *front
	replicas []*cluster.Replica
}

// beginFleet gives a test a cluster in which no replica runs yet. kube-scheduler
// is not changed: see schedules.
func beginFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{scene: begin(t, shared.running)}
	f.police(epochs, fence)
	f.StopExtender()
	f.stage.running = cluster.Extender{} // whoever comes next starts it again
	front, err := newFront()
	f.must("a front", err)
	f.front = front
	t.Cleanup(f.end)
	return f
}

func (f *fleet) end() {
	if f.Failed() {
		for _, r := range f.replicas {
			f.Log(r.Log(60))
		}
	}
	for _, r := range f.replicas {
		_ = r.Resume()
		r.Kill()
	}
	f.front.close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	f.check("delete the lease", f.Client.CoordinationV1().Leases("heteroflow-system").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// schedules has kube-scheduler ask the front from now on.
func (f *fleet) schedules() {
	f.Helper()
	f.restartKubeScheduler(f.front.url)
	f.Cleanup(func() { f.restartKubeScheduler(f.ExtenderURL()) })
}

// start adds a replica. Names are new for each, as logs go by them.
func (f *fleet) start(name string, e cluster.Extender) *cluster.Replica {
	f.Helper()
	r, err := f.StartReplica(f.ctx, strings.ToLower(f.ns+"-"+name), e)
	f.must("start "+name, err)
	f.replicas = append(f.replicas, r)
	f.front.add(r)
	return r
}

// leads waits until the replica leads.
func (f *fleet) leads(r *cluster.Replica) {
	f.Helper()
	f.must(r.Name()+" to lead", cluster.Eventually(f.ctx, r.Name()+" to lead", r.Leads))
}

// leader waits until one of the replicas leads, and returns it.
func (f *fleet) leader() (leader *cluster.Replica) {
	f.Helper()
	f.eventually("a leader", func() error {
		for _, r := range f.replicas {
			if r.Runs() && r.Leads(f.ctx) == nil {
				leader = r
				return nil
			}
		}
		return errors.New("there is none")
	})
	return leader
}

// loses waits until the replica has ended since it has lost the Lease.
func (f *fleet) loses(r *cluster.Replica) {
	f.Helper()
	ctx, stop := context.WithTimeout(f.ctx, 20*time.Second)
	defer stop()
	status, err := r.Ended(ctx)
	f.must("the end of "+r.Name(), err)
	if status != 1 {
		f.Errorf("%s has ended with status %d, want 1", r.Name(), status)
	}
}

// bindAt asks the replica to bind, as kube-scheduler would, and returns the
// error that it answers with.
func (f *fleet) bindAt(r *cluster.Replica, pod, node string) error {
	p := f.pod(pod)
	body, err := json.Marshal(extenderv1.ExtenderBindingArgs{PodName: p.Name, PodNamespace: p.Namespace, PodUID: p.UID, Node: node})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(f.ctx, http.MethodPost, r.URL()+"/bind", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var result extenderv1.ExtenderBindingResult
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		return err
	}
	if result.Error != "" {
		return errors.New(result.Error)
	}
	return nil
}

func (f *fleet) epochs() dynamic.ResourceInterface {
	f.Helper()
	client, err := dynamic.NewForConfig(f.Config)
	f.must("client", err)
	return client.Resource(epochResource)
}

// epoch is the number in force.
func (f *fleet) epoch() int64 {
	f.Helper()
	o, err := f.epochs().Get(f.ctx, "scheduler", metav1.GetOptions{})
	f.must("read the Epoch", err)
	n, _, err := unstructured.NestedInt64(o.Object, "spec", "number")
	f.must("read the Epoch", err)
	return n
}

// ourPod is one that waits for this test, not for kube-scheduler, to bind it.
func ourPod(name string, amounts ...amount) *corev1.Pod {
	p := podFor(name, amounts...)
	p.Spec.SchedulerName = "nobody"
	return p
}

// front stands before the replicas, as a load balancer would: it sends each
// request to one that is ready, whoever leads, and to another if there is no
// connection to that. It does not repeat what has been sent.
type front struct {
	url    string
	server *http.Server
	ctx    context.Context
	stop   context.CancelFunc
	client *http.Client

	mu      sync.Mutex
	broken  []string                 // guarded by mu; why requests were not answered
	ready   []*cluster.Replica       // guarded by mu; in turn
	asked   map[*cluster.Replica]int // guarded by mu; requests that are on their way to it
	retired []*cluster.Replica       // guarded by mu; who are asked nothing more
}

const frontLook = 100 * time.Millisecond

func newFront() (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// A connection that is kept may be closed as it is used again, when a replica
	// ends. kube-scheduler ends with its replica, and meets that no more.
	f := &front{url: "http://" + l.Addr().String(), asked: map[*cluster.Replica]int{}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.server = &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() { _ = f.server.Serve(l) }()
	return f, nil
}

func (f *front) close() {
	f.stop()
	_ = f.server.Close()
}

// add watches the replica from now on.
func (f *front) add(r *cluster.Replica) {
	go func() {
		for f.ctx.Err() == nil && r.Runs() {
			f.note(r, r.Ready(f.ctx) == nil)
			select {
			case <-f.ctx.Done():
			case <-time.After(frontLook):
			}
		}
		f.note(r, false)
	}()
}

func (f *front) note(r *cluster.Replica, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch known := slices.Contains(f.ready, r); {
	case ready && !known && !slices.Contains(f.retired, r):
		f.ready = append(f.ready, r)
	case !ready && known:
		f.ready = slices.DeleteFunc(f.ready, func(o *cluster.Replica) bool { return o == r })
	}
}

// next returns the replica whose turn it is, nil if none is ready.
func (f *front) next() *cluster.Replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) == 0 {
		return nil
	}
	r := f.ready[0]
	f.ready = append(f.ready[1:], r)
	f.asked[r]++
	return r
}

func (f *front) answered(r *cluster.Replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[r]--
}

// retire sends the replica nothing more, as when its pod is to end, and returns
// when it has answered.
func (f *front) retire(ctx context.Context, r *cluster.Replica) error {
	f.mu.Lock()
	f.retired = append(f.retired, r)
	f.mu.Unlock()
	f.note(r, false)
	return cluster.Eventually(ctx, r.Name()+" to answer", func(context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := f.asked[r]; n > 0 {
			return fmt.Errorf("%d requests are on their way", n)
		}
		return nil
	})
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer, err := f.send(r, body)
	if err != nil {
		f.breaks(r.URL.Path + ": " + err.Error())
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

func (f *front) breaks(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = append(f.broken, why)
}

// unanswered says why requests were not answered.
func (f *front) unanswered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.broken)
}

func (f *front) send(r *http.Request, body []byte) (*http.Response, error) {
	for {
		answer, err := f.try(r, body)
		var unreachable *net.OpError
		if err == nil || !errors.As(err, &unreachable) || unreachable.Op != "dial" {
			return answer, err
		}
	}
}

// try asks the replica whose turn it is.
func (f *front) try(r *http.Request, body []byte) (*http.Response, error) {
	to := f.next()
	if to == nil {
		return nil, errors.New("no replica is ready")
	}
	defer f.answered(to)
	request, err := http.NewRequestWithContext(r.Context(), r.Method, to.URL()+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return f.client.Do(request)
}
