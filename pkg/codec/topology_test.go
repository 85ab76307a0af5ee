package codec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// threeCards are not in the order of their indexes, and tell of one NUMA node.
const threeCards = `{"version":1,"cards":[
	{"uuid":"GPU-c","index":2,"vendor":"nvidia","memoryMiB":1000,"healthy":true},
	{"uuid":"GPU-a","index":0,"vendor":"nvidia","memoryMiB":1000,"healthy":true},
	{"uuid":"GPU-b","index":1,"vendor":"nvidia","memoryMiB":1000,"healthy":true,"numa":3}]}`

const matrixOfThree = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n" +
	"GPU0\t X \tNV4\tSYS\t0-7\t0\nGPU1\tNV4\t X \tSYS\t0-7\t0\nGPU2\tSYS\tSYS\t X \t8-15\t1\n"

func topologyOf(text string) nodeChange { return nodeAnnotated("heteroflow.io/gpu-topology", text) }

func scoresOf(text string) nodeChange { return nodeAnnotated("hami.io/node-nvidia-score", text) }

// told is what is read of the links between GPU-a, GPU-b and GPU-c, in that order.
type told struct {
	Known      bool
	AB, AC, BC string
	NUMA       []int // of the cards themselves
}

func toldBy(f *ledger.Facts) (t told) {
	l := f.Links
	t = told{Known: l.Known(), AB: l.Between(0, 1).String(), AC: l.Between(0, 2).String(), BC: l.Between(1, 2).String()}
	for _, c := range ledger.InOrder(f.Cards) {
		t.NUMA = append(t.NUMA, c.NUMA)
	}
	return t
}

