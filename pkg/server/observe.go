package server

import (
	"net/http"
	"runtime/debug"
	"time"

	"heteroflow.io/heteroflow/pkg/metrics"
)

// observe counts every answer of h.
func (s *Server) observe(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		rec := &recorder{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(rec, r)
		s.cfg.Metrics.Request(verbOf(r.URL.Path), rec.code, time.Since(arrived))
	})
}

func verbOf(path string) metrics.Verb {
	switch path {
	case "/filter":
		return metrics.VerbFilter
	case "/score":
		return metrics.VerbScore
	case "/bind":
		return metrics.VerbBind
	}
	return metrics.VerbOther
}

// recorder remembers the status that was written.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.MaxBytesReader close the connection of a body that is too
// long.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func stack() string { return string(debug.Stack()) }
