package codec

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// A register stays behind when its plugin stops, and when the vendor's own takes
// its place; what kubelet has allocatable tells.
func TestRegisterOfAPluginThatHasStopped(t *testing.T) {
	two := func(count int) string {
		return fmt.Sprintf("a,%d,9,100,T4,0,true,0,hami-core:b,%[1]d,9,100,T4,0,true,1,hami-core:", count)
	}
	tests := map[string]struct {
		text, allocated string
		healthy         bool
	}{
		"nothing is said":            {two(10), "", false},
		"stopped":                    {two(10), "0", false},
		"runs":                       {two(10), "20", true},
		"one card of two is lost":    {two(10), "10", true},
		"a little is left":           {two(10), "3", true},
		"another's whole cards":      {two(10), "2", false},
		"... of which one is lost":   {two(10), "1", false},
		"shares nothing":             {two(1), "2", true},
		"... and one card is lost":   {two(1), "1", true},
		"... and has stopped":        {two(1), "0", false},
		"one card, one share":        {"a,1,9,100,T4,0,true,0,hami-core:", "1", true},
		"one card, two shares":       {"a,2,9,100,T4,0,true,0,hami-core:", "1", false},
		"below 0, which nobody says": {two(10), "-1", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(nodeAnnotated(nvidiaRegister, tc.text))
			if tc.allocated != "" {
				allocatable("nvidia.com/gpu", tc.allocated)(node)
			}
			f, err := Facts(node, policy.Default())
			sameFaults(t, err)
			for _, c := range f.Cards {
				if c.Healthy != tc.healthy {
					t.Errorf("card %s is healthy: %t, want %t", c.ID, c.Healthy, tc.healthy)
				}
			}
			if len(f.Cards) == 0 {
				t.Error("no cards: who is on them must stay on record")
			}
		})
	}
}

// Administrators who come from HAMi know its names for cards without UUIDs.
func TestCordonByHAMisNames(t *testing.T) {
	node := nodeWith(allocatable(
		"mthreads.com/sgpu-core", "32", "mthreads.com/sgpu-memory", "2", "cambricon.com/mlu.smlu.vcore", "200", "cambricon.com/mlu.smlu.vmemory", "2",
		"enflame.com/gcu", "2", "metax-tech.com/gpu", "2", "kunlunxin.com/xpu", "2", "nvidia.com/gpu", "1"),
		nodeAnnotated("hami.io/device-cordon", "n1-mthreads-1,n1-cambricon-mlu-1, n1-GCU-1,n1-metax-1,n1-kunlun-1,n2-GCU-0,n1-gcu-0,n1-mthreads-2"))
	facts, err := Facts(node, policy.Default())
	sameFaults(t, err)
	var got []gpu.CardID
	for _, c := range facts.Cards {
		if c.Cordoned {
			got = append(got, c.ID)
		}
	}
	want := []gpu.CardID{"n1-musa-1", "n1-cambricon-1", "n1-kunlun-1", "n1-metax-1", "n1-enflame-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cordoned (-want +got):\n%s", diff)
	}
	// A card with a UUID goes by that alone.
	named := nodeWith(inventoried(`{"version":1,"cards":[{"uuid":"u","index":1,"vendor":"musa","memoryMiB":1,"healthy":true}]}`), nodeAnnotated("hami.io/device-cordon", "n1-mthreads-1"))
	if facts, err := Facts(named, policy.Default()); err != nil || facts.Cards[0].Cordoned {
		t.Errorf("cards %+v, %v; want one that is not cordoned", facts.Cards, err)
	}
}

// Huawei's own device plugin advertises cards of this model by the name that HAMi
// has for them too.
func TestStockCountOfAModel(t *testing.T) {
	tests := map[string]struct {
		node []nodeChange
		want []string
	}{
		"no register":          {[]nodeChange{allocatable("huawei.com/Ascend310P", "1")}, []string{"n1-ascend-0 huawei.com/Ascend310P 310P"}},
		"a register":           {[]nodeChange{allocatable("huawei.com/Ascend310P", "4"), nodeAnnotated("hami.io/node-register-Ascend310P", "npu,4,9,8,Ascend310P,0,true:")}, []string{"npu huawei.com/Ascend310P Ascend310P"}},
		"another's register":   {[]nodeChange{allocatable("huawei.com/Ascend310P", "4"), nodeAnnotated("hami.io/node-register-Ascend910B3", "[]")}, nil},
		"a name of HAMi alone": {[]nodeChange{allocatable("huawei.com/Ascend910B3", "4")}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			facts, err := Facts(nodeWith(tc.node...), policy.Default())
			sameFaults(t, err)
			var got []string
			for _, c := range facts.Cards {
				got = append(got, fmt.Sprintf("%s %s %s", c.ID, c.Plugin, c.Model))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}
