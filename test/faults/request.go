package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// keep returns the request as it can be sent although its client has gone: with
// its body read, and under a context that goes on.
func keep(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	return late
}
