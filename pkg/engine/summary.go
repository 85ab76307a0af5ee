package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Count is how often a reason came up, and where it was nearest to being met.
type Count struct {
	Reason     gpu.Reason
	Nodes      int
	Have, Want int64      // of the node that comes nearest
	Best       gpu.NodeID // that node
	Closed     int64      // cards, on all nodes, that the reason has taken out
	Limit      *gpu.Limit // the quota that Have is used of, where one is in the way
	Foreign    int64      // MiB of it that somebody uses who is not in the books
	Gauge      gpu.Gauge  // what was measured, where that is in the way: Have, and less than Want is allowed
}

// Summary says why no node does, by reason, the most frequent first.
type Summary struct {
	Nodes  int // looked at
	Counts []Count
	// Unoffered nodes fit, but kube-scheduler did not ask about them: its own
	// filters (taints, CPU, affinity) or its sampling left them out.
	Unoffered int
	Coming    *Coming  // room that is to come; nil: none is known
	Kept      *Keeping // room that is kept from the pod; nil: none
}

// Codes is the set of codes as one text, the same whatever their counts.
func (s Summary) Codes() string {
	codes := make([]string, len(s.Counts))
	for i, c := range s.Counts {
		codes[i] = string(c.Reason)
	}
	slices.Sort(codes)
	return strings.Join(codes, ",")
}

// String is the text of the pod's event, for example
//
//	0/5 nodes: 3 InsufficientGPUMemory (most free: 6144 of 10000 MiB on n2), 2 DeviceTypeMismatch
func (s Summary) String() string {
	var parts []string
	for _, c := range s.Counts {
		parts = append(parts, c.String())
	}
	if s.Unoffered > 0 {
		parts = append(parts, fmt.Sprintf("%d with room that kube-scheduler did not offer (taints, CPU, affinity or its sample)", s.Unoffered))
	}
	if len(parts) == 0 {
		return "0/0 nodes"
	}
	text := fmt.Sprintf("0/%d nodes: %s", s.Nodes, strings.Join(parts, ", "))
	if s.Coming != nil {
		text += "; " + s.Coming.String()
	}
	if s.Kept != nil {
		text += "; " + s.Kept.String()
	}
	return text
}

// String is one reason; with its figures, where there are any and pods that end
// would change them.
func (c Count) String() string {
	text := fmt.Sprintf("%d %s", c.Nodes, c.Reason)
	if c.Limit != nil {
		return fmt.Sprintf("%s (%s)", text, gpu.Excess{Limit: c.Limit, Used: c.Have, Asked: c.Want})
	}
	if c.Gauge != "" {
		return fmt.Sprintf("%s (lowest: %s on %s)", text, measured(c.Gauge, c.Have, c.Want), c.Best)
	}
	if c.Closed > 0 {
		return fmt.Sprintf("%s (%s closed; most left: %d of %d %s on %s)", text, cardsText(c.Closed), c.Have, c.Want, c.Reason.Info().Unit, c.Best)
	}
	if info := c.Reason.Info(); info.Unit != "" && !info.Final && c.Want > 0 {
		text += fmt.Sprintf(" (most free: %d of %d %s on %s%s)", c.Have, c.Want, info.Unit, c.Best, foreignText(c.Foreign))
	}
	return text
}

// tally counts verdicts. Its zero value is ready for use.
type tally struct {
	nodes     int
	unoffered int
	counts    []Count
}

func (t *tally) add(id gpu.NodeID, v pipeline.Verdict) {
	t.nodes++
	at := slices.IndexFunc(t.counts, func(c Count) bool { return c.Reason == v.Reason })
	if at < 0 {
		t.counts = append(t.counts, Count{v.Reason, 1, v.Have, v.Want, id, v.Closed, v.Limit, v.Foreign, v.Gauge})
		return
	}
	c := &t.counts[at]
	c.Nodes++
	c.Closed += v.Closed
	// The name breaks ties: the order of the nodes must not show.
	if cmp.Or(nearer(v, c), cmp.Compare(c.Best, id)) > 0 {
		c.Have, c.Want, c.Best, c.Limit = v.Have, v.Want, id, v.Limit
		c.Foreign, c.Gauge = v.Foreign, v.Gauge
	}
}

// nearer compares how near v and c come to being met. What is asked for differs
// between nodes where it is a percentage, so the shares are compared; of quotas
// what would pass them.
func nearer(v pipeline.Verdict, c *Count) int {
	if v.Limit != nil && c.Limit != nil {
		return cmp.Compare(c.Have+c.Want-c.Limit.Most, v.Have+v.Want-v.Limit.Most)
	}
	if v.Gauge != "" { // there is too much of it
		return cmp.Compare(c.Have*v.Want, v.Have*c.Want)
	}
	return cmp.Compare(v.Have*c.Want, c.Have*v.Want)
}

// dominant returns the reason that stands for all: a quota, where nothing else is
// in the way of a node; or else the most frequent of those that would pass as pods
// end, since nodes of the wrong kind say little about what the pod waits for; only
// where there is none, the most frequent at all.
func (t *tally) dominant() gpu.Reason {
	if len(t.counts) == 0 {
		return gpu.NoSchedulableNodes
	}
	return slices.MinFunc(t.counts, func(a, b Count) int {
		return cmp.Or(falseFirst(a.Limit == nil, b.Limit == nil), falseFirst(a.Reason.Info().Final, b.Reason.Info().Final), byFrequency(a, b))
	}).Reason
}

func (t *tally) summary() Summary {
	s := Summary{Nodes: t.nodes + t.unoffered, Counts: slices.Clone(t.counts), Unoffered: t.unoffered}
	slices.SortFunc(s.Counts, byFrequency)
	return s
}

func byFrequency(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Reason, b.Reason))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// measured is a figure that is too large, with what would do.
func measured(g gpu.Gauge, have, limit int64) string {
	return fmt.Sprintf("%s %d %s, allowed below %d", g, have, g.Unit(), limit)
}

// foreignText says how much memory is used that nobody holds.
func foreignText(mib int64) string {
	if mib == 0 {
		return ""
	}
	return fmt.Sprintf("; %d MiB there are used beyond what pods hold", mib)
}

// cardsText counts cards for people.
func cardsText(n int64) string {
	if n == 1 {
		return "1 card"
	}
	return fmt.Sprintf("%d cards", n)
}
