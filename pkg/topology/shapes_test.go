package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// TestShapes are the forms a matrix takes on its way to us.
func TestShapes(t *testing.T) {
	two := func(cell string, numa ...int) Matrix { return truth{"GPU0", numa, cell}.matrix() }
	far := gpu.NoNUMA
	tests := map[string]struct {
		text []string
		want Matrix
	}{
		"one space between all": {[]string{
			"GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID",
			"GPU0 X NV4 0-15 0-1 N/A",
			"GPU1 NV4 X 0-15 0-1 N/A",
		}, two("NV4", 0, 0)},
		"one space, and no NUMA node": {[]string{
			"GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID",
			"GPU0 X NV4 0-15 N/A",
			"GPU1 NV4 X 0-15 N/A",
		}, two("NV4", far, far)},
		"tabs made spaces by a terminal": {[]string{
			"        GPU0    GPU1    mlx5_bond_0     CPU Affinity    NUMA Affinity   GPU NUMA ID",
			"GPU0     X      NV4     PIX     0-15    1               N/A",
			"GPU1    NV4      X      SYS     16-31   2               N/A",
			"mlx5_bond_0     PIX     SYS      X ",
		}, two("NV4", 1, 2)},
		"a blank cell under tabs": {[]string{
			"\tGPU0\tGPU1\tGPU2\tNUMA Affinity",
			"GPU0\t X \t\tSYS\t0",
			"GPU1\t\t X \tPIX\t0",
			"GPU2\tSYS\tPIX\t X \t1",
		}, truth{"GPU0", []int{0, 0, 1}, "NA SYS\nPIX"}.matrix()},
		"a blank cell under spaces": {[]string{
			"        GPU0    GPU1    GPU2    NUMA Affinity",
			"GPU0     X              SYS     0",
			"GPU1             X      PIX     0",
			"GPU2    SYS     PIX      X      1",
		}, truth{"GPU0", []int{0, 0, 1}, "NA SYS\nPIX"}.matrix()},
		"a header of tabs over spaces": {[]string{
			"\tGPU0\tGPU1\tGPU2\tNUMA Affinity",
			"GPU0     X              SYS     0",
			"GPU1             X      PIX     0",
			"GPU2    SYS     PIX      X      1",
		}, truth{"GPU0", []int{0, 0, 1}, "NA SYS\nPIX"}.matrix()},
		"cells that do not stand under their columns": {[]string{
			"        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity",
			"GPU0    X   PIX   SYS   0-15   0",
			"GPU1    PIX   X   NV1   0-15   0",
			"GPU2    SYS   NV1   X   0-15   1",
		}, truth{"GPU0", []int{0, 0, 1}, "PIX SYS\nNV1"}.matrix()},
		"nor anything after them": {[]string{
			"        GPU0    GPU1    GPU2",
			"GPU0    X   PIX   SYS",
			"GPU1    PIX   X   NV1",
			"GPU2    SYS   NV1   X",
		}, truth{"GPU0", none(3), "PIX SYS\nNV1"}.matrix()},
		"a NUMA node without processors under spaces": {[]string{
			"        GPU0    GPU1    CPU Affinity    NUMA Affinity",
			"GPU0    X       PIX                     1",
			"GPU1    PIX     X                       2",
		}, two("PIX", 1, 2)},
		"hyphens for what is not known": {[]string{
			"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity",
			"GPU0\t X \t-\t-\t-",
			"GPU1\t-\t X \t-\t-1",
		}, two("NA", far, far)},
		"words nobody knows": {[]string{
			"\tGPU0\tGPU1\tNUMA Affinity",
			"GPU0\tX\tCXL9\tzero",
			"GPU1\tCXL9\tX\t5000",
		}, two("NA", far, far)},
		"no NVLinks at all are not NV0": {[]string{
			"\tGPU0\tGPU1", "GPU0\tX\tNV0", "GPU1\tNV0\tX",
		}, two("NA", far, far)},
		"titles that touch": {[]string{
			"        GPU0    GPU1    CPU AffinityNUMA Affinity",
			"GPU0    X       MT1     0-31        1",
			"GPU1    MT1     X       0-31        1",
		}, two("MT1", 1, 1)},
		"cells that touch": {[]string{ // where one ends nobody can tell
			"        GPU0    GPU1    CPU Affinity    NUMA Affinity",
			"GPU0    X       MT1     0-31,64-95,128-1590",
			"GPU1    MT1     X       0-31,64-95,128-1590",
		}, two("MT1", far, far)},
		"the order of the rows": {[]string{
			"\tGPU0\tGPU1\tNUMA Affinity",
			"GPU1\tPIX\tX\t7",
			"",
			"GPU0\tX\tPIX\t3",
		}, two("PIX", 3, 7)},
		"numbers from 8 on": {[]string{
			"\tNPU8\tNPU9", "NPU8\tX\tHCCS", "NPU9\tHCCS\tX",
		}, truth{"NPU8", none(2), "HCCS"}.matrix()},
		"a link that is down one way": {[]string{
			"\tGPU0\tGPU1\tGPU2",
			"GPU0\tX\tNV12\tNV4",
			"GPU1\tNV11\tX\t",
			"GPU2\tSYS\tPIX\tX",
		}, truth{"GPU0", none(3), "NV11 SYS\nPIX"}.matrix()},
		"what SYS was called": {[]string{
			"\tGPU0\tGPU1", "GPU0\tX\tSOC", "GPU1\tSOC\tX",
		}, two("SYS", far, far)},
		"two documents of JSON": {[]string{
			`{"system": {"(Topology) Link type between DRM devices 2 and 0": "PCIE", "(Topology) Link type between DRM devices 0 and 2": "XGMI", "(Topology) Weight between DRM devices 0 and 2": 15}}`,
			`{"card0": {"(Topology) Numa Node": 1}, "card2": {"(Topology) Numa Node": "-1"}}`,
		}, Matrix{Rows: []Row{
			{"card0", 0, 1, []Link{{}, {PCIe, 0}}},
			{"card2", 2, far, []Link{{PCIe, 0}, {}}},
		}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMatrix(strings.Join(tc.text, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// square is a matrix of n cards and as many network cards.
func square(n int) string {
	name := func(i int) string {
		kind := "GPU"
		if i >= n {
			kind, i = "NIC", i-n
		}
		return kind + string([]rune{rune('0' + i/100), rune('0' + i/10%10), rune('0' + i%10)})
	}
	var b strings.Builder
	for i := range 2 * n {
		b.WriteString("\t" + name(i))
	}
	b.WriteString("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID")
	for i := range 2 * n {
		b.WriteString("\n" + name(i))
		for j := range 2 * n {
			if i == j {
				b.WriteString("\t X ")
			} else {
				b.WriteString("\tNV18")
			}
		}
		b.WriteString("\t0-127,256-383\t0\t\tN/A")
	}
	return b.String()
}

// nics names n network cards of three letters.
func nics(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("\t" + string([]rune{'a' + rune(i/26/26), 'a' + rune(i/26%26), 'a' + rune(i%26)}))
	}
	return b.String()
}

func TestLargest(t *testing.T) {
	m, err := ParseMatrix(square(MostCards))
	if err != nil || len(m.Rows) != MostCards {
		t.Errorf("%d rows, %v", len(m.Rows), err)
	}
}

func TestHostileText(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":               {"", "line 1, column 1: no matrix: no line begins with the name of a card, such as GPU0"},
		"a refusal":             {"This device does not support querying topo.\n", "line 1, column 1: no matrix"},
		"too long":              {strings.Repeat("\n", MostText+1), "line 1, column 1: 131073 bytes of text: more than the 131072 that are read"},
		"a binary":              {"\x7fELF\x02\x01", "line 1, column 1: the byte 0x7f is no text"},
		"a zero further on":     {"\tGPU0\nGPU0\tX\x00", "line 2, column 7: the byte 0x00 is no text"},
		"no UTF-8":              {"\tGPU0\nGPU0\t\xff", "line 2, column 6: the byte 0xff is no text"},
		"an escape without m":   {"\x1b[4", "line 1, column 1: an escape sequence that does not end"},
		"an escape, broken":     {"a\x1b[4\x07mGPU0", "line 1, column 2: an escape sequence that does not end"},
		"another escape":        {"\x1b]0;title\x07", "line 1, column 1: the byte 0x1b is no text"},
		"the header only":       {"\n\tGPU0\tGPU1\n", "line 2, column 1: the text ends with 2 of 2 rows missing"},
		"cut off":               {"\tGPU0\tGPU1\nGPU0\tX\tPIX\nNIC", `line 3, column 1: "NIC" is no row of the matrix, and 1 are missing`},
		"no header":             {"GPU0\tX\tPIX\nGPU1\tPIX\tX", "line 1, column 6: a row without a header above it"},
		"a short row":           {"\tGPU0\tGPU1\nGPU0\tX\nGPU1\tPIX\tX", "line 2, column 7: 1 cells in the row of GPU0, and 2 columns"},
		"a short row of spaces": {"     GPU0 GPU1\nGPU0  X\nGPU1  X", "line 3, column 8: 1 cells in the row of GPU1, and 2 columns"},
		"a shifted row":         {"\tGPU0\tGPU1\nGPU0\tPIX\tX\nGPU1\tX\tPIX", `line 2, column 6: "PIX" between GPU0 and GPU0: X is for a card and itself`},
		"an X of two":           {"\tGPU0\tGPU1\nGPU0\tX\tX\nGPU1\tX\tX", `line 2, column 8: "X" between GPU0 and GPU1`},
		"a row twice":           {"\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU0\tX\tPIX", "line 3, column 1: a second row GPU0"},
		"a column twice":        {"\tGPU0\tGPU0\n", `line 1, column 7: a second column "GPU0"`},
		"another's row":         {"\tGPU0\tGPU1\nGPU7\tX\tPIX", `line 2, column 1: "GPU7" is no row`},
		"a long name":           {"\tGPU0\n" + strings.Repeat("x", 1000), `line 2, column 1: "xxxxxxxxxxxxxxxxxxxxxxxx"... is no row`},
		"too many cards":        {square(MostCards + 1), "line 1, column 1: 65 cards: more than the 64 that a node may have"},
		"too many columns":      {"\tGPU0" + nics(mostColumns), "line 1, column 2051: more than 512 columns"},
		"an escape with DEL":    {"\x1b[4\x7f", "line 1, column 1: an escape sequence that does not end"},
		"after a long letter":   {"\tGPU0\tGPU1\nGPU0\tX\té\nGPU1\té\té", `line 3, column 8: "é" between GPU1 and GPU1`},
		"P2P":                   {"\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX", "line 2, column 8: OK says who may read whose memory (topo -p2p), not what joins the cards (topo -m)"},
		"JSON, cut off":         {"{\n \"system\": {", "line "},
		"JSON of another":       {"{\n \"gpus\": [1]}", "line 2, column "},
		"JSON without cards":    {"{}", "line 1, column 1: 0 cards: a matrix has 1 to 64"},
		"JSON, one to itself":   {"{\"system\":\n{\"(Topology) Link type between DRM devices 3 and 3\": \"XGMI\"}}", "line 2, column 2: a link between a card and itself"},
		"JSON, cards by the thousand": {
			`{"system": {"(Topology) Link type between DRM devices 1 and 2": "XGMI"` + func() string {
				var b strings.Builder
				for i := range 100 {
					b.WriteString(`, "(Topology) Link type between DRM devices 5 and 10` + string([]rune{rune('0' + i/10), rune('0' + i%10)}) + `": ""`)
				}
				return b.String()
			}() + "}}", "line 1, column 1: 103 cards: a matrix has 1 to 64"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := ParseMatrix(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if m.Rows != nil {
				t.Errorf("%d rows beside the error", len(m.Rows))
			}
		})
	}
}
