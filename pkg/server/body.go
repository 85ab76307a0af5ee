package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
)

// mostBody bounds a request: 5,000 whole nodes with their images and
// annotations are about 14 MiB.
const mostBody = 16 << 20

// badRequest is a request that gets a status other than 200.
type badRequest struct {
	code int
	text string
}

func (b *badRequest) Error() string { return b.text }

func bad(format string, args ...any) error {
	return &badRequest{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// decode reads the body, all of it, as one JSON value.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeUpTo(mostBody, w, r, into)
}

// decodeUpTo reads a body of at most that many bytes.
func decodeUpTo(most int64, w http.ResponseWriter, r *http.Request, into any) error {
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	body, err := read(most, w, r)
	if err != nil {
		return err
	}
	if tiny := tinyNumber(body); tiny != nil {
		return bad("body: %.40s is no quantity that makes sense", tiny)
	}
	// Unmarshal, unlike a Decoder, does not overlook what follows the value.
	if err := json.Unmarshal(body, into); err != nil {
		return bad("body: %v", err)
	}
	return nil
}

// checkContentType accepts a missing type, as simple clients send none.
func checkContentType(header string) error {
	if header == "" {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(header); err != nil || kind != "application/json" {
		return bad("Content-Type: %q is not application/json", header)
	}
	return nil
}

func read(most int64, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var buf bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= most {
		buf.Grow(int(n) + bytes.MinRead) // MinRead spares the last doubling
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, &badRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf("body: longer than %d bytes", most)}
	case err != nil:
		return nil, bad("body: %v", err)
	}
	return buf.Bytes(), nil
}

// refuse answers a request that decode, or a check after it, did not accept.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	var b *badRequest
	if errors.As(err, &b) {
		code = b.code
	}
	http.Error(w, err.Error(), code)
}

// reply answers 200 with v as JSON.
func reply(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil { // nodes that were decoded from JSON can be encoded again
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // if the client has gone there is nobody to tell
}
