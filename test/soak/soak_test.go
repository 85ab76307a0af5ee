package soak

import (
	"math/rand/v2"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// TestSoak is a short run; `make soak` makes long ones.
func TestSoak(t *testing.T) {
	const ops = 20_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	result := Run(t.Context(), Plan{Seed: seed, Ops: ops})
	for _, wrong := range result.Wrong {
		t.Error(wrong)
	}
	if !result.OK() {
		t.Error(result)
	}
	// A run in which nobody is refused has shown nothing.
	for _, reason := range []gpu.Reason{gpu.QuotaExceeded, gpu.NoTenantEligibleGPU, gpu.InsufficientGPUMemory, gpu.InsufficientGPUCount, "bind: " + gpu.BindConflict} {
		if result.Refused[reason] == 0 {
			t.Errorf("nobody was refused with %s: %s", reason, result.Refusals())
		}
	}
	if result.Pods < 200 || result.Ops < ops {
		t.Errorf("too little was done: %s", result)
	}
}
