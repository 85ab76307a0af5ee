package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// recorded returns a tool's output from testdata.
func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// truth is a matrix typed by hand: above is what is right of the diagonal, one
// line a card.
type truth struct {
	name  string // of the first card; the others count on
	numa  []int
	above string
}

// matrix spells the truth out.
func (h truth) matrix() Matrix {
	n := len(h.numa)
	kind, start, _ := cardName(h.name)
	if kind == "" {
		kind = strings.TrimSuffix(h.name, "0")
	}
	m := Matrix{Rows: make([]Row, n)}
	for i := range m.Rows {
		m.Rows[i] = Row{kind + string(rune('0'+(start+i)%10)), start + i, h.numa[i], make([]Link, n)}
		if start+i > 9 {
			m.Rows[i].Name = kind + "1" + string(rune('0'+(start+i)%10))
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(h.above), "\n") {
		for k, cell := range strings.Fields(line) {
			link := ParseLink(cell)
			m.Rows[i].Links[i+1+k], m.Rows[i+1+k].Links[i] = link, link
		}
	}
	return m
}

// every is the part above the diagonal where all pairs are joined alike.
func every(n int, cell string) string {
	var lines []string
	for i := n - 1; i > 0; i-- {
		lines = append(lines, strings.Repeat(cell+" ", i))
	}
	return strings.Join(lines, "\n")
}

// groups is the part above the diagonal of two groups of four.
func groups(inside, across string) string {
	in, out := inside+" ", strings.Repeat(across+" ", 4)
	return strings.Join([]string{
		in + in + in + out, in + in + out, in + out, out,
		in + in + in, in + in, in,
	}, "\n")
}

func none(n int) []int {
	numa := make([]int, n)
	for i := range numa {
		numa[i] = gpu.NoNUMA
	}
	return numa
}

var halves = []int{0, 0, 0, 0, 1, 1, 1, 1}

const cubeMesh = `
	NV1 NV1 NV2 NV2 SYS SYS SYS
	NV2 NV1 SYS NV2 SYS SYS
	NV2 SYS SYS NV1 SYS
	SYS SYS SYS NV1
	NV1 NV1 NV2
	NV2 NV1
	NV2`

const bridgedPairs = `
	NV12 SYS SYS
	SYS SYS
	NV12`

func TestParseMatrix(t *testing.T) {
	tests := map[string]truth{
		"nvidia_dgx_a100":              {"GPU0", []int{3, 3, 1, 1, 7, 7, 5, 5}, every(8, "NV12")},
		"nvidia_dgx_h100_underlined":   {"GPU0", halves, every(8, "NV18")},
		"nvidia_dgx_h100_pasted":       {"GPU0", halves, every(8, "NV18")},
		"nvidia_dgx1_v100":             {"GPU0", halves, cubeMesh},
		"nvidia_dgx2":                  {"GPU0", none(16), every(16, "NV6")},
		"nvidia_hgx_a100_4":            {"GPU0", []int{3, 2, 1, 0}, every(4, "NV4")},
		"nvidia_hgx_h100_4_underlined": {"GPU0", []int{0, 0, 1, 1}, every(4, "NV6")},
		"nvidia_a100_pcie_bridges":     {"GPU0", []int{0, 0, 1, 1}, bridgedPairs},
		"nvidia_a6000_one_bridge":      {"GPU0", []int{0, 0, 0}, "NV4 NODE\nNODE"},
		"nvidia_power9":                {"GPU0", []int{0, 0, 8, 8}, "NV3 SYS SYS\nSYS SYS\nNV3"},
		"nvidia_pcie_8": {"GPU0", halves, `
			PIX NODE NODE SYS SYS SYS SYS
			NODE NODE SYS SYS SYS SYS
			PIX SYS SYS SYS SYS
			SYS SYS SYS SYS
			PXB NODE NODE
			NODE NODE
			PXB`},
		"nvidia_pcie_4090":       {"GPU0", halves, groups("NODE", "SYS")},
		"nvidia_pcie_old_driver": {"GPU0", none(4), "PHB SYS SYS\nSYS SYS\nPHB"},
		"nvidia_no_affinity":     {"GPU0", none(2), "NV12"},
		"nvidia_numa_range":      {"GPU0", []int{0, 0}, "NV4"},
		"nvidia_numa_na":         {"GPU0", none(2), "PHB"},
		"nvidia_gb200":           {"GPU0", []int{0, 0, 1, 1}, every(4, "NV18")},
		"nvidia_gh200":           {"GPU0", []int{0}, ""},
		"nvidia_one":             {"GPU0", []int{0}, ""},
		"nvidia_one_no_affinity": {"GPU0", none(1), ""},

		"ascend_910a":         {"NPU0", none(8), groups("HCCS", "SYS")},
		"ascend_910b3":        {"NPU0", none(8), every(8, "HCCS")},
		"ascend_910c":         {"Phy-ID0", none(4), "SIO HCCS_SW HCCS_SW\nHCCS_SW HCCS_SW\nSIO"},
		"cambricon":           {"MLU0", none(4), "MLK SYS SYS\nSYS SYS\nMLK"},
		"iluvatar":            {"GPU0", []int{0, 0, 0, 1}, "PIX PXB SYS\nPXB SYS\nSYS"},
		"kunlun":              {"XPU0", halves, groups("XL", "SYS")},
		"metax_no_affinity":   {"GPU0", none(8), groups("MX", "SYS")},
		"metax_node_affinity": {"GPU0", make([]int, 8), groups("MX", "NODE")},
		"musa":                {"GPU0", halves, groups("MT2", "SYS")},
		"hygon_links":         {"card0", none(4), "XGMI PCIE PCIE\nPCIE PCIE\nXGMI"},
		"hygon_numa":          {"card0", []int{0, 1}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := recorded(t, name)
			for form, text := range map[string]string{
				"as it is":        text,
				"CRLF":            strings.ReplaceAll(text, "\n", "\r\n"),
				"a banner above":  "driver 1.2\n\n" + text,
				"no last newline": strings.TrimRight(text, "\n"),
			} {
				if form == "a banner above" && strings.HasPrefix(name, "hygon") {
					continue // JSON has nothing above it
				}
				got, err := ParseMatrix(text)
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if diff := cmp.Diff(tc.matrix(), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", form, diff)
				}
			}
		})
	}
}

// TestEveryRecordingIsRead: a recording that no test reads proves nothing.
func TestEveryRecordingIsRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	refused := map[string]bool{"nvidia_p2p": true, "ascend_unsupported": true}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if _, err := ParseMatrix(recorded(t, name)); (err != nil) != refused[name] {
			t.Errorf("%s: %v", name, err)
		}
	}
}
