package pipeline

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Weighted is a score plugin, of either kind, with its weight. One with a Layout
// counts only for requests of that layout: binpack and spread exclude each other.
type Weighted struct {
	Score  Score
	Cards  CardScore // in place of Score
	Weight float64
	Layout gpu.Policy // "" counts for all
	// Near marks a Score that looks at Cycle.Peers. It has no Layout. What the others
	// say of a state of a node is true of it for ever.
	Near bool
}

// Config lists the plugins of a pipeline in the order in which they run.
type Config struct {
	Filters []Filter
	Pack    Pack
	Scores  []Weighted
	// Places has one way to order cards for each card policy.
	Places map[gpu.Policy]Place
	// Linked then orders the cards anew for requests that name no card policy and
	// want several cards for one container, on nodes whose links are known; nil:
	// they stay as they are.
	Linked Place
	// NodeLayout and CardLayout stand in where the pod names none.
	NodeLayout gpu.Policy
	CardLayout gpu.Policy
	// Otherwise is the layout of nodes for requests that the score of theirs is not
	// about.
	Otherwise gpu.Policy
	Shortlist int // see Pipeline.Shortlist
}

// Pipeline runs the plugins of one policy.
type Pipeline struct {
	cfg  Config
	near []Weighted // those of the scores that are Near
}

// New returns a pipeline of these plugins.
func New(cfg Config) *Pipeline {
	p := &Pipeline{cfg: cfg}
	for i := range cfg.Scores {
		if cfg.Scores[i].Near {
			p.near = append(p.near, cfg.Scores[i])
		}
	}
	return p
}

// Part is one plugin's share in a node's score.
type Part struct {
	Plugin string
	Score  float64 // 0..100
	Weight float64
}

// Scratch is memory that one goroutine uses again from node to node.
type Scratch struct {
	node Candidate
	// judged is the cycle that node fits, which has been through the filters then, and
	// for several containers is in order; nil where nothing is known of it.
	judged *Cycle
}

// begin makes the scratch that of another node.
func (s *Scratch) begin(n *ledger.Node) *Candidate {
	s.node = Candidate{Node: n, Open: s.node.Open[:0], Barred: s.node.Barred[:0]}
	s.judged = nil
	return &s.node
}

// Judge says whether the request fits the node now, whatever its quotas.
func (p *Pipeline) Judge(c *Cycle, n *ledger.Node, s *Scratch) Verdict {
	cards := s.begin(n)
	cards.JudgeOnly = true
	v := p.narrow(c, cards)
	if !v.OK() || !c.Request.AsksForCards() {
		return v
	}
	if len(c.Request.Asks) > 1 { // for a single container the order says which cards, not whether
		p.order(c, cards)
	}
	if _, v = p.cfg.Pack.Pack(c, cards); v.OK() {
		s.judged = c
		return v
	}
	return p.blame(c, cards, v)
}

// Assign chooses the cards that the request gets on the node, if it fits and c.Purse
// allows them: the ones preferred, or else smaller ones.
func (p *Pipeline) Assign(c *Cycle, n *ledger.Node) (gpu.Placement, Verdict) {
	node := &Candidate{Node: n}
	v := p.narrow(c, node)
	if !v.OK() {
		return gpu.Placement{}, v
	}
	var grants []gpu.Grant
	if c.Request.AsksForCards() {
		if grants, v = p.choose(c, node); !v.OK() {
			return gpu.Placement{}, v
		}
	}
	r := c.Request
	return gpu.Placement{
		Pod: r.Pod, Namespace: r.Namespace, Name: r.Name, Node: n.ID, Tenant: r.Tenant, Group: r.Group,
		CPU: r.CPU, Memory: r.Memory, Grants: grants,
	}, Verdict{}
}

// narrow takes the candidate through the filters. Who asks for no card is fine
// anywhere, even where there are none or their inventory is out of date.
func (p *Pipeline) narrow(c *Cycle, n *Candidate) Verdict {
	if !c.Request.AsksForCards() {
		return Verdict{}
	}
	for i := range n.Node.Cards {
		n.Open = append(n.Open, i)
	}
	for _, f := range p.cfg.Filters {
		if v := f.Filter(c, n); v.Reason != "" { // not OK, which costs a copy of v: this is the innermost loop
			return v
		}
	}
	n.setAside()
	return Verdict{}
}

// order puts the open cards that the card policy prefers first. A single container that
// gets all of them or none gets the same in any order.
func (p *Pipeline) order(c *Cycle, n *Candidate) {
	if a := c.Request.Asks; len(a) == 1 && a[0].Count > 1 && len(n.Open) <= a[0].Count {
		return
	}
	if place := p.cfg.Places[layout(c.Request.CardPolicy, p.cfg.CardLayout)]; place != nil {
		place.Place(c, n)
	}
	if p.cfg.Linked != nil && c.Request.CardPolicy == "" && n.Node.Links.Known() && c.Request.AsksForSeveral() {
		p.cfg.Linked.Place(c, n)
	}
}

// Shortlist is how many of the nodes that fit an answer names; 0 for all.
func (p *Pipeline) Shortlist() int { return p.cfg.Shortlist }
