package tenancy

import (
	"fmt"
	"runtime"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// city has 10,000 namespaces of 1,000 tenants in 100 groups.
func city() World {
	var w World
	for i := range 1000 {
		name := fmt.Sprintf("tenant-%d", i)
		w.Tenants = append(w.Tenants, Tenant{
			Name: name, Groups: []string{fmt.Sprintf("group-%d", i%100), fmt.Sprintf("group-%d", i%97)},
			MaxPriority: MostPriority, Limits: cards("Tenant "+name, 64),
		})
	}
	for i := range 10000 {
		name := fmt.Sprintf("namespace-%d", i)
		w.Namespaces = append(w.Namespaces, Namespace{Name: name, Claims: []string{w.Tenants[i%1000].Name}})
		w.Quotas = append(w.Quotas, Quota{name, "cards", cards("ResourceQuota "+name+"/cards", 8)})
	}
	return w
}

func BenchmarkNew(b *testing.B) {
	w := city()
	b.ReportAllocs()
	for b.Loop() {
		New(w)
	}
}

// BenchmarkSize reports what a directory keeps beside the world that it is made of.
func BenchmarkSize(b *testing.B) {
	w := city()
	var before, after runtime.MemStats
	var kept *Directory
	for b.Loop() {
		kept = nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		kept = New(w)
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	runtime.KeepAlive(kept)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}

func BenchmarkMayShare(b *testing.B) {
	d := New(city())
	for name, pair := range map[string][2]gpu.TenantID{
		"one tenant": {"tenant-3", "tenant-3"},
		"a group":    {"tenant-3", "tenant-103"},
		"no group":   {"tenant-3", "tenant-4"},
		"of none":    {"tenant-3", "namespace/x"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.Boundary().MayShare(pair[0], pair[1])
			}
		})
	}
}

// It is asked for every holder of every card: nothing may be allocated.
func TestMayShareAllocatesNothing(t *testing.T) {
	d := New(city())
	if n := testing.AllocsPerRun(100, func() {
		d.Boundary().MayShare("tenant-3", "tenant-103")
		d.Owner("namespace-1")
		d.Accounts("namespace-1")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
