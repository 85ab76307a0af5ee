package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestImpossiblePodCostsOneCallPerBackoff watches one pod that fits nowhere
// among 300 nodes that refuse it for different reasons, while something changes
// on a node all the time, which wakes the pod.
func TestImpossiblePodCostsOneCallPerBackoff(t *testing.T) {
	const watched = 30 * time.Second
	// Tried at 0 s, then after each of the backoffs 1, 2, 4, 8, 10 s: the sixth
	// call is at 25 s, the seventh would be at 35 s.
	const most = 6

	s := begin(t, defaults)
	s.add(nodesThatRefuse()...)
	s.create(many(ofEachKind, s.ns, "full", map[string]string{modelKey: "H100"}, amount{wholeCards, 8})...)
	s.eventually("the full nodes", func() error { return s.bound(ofEachKind) })

	before := s.filterCalls()
	s.create(podFor("impossible", amount{vendorCards, 8}, amount{vendorMemory, 70000}, amount{vendorCores, 90}))
	turn := 0
	s.meanwhile(watched, "the impossible pod", func() error {
		turn++
		name := nodeName("small", turn%ofEachKind)
		if err := s.nodes.Annotate(s.ctx, name, "simnode.test/turn", strconv.Itoa(turn)); err != nil {
			return err
		}
		return s.waits("impossible")
	})
	calls := s.filterCalls() - before
	t.Logf("%d filter calls in %s", calls, watched)
	if calls < 2 || calls > most {
		t.Errorf("%d filter calls in %s, want 2..%d", calls, watched, most)
	}
	pod := s.pod("impossible")
	judgeCondition(t, condition(pod))
	t.Logf("it was told %q", s.told(pod))
	s.verify()
}

func nodeName(kind string, i int) string { return fmt.Sprintf("impossible-%s-%d", kind, i) }

// ofEachKind is how many nodes refuse for one reason.
const ofEachKind = 60

// nodesThatRefuse are 300 nodes: of another vendor, full, too small, and such as
// would do if they were not cordoned or not ready.
func nodesThatRefuse() []simnode.Spec {
	node := func(kind string, i int, vendor, model string, memory int64) simnode.Spec {
		name := nodeName(kind, i)
		return simnode.Spec{Name: name, Cards: simnode.Cards(name, 8, vendor, model, memory)}
	}
	var specs []simnode.Spec
	for i := range ofEachKind {
		cordoned := node("cordoned", i, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
		cordoned.Cordoned = true
		unready := node("unready", i, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
		unready.NotReady = true
		specs = append(specs, cordoned, unready,
			node("ascend", i, "ascend", "910B3", 98304),
			node("full", i, "nvidia", "NVIDIA-H100-80GB", 81559),
			node("small", i, "nvidia", "Tesla-T4", 15360))
	}
	return specs
}

// nodeCounts are the numbers that kube-scheduler itself puts before reasons.
var nodeCounts = regexp.MustCompile(`\b\d+(/\d+ nodes\b| node\(s\)| [A-Z][A-Za-z]+\b)`)

// judgeCondition checks that a refusal names one code of ours, without figures:
// any that changes would wake the pod.
func judgeCondition(t *testing.T, message string) {
	t.Helper()
	if got := codesIn(message); len(got) != 1 {
		t.Errorf("the condition names %v, want one code: %s", got, message)
	}
	if rest := nodeCounts.ReplaceAllString(message, ""); strings.ContainsAny(rest, "0123456789") {
		t.Errorf("the condition has figures besides node counts: %s", message)
	}
}

// filterCalls asks the extender how often it was called to filter.
func (s *scene) filterCalls() int {
	s.Helper()
	return s.count("heteroflow_extender_requests_total", `verb="filter"`)
}

// count adds up the extender's series of a metric that have the label.
func (s *scene) count(family, label string) int {
	s.Helper()
	response, err := http.Get(s.MetricsURL())
	s.must("metrics", err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must("metrics", err)
	series := regexp.MustCompile(`(?m)^` + family + `\{[^}]*` + regexp.QuoteMeta(label) + `[^}]*\} (\d+)$`)
	sum := 0
	for _, m := range series.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[1])
		s.must("metrics", err)
		sum += n
	}
	return sum
}
