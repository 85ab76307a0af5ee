package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// Engine decides; package engine has it.
type Engine interface {
	Filter(r *gpu.Request, nodes []gpu.NodeID) engine.Filtered
	Score(r *gpu.Request, nodes []gpu.NodeID) []engine.Scored
	Bind(ctx context.Context, t engine.Target) (engine.Bound, error)
}

// Reporter tells the pod's owner what was decided. Its methods never block.
type Reporter interface {
	// Refused says that no node does: codes is the set of reasons, the same
	// while nothing has changed, and text their explanation with figures.
	Refused(r *gpu.Request, dominant gpu.Reason, codes, text string)
	// Bound says that the pod has got its cards.
	Bound(b engine.Bound)
}

// Config is what a server works with.
type Config struct {
	Engine   Engine
	Reporter Reporter
	Metrics  *metrics.Metrics
	// Decode reads a pod's request. Its error says which field is wrong.
	Decode func(*corev1.Pod) (gpu.Request, error)
	// Ready reports whether the ledger has been built from the API server.
	Ready func() bool
	// Ledger is looked at for the log's lines about cards, and only for those.
	Ledger func() ledger.Snapshot
	// BindTimeout is how long after its arrival a bind may still write. It has
	// to lie below kube-scheduler's httpTimeout.
	BindTimeout time.Duration
}

// Server answers kube-scheduler, and those who ask how it is.
type Server struct{ cfg Config }

// New returns a server.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

const notReady = "not ready: the ledger is still being built"

// Extender returns the routes for kube-scheduler alone: whoever can reach them
// can bind pods.
func (s *Server) Extender() http.Handler {
	r := s.router()
	r.POST("/filter", s.filter)
	r.POST("/score", s.score)
	r.POST("/bind", s.bind)
	return s.observe(r)
}

// Public returns the routes that anybody may read.
func (s *Server) Public() http.Handler {
	r := s.router()
	r.Handler(http.MethodGet, "/metrics", s.cfg.Metrics.Handler())
	return r
}

// router has what both listeners have. It answers for exactly the paths it
// knows: no redirects, which an HTTP client follows with another method.
func (s *Server) router() *httprouter.Router {
	r := httprouter.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.PanicHandler = panicked
	r.GET("/healthz", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		_, _ = io.WriteString(w, "ok\n")
	})
	r.GET("/readyz", s.readyz)
	return r
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	if !s.cfg.Ready() {
		http.Error(w, notReady, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// panicked ends a request that met a fault of ours, and that request alone.
func panicked(w http.ResponseWriter, r *http.Request, fault any) {
	klog.FromContext(r.Context()).Error(nil, "panic while answering", "path", r.URL.Path, "fault", fault, "stack", stack())
	http.Error(w, "internal error", http.StatusInternalServerError)
}
