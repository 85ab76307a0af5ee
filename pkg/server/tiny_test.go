package server

import (
	"strings"
	"testing"
)

func TestTinyNumber(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"in quotes":              {`{"cpu":"1e-999999999"}`, "1e-999999999"},
		"without quotes":         {`{"cpu":1.5E-1000000}`, "1.5E-1000000"},
		"with a sign":            {`{"cpu":"-2e-999999"}`, "2e-999999"},
		"the second of two":      {`["1e-5","1e-123456"]`, "1e-123456"},
		"at the end":             {`3e-999999`, "3e-999999"},
		"small enough":           {`{"cpu":"1e-99999"}`, ""},
		"a large one is fast":    {`{"cpu":"1e999999999"}`, ""},
		"a UUID":                 {`"9b1deb4d-3b7d-4bad-9b4e-123456789012"`, ""},
		"a UUID that ends alike": {`"9b1deb4d-3b7d-4bad-914e-123456789012"`, ""},
		"with space around":      {"[ 1e-999999\n]", "1e-999999"},
		"a node's name":          {`["node-000001","rack1e-000001a","x1e-0000001"]`, ""},
		"nothing before it":      {`"e-9999999"`, ""},
		"only a sign":            {`-`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(tinyNumber([]byte(tc.body))); got != tc.want {
				t.Errorf("tinyNumber(%s) = %q, want %q", tc.body, got, tc.want)
			}
		})
	}
}

func BenchmarkTinyNumber(b *testing.B) {
	body := []byte(`["` + strings.Repeat(`gpu-node-00999","`, 5000) + `"]`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if tinyNumber(body) != nil {
			b.Fatal("found one")
		}
	}
}
