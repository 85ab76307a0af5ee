package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/topology"
)

type nodeChange func(*corev1.Node)

func nodeWith(changes ...nodeChange) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{}, Labels: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range changes {
		c(n)
	}
	return n
}

func inventoried(json string) nodeChange {
	return func(n *corev1.Node) { n.Annotations["heteroflow.io/devices"] = json }
}

func nodeAnnotated(key, value string) nodeChange {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func labelled(pairs ...string) nodeChange {
	return func(n *corev1.Node) {
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func allocatable(pairs ...string) nodeChange {
	return func(n *corev1.Node) { n.Status.Allocatable = quantities(pairs...) }
}

const twoCards = `{"version":1,"rack":"r1","cards":[
	{"uuid":"GPU-a","index":0,"vendor":"nvidia","model":"A100-SXM4-40GB","memoryMiB":40960,"cores":100,"numa":1,"pciBusID":"0000:17:00.0",
	 "healthy":true,"mode":"slice","maxSlices":4,"isolation":"soft","temperature":41},
	{"uuid":"vdie-0","vendor":"Ascend","memoryMiB":32768}]}`

func TestFactsOfDevices(t *testing.T) {
	node := nodeWith(inventoried(twoCards),
		allocatable("cpu", "7910m", "memory", "64Gi", "pods", "110", "nvidia.com/gpu", "8"), // the annotation comes first
		nodeAnnotated("heteroflow.io/device-cordon", "GPU-gone, vdie-0"))
	node.Status.NodeInfo.BootID = "boot-1"
	want := ledger.Facts{
		ID: "n1", CPU: 7910, Memory: 64 << 30, Pods: 110, BootID: "boot-1",
		Cards: []gpu.Card{
			{
				ID: "GPU-a", Index: 0, Vendor: gpu.Nvidia, Model: "A100-SXM4-40GB", Memory: 40960,
				Usable: 36864, Cores: 100, UsableCores: 100, MaxSlices: 4, NUMA: 1, PCIBusID: "0000:17:00.0",
				Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
			},
			{
				ID: "vdie-0", Index: 0, Vendor: gpu.Ascend, Memory: 32768,
				Usable: 29491, // 10 percent are 3276.8, kept back: 3277
				Cores:  100, UsableCores: 100, MaxSlices: 10, NUMA: gpu.NoNUMA,
				Cordoned: true, Mode: gpu.ModeWhole, Isolation: gpu.IsolationNone,
			},
		},
	}
	got, err := Facts(node, policy.Default())
	sameFaults(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestFactsOfAllocatable(t *testing.T) {
	card := func(id string, index int, model string, memory gpu.MiB, mode gpu.Mode) gpu.Card {
		return gpu.Card{
			ID: gpu.CardID(id), Index: index, Vendor: gpu.Nvidia, Model: model, Counted: true, Plugin: "nvidia.com/gpu", Memory: memory, Usable: memory,
			Cores: 100, UsableCores: 100, MaxSlices: 10, NUMA: gpu.NoNUMA, Healthy: true, Mode: mode, Isolation: gpu.IsolationNone,
		}
	}
	scaled := policy.Default()
	scaled.MemoryScale, scaled.CoreScale = 2000, 2000
	tests := map[string]struct {
		node  *corev1.Node
		cards []gpu.Card
	}{
		"no card at all":      {node: nodeWith()},
		"a count of 0":        {node: nodeWith(allocatable("nvidia.com/gpu", "0"))},
		"neutral names":       {node: nodeWith(allocatable("heteroflow.io/gpu", "8"))},
		"an empty annotation": {node: nodeWith(inventoried(`{"version":1,"cards":[]}`), allocatable("nvidia.com/gpu", "8"))},
		"labels": {
			node:  nodeWith(allocatable("nvidia.com/gpu", "2"), labelled("nvidia.com/gpu.product", "Tesla-T4", "nvidia.com/gpu.memory", "15360", "nvidia.com/gpu.replicas", "1")),
			cards: []gpu.Card{card("n1-nvidia-0", 0, "Tesla-T4", 15360, gpu.ModeWhole), card("n1-nvidia-1", 1, "Tesla-T4", 15360, gpu.ModeWhole)},
		},
		"no labels": {
			node:  nodeWith(allocatable("nvidia.com/gpu", "1")),
			cards: []gpu.Card{card("n1-nvidia-0", 0, "", 0, gpu.ModeWhole)},
		},
		"instances instead of cards": {
			node:  nodeWith(allocatable("nvidia.com/gpu", "1"), labelled("nvidia.com/gpu.product", "A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.memory", "4864")),
			cards: []gpu.Card{card("n1-nvidia-0", 0, "A100-SXM4-40GB-MIG-1g.5gb", 4864, gpu.ModeMIG)},
		},
		"cordoned by HAMi's key": {
			node: nodeWith(allocatable("nvidia.com/gpu", "1"), nodeAnnotated("hami.io/device-cordon", "n1-nvidia-0")),
			cards: func() []gpu.Card {
				c := card("n1-nvidia-0", 0, "", 0, gpu.ModeWhole)
				c.Cordoned = true
				return []gpu.Card{c}
			}(),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Facts(tc.node, scaled)
			sameFaults(t, err)
			if diff := cmp.Diff(tc.cards, got.Cards); diff != "" && len(got.Cards)+len(tc.cards) > 0 {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsOfTheNode(t *testing.T) {
	condition := func(c ...corev1.NodeCondition) nodeChange { return func(n *corev1.Node) { n.Status.Conditions = c } }
	taint := func(e corev1.TaintEffect) nodeChange {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: e}} }
	}
	tests := map[string]struct {
		node *corev1.Node
		want ledger.Facts
	}{
		"ready":             {nodeWith(), ledger.Facts{ID: "n1"}},
		"never heard of":    {nodeWith(condition()), ledger.Facts{ID: "n1", Unavailable: true}},
		"not ready":         {nodeWith(condition(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse})), ledger.Facts{ID: "n1", Unavailable: true}},
		"unreachable":       {nodeWith(condition(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown})), ledger.Facts{ID: "n1", Unavailable: true}},
		"other conditions":  {nodeWith(condition(corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})), ledger.Facts{ID: "n1", Unavailable: true}},
		"cordoned":          {nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }), ledger.Facts{ID: "n1", Unavailable: true}},
		"softly tainted":    {nodeWith(taint(corev1.TaintEffectPreferNoSchedule)), ledger.Facts{ID: "n1", PreferNoSchedule: true}},
		"tainted":           {nodeWith(taint(corev1.TaintEffectNoSchedule)), ledger.Facts{ID: "n1"}},
		"for one tenant":    {nodeWith(labelled("heteroflow.io/tenant", "blue")), ledger.Facts{ID: "n1", Dedicated: "blue"}},
		"an absurd machine": {nodeWith(allocatable("cpu", "9e18", "memory", "-5")), ledger.Facts{ID: "n1", CPU: mostCounted}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Facts(tc.node, policy.Default())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	slice := gpu.Card{Memory: 1000, Cores: 100, Mode: gpu.ModeSlice}
	tests := map[string]struct {
		settings func(*policy.Settings)
		cards    []gpu.Card
		memory   []gpu.MiB
		cores    []gpu.Cores
	}{
		"the fixed part is the larger":     {cards: []gpu.Card{slice, slice}, memory: []gpu.MiB{750, 750}, cores: []gpu.Cores{100, 100}},
		"it is shared out, rounded up":     {cards: []gpu.Card{slice, slice, slice}, memory: []gpu.MiB{833, 833, 833}, cores: []gpu.Cores{100, 100, 100}},
		"the percentage is the larger":     {cards: []gpu.Card{{Memory: 81559, Mode: gpu.ModeSlice}}, memory: []gpu.MiB{73403}, cores: []gpu.Cores{0}},
		"never negative":                   {cards: []gpu.Card{{Memory: 300}}, memory: []gpu.MiB{0}, cores: []gpu.Cores{0}},
		"no reserve":                       {settings: func(s *policy.Settings) { s.Reserve = policy.Reserve{} }, cards: []gpu.Card{slice}, memory: []gpu.MiB{1000}, cores: []gpu.Cores{100}},
		"overcommitted, after the reserve": {settings: func(s *policy.Settings) { s.MemoryScale, s.CoreScale = 1500, 1999 }, cards: []gpu.Card{slice}, memory: []gpu.MiB{750}, cores: []gpu.Cores{199}},
		"rounded down":                     {settings: func(s *policy.Settings) { s.MemoryScale = 1001 }, cards: []gpu.Card{slice}, memory: []gpu.MiB{500}, cores: []gpu.Cores{100}},
		"what a device plugin gives out is as it says": {
			settings: func(s *policy.Settings) { s.MemoryScale, s.CoreScale = 2000, 2000 },
			cards:    []gpu.Card{{Plugin: "nvidia.com/gpu", Memory: 1000, Usable: 700, Cores: 100, UsableCores: 150, Mode: gpu.ModeSlice}},
			memory:   []gpu.MiB{700}, cores: []gpu.Cores{150},
		},
		"never a partition": {
			settings: func(s *policy.Settings) { s.MemoryScale, s.CoreScale = 2000, 2000 },
			cards:    []gpu.Card{{Memory: 1000, Cores: 100, Mode: gpu.ModeMIG}, {Memory: 1000, Cores: 100, Mode: gpu.ModeVNPU, Parent: "x"}},
			memory:   []gpu.MiB{500, 500}, // one card, of which the other is a part
			cores:    []gpu.Cores{100, 100},
		},
		"partitions alone": {cards: []gpu.Card{{Memory: 1000, Mode: gpu.ModeMIG, Parent: "x"}}, memory: []gpu.MiB{500}, cores: []gpu.Cores{0}},
		"the largest there can be": {
			settings: func(s *policy.Settings) { s.MemoryScale = 10000 },
			cards:    []gpu.Card{{Memory: gpu.MostMemory, Mode: gpu.ModeSlice}}, memory: []gpu.MiB{9437180}, cores: []gpu.Cores{0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := policy.Default()
			if tc.settings != nil {
				tc.settings(&s)
			}
			f := ledger.Facts{Cards: tc.cards}
			size(&f, s)
			var memory []gpu.MiB
			var cores []gpu.Cores
			for _, c := range f.Cards {
				memory, cores = append(memory, c.Usable), append(cores, c.UsableCores)
			}
			if diff := cmp.Diff(tc.memory, memory); diff != "" {
				t.Errorf("usable (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.cores, cores); diff != "" {
				t.Errorf("usable cores (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInventoryRefused(t *testing.T) {
	const vendors = "musa, hygon, cambricon, biren, ascend, kunlun, iluvatar, nvidia, metax, enflame"
	card := func(fields string) string {
		return `{"version":1,"cards":[{"uuid":"GPU-a","vendor":"nvidia","memoryMiB":1,"healthy":true` + fields + `}]}`
	}
	const at = "inventory of node n1: annotation heteroflow.io/devices: "
	tests := map[string]struct {
		node *corev1.Node
		want []string
	}{
		"not JSON":                {nodeWith(inventoried("GPU-a,10")), []string{at + "invalid character 'G' looking for beginning of value"}},
		"empty":                   {nodeWith(inventoried("")), []string{at + "unexpected end of JSON input"}},
		"null":                    {nodeWith(inventoried("null")), []string{at + "version: 0 is not 1"}},
		"another version":         {nodeWith(inventoried(`{"version":2,"cards":[]}`)), []string{at + "version: 2 is not 1"}},
		"no version":              {nodeWith(inventoried(`{"cards":[]}`)), []string{at + "version: 0 is not 1"}},
		"version of another type": {nodeWith(inventoried(`{"version":"1"}`)), []string{at + "json: cannot unmarshal string into Go struct field devices.version of type int"}},
		"a field twice":           {nodeWith(inventoried(card(`,"healthy":false`))), []string{at + `duplicate field "cards[0].healthy"`}},
		"a fraction of memory":    {nodeWith(inventoried(card(`,"cores":99.5`))), []string{at + "json: cannot unmarshal number 99.5 into Go struct field device.cards.cores of type int64"}},
		"healthy as a text":       {nodeWith(inventoried(`{"version":1,"cards":[{"healthy":"true"}]}`)), []string{at + "json: cannot unmarshal string into Go struct field device.cards.healthy of type bool"}},
		"an empty card": {nodeWith(inventoried(`{"version":1,"cards":[{}]}`)), []string{
			at + `cards[0].vendor: "" is not one of ` + vendors,
			`cards[0].uuid: "" is not 1..256 visible ASCII characters without a comma`,
		}},
		"every fault": {nodeWith(inventoried(
			`{"version":1,"cards":[{"uuid":"a,b","index":-1,"vendor":"amd","memoryMiB":0,"cores":101,"numa":-2,"healthy":true,"mode":"mps","maxSlices":0,"isolation":"exclusive","parent":" "}]}`)), []string{
			at + `cards[0].vendor: "amd" is not one of ` + vendors,
			`cards[0].uuid: "a,b" is not 1..256 visible ASCII characters without a comma`,
			`cards[0].parent: " " is not another card's UUID`,
			"cards[0].index: -1 is outside 0..65536",
			"cards[0].memoryMiB: 0 is outside 1..1048576",
			"cards[0].cores: 101 is outside 1..100",
			"cards[0].maxSlices: 0 is outside 1..1024",
			"cards[0].numa: -2 is outside -1..1023",
			`cards[0].mode: "mps" is not one of whole, slice, mig, vnpu`,
			`cards[0].isolation: "exclusive" is not one of none, hard, driver, soft`,
		}},
		"bytes for MiB":         {nodeWith(inventoried(`{"version":1,"cards":[{"uuid":"GPU-a","vendor":"nvidia","memoryMiB":42949672960}]}`)), []string{at + "cards[0].memoryMiB: 42949672960 is outside 0..1048576"}},
		"its own parent":        {nodeWith(inventoried(card(`,"mode":"mig","parent":"GPU-a"`))), []string{at + `cards[0].parent: "GPU-a" is not another card's UUID`}},
		"names in another case": {nodeWith(inventoried(`{"version":1,"cards":[{"UUID":"GPU-a","vendor":"nvidia","memoryMiB":1}]}`)), []string{at + `cards[0].uuid: "" is not 1..256 visible ASCII characters without a comma`}},
		"the same card":         {nodeWith(inventoried(`{"version":1,"cards":[{"uuid":"GPU-a","vendor":"nvidia","memoryMiB":1},{"uuid":"GPU-a","index":1,"vendor":"nvidia","memoryMiB":1}]}`)), []string{at + `cards[1].uuid: "GPU-a" is that of cards[0] too`}},
		"the same index":        {nodeWith(inventoried(`{"version":1,"cards":[{"uuid":"a","vendor":"ascend","memoryMiB":1},{"uuid":"b","vendor":"ascend","memoryMiB":1}]}`)), []string{at + "cards[1].index: 0 is that of cards[0] too, of the same vendor"}},
		"a counted name":        {nodeWith(inventoried(`{"version":1,"cards":[{"uuid":"n1-nvidia-0","vendor":"nvidia","memoryMiB":1}]}`)), []string{at + `cards[0].uuid: "n1-nvidia-0" is what a card without a known UUID is called`}},
		"shared cards":          {nodeWith(allocatable("nvidia.com/gpu", "8"), labelled("nvidia.com/gpu.replicas", "4")), []string{`inventory of node n1: label nvidia.com/gpu.replicas: "4": the device plugin shares cards, so nvidia.com/gpu does not count whole ones`}},
		"memory label":          {nodeWith(allocatable("nvidia.com/gpu", "8"), labelled("nvidia.com/gpu.memory", "40GiB")), []string{`inventory of node n1: label nvidia.com/gpu.memory: "40GiB" is outside 0..1048576 MiB`}},
		"too many to be":        {nodeWith(allocatable("nvidia.com/gpu", "1025")), []string{"inventory of node n1: nvidia.com/gpu: 1025 is outside 1..1024"}},
		"a part of a card":      {nodeWith(allocatable("nvidia.com/gpu", "500m")), []string{"inventory of node n1: nvidia.com/gpu: 500m is not a whole number"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.node.Spec.Unschedulable = true
			got, err := Facts(tc.node, policy.Default())
			sameFaults(t, err, tc.want...)
			if diff := cmp.Diff(ledger.Facts{ID: "n1", Unavailable: true}, got); diff != "" {
				t.Errorf("facts beside an error (-want +got):\n%s", diff)
			}
		})
	}
}

// Where several vendors' device plugins give out whole cards, all of them count;
// what is advertised in shares does not.
func TestFactsOfSeveralPlugins(t *testing.T) {
	node := nodeWith(allocatable(
		"metax-tech.com/gpu", "1", "enflame.com/gcu", "1", "kunlunxin.com/xpu", "1", "birentech.com/gpu", "1", "nvidia.com/gpu", "1",
		"metax-tech.com/sgpu", "8", "enflame.com/drs-gcu", "6", "kunlunxin.com/vxpu", "4", "mthreads.com/vgpu", "16", "hygon.com/dcunum", "4",
		"cambricon.com/vmlu", "10", "huawei.com/Ascend910B3", "8", "iluvatar.ai/MR-V100-vgpu", "8", "huawei.com/Ascend910", "8", "huawei.com/Ascend310P", "1"))
	facts, err := Facts(node, policy.Default())
	sameFaults(t, err)
	var got []gpu.CardID
	for _, c := range facts.Cards {
		got = append(got, c.ID)
	}
	want := []gpu.CardID{"n1-nvidia-0", "n1-biren-0", "n1-ascend-0", "n1-kunlun-0", "n1-metax-0", "n1-enflame-0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
}

// Partitions share the index of their card, and vendors count each for itself.
func TestIndexesThatMayRepeat(t *testing.T) {
	got, err := Facts(nodeWith(inventoried(`{"version":1,"cards":[
		{"uuid":"GPU-a","index":0,"vendor":"nvidia","memoryMiB":40960,"healthy":true,"mode":"mig"},
		{"uuid":"MIG-1","index":0,"vendor":"nvidia","memoryMiB":4864,"healthy":true,"mode":"mig","parent":"GPU-a","profile":"1g.5gb"},
		{"uuid":"MIG-2","index":0,"vendor":"nvidia","memoryMiB":4864,"healthy":true,"mode":"mig","parent":"GPU-a","profile":"1g.5gb"},
		{"uuid":"mlu","index":0,"vendor":"cambricon","memoryMiB":4864}]}`)), policy.Default())
	sameFaults(t, err)
	if len(got.Cards) != 4 {
		t.Errorf("%d cards, want 4", len(got.Cards))
	}
}

func TestFactsOfPlaceAndRDMA(t *testing.T) {
	able := func(gbps int) ledger.RDMA { return ledger.RDMA{Stated: true, Able: true, Gbps: gbps} }
	tests := map[string]struct {
		labels []string
		place  topology.Location
		rdma   ledger.RDMA
	}{
		"none": {},
		"all": {
			[]string{"topology.kubernetes.io/region", "eu", "topology.kubernetes.io/zone", "eu-1", "heteroflow.io/rack", "r7", "heteroflow.io/rdma", "true", "heteroflow.io/rdma-speed", "200"},
			topology.Location{Region: "eu", Zone: "eu-1", Rack: "r7"}, able(200),
		},
		"other racks are not ours": {labels: []string{"rack", "r7", "example.com/rack", "r8"}},
		"bare names":               {labels: []string{"rdma", "true", "rdma-speed", "100"}, rdma: able(100)},
		"ours before the bare":     {labels: []string{"rdma", "true", "heteroflow.io/rdma", "false"}, rdma: ledger.RDMA{Stated: true}},
		"no speed of what is not":  {labels: []string{"rdma", "false", "rdma-speed", "100"}, rdma: ledger.RDMA{Stated: true}},
		"a speed alone":            {labels: []string{"rdma-speed", "100"}},
		"neither true nor false":   {labels: []string{"heteroflow.io/rdma", "yes", "rdma-speed", "100"}},
		"empty":                    {labels: []string{"heteroflow.io/rdma", ""}},
		"in another case":          {labels: []string{"rdma", "True"}, rdma: able(0)},
		"a speed with its unit":    {labels: []string{"rdma", "true", "rdma-speed", "100Gbps"}, rdma: able(0)},
		"a speed below 0":          {labels: []string{"rdma", "true", "rdma-speed", "-100"}, rdma: able(0)},
		"a speed beyond any":       {labels: []string{"rdma", "true", "rdma-speed", "100000"}, rdma: able(0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Facts(nodeWith(labelled(tc.labels...)), policy.Default())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.place, f.Location); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.rdma, f.RDMA); diff != "" {
				t.Errorf("RDMA (-want +got):\n%s", diff)
			}
		})
	}
}
