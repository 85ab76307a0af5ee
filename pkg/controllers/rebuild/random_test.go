package rebuild

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/codec"
)

// history is a world in which anything happens, and what of it the promises are about.
type history struct {
	*world
	t      *rapid.T
	lostAt map[string]time.Time   // node -> since when it is lost
	went   map[string][]time.Time // group -> when its members were evicted
	wanted map[string]int         // group -> replicas
}

func newHistory(t *rapid.T) *history {
	h := &history{world: newWorld(), t: t, lostAt: map[string]time.Time{}, went: map[string][]time.Time{}, wanted: map[string]int{}}
	h.c.Rules.AtOnce = rapid.IntRange(1, 3).Draw(t, "at once")
	for i := range rapid.IntRange(3, 8).Draw(t, "nodes") {
		h.node(fmt.Sprint("n", i))
	}
	for _, group := range []string{"a", "b"} {
		h.group(group)
		h.wanted[group] = rapid.IntRange(1, 6).Draw(t, "replicas of "+group)
	}
	h.own()
	h.place()
	return h
}

// own has the owners make as many pods as are wanted.
func (h *history) own() {
	there := map[string]int{}
	for _, p := range h.pods {
		if p.DeletionTimestamp == nil {
			there[p.Annotations[codec.AnnotationTaskGroup]]++
		}
	}
	for _, group := range slices.Sorted(maps.Keys(h.wanted)) {
		for range h.wanted[group] - there[group] {
			h.pod(fmt.Sprintf("%s-%d", group, h.made), group, "")
		}
	}
}

// place has the scheduler bind what waits to nodes that are ready, each to another.
func (h *history) place() {
	var ready []string
	for name, n := range h.nodes {
		if is, _ := readiness(n); is {
			ready = append(ready, name)
		}
	}
	slices.Sort(ready)
	for i, name := range slices.Sorted(maps.Keys(h.pods)) {
		if p := h.pods[name]; p.Spec.NodeName == "" && len(ready) > 0 {
			p.Spec.NodeName = ready[i%len(ready)]
			h.says(p, true)
		}
	}
}

// judge looks at who was evicted since the last round.
func (h *history) judge(before map[types.UID]bool) {
	for _, name := range slices.Sorted(maps.Keys(h.pods)) {
		p := h.pods[name]
		if p.DeletionTimestamp == nil || before[p.UID] {
			continue
		}
		node, group := p.Spec.NodeName, p.Annotations[codec.AnnotationTaskGroup]
		since, lost := h.lostAt[node]
		if !lost || h.now.Sub(since) < h.c.Rules.Grace {
			h.t.Fatalf("%s is evicted from %s, which is lost: %t since %s", name, node, lost, since)
		}
		_, there := h.nodes[node]
		if there && serves(p) {
			h.t.Fatalf("%s is evicted, and serves", name)
		}
		if there && h.mostNotReady() {
			h.t.Fatalf("%s is evicted though most nodes are not ready", name)
		}
		h.went[group] = append(h.went[group], h.now)
	}
	for group, times := range h.went {
		recent := 0
		for _, at := range times {
			if h.now.Sub(at) < leaves {
				recent++
			}
		}
		if recent > h.c.Rules.AtOnce {
			h.t.Fatalf("%d of %s evicted within %s", recent, group, leaves)
		}
	}
}

func (h *history) mostNotReady() bool {
	bad := 0
	for _, n := range h.nodes {
		if is, _ := readiness(n); !is {
			bad++
		}
	}
	return 2*bad > len(h.nodes)
}

// happens has something happen.
func (h *history) happens() {
	t := h.t
	names := slices.Sorted(maps.Keys(h.nodes))
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what <= 1 && len(names) > 0:
		name := rapid.SampledFrom(names).Draw(t, "fails")
		if _, lost := h.lostAt[name]; !lost {
			h.fails(name)
			h.lostAt[name] = h.now
		}
	case what == 2 && len(names) > 0:
		name := rapid.SampledFrom(names).Draw(t, "recovers")
		h.turn(name, corev1.ConditionTrue)
		delete(h.lostAt, name)
		h.ends(name)
	case what == 3 && len(names) > 0:
		name := rapid.SampledFrom(names).Draw(t, "is taken away")
		h.turn(name, corev1.ConditionUnknown)
		if _, lost := h.lostAt[name]; !lost {
			h.lostAt[name] = h.now
		}
		delete(h.nodes, name)
	case what == 4:
		h.node(fmt.Sprint("m", h.version))
	case what == 5:
		rules := h.c.Rules
		h.lead()
		h.c.Rules = rules
	case what == 6:
		h.blocked = !h.blocked
	case what == 7 && len(h.pods) > 0:
		p := h.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(h.pods))).Draw(t, "serves")]
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			h.says(p, rapid.Bool().Draw(t, "ready"))
		}
	}
}

// ends has the pods end that were asked to on a node that is back.
func (h *history) ends(node string) {
	for name, p := range h.pods {
		if p.Spec.NodeName == node && p.DeletionTimestamp != nil {
			delete(h.pods, name)
		}
	}
}

// step has some time pass, with a round at its end.
func (h *history) step() {
	before := map[types.UID]bool{}
	for _, p := range h.pods {
		before[p.UID] = p.DeletionTimestamp != nil
	}
	h.now = h.now.Add(period)
	h.see()
	h.c.round(quiet())
	h.judge(before)
}

// Whatever happens to nodes, pods and leaders: who serves stays, nobody goes within the
// grace, no more at once than may, and in the end everybody is where a node is.
func TestWhateverHappens(t *testing.T) {
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			h.happens()
			h.step()
			h.own()
			if rapid.Bool().Draw(t, "places") {
				h.place()
			}
		}
		h.settle()
		evicted += len(h.evicted)
	})
	if evicted == 0 {
		t.Error("nobody was evicted: nothing was tried")
	}
}

// settle has what is not ready be taken away and room be elsewhere, and waits.
func (h *history) settle() {
	for name, n := range h.nodes {
		if is, _ := readiness(n); !is {
			delete(h.nodes, name)
		}
	}
	h.node("last-1", "last-2")
	h.blocked = false
	for _, p := range h.pods {
		if _, lost := h.lostAt[p.Spec.NodeName]; lost && p.DeletionTimestamp == nil {
			h.says(p, false)
		}
	}
	for range 120 {
		h.step()
		h.own()
		h.place()
	}
	for name, p := range h.pods {
		if _, there := h.nodes[p.Spec.NodeName]; !there && p.DeletionTimestamp == nil {
			h.t.Fatalf("%s is left on %q", name, p.Spec.NodeName)
		}
	}
}
