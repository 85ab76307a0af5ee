package codec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
)

const nvidiaRegister = "hami.io/node-nvidia-register"

// Texts of hami-protocol.md A.2, the first with its UUID written out.
const (
	textOfA4000 = "GPU-ca90a5e1,10,16376,100,NVIDIA-NVIDIA RTX A4000,0,true,0,hami-core:"
	jsonOfA4000 = `[{"id":"GPU-ca90a5e1","count":10,"devmem":16376,"devcore":100,"type":"NVIDIA RTX A4000","mode":"hami-core","health":true,"migtemplate":[{"a":1}],"custominfo":{"NetworkID":1}}]`
)

// a4000 is what those texts say.
func a4000() gpu.Card {
	return gpu.Card{
		ID: "GPU-ca90a5e1", Vendor: gpu.Nvidia, Model: "NVIDIA-NVIDIA RTX A4000", Plugin: "nvidia.com/gpu",
		Memory: 16376, Usable: 16376, Cores: 100, UsableCores: 100, MaxSlices: 10, NUMA: 0, Healthy: true,
		Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}
}

func but(c gpu.Card, change func(*gpu.Card)) gpu.Card {
	change(&c)
	return c
}

// Nothing is kept back of these cards and nothing promised twice: HAMi has done so.
func greedy() policy.Settings {
	s := policy.Default()
	s.MemoryScale, s.CoreScale, s.Reserve.Percent = 2000, 2000, 50
	return s
}

func TestRegistersOfHAMi(t *testing.T) {
	second := but(a4000(), func(c *gpu.Card) { c.ID, c.Index = "GPU-b", 1 })
	tests := map[string]struct {
		text string
		want []gpu.Card
	}{
		"no card, text":                {"", nil},
		"no card, JSON":                {"[]", nil},
		"9 fields":                     {textOfA4000, []gpu.Card{a4000()}},
		"9 fields without the colon":   {strings.TrimSuffix(textOfA4000, ":"), []gpu.Card{a4000()}},
		"JSON":                         {jsonOfA4000, []gpu.Card{but(a4000(), func(c *gpu.Card) { c.Model = "NVIDIA RTX A4000" })}},
		"7 fields, indexes are places": {"GPU-ca90a5e1,10,16376,100,NVIDIA-NVIDIA RTX A4000,0,true:GPU-b,10,16376,100,NVIDIA-NVIDIA RTX A4000,0,true:", []gpu.Card{a4000(), second}},
		"JSON, indexes are places":     {`[{"id":"a","count":1,"devmem":9},{"id":"b","count":1,"devmem":9}]`, []gpu.Card{bare("a", 0), bare("b", 1)}},
		"JSON, the first has index 0":  {`[{"id":"b","index":1,"count":1,"devmem":9},{"id":"a","count":1,"devmem":9}]`, []gpu.Card{bare("b", 1), bare("a", 0)}},
		"unhealthy, text":              {strings.Replace(textOfA4000, "true", "false", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.Healthy = false })}},
		"unhealthy, JSON":              {`[{"id":"a","count":1,"devmem":9,"health":false}]`, []gpu.Card{bare("a", 0)}},
		"unhealthy and of no size":     {`[{"id":"a","count":1}]`, []gpu.Card{but(bare("a", 0), func(c *gpu.Card) { c.Memory, c.Usable = 0, 0 })}},
		"unhealthy and of no count":    {`[{"id":"a","devmem":9}]`, []gpu.Card{but(bare("a", 0), func(c *gpu.Card) { c.MaxSlices = 0 })}},
		"compute promised twice":       {strings.Replace(textOfA4000, ",100,", ",150,", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.UsableCores = 150 })}},
		"compute in part":              {strings.Replace(textOfA4000, ",100,", ",50,", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.Cores, c.UsableCores = 50, 50 })}},
		"compute not named":            {strings.Replace(textOfA4000, ",100,", ",0,", 1), []gpu.Card{a4000()}},
		"MPS":                          {strings.Replace(textOfA4000, "hami-core", "mps", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.Isolation = gpu.IsolationDriver })}},
		"MIG takes nothing":            {strings.Replace(textOfA4000, "hami-core", "mig", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.Mode, c.Isolation = gpu.ModeMIG, gpu.IsolationNone })}},
		"on another NUMA node":         {strings.Replace(textOfA4000, ",0,true", ",1,true", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.NUMA = 1 })}},
		"NUMA not known":               {strings.Replace(textOfA4000, ",0,true", ",-1,true", 1), []gpu.Card{but(a4000(), func(c *gpu.Card) { c.NUMA = gpu.NoNUMA })}},
		"a mode that is left empty":    {"GPU-ca90a5e1,10,16376,100,NVIDIA-NVIDIA RTX A4000,0,true,0,:", []gpu.Card{a4000()}}, // no mode
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Facts(nodeWith(nodeAnnotated(nvidiaRegister, tc.text), allocatable("nvidia.com/gpu", "80")), greedy())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, got.Cards); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

