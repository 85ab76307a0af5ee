package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	extender "k8s.io/kube-scheduler/extender/v1"
)

// names is how many nodes kube-scheduler asks about at once in a cluster of
// 5,000: a tenth, by its own formula.
const names = 500

// question is the body of a /filter about a pod that waits.
func (w world) question() ([]byte, error) {
	pod := w.pending(w.namespace(0), "asks")
	pod.UID = "asks"
	n := min(names, w.nodes)
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = w.nodeName(i * w.nodes / n)
	}
	return json.Marshal(extender.ExtenderArgs{Pod: pod, NodeNames: &nodes})
}

// pause lies between two questions: kube-scheduler asks one after the other, and
// has work of its own in between.
const pause = 10 * time.Millisecond

// ask asks until ctx ends, and returns how long each answer took, shortest first.
func ask(ctx context.Context, url string, body []byte) (all []time.Duration, err error) {
	beat := time.NewTicker(pause)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			slices.Sort(all)
			return all, nil
		case <-beat.C:
		}
		took, err := once(url+"/filter", body)
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
}

// once asks once. Some node has to fit: free cards are everywhere.
func once(url string, body []byte) (time.Duration, error) {
	began := time.Now()
	answer, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err := answer.Body.Close(); err != nil {
		return 0, err
	}
	var result extender.ExtenderFilterResult
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK || result.Error != "" || result.NodeNames == nil || len(*result.NodeNames) == 0 {
		return 0, fmt.Errorf("filter answers %s: %.300s", answer.Status, text)
	}
	return took, nil
}

// quantile returns the value below which that share of the sorted ones is.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
