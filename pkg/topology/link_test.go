package topology

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLink(t *testing.T) {
	type facts struct {
		Link                 string // as printed again
		Joins                bool
		Weight               int
		Distance             int
		Far                  bool // whether the distance is known
		Reaches, ReachesKnow bool
	}
	tests := map[string]facts{
		"NV1":     {"NV1", true, 100, 5, true, true, true},
		"NV18":    {"NV18", true, 1800, 5, true, true, true},
		" nv4 ":   {"NV4", true, 400, 5, true, true, true},
		"MT2":     {"MT2", true, 200, 5, true, true, true},
		"SIO":     {"SIO", true, 200, 5, true, true, true},
		"HCCS":    {"HCCS", true, 100, 5, true, true, true},
		"HCCS_SW": {"HCCS_SW", true, 100, 5, true, true, true},
		"MX":      {"MX", true, 100, 5, true, true, true},
		"XL":      {"XL", true, 100, 5, true, true, true},
		"MLK":     {"MLK", true, 100, 5, true, true, true},
		"XGMI":    {"XGMI", true, 100, 5, true, true, true},
		"PSB":     {"PSB", false, 60, 5, true, true, true},
		"PIX":     {"PIX", false, 50, 10, true, true, true},
		"PXB":     {"PXB", false, 40, 20, true, true, true},
		"PHB":     {"PHB", false, 30, 30, true, true, true},
		"NODE":    {"NODE", false, 20, 40, true, false, true},
		"SYS":     {"SYS", false, 10, 50, true, false, true},
		"SOC":     {"SYS", false, 10, 50, true, false, true},
		"PCIE":    {"PCIE", false, 10, 50, true, false, false},
		"ETH":     {"ETH", false, 5, 50, true, false, true},
		"":        {}, "X": {}, "NA": {}, "N/A": {}, "-": {}, "NV": {}, "NV0": {}, "NV100": {}, "NV-1": {}, "NV1.5": {}, "MT": {}, "MTX": {}, "NVLINK": {}, "HCCS2": {},
	}
	for cell, want := range tests {
		l := ParseLink(cell)
		got := facts{Link: l.String(), Joins: l.Kind.Joins(), Weight: l.Weight()}
		got.Distance, got.Far = l.Distance()
		got.Reaches, got.ReachesKnow = l.Reaches()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", cell, diff)
		}
		if ParseLink(l.String()) != l {
			t.Errorf("%q reads back as %v", l.String(), ParseLink(l.String()))
		}
	}
}

// TestScores are the scores that HAMi documents.
func TestScores(t *testing.T) {
	for score, want := range map[int]string{
		0: "", 10: "SYS", 20: "NODE", 30: "PHB", 40: "PXB", 50: "PIX", 60: "PSB",
		100: "NV1", 200: "NV2", 1240: "NV12", 1850: "NV18",
		-1: "", -100: "", 5: "", 70: "", 99: "", 10000: "", 1 << 40: "",
	} {
		if got := linkOfWeight(score).String(); got != want {
			t.Errorf("%d is %q, want %q", score, got, want)
		}
	}
}

// TestWeaker: what is said of a pair adds up to the same in any order.
func TestWeaker(t *testing.T) {
	var all []Link
	for _, cell := range []string{"", "ETH", "SYS", "PCIE", "NODE", "PHB", "PXB", "PIX", "PSB", "HCCS_SW", "HCCS", "SIO", "MX", "XL", "MLK", "XGMI", "MT1", "MT2", "NV1", "NV2", "NV18"} {
		all = append(all, ParseLink(cell))
	}
	for _, a := range all {
		if weaker(a, a) != a || weaker(a, Link{}) != a {
			t.Errorf("%v is not itself", a)
		}
		for _, b := range all {
			ab := weaker(a, b)
			if ab != weaker(b, a) || ab != a && ab != b || a.Kind != Unknown && ab.Weight() > a.Weight() {
				t.Errorf("the weaker of %v and %v is %v, or %v", a, b, ab, weaker(b, a))
			}
			for _, c := range all {
				if weaker(ab, c) != weaker(a, weaker(b, c)) {
					t.Errorf("%v, %v, %v: the order matters", a, b, c)
				}
			}
		}
	}
}

func TestSet(t *testing.T) {
	s := SetOf(63, 0, 5, 0, -1, 64)
	if diff := cmp.Diff([]int{0, 5, 63}, slices.Collect(s.Places())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for p := range s.Places() {
		if p != 0 {
			t.Errorf("went on to %d", p)
		}
		break
	}
	if s.Len() != 3 || !s.Has(63) || s.Has(1) || s.Has(64) || s.Has(-1) || !SetOf(5).Within(s) || s.Within(SetOf(5)) {
		t.Errorf("%b", s)
	}
	if first(64).Len() != 64 || first(0) != 0 || first(3) != SetOf(0, 1, 2) {
		t.Error("the first cards are not those")
	}
}