// bare is a card of which the least is said.
func bare(id gpu.CardID, index int) gpu.Card {
	return gpu.Card{
		ID: id, Index: index, Vendor: gpu.Nvidia, Plugin: "nvidia.com/gpu", Memory: 9, Usable: 9,
		Cores: 100, UsableCores: 100, MaxSlices: 1, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}
}

// One card of each annotation of hami-protocol.md A.6, whose plugins all write
// HAMi's own words, in either encoding.
func TestRegistersByVendor(t *testing.T) {
	type by struct {
		vendor    gpu.Vendor
		plugin    string
		mode      gpu.Mode
		isolation gpu.Isolation
	}
	registers := map[string]by{
		nvidiaRegister:                {gpu.Nvidia, "nvidia.com/gpu", gpu.ModeSlice, gpu.IsolationSoft},
		"hami.io/node-dcu-register":   {gpu.Hygon, "hygon.com/dcunum", gpu.ModeSlice, gpu.IsolationDriver},
		"hami.io/node-biren-register": {gpu.Biren, "birentech.com/gpu", gpu.ModeWhole, gpu.IsolationNone},
		"hami.io/node-register-xpu":   {gpu.Kunlun, "kunlunxin.com/vxpu", gpu.ModeWhole, gpu.IsolationNone},
	}
	for _, word := range []string{"Ascend910A", "Ascend910B2", "Ascend910B3", "Ascend910B4", "Ascend910B4-1", "Ascend910C", "Ascend310P"} {
		registers["hami.io/node-register-"+word] = by{gpu.Ascend, "huawei.com/" + word, gpu.ModeWhole, gpu.IsolationNone}
	}
	for _, word := range []string{"MR-V100", "MR-V50", "BI-V150", "BI-V100"} {
		registers["hami.io/node-"+word+"-register"] = by{gpu.Iluvatar, "iluvatar.ai/" + word + "-vgpu", gpu.ModeSlice, gpu.IsolationSoft}
	}
	for key, want := range registers {
		for _, text := range []string{
			"card-0,4,32768,100,Word,1,true:",
			`[{"id":"card-0","count":4,"devmem":32768,"devcore":100,"type":"Word","numa":1,"health":true}]`,
		} {
			got, err := Facts(nodeWith(nodeAnnotated(key, text), allocatable(want.plugin, "4", "metax-tech.com/gpu", "0")), greedy())
			sameFaults(t, err)
			card := gpu.Card{
				ID: "card-0", Vendor: want.vendor, Model: "Word", Plugin: want.plugin, Memory: 32768, Usable: 32768,
				Cores: 100, UsableCores: 100, MaxSlices: 4, NUMA: 1, Healthy: true, Mode: want.mode, Isolation: want.isolation,
			}
			if diff := cmp.Diff([]gpu.Card{card}, got.Cards); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", key, text, diff)
			}
		}
	}
}

