package demand

import "sync"

// mostWorths bounds what is remembered of states: some 100 bytes each.
const mostWorths = 1 << 16

// memo remembers what states are worth, the latest of them.
type memo struct {
	mu       sync.Mutex
	now, old map[string]float64 // guarded by mu; key of a state -> V + weightFragments F
}

func (m *memo) get(key []byte) (float64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.now[string(key)]; ok {
		return v, true
	}
	v, ok := m.old[string(key)]
	if ok {
		m.set(key, v)
	}
	return v, ok
}

func (m *memo) put(key []byte, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, v)
}

// set is put for who holds mu.
func (m *memo) set(key []byte, v float64) {
	if m.now == nil || len(m.now) >= mostWorths/2 {
		m.now, m.old = map[string]float64{}, m.now
	}
	m.now[string(key)] = v
}

// lost is what of the node nobody will have, V + weightFragments F in cards.
func (f *forecast) lost(s State) float64 {
	s.reduce(f.mostCPU)
	if s.n == 0 {
		return 0
	}
	var room [8 + 6*16]byte // for any usual node
	key := s.key(room[:0])
	v, ok := f.worths.get(key)
	if !ok {
		v = f.idle(&s) + weightFragments*f.fragments(&s)
		f.worths.put(key, v)
	}
	return v
}
