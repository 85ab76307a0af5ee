package server

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestFilter(t *testing.T) {
	badPod := newPod("bad", 1)
	badPod.Annotations = map[string]string{"heteroflow.io/bad": "42"}
	free := map[gpu.NodeID]int{"n1": 2, "n2": 0, "n3": 1, "n4": 4}

	tests := map[string]struct {
		args      extender.ExtenderArgs
		shortlist int
		unready   bool
		want      extender.ExtenderFilterResult
	}{
		"names are answered with names, in the order asked": {
			args: extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n3", "n2", "n1")},
			want: extender.ExtenderFilterResult{NodeNames: names("n3", "n1"), FailedNodes: extender.FailedNodesMap{"n2": "InsufficientGPUCount"}},
		},
		"nodes are answered with whole nodes": {
			args: extender.ExtenderArgs{Pod: newPod("p", 1), Nodes: nodeList("n3", "n2", "n1")},
			want: extender.ExtenderFilterResult{Nodes: nodeList("n3", "n1"), FailedNodes: extender.FailedNodesMap{"n2": "InsufficientGPUCount"}},
		},
		"all refused nodes get the one dominant code": {
			args: extender.ExtenderArgs{Pod: newPod("p", 9), NodeNames: names("n1", "unknown", "n4")},
			want: extender.ExtenderFilterResult{NodeNames: names(), FailedNodes: extender.FailedNodesMap{
				"n1": "InsufficientGPUCount", "unknown": "InsufficientGPUCount", "n4": "InsufficientGPUCount"}},
		},
		"nodes beyond the shortlist are left out, not failed": {
			args:      extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1", "n2", "n3", "n4")},
			shortlist: 1,
			want:      extender.ExtenderFilterResult{NodeNames: names("n1"), FailedNodes: extender.FailedNodesMap{"n2": "InsufficientGPUCount"}},
		},
		"an invalid request is refused everywhere for good": {
			args: extender.ExtenderArgs{Pod: badPod, NodeNames: names("n1", "n2")},
			want: extender.ExtenderFilterResult{NodeNames: names(), FailedAndUnresolvableNodes: extender.FailedNodesMap{"n1": "InvalidRequest", "n2": "InvalidRequest"}},
		},
		"an invalid request, whole nodes": {
			args: extender.ExtenderArgs{Pod: badPod, Nodes: nodeList("n1")},
			want: extender.ExtenderFilterResult{Nodes: nodeList(), FailedAndUnresolvableNodes: extender.FailedNodesMap{"n1": "InvalidRequest"}},
		},
		"no names": {
			args: extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names()},
			want: extender.ExtenderFilterResult{NodeNames: names()},
		},
		"no nodes": {
			args: extender.ExtenderArgs{Pod: newPod("p", 1), Nodes: &corev1.NodeList{}},
			want: extender.ExtenderFilterResult{Nodes: nodeList()},
		},
		"not ready is a fault, to be tried again": {
			args: extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1")}, unready: true,
			want: extender.ExtenderFilterResult{Error: "not ready: the ledger is still being built"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(free)
			c.shortlist = tc.shortlist
			r := newRig(c, func(cfg *Config) { cfg.Ready = func() bool { return !tc.unready } })
			if diff := cmp.Diff(tc.want, askFilter(t, r, tc.args)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// A pod without cards is no business of ours, even while we are not ready.
func TestPodWithoutCardsPassesUntouched(t *testing.T) {
	r := newRig(untouchable{}, unready)
	got := askFilter(t, r, extender.ExtenderArgs{Pod: newPod("cpu", 0), NodeNames: names("b", "a", "never heard of")})
	if diff := cmp.Diff(extender.ExtenderFilterResult{NodeNames: names("b", "a", "never heard of")}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	got = askFilter(t, r, extender.ExtenderArgs{Pod: newPod("cpu", 0), Nodes: nodeList("b", "a")})
	if diff := cmp.Diff(extender.ExtenderFilterResult{Nodes: nodeList("b", "a")}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	scores := ask[extender.HostPriorityList](t, r.extender, "/score", extender.ExtenderArgs{Pod: newPod("cpu", 0), NodeNames: names("b", "a")})
	if diff := cmp.Diff(extender.HostPriorityList{{Host: "b"}, {Host: "a"}}, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	r.wantMetric(t, `heteroflow_filter_outcomes_total{outcome="passed"} 2`)
	if notes := r.notes.read(); len(notes) != 0 {
		t.Errorf("its owner was told %q", notes)
	}
}

// Where pods without cards are sent here they pass, and are rated like others.
func TestPodWithoutCardsIsRated(t *testing.T) {
	r := newRig(newCluster(map[gpu.NodeID]int{"a": 1, "b": 4}))
	args := extender.ExtenderArgs{Pod: newPod("cpu", 0), NodeNames: names("b", "a", "full")}
	if got := askFilter(t, r, args); !slices.Equal(*got.NodeNames, *args.NodeNames) {
		t.Errorf("names %v, want %v", *got.NodeNames, *args.NodeNames)
	}
	scores := ask[extender.HostPriorityList](t, r.extender, "/score", args)
	want := extender.HostPriorityList{{Host: "b", Score: 400}, {Host: "a", Score: 100}, {Host: "full"}}
	if diff := cmp.Diff(want, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

// The text in FailedNodes becomes the pod's condition. A figure in it, or two
// texts in one answer, wakes the pod again and again.
func TestRefusalsAreOneConstantText(t *testing.T) {
	free := map[gpu.NodeID]int{}
	var asked []string
	for i := range 300 {
		name := fmt.Sprintf("n%03d", i)
		asked = append(asked, name)
		if i%3 > 0 {
			free[gpu.NodeID(name)] = i % 3
		}
	}
	code := regexp.MustCompile(`^[A-Za-z]+$`)
	c := newCluster(free)
	r := newRig(c)
	texts := map[string]bool{}
	for round := range 5 {
		sample := asked[round*40 : round*40+100] // kube-scheduler asks about another sample each time
		got := askFilter(t, r, extender.ExtenderArgs{Pod: newPod("p", 8), NodeNames: &sample})
		if len(got.FailedNodes) != len(sample) {
			t.Fatalf("%d of %d nodes refused", len(got.FailedNodes), len(sample))
		}
		for node, text := range got.FailedNodes {
			texts[text] = true
			if !code.MatchString(text) {
				t.Fatalf("node %s: %q is not a bare code", node, text)
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("texts %v, want one", texts)
	}
}

// liar answers with nodes that nobody asked about.
type liar struct{ *cluster }

func (l liar) Filter(*gpu.Request, []gpu.NodeID) engine.Filtered {
	return engine.Filtered{Feasible: []gpu.NodeID{"stranger", "n2", "n1"}}
}

// One name that was not asked about fails kube-scheduler's whole cycle.
func TestAnswerNamesOnlyWhatWasAsked(t *testing.T) {
	r := newRig(liar{newCluster(nil)})
	got := askFilter(t, r, extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1", "n2")})
	if diff := cmp.Diff(names("n1", "n2"), got.NodeNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestFilterTellsTheOwner(t *testing.T) {
	r := newRig(newCluster(map[gpu.NodeID]int{"n1": 1}))
	badPod := newPod("bad", 1)
	badPod.Annotations = map[string]string{"heteroflow.io/bad": "42"}
	askFilter(t, r, extender.ExtenderArgs{Pod: newPod("small", 1), NodeNames: names("n1", "n2")})
	askFilter(t, r, extender.ExtenderArgs{Pod: newPod("big", 2), NodeNames: names("n1", "n2")})
	askFilter(t, r, extender.ExtenderArgs{Pod: badPod, NodeNames: names("n1", "n2")})

	want := []string{
		"ns/big refused InsufficientGPUCount [InsufficientGPUCount] 0/2 nodes: 2 InsufficientGPUCount",
		"ns/bad refused InvalidRequest [InvalidRequest unknown annotation heteroflow.io/bad, value 42] unknown annotation heteroflow.io/bad, value 42",
	}
	if diff := cmp.Diff(want, r.notes.read()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for _, line := range []string{
		`heteroflow_filter_outcomes_total{outcome="feasible"} 1`,
		`heteroflow_filter_outcomes_total{outcome="refused"} 1`,
		`heteroflow_filter_outcomes_total{outcome="invalid"} 1`,
		`heteroflow_filter_nodes_refused_total{reason="InsufficientGPUCount"} 1`,
		`heteroflow_filter_nodes_refused_total{reason="NodeNotRegistered"} 2`,
		`heteroflow_filter_nodes_refused_total{reason="InvalidRequest"} 2`,
		`heteroflow_extender_requests_total{code="200",verb="filter"} 3`,
	} {
		r.wantMetric(t, line)
	}
}

func TestFiveThousandNames(t *testing.T) {
	free := map[gpu.NodeID]int{}
	var asked, want []string
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", 4999-i)
		asked = append(asked, name)
		if i%2 == 0 {
			free[gpu.NodeID(name)] = 1
			want = append(want, name)
		}
	}
	got := askFilter(t, newRig(newCluster(free)), extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: &asked})
	if diff := cmp.Diff(&want, got.NodeNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if len(got.FailedNodes) != 2500 {
		t.Errorf("%d failed, want 2500", len(got.FailedNodes))
	}
}

func TestScore(t *testing.T) {
	c := newCluster(map[gpu.NodeID]int{"n1": 2, "n2": 5})
	for form, args := range map[string]extender.ExtenderArgs{
		"names": {Pod: newPod("p", 1), NodeNames: names("n2", "n1")},
		"nodes": {Pod: newPod("p", 1), Nodes: nodeList("n2", "n1")},
	} {
		t.Run(form, func(t *testing.T) {
			got := ask[extender.HostPriorityList](t, newRig(c).extender, "/score", args)
			if diff := cmp.Diff(extender.HostPriorityList{{Host: "n2", Score: 500}, {Host: "n1", Score: 200}}, got); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("not ready", func(t *testing.T) {
		code, text := post(t, newRig(c, unready).extender, "/score", extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1")})
		if code != 503 || text != notReady+"\n" {
			t.Errorf("answer %d %q", code, text)
		}
	})
}
