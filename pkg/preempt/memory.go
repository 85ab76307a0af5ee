package preempt

import (
	"fmt"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Bounds of what is remembered: of nodes times kinds of Askers, at 40 bytes each.
const (
	mostEntries = 1 << 18
	leastKinds  = 16 // on however many nodes
	mostKinds   = 512
)

// memory is what was found for each kind of Asker. The zero value is ready for use. It
// only saves time: what is remembered of a node is never handed out before it is found
// once more.
type memory struct {
	policy any
	kinds  map[string]*kind
	uses   uint64
}

// kind is what was found for Askers that are alike.
type kind struct {
	used   uint64 // the larger the later
	tenant gpu.TenantID
	closed gpu.Reason
	purse  ledger.Purse
	said   []said // by the node's place in a snapshot
}

// said is what was found about one state of a node.
type said struct {
	version, mark uint64
	cost          bound
	open          open
	worth         worth
}

// open says whether the request fits the node without anybody being ended.
type open uint8

const (
	unasked open = iota
	shut
	openNow
	openLater // once those have gone who are ending
)

// worth says what is known of who would have to go.
type worth uint8

const (
	unknown    worth = iota
	impossible       // no one's going would do
	atLeast          // so much at the least
	exactly
)

// of returns what is remembered for the Asker; nil if nothing can be: nobody says what
// Trial goes by, or too many kinds of Askers wait at once.
func (m *memory) of(w *World, a *Asker) *kind {
	if w.Policy == nil {
		return nil
	}
	if m.policy != w.Policy || m.kinds == nil {
		m.policy, m.kinds = w.Policy, map[string]*kind{}
	}
	m.uses++
	k := m.kinds[keyOf(a, w.State.Len())]
	if k == nil {
		if k = m.admit(w.State.Len()); k == nil {
			return nil
		}
		m.kinds[keyOf(a, w.State.Len())] = k
	}
	k.used = m.uses
	k.renew(w, a)
	return k
}

// renew forgets what was found while the Asker's standing was another.
func (k *kind) renew(w *World, a *Asker) {
	tenant, closed := w.State.Owner(a.Namespace)
	purse := w.State.Purse(a.Namespace)
	if k.tenant != tenant || k.closed != closed || !k.purse.Equal(purse) {
		clear(k.said)
	}
	k.tenant, k.closed, k.purse = tenant, closed, purse
	if n := w.State.Len() - len(k.said); n > 0 {
		k.said = append(k.said, make([]said, n)...)
	}
}

// admit returns a new kind; nil while all that there is room for are in use: were the
// oldest forgotten, each of too many would be when its turn comes.
func (m *memory) admit(nodes int) *kind {
	most := min(mostKinds, max(leastKinds, mostEntries/max(1, nodes)))
	if len(m.kinds) < most {
		return &kind{}
	}
	var oldest string
	for key, k := range m.kinds {
		if at := m.kinds[oldest]; at == nil || k.used < at.used {
			oldest = key
		}
	}
	if m.uses-m.kinds[oldest].used < idle {
		return nil
	}
	delete(m.kinds, oldest)
	return &kind{}
}

// idle is how many plans are made before a kind may be forgotten that none of them was
// for: whoever waits has had a turn by then.
const idle = 4 * mostKinds

// keyOf tells Askers apart by all that a plan for them depends on, but for who was
// ended for them lately, and how long they stay: what depends on that is not remembered.
// Names are quoted: two may read like one.
func keyOf(a *Asker, nodes int) string {
	shape := a.Request
	shape.Pod, shape.Name, shape.Gang, shape.Runtime = "", "", false, 0
	if shape.Group != "" {
		shape.Group = "any"
	}
	return fmt.Sprintf("%d %#v", nodes, shape)
}
