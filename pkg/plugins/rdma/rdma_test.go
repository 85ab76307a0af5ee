package rdma

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func yes(gbps int) ledger.RDMA { return ledger.RDMA{Stated: true, Able: true, Gbps: gbps} }

func no() ledger.RDMA { return ledger.RDMA{Stated: true} }

func TestScore(t *testing.T) {
	wants := gpu.Request{RDMA: gpu.Preferred}
	tests := map[string]struct {
		node ledger.RDMA
		asks gpu.Request
		peer bool // a member of the pod's group is on the node
		want float64
	}{
		"nothing is said":                  {ledger.RDMA{}, wants, false, 50},
		"has it":                           {yes(0), wants, false, 70},
		"at 100 Gbps":                      {yes(100), wants, false, 80},
		"at 25 Gbps":                       {yes(25), wants, false, 72.5},
		"at 300 Gbps, the most":            {yes(300), wants, false, 100},
		"at 400 Gbps, no more":             {yes(400), wants, false, 100},
		"has none":                         {no(), wants, false, 40},
		"required":                         {yes(0), gpu.Request{RDMA: gpu.Required}, false, 70},
		"training":                         {yes(0), gpu.Request{Type: gpu.Training}, false, 70},
		"of a group":                       {yes(0), gpu.Request{Group: "g"}, false, 70},
		"of no use to it":                  {yes(400), gpu.Request{Type: gpu.Inference}, false, 50},
		"of no use, and none":              {no(), gpu.Request{}, false, 50},
		"with a member":                    {yes(0), gpu.Request{Group: "g"}, true, 80},
		"without RDMA, but with a member":  {no(), gpu.Request{Group: "g"}, true, 50},
		"nothing is said, with a member":   {ledger.RDMA{}, gpu.Request{Group: "g"}, true, 50},
		"with a member, clamped afterward": {yes(400), gpu.Request{Group: "g"}, true, 110},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(tenancy.Separate{})
			l.SetNode(ledger.Facts{ID: "n1", RDMA: tc.node})
			if tc.peer {
				l.Confirm(gpu.Placement{Pod: "p", Node: "n1", Group: "g"})
			}
			n, _ := l.Snapshot().Node("n1")
			c := &pipeline.Cycle{Request: &tc.asks, Peers: pipeline.PeersOf(tc.asks.Group, l.Snapshot())}
			if got := (Plugin{}).Score(c, n); got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	unsupported := pipeline.Verdict{Reason: gpu.RDMAUnsupported}
	tests := map[string]struct {
		node   ledger.RDMA
		wish   gpu.Wish
		strict bool
		want   pipeline.Verdict
	}{
		"required and there":                   {yes(0), gpu.Required, false, pipeline.Verdict{}},
		"required and not there":               {no(), gpu.Required, false, unsupported},
		"required and nothing is said":         {ledger.RDMA{}, gpu.Required, false, pipeline.Verdict{}},
		"strict, and there":                    {yes(0), gpu.Required, true, pipeline.Verdict{}},
		"strict, and not there":                {no(), gpu.Required, true, unsupported},
		"strict, and nothing is said":          {ledger.RDMA{}, gpu.Required, true, unsupported},
		"preferred and not there":              {no(), gpu.Preferred, true, pipeline.Verdict{}},
		"strict is no matter of those content": {ledger.RDMA{}, "", true, pipeline.Verdict{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Facts: ledger.Facts{RDMA: tc.node}}}
			got := Plugin{Args{Strict: tc.strict}}.Filter(&pipeline.Cycle{Request: &gpu.Request{RDMA: tc.wish, Type: gpu.Training}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