// Ascend's plugin registers the number of AI cores as compute (hami-protocol.md
// has none of it; ascend-device-plugin, internal/server/register.go).
func TestComputeOfWholeCards(t *testing.T) {
	got, err := Facts(nodeWith(nodeAnnotated("hami.io/node-register-Ascend910B3", `[{"id":"a","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]`)), policy.Default())
	sameFaults(t, err)
	if c := got.Cards[0]; c.Cores != 100 || c.UsableCores != 100 {
		t.Errorf("compute %d, %d, want all of it", c.Cores, c.UsableCores)
	}
}

// The struct of hami-protocol.md A.6 for MetaX; the values are of HAMi's own
// example (pkg/device/metax).
func TestRegisterOfMetax(t *testing.T) {
	got, err := Facts(nodeWith(nodeAnnotated("metax-tech.com/node-gpu-devices",
		`[{"uuid":"GPU-123","bdf":"0000:44:00.0","model":"sgpu","totalDevCount":16,"totalCompute":100,"totalVRam":32768,"availableVRam":1,"numa":1,"healthy":true,"qosPolicy":"fixed-share","linkZone":2},
		  {"uuid":"GPU-124","totalDevCount":16,"totalCompute":100}]`), allocatable("metax-tech.com/sgpu", "16")), greedy())
	sameFaults(t, err)
	card := gpu.Card{
		ID: "GPU-123", Vendor: gpu.Metax, Model: "sgpu", Plugin: "metax-tech.com/sgpu", Memory: 32768, Usable: 32768,
		Cores: 100, UsableCores: 100, MaxSlices: 16, NUMA: 1, PCIBusID: "0000:44:00.0", Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationDriver,
	}
	silent := but(card, func(c *gpu.Card) {
		c.ID, c.Index, c.Model, c.PCIBusID, c.Memory, c.Usable, c.NUMA, c.Healthy = "GPU-124", 1, "", "", 0, 0, 0, false
	})
	if diff := cmp.Diff([]gpu.Card{card, silent}, got.Cards); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
}

