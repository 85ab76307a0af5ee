package gpu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVendor(t *testing.T) {
	tests := map[string]struct {
		text string
		want Vendor
		ok   bool
	}{
		"as written":   {"nvidia", Nvidia, true},
		"in capitals":  {"NVIDIA", Nvidia, true},
		"mixed":        {"Ascend", Ascend, true},
		"unknown":      {"amd", "", false},
		"empty":        {"", "", false},
		"with a space": {"nvidia ", "", false},
		"a part":       {"nvid", "", false},
		"not latin: a long s folds to s, but is another letter": {"aſcend", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseVendor(tc.text)
			if ok != tc.ok || got != tc.want {
				t.Errorf("ParseVendor(%q) = %q, %v, want %q, %v", tc.text, got, ok, tc.want, tc.ok)
			}
		})
	}
}

// The keys are written by users and by node agents.
func TestVendors(t *testing.T) {
	want := []Vendor{"musa", "hygon", "cambricon", "biren", "ascend", "kunlun", "iluvatar", "nvidia", "metax", "enflame"}
	if diff := cmp.Diff(want, Vendors()); diff != "" {
		t.Errorf("vendors (-want +got):\n%s", diff)
	}
	for _, v := range Vendors() {
		if got, ok := ParseVendor(strings.ToUpper(string(v))); !ok || got != v {
			t.Errorf("ParseVendor in capitals = %q, %v, want %q", got, ok, v)
		}
	}
	Vendors()[0] = "changed"
	if Vendors()[0] != Musa {
		t.Error("a caller has changed the list of vendors")
	}
}
