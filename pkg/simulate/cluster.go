package simulate

import (
	"fmt"
	"math"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/plugins/fragment"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// cluster is the nodes of a trace under one policy. It belongs to one goroutine.
type cluster struct {
	ledger    *ledger.Ledger
	pipe      *pipeline.Pipeline
	learner   *demand.Learner
	nodes     int
	decisions int
	known     map[Shape]*memory
	changed   []int // the places of nodes in a snapshot, in the order in which they changed
	scratch   pipeline.Scratch
}

// newCluster returns the empty cluster, its nodes named by their rank.
func newCluster(nodes []Node, rank []int, pipe *pipeline.Pipeline) *cluster {
	c := &cluster{
		ledger: ledger.New(tenancy.Separate{}), pipe: pipe, learner: demand.New(),
		nodes: len(nodes), known: map[Shape]*memory{},
	}
	for i := range nodes {
		c.ledger.SetNode(facts(&nodes[i], rank[i]))
	}
	return c
}

// decisionsASurvey is how often it is looked at what is asked for and what there is room for. The server does so
// four times a second, in which a busy cluster decides about ten pods.
const decisionsASurvey = 10

// memory is what is known of all nodes to one shape. As in the server, what was said
// of a state of a node is true of it for ever, and only where members of a group
// have a part in a score it is asked for each time.
type memory struct {
	request gpu.Request
	seen    int             // how many changes have been looked at
	outlook *demand.Outlook // at that look
	said    []said
}

// said is by the node's place in a snapshot.
type said struct {
	version uint64 // of the node
	fits    bool
	outlook *demand.Outlook
	own     pipeline.Base // under that outlook, if it fits
}

// note learns that a pod of that shape has come. It is once for each pod, before the
// first try to place it.
func (c *cluster) note(s Shape) { c.learner.Note(&c.memory(s).request) }

// place has the pod of that ID placed on the node that is rated best, the first of
// several. It is false where it fits none.
func (c *cluster) place(s Shape, id gpu.PodID) (bool, error) {
	m := c.memory(s)
	request := m.request
	request.Pod, request.Name = id, string(id)
	snapshot := c.ledger.Snapshot()
	cycle := c.cycle(&request, snapshot)
	c.look(m, cycle, snapshot)
	best := c.best(m, cycle, snapshot)
	if best < 0 {
		return false, nil
	}
	p, v := c.pipe.Assign(cycle, snapshot.At(best))
	if !v.OK() { // Judge said that it fits
		return false, fmt.Errorf("pod %s on %s: %s", id, snapshot.At(best).ID, v.Reason)
	}
	if err := c.ledger.Reserve(p); err != nil {
		return false, err
	}
	c.changed = append(c.changed, best)
	return true, nil
}

// end ends the pod.
func (c *cluster) end(id gpu.PodID) {
	h, ok := c.ledger.Hold(id)
	if !ok {
		return
	}
	c.ledger.Release(id)
	if place, ok := c.ledger.Snapshot().Place(h.Node); ok {
		c.changed = append(c.changed, place)
	}
}

// cycle is a decision about the request, under the outlook of now.
func (c *cluster) cycle(r *gpu.Request, in ledger.Snapshot) *pipeline.Cycle {
	nodes := fragment.Nodes{Snapshot: in}
	if c.decisions++; c.decisions%decisionsASurvey == 0 {
		c.learner.Look(nodes)
	}
	return &pipeline.Cycle{Request: r, Nodes: c.nodes, Outlook: c.learner.Outlook(nodes.Supply)}
}

func (c *cluster) memory(s Shape) *memory {
	m := c.known[s]
	if m == nil {
		m = &memory{request: request(s), said: make([]said, c.nodes)}
		c.known[s] = m
	}
	return m
}

// look judges the nodes anew that have changed since the last look; all of them under
// another outlook.
func (c *cluster) look(m *memory, cycle *pipeline.Cycle, s ledger.Snapshot) {
	changed := c.changed[m.seen:]
	m.seen = len(c.changed)
	if m.outlook != cycle.Outlook || len(changed) > c.nodes {
		m.outlook = cycle.Outlook
		for place := range m.said {
			c.judge(&m.said[place], cycle, s.At(place))
		}
		return
	}
	for _, place := range changed {
		c.judge(&m.said[place], cycle, s.At(place))
	}
}

func (c *cluster) judge(at *said, cycle *pipeline.Cycle, n *ledger.Node) {
	anew := at.version != n.Version
	if anew {
		at.version = n.Version
		at.fits = fits(cycle.Request, n) && c.pipe.Judge(cycle, n, &c.scratch).OK()
	}
	if at.fits && (anew || at.outlook != cycle.Outlook) {
		at.outlook, at.own = cycle.Outlook, c.pipe.Base(cycle, n, &c.scratch)
	}
}

// best returns the place of the node with the highest score, -1 where none fits.
func (c *cluster) best(m *memory, cycle *pipeline.Cycle, s ledger.Snapshot) int {
	best, most := -1, math.Inf(-1)
	for place := range m.said {
		if at := &m.said[place]; at.fits {
			if total := c.pipe.Complete(cycle, s.At(place), at.own); total > most {
				best, most = place, total
			}
		}
	}
	return best
}
