package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/test/cluster"
)

// Mode is how an extender that decides nothing answers /filter.
type Mode string

const (
	All Mode = "all" // every node fits
	One Mode = "one" // one node fits: the next in turn, so that no node is full before the others
)

// Noop is an extender that decides nothing, and is as quick as one can be: what
// it costs is the price of having an extender at all.
type Noop struct {
	Mode Mode
	Bind func(ctx context.Context, b *corev1.Binding) error

	turn atomic.Uint64
}

// ServeNoop serves one until ctx ends.
func ServeNoop(ctx context.Context, mode Mode, address, kubeconfig string) error {
	if mode != All && mode != One {
		return fmt.Errorf("mode: %q is neither %s nor %s", mode, All, One)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster.Quick(config))
	if err != nil {
		return err
	}
	n := &Noop{Mode: mode, Bind: func(ctx context.Context, b *corev1.Binding) error {
		return client.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	}}
	server := &http.Server{Addr: address, Handler: n.Handler(), BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// Handler answers kube-scheduler.
func (n *Noop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /filter", answer(n.filter))
	mux.HandleFunc("POST /score", answer(n.score))
	mux.HandleFunc("POST /bind", answer(n.bind))
	return mux
}

// question is what a call names. Its pod is left undecoded.
type question struct{ NodeNames []string }

func (n *Noop) filter(_ context.Context, q question) extender.ExtenderFilterResult {
	names := q.NodeNames
	if n.Mode == One && len(names) > 0 {
		next := (n.turn.Add(1) - 1) % uint64(len(names))
		names = names[next : next+1]
	}
	return extender.ExtenderFilterResult{NodeNames: &names}
}

func (n *Noop) score(_ context.Context, q question) extender.HostPriorityList {
	scores := make(extender.HostPriorityList, len(q.NodeNames))
	for i, name := range q.NodeNames {
		scores[i].Host = name
	}
	return scores
}

func (n *Noop) bind(ctx context.Context, q extender.ExtenderBindingArgs) (result extender.ExtenderBindingResult) {
	err := n.Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: q.PodNamespace, Name: q.PodName, UID: q.PodUID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: q.Node},
	})
	if err != nil {
		result.Error = err.Error()
	}
	return result
}

// answer decodes a question, and encodes what f answers.
func answer[Q, A any](f func(context.Context, Q) A) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f(r.Context(), q)) // a caller that has gone needs no answer
	}
}