func TestRegistersRefused(t *testing.T) {
	nvidia := func(text string) nodeCase { return nodeCase{nvidiaRegister: text} }
	tests := map[string]struct {
		annotations nodeCase
		want        []string // after "annotation "
	}{
		"8 fields":            {nvidia("a,10,16376,100,A4000,0,true,0:"), []string{nvidiaRegister + ": devices[0]: 8 fields are neither 7 nor 9"}},
		"6 fields":            {nvidia("a,10,16376,A4000,0,true:"), []string{nvidiaRegister + ": devices[0]: 6 fields are neither 7 nor 9"}},
		"10 fields":           {nvidia("a,10,16376,100,A4000,0,true,0,hami-core,:"), []string{nvidiaRegister + ": devices[0]: 10 fields are neither 7 nor 9"}},
		"one of two is wrong": {nvidia(textOfA4000 + "b,10:"), []string{nvidiaRegister + ": devices[1]: 2 fields are neither 7 nor 9"}},
		"an empty device":     {nvidia(textOfA4000 + ":"), []string{nvidiaRegister + ": devices[1]: 1 fields are neither 7 nor 9"}},
		"not a text either":   {nvidia(`{"id":"a"}`), []string{nvidiaRegister + ": devices[0]: 1 fields are neither 7 nor 9", "devices[1]: 1 fields are neither 7 nor 9"}},
		"every number": {nvidia("a,ten,16Gi,1e2,A4000,x,yes,,hami-core:"), []string{
			nvidiaRegister + `: devices[0].count: "ten" is not a whole number`, `devices[0].devmem: "16Gi" is not a whole number`,
			`devices[0].devcore: "1e2" is not a whole number`, `devices[0].numa: "x" is not a whole number`,
			`devices[0].health: "yes" is not true or false`, `devices[0].index: "" is not a whole number`,
		}},
		"every bound": {nvidia("a b,0,0,1001,A4000,1024,true,-1,hard:"), []string{
			nvidiaRegister + `: devices[0].id: "a b" is not 1..256 visible ASCII characters without a comma`,
			`devices[0].mode: "hard" is not one of hami-core, mig, mps`,
			"devices[0].devmem: 0 is outside 1..1048576", "devices[0].devcore: 1001 is outside 1..1000", "devices[0].index: -1 is outside 0..65536",
			"devices[0].count: 0 is outside 1..1024", "devices[0].numa: 1024 is outside -1..1023",
		}},
		"healthy and of no size": {nvidia(`[{"id":"a","count":1,"health":true}]`), []string{nvidiaRegister + ": devices[0].devmem: 0 is outside 1..1048576"}},
		"more than a card has":   {nvidia("a,1,1048577,100,A4000,0,false:"), []string{nvidiaRegister + ": devices[0].devmem: 1048577 is outside 0..1048576"}},
		"a number too large":     {nvidia("a,1,9223372036854775808,100,A4000,0,true:"), []string{nvidiaRegister + `: devices[0].devmem: "9223372036854775808" is not a whole number`}},
		"negative memory":        {nvidia("a,1,-1,100,A4000,0,false:"), []string{nvidiaRegister + ": devices[0].devmem: -1 is outside 0..1048576"}},
		"the same card":          {nvidia(textOfA4000 + textOfA4000), []string{nvidiaRegister + `: devices[1].id: "GPU-ca90a5e1" is that of devices[0] too`}},
		"the same index":         {nvidia(`[{"id":"a","index":2,"count":1,"devmem":9},{"id":"b","index":2,"count":1,"devmem":9}]`), []string{nvidiaRegister + ": devices[1].index: 2 is that of devices[0] too, of the same vendor"}},
		"a counted name":         {nvidia("n1-nvidia-0,10,16376,100,A4000,0,true,0,hami-core:"), []string{nvidiaRegister + `: devices[0].id: "n1-nvidia-0" is what a card without a known UUID is called`}},
		"more than there can be": {nvidia(strings.Repeat(":", 1025)), []string{nvidiaRegister + ": devices: 1025 are more than 1024"}},
		"... in JSON":            {nvidia("[{}" + strings.Repeat(",{}", 1024) + "]"), []string{nvidiaRegister + ": devices: 1025 are more than 1024"}},
		"no list":                {nvidia(`[1]`), []string{nvidiaRegister + ": json: cannot unmarshal number into Go value of type codec.listed"}},
		"a half list":            {nvidia(`[{"id":"a"}`), []string{nvidiaRegister + ": unexpected end of JSON input"}},
		"health as a text":       {nvidia(`[{"id":"a","health":"true"}]`), []string{nvidiaRegister + ": json: cannot unmarshal string into Go struct field listed.health of type bool"}},
		"health twice":           {nvidia(`[{"id":"a","count":1,"devmem":9,"health":false,"health":true}]`), []string{nvidiaRegister + `: duplicate field "[0].health"`}},
		"a mode of others":       {nodeCase{"hami.io/node-dcu-register": "a,1,9,100,DCU,0,true,0,mig:"}, []string{`hami.io/node-dcu-register: devices[0].mode: "mig" is not one of hami-core`}},
		"MetaX in HAMi's words":  {nodeCase{"metax-tech.com/node-gpu-devices": `[{"id":"a","count":1,"devmem":9}]`}, []string{`metax-tech.com/node-gpu-devices: devices[0].id: "" is not 1..256 visible ASCII characters without a comma`}},
		"MetaX as a text":        {nodeCase{"metax-tech.com/node-gpu-devices": "a,1,9,100,S,0,true:"}, []string{"metax-tech.com/node-gpu-devices: invalid character 'a' looking for beginning of value"}},
		"Enflame's DRS":          {nodeCase{"enflame.com/gcu-drs-capacity": `{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.6gb":"0"}}`}, []string{"enflame.com/gcu-drs-capacity: is not read; annotate the node with heteroflow.io/devices"}},
		"Enflame's shares":       {nodeCase{"enflame.com/gcu-shared-capacity": `{"0":6}`}, []string{"enflame.com/gcu-shared-capacity: is not read; annotate the node with heteroflow.io/devices"}},
		"beside one that can be read": {nodeCase{nvidiaRegister: textOfA4000, "hami.io/node-dcu-register": "x"}, []string{
			"hami.io/node-dcu-register: devices[0]: 1 fields are neither 7 nor 9",
		}},
		"two models, one numbering": {nodeCase{"hami.io/node-register-Ascend910B3": "[]", "hami.io/node-register-Ascend310P": "[]"}, []string{
			"hami.io/node-register-Ascend310P: has the same indexes as hami.io/node-register-Ascend910B3, by which containers are shown these cards; annotate the node with heteroflow.io/devices",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(allocatable("birentech.com/gpu", "8"))
			for key, text := range tc.annotations {
				nodeAnnotated(key, text)(node)
			}
			got, err := Facts(node, policy.Default())
			tc.want[0] = "inventory of node n1: annotation " + tc.want[0]
			sameFaults(t, err, tc.want...)
			if len(got.Cards) > 0 {
				t.Errorf("cards beside a fault: %v", got.Cards)
			}
		})
	}
}