func TestTopology(t *testing.T) {
	asTold := []int{gpu.NoNUMA, 3, gpu.NoNUMA}
	matrix := `"matrix":` + strconv.Quote(matrixOfThree)
	tests := map[string]struct {
		says []nodeChange
		want told
	}{
		"nothing":                {nil, told{NUMA: asTold}},
		"nothing of links":       {[]nodeChange{topologyOf(`{}`)}, told{NUMA: asTold}},
		"that there are none":    {[]nodeChange{topologyOf(`{"links":[]}`)}, told{Known: true, NUMA: asTold}},
		"pairs":                  {[]nodeChange{topologyOf(`{"links":[["GPU-c","GPU-a","NV12"],["GPU-a","GPU-b","PIX"]]}`)}, told{true, "PIX", "NV12", "", asTold}},
		"a link of an old name":  {[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-b","SOC"]]}`)}, told{Known: true, AB: "SYS", NUMA: asTold}},
		"a link of no known one": {[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-b","NVX"]]}`)}, told{Known: true, NUMA: asTold}},
		"cards that are gone":    {[]nodeChange{topologyOf(`{"links":[["GPU-x","GPU-a","NV1"],["GPU-b","GPU-a","NV2"]],"numa":{"GPU-x":0}}`)}, told{Known: true, AB: "NV2", NUMA: asTold}},
		"NUMA nodes alone":       {[]nodeChange{topologyOf(`{"numa":{"GPU-a":0,"GPU-b":1,"GPU-c":-1}}`)}, told{NUMA: []int{0, 3, gpu.NoNUMA}}},
		"a matrix":               {[]nodeChange{topologyOf(`{` + matrix + `}`)}, told{true, "NV4", "SYS", "SYS", []int{0, 3, 1}}},
		"a matrix and pairs, of which the weaker counts": {
			[]nodeChange{topologyOf(`{` + matrix + `,"links":[["GPU-a","GPU-b","NV2"],["GPU-a","GPU-c","NV2"]]}`)}, told{true, "NV2", "SYS", "SYS", []int{0, 3, 1}},
		},
		"what others read": {[]nodeChange{topologyOf(`{"links":[],"nics":["mlx5_0"],"driver":{"version":"580"}}`)}, told{Known: true, NUMA: asTold}},
		"HAMi's scores": {
			[]nodeChange{scoresOf(`[{"uuid":"GPU-a","score":{"GPU-b":1240,"GPU-c":10}},{"uuid":"GPU-b","score":{"GPU-a":1240,"GPU-c":0}}]`)},
			told{true, "NV12", "SYS", "", asTold},
		},
		"HAMi's, of nobody": {[]nodeChange{scoresOf(`[]`)}, told{NUMA: asTold}},
		"ours before HAMi's": {
			[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-b","PIX"]]}`), scoresOf(`[{"uuid":"GPU-a","score":{"GPU-b":100,"GPU-c":100}}]`)},
			told{Known: true, AB: "PIX", NUMA: asTold},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Facts(nodeWith(append(tc.says, inventoried(threeCards))...), policy.Default())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, toldBy(&f)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// The ledger knows the cards by the same places.
func TestTopologyIsOfTheLedgersPlaces(t *testing.T) {
	f, err := Facts(nodeWith(inventoried(threeCards), topologyOf(`{"links":[["GPU-c","GPU-b","NV12"]]}`)), policy.Default())
	sameFaults(t, err)
	l := ledger.New(tenancy.Separate{})
	l.SetNode(f)
	n, _ := l.Snapshot().Node("n1")
	for i := range n.Cards {
		for j := range n.Cards {
			want := i != j && n.Cards[i].ID != "GPU-a" && n.Cards[j].ID != "GPU-a"
			if got := n.Links.Between(i, j).Kind.Joins(); got != want {
				t.Errorf("%s and %s joined: %t", n.Cards[i].ID, n.Cards[j].ID, got)
			}
		}
	}
}

// What cannot be read is no topology, and takes no card away.
func TestTopologyThatCannotBeRead(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`{"uuid":"GPU-%d","index":%[1]d,"vendor":"nvidia","memoryMiB":1}`, i)
	}
	tests := map[string]struct {
		says  []nodeChange
		fault string
	}{
		"no JSON":            {[]nodeChange{topologyOf(`links`)}, "annotation heteroflow.io/gpu-topology: "},
		"a pair of one":      {[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-b","NV1"],["GPU-a"]]}`)}, "links[1]: "},
		"a card and itself":  {[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-a","NV1"]]}`)}, "links[0]: "},
		"a card of no name":  {[]nodeChange{topologyOf(`{"links":[["GPU-a","","NV1"]]}`)}, "links[0]: "},
		"a number as a link": {[]nodeChange{topologyOf(`{"links":[["GPU-a","GPU-b",12]]}`)}, "annotation heteroflow.io/gpu-topology: "},
		"NUMA nodes":         {[]nodeChange{topologyOf(`{"numa":{"GPU-a":0,"GPU-b":1024,"GPU-c":-2}}`)}, `numa["GPU-b"]: 1024 is outside -1..1023`},
		"a matrix":           {[]nodeChange{topologyOf(`{"matrix":"nvidia-smi: command not found"}`)}, "matrix: line 1, column 1: "},
		"a field twice":      {[]nodeChange{topologyOf(`{"links":[],"links":[]}`)}, "annotation heteroflow.io/gpu-topology: "},
		"ours, HAMi's or no": {[]nodeChange{topologyOf(`{`), scoresOf(`[{"uuid":"GPU-a","score":{"GPU-b":100}}]`)}, "annotation heteroflow.io/gpu-topology: "},
		"HAMi's":             {[]nodeChange{scoresOf(`[{"uuid":"","score":{"GPU-b":100}}]`)}, "annotation hami.io/node-nvidia-score: [0].uuid: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Facts(nodeWith(append(tc.says, inventoried(threeCards))...), policy.Default())
			if !errors.Is(err, ErrTopology) || !strings.HasPrefix(err.Error(), "topology of node n1: ") || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %s", err, tc.fault)
			}
			want := told{NUMA: []int{gpu.NoNUMA, 3, gpu.NoNUMA}}
			if diff := cmp.Diff(want, toldBy(&f)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	f, err := Facts(nodeWith(inventoried(`{"version":1,"cards":[`+strings.Join(many, ",")+`]}`), topologyOf(`{"links":[]}`)), policy.Default())
	if len(f.Cards) != 65 || !errors.Is(err, ErrTopology) || f.Links.Known() {
		t.Errorf("%d cards: %v", len(f.Cards), err)
	}
}

// Which of its cards a pod gets the device plugin alone decides.
func TestTopologyOfCountedCards(t *testing.T) {
	f, err := Facts(nodeWith(allocatable("nvidia.com/gpu", "3"), topologyOf(`{"matrix":`+strconv.Quote(matrixOfThree)+`}`)), policy.Default())
	sameFaults(t, err)
	if len(f.Cards) != 3 || f.Links.Known() {
		t.Errorf("%d cards, links known %t", len(f.Cards), f.Links.Known())
	}
}

// A matrix is of the node's only vendor; of several it is NVIDIA's.
func TestTopologyOfOtherVendors(t *testing.T) {
	matrix := strings.NewReplacer("GPU0", "NPU0", "GPU1", "NPU1", "GPU2", "NPU2", "NV4", "HCCS").Replace(matrixOfThree)
	ascend := strings.ReplaceAll(threeCards, "nvidia", "ascend")
	for inventory, want := range map[string]string{
		ascend: "HCCS", threeCards: "HCCS", strings.Replace(ascend, "ascend", "nvidia", 1): "",
	} {
		f, err := Facts(nodeWith(inventoried(inventory), topologyOf(`{"matrix":`+strconv.Quote(matrix)+`}`)), policy.Default())
		sameFaults(t, err)
		if got := toldBy(&f).AB; got != want {
			t.Errorf("%s: %q, want %q", inventory, got, want)
		}
	}
}

// FuzzTopology: no panic; the cards are the same whatever it says, but for NUMA
// nodes that are not known, and the same text always says the same.
func FuzzTopology(f *testing.F) {
	f.Add(`{"links":[["GPU-c","GPU-a","NV12"],["GPU-a","GPU-b","PIX"]],"numa":{"GPU-a":1}}`, `[{"uuid":"GPU-a","score":{"GPU-b":1240}}]`)
	f.Add(`{"matrix":`+strconv.Quote(matrixOfThree)+`}`, `[{"uuid":"GPU-b","score":{"GPU-a":-7}}]`)
	f.Add(`{"links":null,"numa":null,"matrix":null}`, `null`)
	plain, err := Facts(nodeWith(inventoried(threeCards)), policy.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ours, hami string) {
		for _, says := range []nodeChange{topologyOf(ours), scoresOf(hami)} {
			got, err := Facts(nodeWith(inventoried(threeCards), says), policy.Default())
			again, errAgain := Facts(nodeWith(inventoried(threeCards), says), policy.Default())
			if diff := cmp.Diff(got, again); diff != "" || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
				t.Fatalf("read twice: %v, %v (-first +second):\n%s", err, errAgain, diff)
			}
			if err != nil && (!errors.Is(err, ErrTopology) || got.Links.Known()) {
				t.Fatalf("links beside %v", err)
			}
			cards := ledger.InOrder(got.Cards)
			for i, want := range ledger.InOrder(plain.Cards) {
				if want.NUMA == gpu.NoNUMA {
					want.NUMA = cards[i].NUMA
				}
				if cards[i] != want || want.NUMA < gpu.NoNUMA {
					t.Fatalf("card %+v, want %+v", cards[i], want)
				}
			}
		}
	})
}
