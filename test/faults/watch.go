package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync"
)

// watch is an answer that goes on. What arrives is passed on frame by frame, so
// that others can be put between.
type watch struct {
	upstream io.ReadCloser
	frames   func(*bufio.Reader) ([]byte, error)
	out      *io.PipeWriter

	mu   sync.Mutex
	sent [][]byte // guarded by mu, and so is writing to out
}

func newWatch(response *http.Response) *watch {
	in, out := io.Pipe()
	w := &watch{upstream: response.Body, frames: line, out: out}
	if strings.Contains(response.Header.Get("Content-Type"), "protobuf") {
		w.frames = delimited
	}
	response.Body = &body{in, w}
	go w.run()
	return w
}

// body is what the client reads; closing it ends the watch.
type body struct {
	*io.PipeReader
	watch *watch
}

func (b *body) Close() error {
	b.watch.cut()
	return b.PipeReader.Close()
}

// run passes on what arrives.
func (w *watch) run() {
	from := bufio.NewReader(w.upstream)
	for {
		frame, err := w.frames(from)
		if err == nil {
			err = w.send(frame, true)
		}
		if err != nil {
			_ = w.out.CloseWithError(err)
			return
		}
	}
}

func (w *watch) send(frame []byte, remember bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if remember {
		w.sent = append(w.sent, frame)
	}
	_, err := w.out.Write(frame)
	return err
}

func (w *watch) replay(text string) (sent int) {
	w.mu.Lock()
	again := w.sent
	w.mu.Unlock()
	for _, frame := range again {
		if bytes.Contains(frame, []byte(text)) && w.send(frame, false) == nil {
			sent++
		}
	}
	return sent
}

func (w *watch) cut() {
	_ = w.upstream.Close()
	_ = w.out.CloseWithError(io.ErrUnexpectedEOF)
}

// line reads a frame of a watch in JSON.
func line(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }

// delimited reads a frame of a watch in Protobuf: its length comes first, as four
// bytes, the highest first.
func delimited(r *bufio.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(length[:]))
	copy(frame, length[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