// nodeCase is a node's annotations.
type nodeCase map[string]string

// Moore Threads and Cambricon: 16 and 100 of compute a card, 512 and 256 MiB a
// unit (hami-protocol.md A.6).
func TestNodesByCapacity(t *testing.T) {
	card := func(v gpu.Vendor, plugin string, index int, memory gpu.MiB) gpu.Card {
		return gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("n1-%s-%d", v, index)), Index: index, Vendor: v, Counted: true, Plugin: plugin, Memory: memory, Usable: memory,
			Cores: 100, UsableCores: 100, MaxSlices: 100, NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationDriver,
		}
	}
	const musa, mlu = "mthreads.com/vgpu", "cambricon.com/vmlu"
	tests := map[string]struct {
		allocatable []string
		want        []gpu.Card
		faults      []string
	}{
		"musa":            {[]string{"mthreads.com/sgpu-core", "32", "mthreads.com/sgpu-memory", "192"}, []gpu.Card{card(gpu.Musa, musa, 0, 49152), card(gpu.Musa, musa, 1, 49152)}, nil},
		"cambricon":       {[]string{"cambricon.com/mlu.smlu.vcore", "200", "cambricon.com/mlu.smlu.vmemory", "384"}, []gpu.Card{card(gpu.Cambricon, mlu, 0, 49152), card(gpu.Cambricon, mlu, 1, 49152)}, nil},
		"both":            {[]string{"mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "1", "cambricon.com/mlu.smlu.vcore", "100", "cambricon.com/mlu.smlu.vmemory", "1"}, []gpu.Card{card(gpu.Musa, musa, 0, 512), card(gpu.Cambricon, mlu, 0, 256)}, nil},
		"none is left":    {[]string{"mthreads.com/sgpu-core", "0", "mthreads.com/sgpu-memory", "0", "mthreads.com/vgpu", "4"}, nil, nil},
		"half a card":     {[]string{"mthreads.com/sgpu-core", "24", "mthreads.com/sgpu-memory", "192"}, nil, []string{"mthreads.com/sgpu-core: 24 is not the compute of whole cards, 16 each"}},
		"no compute":      {[]string{"cambricon.com/mlu.smlu.vmemory", "384"}, nil, []string{"cambricon.com/mlu.smlu.vcore: 0 is not the compute of whole cards, 100 each"}},
		"no memory":       {[]string{"cambricon.com/mlu.smlu.vcore", "200"}, nil, []string{"cambricon.com/mlu.smlu.vmemory: 0 is not the memory of 2 equal cards"}},
		"uneven memory":   {[]string{"cambricon.com/mlu.smlu.vcore", "200", "cambricon.com/mlu.smlu.vmemory", "383"}, nil, []string{"cambricon.com/mlu.smlu.vmemory: 383 is not the memory of 2 equal cards"}},
		"too large":       {[]string{"mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "2049"}, nil, []string{"mthreads.com/sgpu-memory: 2049 is not the memory of 1 equal cards"}},
		"the largest":     {[]string{"mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "2048"}, []gpu.Card{card(gpu.Musa, musa, 0, 1<<20)}, nil},
		"too many to be":  {[]string{"mthreads.com/sgpu-core", "16400", "mthreads.com/sgpu-memory", "1025"}, nil, []string{"mthreads.com/sgpu-core: 16400 is outside 1..16384"}},
		"a part of a MiB": {[]string{"mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "500m"}, nil, []string{"mthreads.com/sgpu-memory: 500m is not a whole number"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Facts(nodeWith(allocatable(tc.allocatable...)), greedy())
			if len(tc.faults) > 0 {
				tc.faults[0] = "inventory of node n1: " + tc.faults[0]
			}
			sameFaults(t, err, tc.faults...)
			if diff := cmp.Diff(tc.want, got.Cards); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

// Each vendor's device plugin speaks for its own cards, and heteroflow.io/devices
// for all.
func TestSourcesOfANode(t *testing.T) {
	const metax = `[{"uuid":"GPU-m","totalDevCount":4,"totalVRam":9,"totalCompute":100}]`
	tests := map[string]struct {
		node   []nodeChange
		want   []string // "card plugin"
		faults []string
	}{
		"heteroflow.io/devices alone": {
			node: []nodeChange{inventoried(twoCards), nodeAnnotated(nvidiaRegister, "x,y"), nodeAnnotated("enflame.com/gcu-shared-capacity", ""), allocatable("birentech.com/gpu", "1", "mthreads.com/sgpu-core", "1")},
			want: []string{"GPU-a ", "vdie-0 "},
		},
		"a register, a count, a capacity": {
			node: []nodeChange{nodeAnnotated("hami.io/node-dcu-register", "DCU-1,4,9,100,Z100,0,true:"), allocatable("hygon.com/dcunum", "4", "nvidia.com/gpu", "1", "mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "2")},
			want: []string{"DCU-1 hygon.com/dcunum", "n1-nvidia-0 nvidia.com/gpu", "n1-musa-0 mthreads.com/vgpu"},
		},
		"a register's count is not whole cards": {
			node: []nodeChange{nodeAnnotated(nvidiaRegister, textOfA4000), allocatable("nvidia.com/gpu", "10")},
			want: []string{"GPU-ca90a5e1 nvidia.com/gpu"},
		},
		"nor is that of an empty one": {
			node: []nodeChange{nodeAnnotated("hami.io/node-biren-register", "[]"), allocatable("birentech.com/gpu", "8")},
		},
		"MetaX: may be the same cards": {
			node: []nodeChange{nodeAnnotated("metax-tech.com/node-gpu-devices", metax), allocatable("metax-tech.com/gpu", "2", "metax-tech.com/sgpu", "4")},
			want: []string{"GPU-m metax-tech.com/sgpu"},
		},
		"Kunlunxin: may be the same cards": {
			node: []nodeChange{nodeAnnotated("hami.io/node-register-xpu", `[{"id":"0000:04:00.0","count":4,"devmem":98304}]`), allocatable("kunlunxin.com/xpu", "8", "kunlunxin.com/vxpu", "4")},
			want: []string{"0000:04:00.0 kunlunxin.com/vxpu"},
		},
		"several models of Iluvatar": {
			node: []nodeChange{nodeAnnotated("hami.io/node-MR-V100-register", "a,4,9,100,MR-V100,0,true:"), nodeAnnotated("hami.io/node-BI-V150-register", "b,4,9,100,BI-V150,0,true:")},
			want: []string{"a iluvatar.ai/MR-V100-vgpu", "b iluvatar.ai/BI-V150-vgpu"},
		},
		"one card of two registers": {
			node:   []nodeChange{nodeAnnotated("hami.io/node-MR-V100-register", "a,4,9,100,MR-V100,0,true:"), nodeAnnotated("hami.io/node-BI-V150-register", "a,4,9,100,BI-V150,0,true:")},
			faults: []string{"inventory of node n1: card a: is given out by iluvatar.ai/MR-V100-vgpu and by iluvatar.ai/BI-V150-vgpu"},
		},
		"cordoned by UUID and by name": {
			node: []nodeChange{nodeAnnotated(nvidiaRegister, textOfA4000), allocatable("mthreads.com/sgpu-core", "32", "mthreads.com/sgpu-memory", "2"), nodeAnnotated("hami.io/device-cordon", "GPU-ca90a5e1,n1-musa-1")},
			want: []string{"GPU-ca90a5e1 nvidia.com/gpu cordoned", "n1-musa-0 mthreads.com/vgpu", "n1-musa-1 mthreads.com/vgpu cordoned"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			facts, err := Facts(nodeWith(tc.node...), policy.Default())
			sameFaults(t, err, tc.faults...)
			if diff := cmp.Diff(tc.want, sources(facts)); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func sources(f ledger.Facts) (all []string) {
	for _, c := range f.Cards {
		text := fmt.Sprintf("%s %s", c.ID, c.Plugin)
		if c.Cordoned {
			text += " cordoned"
		}
		all = append(all, text)
	}
	return all
}

// A device plugin gives a card to who names its count, and to nobody else.
func TestWhoGetsAPluginsCard(t *testing.T) {
	node := nodeWith(
		nodeAnnotated(nvidiaRegister, textOfA4000), nodeAnnotated("hami.io/node-register-Ascend910B3", "npu,4,9,20,NPU,0,true:"),
		nodeAnnotated("metax-tech.com/node-gpu-devices", `[{"uuid":"GPU-m","totalDevCount":4,"totalVRam":9,"totalCompute":100}]`),
		allocatable("enflame.com/gcu", "1", "mthreads.com/sgpu-core", "16", "mthreads.com/sgpu-memory", "2", "cambricon.com/mlu.smlu.vcore", "100", "cambricon.com/mlu.smlu.vmemory", "9"))
	facts, err := Facts(node, policy.Default())
	sameFaults(t, err)
	tests := map[string]struct {
		limits []string
		want   gpu.CardID
	}{
		"neutral":                  {[]string{"heteroflow.io/gpu", "1"}, ""},
		"neutral, a slice":         {[]string{"heteroflow.io/gpu-memory", "1"}, ""},
		"nvidia":                   {[]string{"nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000"}, "GPU-ca90a5e1"},
		"nvidia without a count":   {[]string{"nvidia.com/gpumem", "3000"}, ""},
		"ascend":                   {[]string{"huawei.com/Ascend910B3", "1"}, "npu"},
		"ascend, memory alone":     {[]string{"huawei.com/Ascend910B3-memory", "1"}, ""},
		"ascend, another model":    {[]string{"huawei.com/Ascend910B4", "1"}, ""},
		"metax, whole":             {[]string{"metax-tech.com/gpu", "1"}, ""},
		"enflame, whole":           {[]string{"enflame.com/gcu", "1"}, "n1-enflame-0"},
		"enflame, shares":          {[]string{"enflame.com/drs-gcu", "1", "enflame.com/gcu-memory", "1"}, ""},
		"metax, shares":            {[]string{"metax-tech.com/sgpu", "1"}, "GPU-m"},
		"musa":                     {[]string{"mthreads.com/vgpu", "1"}, "n1-musa-0"},
		"musa by memory alone":     {[]string{"mthreads.com/sgpu-memory", "2"}, "n1-musa-0"},
		"cambricon by its compute": {[]string{"cambricon.com/mlu.smlu.vcore", "10"}, "n1-cambricon-0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Request(podWith(app("main", tc.limits...)), policy.Default())
			sameFaults(t, err)
			var got gpu.CardID
			for i := range facts.Cards {
				if r.Asks[0].Suits(&facts.Cards[i]) {
					got += facts.Cards[i].ID
				}
			}
			if got != tc.want {
				t.Errorf("card %q, want %q", got, tc.want)
			}
		})
	}
}

// Variables that admission adds would hide the cards which a device plugin picks
// by itself; those of a register are known by name.
func TestInjectionAndDevicePlugins(t *testing.T) {
	injecting := policy.Default()
	injecting.Injection = policy.InjectionDownwardAPI
	fault := func(plugin string) string {
		return "inventory of node n1: " + plugin + ": the policy's injection would hide the cards that this device plugin gives; annotate the node with heteroflow.io/devices and take the plugin off it"
	}
	tests := map[string]struct {
		node *nodeChange
		want []string
	}{
		"counted":    {of(allocatable("nvidia.com/gpu", "1")), []string{fault("nvidia.com/gpu")}},
		"by size":    {of(allocatable("cambricon.com/mlu.smlu.vcore", "100", "cambricon.com/mlu.smlu.vmemory", "9")), []string{fault("cambricon.com/vmlu")}},
		"registered": {of(nodeAnnotated(nvidiaRegister, textOfA4000)), nil},
		"annotated":  {of(inventoried(twoCards)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Facts(nodeWith(*tc.node), injecting)
			sameFaults(t, err, tc.want...)
		})
	}
}

func of(c nodeChange) *nodeChange { return &c }

// The same devices in HAMi's two encodings are the same cards.
func TestEncodingsAgree(t *testing.T) {
	f := formOf("nvidia.com/gpu")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[!-+\--9;-Z^-~][ -+\--9;-~]{0,8}`) // no comma, no colon, and no bracket, which begins JSON
		var list []listed
		for range rapid.IntRange(0, 5).Draw(t, "cards") {
			list = append(list, listed{
				ID: word.Draw(t, "id"), Index: rapid.Int64Range(0, 3).Draw(t, "index"), Count: rapid.Int64Range(0, 3).Draw(t, "count"),
				Devmem: rapid.Int64Range(-1, gpu.MostMemory+1).Draw(t, "devmem"), Devcore: rapid.Int64Range(-1, mostCompute+1).Draw(t, "devcore"),
				Type: word.Draw(t, "type"), NUMA: rapid.Int64Range(-2, 2).Draw(t, "numa"), Health: rapid.Bool().Draw(t, "health"),
				Mode: rapid.SampledFrom([]string{"", "hami-core", "mps", "mig", "vnpu"}).Draw(t, "mode"),
			})
		}
		written, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if list == nil {
			written = []byte("[]")
		}
		fromJSON, errJSON := f.decode(string(written))
		fromText, errText := f.decode(textOf(list))
		if fmt.Sprint(errJSON) != fmt.Sprint(errText) {
			t.Fatalf("JSON: %v\ntext: %v", errJSON, errText)
		}
		if diff := cmp.Diff(fromJSON, fromText); diff != "" && errJSON == nil {
			t.Fatalf("cards (-JSON +text):\n%s", diff)
		}
	})
}

// textOf writes devices as HAMi's older plugins do.
func textOf(list []listed) string {
	var all strings.Builder
	for _, d := range list {
		fmt.Fprintf(&all, "%s,%d,%d,%d,%s,%d,%t,%d,%s:", d.ID, d.Count, d.Devmem, d.Devcore, d.Type, d.NUMA, d.Health, d.Index, d.Mode)
	}
	return all.String()
}
