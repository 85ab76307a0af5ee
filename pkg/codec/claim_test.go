package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

func preemptionOf(allocation string) *v1alpha1.Preemption {
	p := &v1alpha1.Preemption{}
	p.Name = "u1-1"
	p.Spec = v1alpha1.PreemptionSpec{
		Preemptor: v1alpha1.PreemptionPod{Namespace: "team-a", Name: "train-0", UID: "u1"}, Node: "n1",
		Allocation: allocation, MilliCPU: 1500, MemoryBytes: 1 << 30,
	}
	return p
}

// What is written for the next leader is what it reads.
func TestClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := gpu.Placement{Pod: "u1", Namespace: "team-a", Name: "train-0", Node: "n1", CPU: 1500, Memory: 1 << 30,
			Group: gpu.GroupID(rapid.SampledFrom([]string{"", "team-a/uid=1"}).Draw(t, "group"))}
		for i, name := range rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}, {"b", "a", "c"}}).Draw(t, "containers") {
			g := gpu.Grant{Container: name, Number: i, Role: gpu.Role(rapid.IntRange(0, 2).Draw(t, "role")), Resource: rapid.SampledFrom([]string{"", "nvidia.com/gpu"}).Draw(t, "resource")}
			for n := range rapid.IntRange(1, 3).Draw(t, "cards") {
				s := gpu.Share{Card: gpu.CardID("GPU-" + string(rune('a'+n))), Vendor: gpu.Nvidia, Index: n, Memory: 1024, Cores: 50, Isolation: gpu.IsolationSoft}
				if rapid.Bool().Draw(t, "whole") {
					s.Exclusive, s.Isolation = true, gpu.IsolationExclusive
				}
				g.Shares = append(g.Shares, s)
			}
			p.Grants = append(p.Grants, g)
		}
		text, err := EncodeClaim(&p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeClaim(preemptionOf(text))
		if diff := cmp.Diff(p, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestClaimsThatAreNone(t *testing.T) {
	const card = `{"vendor":"nvidia","uuid":"GPU-a","index":0,"memoryMiB":1,"cores":1,"exclusive":false,"isolation":"soft"}`
	one := func(container string) string { return `{"version":1,"containers":[` + container + `]}` }
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":                 {"", "unexpected end of JSON"},
		"another version":         {`{"version":2,"containers":[]}`, "version: 2 is not 1"},
		"a field of ours no more": {`{"version":1,"containers":[],"x":1}`, `unknown field "x"`},
		"no cards":                {one(`{"name":"a","init":false,"cards":[],"number":0}`), "container a: 0 cards are outside 1..64"},
		"a sidecar of none":       {one(`{"name":"a","init":false,"sidecar":true,"cards":[` + card + `],"number":0}`), "sidecar: is none"},
		"a number below 0":        {one(`{"name":"a","init":false,"cards":[` + card + `],"number":-1}`), "number: -1 is negative"},
		"a container twice":       {one(`{"name":"a","init":false,"cards":[` + card + `],"number":0},{"name":"a","init":false,"cards":[` + card + `],"number":1}`), "named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := DecodeClaim(preemptionOf(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "preemption u1-1: spec.allocation: ") {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(gpu.Placement{}, p); diff != "" {
				t.Errorf("something is kept: %s", diff)
			}
		})
	}
	nowhere := preemptionOf(`{"version":1,"containers":[]}`)
	nowhere.Spec.Node = ""
	if _, err := DecodeClaim(nowhere); err == nil {
		t.Error("a claim on no node")
	}
	if _, err := EncodeClaim(&gpu.Placement{Grants: []gpu.Grant{{Container: "a"}}}); err == nil {
		t.Error("a claim that would not be read back is written")
	}
}

// FuzzClaim: what is read is written as it was read, whatever it is.
func FuzzClaim(f *testing.F) {
	f.Add(`{"version":1,"containers":[]}`)
	f.Add(`{"version":1,"group":"g","containers":[{"name":"a","init":true,"sidecar":true,"number":1,"resource":"nvidia.com/gpu","cards":[{"vendor":"nvidia","uuid":"GPU-a","index":0,"memoryMiB":1,"cores":1,"exclusive":false,"isolation":"soft"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := DecodeClaim(preemptionOf(text))
		if err != nil {
			return
		}
		again, err := EncodeClaim(&p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := DecodeClaim(preemptionOf(again))
		if diff := cmp.Diff(p, q); err != nil || diff != "" {
			t.Errorf("%v (-first +second):\n%s", err, diff)
		}
	})
}
