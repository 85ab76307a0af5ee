package tenancy

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestSeparate(t *testing.T) {
	tests := map[string]struct {
		a, b gpu.TenantID
		want bool
	}{
		"one tenant":                {"red", "red", true},
		"two tenants":               {"red", "blue", false},
		"unknown beside a tenant":   {"", "red", false},
		"unknown beside an unknown": {"", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Separate{}).MayShare(tc.a, tc.b); got != tc.want {
				t.Errorf("MayShare(%q, %q) = %v, want %v", tc.a, tc.b, got, tc.want)
			}
			if got := (Separate{}).MayShare(tc.b, tc.a); got != tc.want {
				t.Errorf("MayShare(%q, %q) = %v, want %v", tc.b, tc.a, got, tc.want)
			}
		})
	}
}
