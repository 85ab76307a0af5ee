package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// The dump shows both books, on the listener that only this machine reaches.
func TestDump(t *testing.T) {
	books := ledger.New(tenancy.Separate{})
	books.SetNode(ledger.Facts{ID: "n1", Dedicated: "ml", Cards: []gpu.Card{{
		ID: "GPU-a", Vendor: gpu.Nvidia, Memory: 1000, Usable: 900, Cores: 100, UsableCores: 100, MaxSlices: 10, Healthy: true,
	}}})
	p := gpu.Placement{Pod: "u", Namespace: "ns", Name: "p", Node: "n1", Tenant: "ns", Grants: []gpu.Grant{{
		Container: "main", Shares: []gpu.Share{{Card: "GPU-a", Vendor: gpu.Nvidia, Memory: 300, Cores: 20}},
	}}}
	if err := books.Reserve(p); err != nil {
		t.Fatal(err)
	}
	p.Pod, p.Namespace = "v", "other" // somebody else has put it there
	books.Confirm(p)
	books.Confirm(gpu.Placement{Pod: "cpu-only", Namespace: "ns", Name: "q", Node: "n1"})
	books.Fence(map[gpu.NodeID][]gpu.CardID{"n1": {"GPU-a"}})
	r := newRig(newCluster(nil), func(c *Config) {
		c.Ledger = books.Snapshot
		c.Differences = func() []string { return []string{"pod ns/p is held, and does not run any more"} }
	})
	get := func(h http.Handler) (int, string) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/books", nil))
		return answer.Code, answer.Body.String()
	}
	want := `{"nodes":[{"node":"n1","dedicated":"ml","cards":[{"uuid":"GPU-a","usableMiB":900,"healthy":true,"cordoned":false,"closed":false,"fenced":true,"divided":true,` +
		`"holders":[{"podUID":"u","tenant":"ns","memoryMiB":300,"cores":20,"exclusive":false},` +
		`{"podUID":"v","tenant":"other","memoryMiB":300,"cores":20,"exclusive":false}]}],` +
		`"holds":[{"podUID":"u","pod":"ns/p","state":"held"},{"podUID":"v","pod":"other/p","state":"bound"}]}],` +
		`"differences":["pod ns/p is held, and does not run any more"]}`
	if code, text := get(r.extender); code != http.StatusOK || strings.TrimSpace(text) != want {
		t.Errorf("dump = %d %s\nwant %s", code, text, want)
	}
	if code, _ := get(r.public); code != http.StatusNotFound {
		t.Errorf("the public listener answers %d, want 404", code)
	}
}
