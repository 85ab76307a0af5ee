package kube

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Bounds of what is remembered and told.
const (
	mostPods  = 10000 // pods; the one that was heard of least lately goes first
	mostSets  = 32    // sets of codes of one pod
	burst     = 10    // events of one pod before they are thinned out
	perRefill = time.Minute
	// The API server keeps an event for an hour. What still holds after half
	// of that is told again, or a pod that waits long would have no reason left.
	retell = 30 * time.Minute
)

// memory knows what each pod's owner was told last, so that only news is told.
// It is not safe for concurrent use.
type memory struct{ pods *lru.Cache }

func newMemory() *memory { return &memory{lru.New(mostPods)} }

// told is what one pod's owner was told.
type told struct {
	codes string           // the set of codes in the last event
	at    time.Time        // of that event
	times map[string]int32 // set of codes -> events about it
	limit *rate.Limiter
}

// refusal says whether this set of codes is news about the pod, and how often it
// was with this time. A pod whose sets keep changing is told at once a few
// times, and then once a minute what is the case at that moment.
func (m *memory) refusal(pod gpu.PodID, codes string, now time.Time) (times int32, news bool) {
	t := m.of(pod)
	known := t.codes == codes && now.Sub(t.at) < retell
	if known || !t.limit.AllowN(now, 1) {
		return 0, false
	}
	if len(t.times) >= mostSets {
		clear(t.times)
	}
	t.codes, t.at = codes, now
	t.times[codes]++
	return t.times[codes], true
}

func (m *memory) of(pod gpu.PodID) *told {
	if t, ok := m.pods.Get(pod); ok {
		return t.(*told)
	}
	t := &told{times: map[string]int32{}, limit: rate.NewLimiter(rate.Every(perRefill), burst)}
	m.pods.Add(pod, t)
	return t
}

// untell makes whatever is the case news again.
func (m *memory) untell(pod gpu.PodID) {
	if t, ok := m.pods.Get(pod); ok {
		t.(*told).codes = ""
	}
}

func (m *memory) forget(pod gpu.PodID) { m.pods.Remove(pod) }
