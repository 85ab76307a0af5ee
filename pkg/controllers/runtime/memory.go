package runtime

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what has been done, of pods that are there. The zero value is ready for use.
type memory struct {
	rounds int
	pods   map[types.UID]*record
	jobs   map[types.UID]struct{} // that are suspended in this round
}

// record is what has been done about a pod.
type record struct {
	seen     int       // the last round in which it was there
	warned   time.Time // of which end
	reported time.Time // likewise
	exceeded time.Time // likewise
	tried    time.Time // when it was last asked to end
	left     time.Time // since when it was left to its Job to end it
	blocked  string    // why it does not, as it was last told
}

// rests reports whether the pod was asked to end a moment ago. A clock that has been
// put back makes nobody wait.
func (r *record) rests(now time.Time) bool {
	ago := now.Sub(r.tried)
	return ago >= 0 && ago < again
}

// leave notes that it is left to the pod's Job to end it. A clock that has been put back
// has it begin anew.
func (r *record) leave(now time.Time) {
	if r.left.IsZero() || now.Before(r.left) {
		r.left = now
	}
}

// inVain reports whether that is so for longer than it takes.
func (r *record) inVain(now time.Time) bool { return !r.left.IsZero() && now.Sub(r.left) >= patience }

func (m *memory) begin() {
	m.rounds++
	m.jobs = map[types.UID]struct{}{}
}

// see notes that the pod is there.
func (m *memory) see(pod types.UID) {
	if r := m.pods[pod]; r != nil {
		r.seen = m.rounds
	}
}

// forget drops what is of pods that are not.
func (m *memory) forget() {
	for pod, r := range m.pods {
		if r.seen != m.rounds {
			delete(m.pods, pod)
		}
	}
}

// of returns the record of a pod.
func (m *memory) of(pod types.UID) *record {
	if m.pods == nil {
		m.pods = map[types.UID]*record{}
	}
	r := m.pods[pod]
	if r == nil {
		r = &record{seen: m.rounds}
		m.pods[pod] = r
	}
	return r
}
