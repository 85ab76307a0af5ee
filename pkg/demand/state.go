package demand

import (
	"encoding/binary"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// MostCards is how many cards of a node are looked at.
const MostCards = 64

// Room is what is left of one card.
type Room struct {
	kind          uint16 // its place in the outlook's views
	memory, cores uint16 // thousandths; full in both: nobody is on the card
}

// idle is how much of the card is left: by what it has least of.
func (r Room) idle() int { return int(min(r.memory, r.cores)) }

// rank orders rooms: those of a kind stand together.
func (r Room) rank() uint64 {
	return uint64(r.kind)<<32 | uint64(r.memory)<<16 | uint64(r.cores)
}

func (r Room) fits(t term) bool { return r.memory >= t.memory && r.cores >= t.least }

// less takes what the term takes.
func (r Room) less(t term) Room {
	r.memory -= t.memory
	r.cores -= t.cores
	return r
}

// State is what is left of a node. The zero State has nothing.
type State struct {
	cpu   gpu.MilliCPU
	n     int
	rooms [MostCards]Room
}

// SetCPU says how much of the processors is left.
func (s *State) SetCPU(left gpu.MilliCPU) { s.cpu = left }

// Add adds a card; those beyond MostCards are left out.
func (s *State) Add(r Room) {
	if s.n < MostCards {
		s.rooms[s.n] = r
		s.n++
	}
}

func (s *State) all() []Room { return s.rooms[:s.n] }

// idle is what is left of all cards.
func (s *State) idle() (sum int) {
	for _, r := range s.all() {
		sum += r.idle()
	}
	return sum
}

// reduce leaves out what makes no difference: cards of which nothing is left, how
// they are ordered, and processors beyond those that anything could use.
func (s *State) reduce(cpu gpu.MilliCPU) {
	s.cpu = max(0, min(s.cpu, cpu))
	s.most()
	for i := 1; i < s.n; i++ { // of few cards, mostly in order: that beats slices.Sort by far
		r, at := s.rooms[i], i
		for ; at > 0 && s.rooms[at-1].rank() > r.rank(); at-- {
			s.rooms[at] = s.rooms[at-1]
		}
		s.rooms[at] = r
	}
}

// key appends what tells reduced states apart.
func (s *State) key(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(s.cpu))
	for _, r := range s.all() {
		to = binary.LittleEndian.AppendUint16(to, r.kind)
		to = binary.LittleEndian.AppendUint16(to, r.memory)
		to = binary.LittleEndian.AppendUint16(to, r.cores)
	}
	return to
}
