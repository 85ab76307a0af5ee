package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
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

// Admission decides about pods as they are created or changed; package
// admission has it. An error is for a request that cannot be understood.
type Admission interface {
	Mutate(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
	Validate(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
}

// Config is what a server works with.
type Config struct {
	Engine    Engine
	Reporter  Reporter
	Admission Admission
	Metrics   *metrics.Metrics
	// Decode reads a pod's request. Its error says which field is wrong.
	Decode func(*corev1.Pod) (gpu.Request, error)
	// Ready reports whether the ledger has been built from the API server.
	Ready func() bool
	// Certified reports whether there is a certificate to show, where there has
	// to be; nil: there has not.
	Certified func() bool
	// Ledger is looked at for the log's lines about cards and for the dump, and
	// only for those.
	Ledger func() ledger.Snapshot
	// Differences are those between the books, for the dump.
	Differences func() []string
	// BindTimeout is how long after its arrival a bind may still write. It has
	// to lie below kube-scheduler's httpTimeout.
	BindTimeout time.Duration
	// Leadership says whether requests are decided here; nil: they always are.
	Leadership Leadership
	// Replicas is how the others are reached.
	Replicas Replicas
}

// Server answers kube-scheduler, and those who ask how it is.
type Server struct {
	cfg     Config
	peers   http.Client
	room    *semaphore.Weighted // for the bodies of requests on their way to the leader
	reviews *semaphore.Weighted // turns of requests for admission
}

// New returns a server.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, peers: newClient(cfg.Replicas.Transport), room: semaphore.NewWeighted(mostWaiting), reviews: semaphore.NewWeighted(mostReviews)}
}

const notReady = "not ready: the ledger is still being built"

// Extender returns the routes for kube-scheduler alone: whoever can reach them
// can bind pods.
func (s *Server) Extender() http.Handler {
	r := s.router()
	r.POST("/filter", s.led(s.filter))
	r.POST("/score", s.led(s.score))
	r.POST("/bind", s.led(s.bind))
	r.GET("/debug/books", s.dump)
	return s.observe(r)
}

// Replica returns the routes for the other replicas, which send on what they
// were asked.
func (s *Server) Replica() http.Handler {
	r := newRouter()
	r.POST("/filter", s.forwarded(s.filter))
	r.POST("/score", s.forwarded(s.score))
	r.POST("/bind", s.forwarded(s.bind))
	return s.observe(r)
}

// Public returns the routes that anybody may read.
func (s *Server) Public() http.Handler {
	r := s.router()
	r.Handler(http.MethodGet, "/metrics", s.cfg.Metrics.Handler())
	return r
}

// Webhooks returns the routes for the API server. Admission goes by the pod
// alone, so this listener is ready before the ledger has been built.
func (s *Server) Webhooks() http.Handler {
	r := newRouter()
	r.POST("/webhook/mutate", s.admit(metrics.Mutate, s.cfg.Admission.Mutate))
	r.POST("/webhook", s.admit(metrics.Mutate, s.cfg.Admission.Mutate))
	r.POST("/webhook/validate", s.admit(metrics.Validate, s.cfg.Admission.Validate))
	r.GET("/readyz", alive)
	return r
}

// router has what the other listeners have: they are ready when the ledger is.
func (s *Server) router() *httprouter.Router {
	r := newRouter()
	r.GET("/readyz", s.readyz)
	return r
}

// newRouter has what all listeners have. It answers for exactly the paths it
// knows: no redirects, which an HTTP client follows with another method.
func newRouter() *httprouter.Router {
	r := httprouter.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.PanicHandler = panicked
	r.GET("/healthz", alive)
	return r
}

func alive(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	_, _ = io.WriteString(w, "ok\n")
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	switch {
	case !s.cfg.Ready():
		http.Error(w, notReady, http.StatusServiceUnavailable)
		return
	case s.cfg.Certified != nil && !s.cfg.Certified():
		http.Error(w, "not ready: there is no certificate yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// panicked ends a request that met a fault of ours, and that request alone.
func panicked(w http.ResponseWriter, r *http.Request, fault any) {
	klog.FromContext(r.Context()).Error(nil, "panic while answering", "path", r.URL.Path, "fault", fault, "stack", stack())
	http.Error(w, "internal error", http.StatusInternalServerError)
}
