package kube

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// follow runs a cluster until the test ends.
func follow(t *testing.T, server *apiServer, books *Books) *Cluster {
	t.Helper()
	c, err := NewCluster(server.client(t), server.own(t), books)
	if err != nil {
		t.Fatal(err)
	}
	if c.Ready() {
		t.Error("ready before it runs")
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	})
	t.Cleanup(func() { stop(); group.Wait() })
	return c
}

// until waits for what another goroutine will do. A test that waits in vain is
// ended by go test's own deadline.
func until(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}

// A scheduler that begins with what some API server's cache has would not see
// the last binds of the one before it.
func TestFirstListIsTheNewestState(t *testing.T) {
	for name, tc := range map[string]struct {
		streams bool
		first   string // what is asked first, after the resource's name
	}{
		"as a stream": {true, "watch resourceVersionMatch=NotOlderThan sendInitialEvents=true"},
		"as a list":   {false, "list"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, func(s *apiServer) {
				s.streams = tc.streams
				s.nodes = []corev1.Node{*newNode("n1", devices)}
				s.pods = []corev1.Pod{*boundPod(t, "p")}
			})
			s := newShelf()
			c := follow(t, server, &s.Books)
			until(c.Ready)
			if got := standing(s.Ledger, "uid-p"); got != "bound" {
				t.Errorf("when ready, the predecessor's pod is %s, want bound", got)
			}
			if n, ok := s.Ledger.Snapshot().Node("n1"); !ok || len(n.Cards) != 2 {
				t.Error("when ready, the node is not there")
			}
			for _, resource := range []string{"nodes", "pods"} {
				var got string
				for _, q := range server.questions(resource) {
					if !strings.Contains(q, "stream") { // one that the server does not know
						got = q
						break
					}
				}
				if want := resource + " " + tc.first; got != want {
					t.Errorf("first asked %q, want %q", got, want)
				}
			}
		})
	}
}

// The informers having everything is not enough: the ledger must have it.
func TestReadyWaitsForTheLedger(t *testing.T) {
	byHand := boundPod(t, "p", func(p *corev1.Pod) { p.Annotations = nil })
	server := newAPIServer(t, func(s *apiServer) { s.pods = []corev1.Pod{*byHand} })
	s := newShelf()
	reached, goOn := make(chan struct{}), make(chan struct{})
	s.Logger = funcr.New(func(_, text string) { // the one line that a pod bound by hand is worth
		if strings.Contains(text, "cannot be named") {
			close(reached)
			<-goOn
		}
	}, funcr.Options{})
	c := follow(t, server, &s.Books)
	<-reached
	if c.Ready() {
		t.Error("ready with a pod that the ledger has not been told of")
	}
	close(goOn)
	until(c.Ready)
	if got := standing(s.Ledger, "uid-p"); got != "bound" {
		t.Errorf("when ready the pod is %s", got)
	}
}

func TestWatchReachesTheLedger(t *testing.T) {
	server := newAPIServer(t, func(s *apiServer) { s.nodes = []corev1.Node{*newNode("n1", devices)} })
	s := newShelf()
	c := follow(t, server, &s.Books)
	until(c.Ready)
	pod := boundPod(t, "p")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	pod.Spec.Containers[0].Image = "image"
	server.news <- watchEvent("ADDED", "Pod", pod)
	until(func() bool { return standing(s.Ledger, "uid-p") == "bound" })
	seen, err := c.Pods().Pods("ns").Get("p")
	if err != nil {
		t.Fatal(err)
	}
	if seen.ManagedFields != nil || seen.Spec.Containers[0].Image != "" {
		t.Error("the cache keeps what nobody reads")
	}
	server.news <- watchEvent("DELETED", "Pod", boundPod(t, "p", ended(corev1.PodFailed)))
	until(func() bool { return standing(s.Ledger, "uid-p") == "none" })
}

// Only plumbing: the fake client has nothing to say about Bindings.
func TestRunEndsWhatLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.Now = time.Now
		s.NodeSeen(newNode("n1", devices))
		s.PodSeen(boundPod(t, "p"))
		c, err := NewCluster(fake.NewClientset(newNode("n1", devices)), newKinds(t, "http://api", new(registry)), &s.Books)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- c.Run(ctx) }()
		synctest.Wait()
		s.PodGone(boundPod(t, "p"), true)

		held := func() bool { _, ok := s.Ledger.Hold("uid-p"); return ok }
		time.Sleep(89 * time.Second)
		synctest.Wait()
		if !held() {
			t.Error("ended before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if held() {
			t.Error("still held past its time")
		}
		stop()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	})
}

func TestConsistent(t *testing.T) {
	for given, want := range map[string]string{"0": "", "": "", "77": "77"} {
		o := metav1.ListOptions{ResourceVersion: given}
		consistent(&o)
		if diff := cmp.Diff(metav1.ListOptions{ResourceVersion: want}, o); diff != "" {
			t.Errorf("%q (-want +got):\n%s", given, diff)
		}
	}
}

// Ready means that every pod of a cluster counts, on its own card: a scheduler
// that began to place at half the list would give away the other half.
func TestReadyWithTheWholeCluster(t *testing.T) {
	const nodes, each = 500, 8
	server := newAPIServer(t, func(s *apiServer) {
		for i := range nodes {
			node := fmt.Sprintf("n%d", i)
			var cards []string
			for j := range each {
				card := fmt.Sprintf("GPU-%d-%d", i, j)
				cards = append(cards, fmt.Sprintf(`{"uuid":%q,"index":%d,"vendor":"nvidia","model":"A100","memoryMiB":40960,"healthy":true,"mode":"slice","isolation":"driver"}`, card, j))
				s.pods = append(s.pods, *boundPod(t, fmt.Sprintf("p-%d-%d", i, j), func(p *corev1.Pod) {
					placement := whole(p.Name, gpu.CardID(card), j)
					placement.Node = gpu.NodeID(node)
					annotations, err := codec.Annotations(placement, start(), 0)
					if err != nil {
						t.Fatal(err)
					}
					p.Annotations, p.Spec.NodeName = annotations, node
				}))
			}
			s.nodes = append(s.nodes, *newNode(node, `{"version":1,"cards":[`+strings.Join(cards, ",")+`]}`))
		}
	})
	s := newShelf()
	c := follow(t, server, &s.Books)
	until(c.Ready)
	if n := len(s.Ledger.Confirmed()); n != nodes*each {
		t.Errorf("%d pods are held when ready, want %d", n, nodes*each)
	}
	for id, n := range s.Ledger.Snapshot().Nodes() {
		for i := range n.Cards {
			if len(n.Cards[i].Holders) != 1 {
				t.Errorf("card %s of %s has %d holders when ready", n.Cards[i].ID, id, len(n.Cards[i].Holders))
			}
		}
	}
}
