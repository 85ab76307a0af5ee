package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// noon is given in another zone: what is written is UTC, in whole seconds.
var noon = time.Date(2026, 3, 1, 20, 0, 0, 987654321, time.FixedZone("CST", 8*3600))

func whole(vendor gpu.Vendor, id string, index int, memory gpu.MiB) gpu.Share {
	return gpu.Share{Card: gpu.CardID(id), Vendor: vendor, Index: index, Memory: memory, Cores: 100, Exclusive: true, Isolation: gpu.IsolationExclusive}
}

func sliceOf(vendor gpu.Vendor, id string, index int, memory gpu.MiB, cores gpu.Cores) gpu.Share {
	return gpu.Share{Card: gpu.CardID(id), Vendor: vendor, Index: index, Memory: memory, Cores: cores, Isolation: gpu.IsolationSoft}
}

func placed(grants ...gpu.Grant) gpu.Placement {
	return gpu.Placement{Pod: "7d9c", Namespace: "team-a", Name: "train-0", Node: "n1", Tenant: "team-a", Grants: grants}
}

func granted(container string, number int, role gpu.Role, shares ...gpu.Share) gpu.Grant {
	return gpu.Grant{Container: container, Number: number, Role: role, Shares: shares}
}

// bind returns the pod as the API server has it once p is bound.
func bind(t require, pod *corev1.Pod, p gpu.Placement) *corev1.Pod {
	t.Helper()
	carried, err := Annotations(p, noon, 0)
	if err != nil {
		t.Fatalf("Annotations: %v", err)
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = string(p.Node)
	maps.Copy(pod.Annotations, carried)
	pod.Labels = map[string]string{BoundByLabel: BoundByValue}
	return pod
}

// reread is what p is after a restart: as it was, and charged to the same resources
// as when its cards were chosen. Whose it is the ledger says.
func reread(t require, pod *corev1.Pod, p gpu.Placement) gpu.Placement {
	t.Helper()
	r, err := Request(pod, policy.Default())
	if err != nil || len(r.Asks) != len(p.Grants) {
		t.Fatalf("request: %v, %d asks for %d grants", err, len(r.Asks), len(p.Grants))
	}
	p.Tenant, p.Grants = "", slices.Clone(p.Grants)
	for i := range p.Grants {
		p.Grants[i].Resource = r.Asks[i].Plugin
	}
	return p
}

// require is what tests and rapid's have in common.
type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// What a Binding carries is read by runtimes, agents and people: it changes only
// on purpose.
func TestAnnotationsGolden(t *testing.T) {
	mixed := placed(
		granted("warm", 0, gpu.Init, whole(gpu.Nvidia, "GPU-a", 0, 40960)),
		granted("proxy", 1, gpu.Sidecar, sliceOf(gpu.Nvidia, "GPU-b", 1, 2048, 0)),
		granted("main", 2, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 40960), whole(gpu.Nvidia, "GPU-c", 2, 40960)),
	)
	tests := map[string]gpu.Placement{
		"whole_init_sidecar": mixed,
		"equal_slices":       placed(granted("main", 0, gpu.App, sliceOf(gpu.Nvidia, "GPU-a", 0, 3000, 30), sliceOf(gpu.Nvidia, "GPU-b", 1, 3000, 30))),
		"unequal_slices":     placed(granted("main", 7, gpu.App, sliceOf(gpu.Iluvatar, "GPU-a", 4, 7372, 50), sliceOf(gpu.Iluvatar, "GPU-b", 1, 14745, 50))),
		"by_index":           placed(granted("main", 0, gpu.App, whole(gpu.Ascend, "vdie-9", 9, 65536), whole(gpu.Ascend, "vdie-2", 2, 65536))),
		"count_only":         placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "n1-nvidia-3", 3, 0))),
		"no_cards":           placed(),
	}
	for name, p := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := Annotations(p, noon, 0)
			sameFaults(t, err)
			var text strings.Builder
			for _, key := range slices.Sorted(maps.Keys(all)) {
				fmt.Fprintf(&text, "%s: %s\n", key, all[key])
			}
			golden(t, "testdata/"+name+".txt", text.String())
		})
	}
}

// Nothing is written that would not be read back.
func TestAllocationRefused(t *testing.T) {
	slice := sliceOf(gpu.Nvidia, "GPU-a", 0, 100, 10)
	change := func(f func(*gpu.Share)) gpu.Placement {
		s := slice
		f(&s)
		return placed(granted("main", 0, gpu.App, s))
	}
	const at = "allocation of pod team-a/train-0: container main: "
	tests := map[string]struct {
		p    gpu.Placement
		want string
	}{
		"no card":               {placed(granted("main", 0, gpu.App)), at + "0 cards are outside 1..64"},
		"a card twice":          {placed(granted("main", 0, gpu.App, slice, slice)), at + `card "GPU-a" is named twice`},
		"a container twice":     {placed(granted("main", 0, gpu.App, slice), granted("main", 1, gpu.App, slice)), "allocation of pod team-a/train-0: container main is named twice"},
		"two vendors":           {placed(granted("main", 0, gpu.App, slice, sliceOf(gpu.Metax, "GPU-b", 0, 100, 10))), at + "cards of nvidia and of metax"},
		"no memory":             {change(func(s *gpu.Share) { s.Memory = 0 }), at + `card "GPU-a": memoryMiB: 0 is outside 1..10485760`},
		"negative memory":       {change(func(s *gpu.Share) { s.Memory = -1 }), at + `card "GPU-a": memoryMiB: -1 is outside 1..10485760`},
		"absurd memory":         {change(func(s *gpu.Share) { s.Memory = 10485761 }), at + `card "GPU-a": memoryMiB: 10485761 is outside 1..10485760`},
		"negative compute":      {change(func(s *gpu.Share) { s.Cores = -1 }), at + `card "GPU-a": cores: -1 is outside 0..100`},
		"more than all compute": {change(func(s *gpu.Share) { s.Cores = 101 }), at + `card "GPU-a": cores: 101 is outside 0..100`},
		"negative index":        {change(func(s *gpu.Share) { s.Index = -1 }), at + `card "GPU-a": index: -1 is outside 0..65536`},
		"no vendor":             {change(func(s *gpu.Share) { s.Vendor = "" }), at + `card "GPU-a": vendor: "" is none`},
		"vendor's case":         {change(func(s *gpu.Share) { s.Vendor = "NVIDIA" }), at + `card "GPU-a": vendor: "NVIDIA" is none`},
		"no UUID":               {change(func(s *gpu.Share) { s.Card = "" }), at + `card "": uuid: is not a card's`},
		"a slice unbounded":     {change(func(s *gpu.Share) { s.Isolation = gpu.IsolationNone }), at + `card "GPU-a": isolation: "none" does not go with exclusive false`},
		"a slice alone":         {change(func(s *gpu.Share) { s.Isolation = gpu.IsolationExclusive }), at + `card "GPU-a": isolation: "exclusive" does not go with exclusive false`},
		"a whole card bounded":  {change(func(s *gpu.Share) { s.Exclusive = true }), at + `card "GPU-a": isolation: "soft" does not go with exclusive true`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Annotations(tc.p, noon, 0)
			sameFaults(t, err, tc.want)
		})
	}
}

// asked draws a pod that asks for cards and a placement that answers it.
func asked(t *rapid.T) (*corev1.Pod, gpu.Placement) {
	p := gpu.Placement{
		Pod: "7d9c", Namespace: "team-a", Name: "train-0",
		Node:   gpu.NodeID(rapid.StringMatching(`[a-z][a-z0-9.-]{0,20}`).Draw(t, "node")),
		Tenant: "team-a",
		CPU:    gpu.MilliCPU(rapid.IntRange(0, 1e6).Draw(t, "cpu")),
	}
	pod := podWith()
	inits := rapid.IntRange(0, 3).Draw(t, "inits")
	total := inits + rapid.IntRange(1, 3).Draw(t, "apps")
	for i := range total {
		name := fmt.Sprintf("c%d", i)
		role := gpu.App
		if i < inits {
			role = rapid.SampledFrom([]gpu.Role{gpu.Init, gpu.Sidecar}).Draw(t, "role")
		}
		shares, limits := drawShares(t)
		map[gpu.Role]func(string, ...string) change{gpu.App: app, gpu.Init: initContainer, gpu.Sidecar: sidecar}[role](name, limits...)(pod)
		if len(shares) > 0 {
			p.Grants = append(p.Grants, granted(name, i, role, shares...))
		}
	}
	requesting("cpu", fmt.Sprintf("%dm", p.CPU))(pod)
	return pod, p
}

// drawShares draws the cards of one container and the limits that ask for them.
func drawShares(t *rapid.T) ([]gpu.Share, []string) {
	n := rapid.IntRange(1, 4).Draw(t, "cards")
	memory := gpu.MiB(rapid.IntRange(1, gpu.MostMemory).Draw(t, "memory"))
	cores := gpu.Cores(rapid.IntRange(1, 99).Draw(t, "cores"))
	form := rapid.IntRange(0, 9).Draw(t, "form")
	vendor := gpu.Nvidia
	if form > 3 && form < 7 {
		vendor = rapid.SampledFrom(gpu.Vendors()).Draw(t, "vendor")
	}
	slice := sliceOf(vendor, "", 0, memory, cores)
	slice.Isolation = rapid.SampledFrom([]gpu.Isolation{gpu.IsolationHard, gpu.IsolationDriver, gpu.IsolationSoft}).Draw(t, "isolation")
	count, mib, percent := fmt.Sprint(n), fmt.Sprint(memory), fmt.Sprint(cores)
	var share gpu.Share
	var limits []string
	switch form {
	case 0:
		return nil, nil
	case 1:
		share, limits = whole(vendor, "", 0, memory), []string{"nvidia.com/gpu", count}
	case 2:
		share, limits = slice, []string{"nvidia.com/gpu", count, "nvidia.com/gpumem", mib, "nvidia.com/gpucores", percent}
	case 3:
		share, limits = slice, []string{"nvidia.com/gpu", count, "nvidia.com/gpumem-percentage", "7"}
	case 4:
		share, limits = whole(vendor, "", 0, memory), []string{"heteroflow.io/gpu", count, "heteroflow.io/gpu-memory", mib}
	case 5:
		n, share, limits = 1, slice, []string{"heteroflow.io/gpu-memory", mib}
	case 6:
		n, share, limits = 1, slice, []string{"heteroflow.io/gpu-cores", percent}
	case 7:
		share, limits = whole(gpu.Ascend, "", 0, memory), []string{"huawei.com/Ascend910B4-1", count}
	case 8:
		slice.Vendor, slice.Memory = gpu.Metax, 3072
		share, limits = slice, []string{"metax-tech.com/sgpu", count, "metax-tech.com/vmemory", "3", "metax-tech.com/vcore", percent}
	case 9:
		slice.Vendor, slice.Memory, slice.Cores = gpu.Musa, 16384, 19 // 3 of 16
		n, share, limits = 1, slice, []string{"mthreads.com/sgpu-memory", "32", "mthreads.com/sgpu-core", "3"}
	}
	var shares []gpu.Share
	for i := range n {
		share.Card, share.Index = gpu.CardID(fmt.Sprintf("GPU-%d", i)), i
		shares = append(shares, share)
	}
	return shares, limits
}

// A restart rebuilds the ledger from the pods: it must not differ from the one
// that was lost.
func TestPlacementOfAnnotationsIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, want := asked(t)
		bound := bind(t, pod, want)
		if !Ours(bound) {
			_, _, err := allocated(bound)
			t.Fatalf("not ours: %v", err)
		}
		if diff := cmp.Diff(reread(t, pod, want), Placement(bound)); diff != "" {
			t.Fatalf("placement (-want +got):\n%s", diff)
		}
	})
}

// Whatever happens to the record on its way, it is the same placement or it
// claims all; it is never less than what was given.
func TestDamagedRecordIsNeverFreeRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, want := asked(t)
		if len(want.Grants) == 0 {
			t.Skip("asks for nothing")
		}
		bound := bind(t, pod, want)
		text := []byte(bound.Annotations[AnnotationAllocation])
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			text = text[:at]
		case 1:
			text[at] = rapid.Byte().Draw(t, "byte")
		case 2:
			text = slices.Delete(text, at, min(len(text), at+rapid.IntRange(1, 20).Draw(t, "bytes")))
		}
		bound.Annotations[AnnotationAllocation] = string(text)
		got := Placement(bound)
		if len(got.Foreign) > 0 {
			if got.Foreign[0].Cards != gpu.AllCards {
				t.Fatalf("claims %v", got.Foreign)
			}
			return
		}
		if cards(&got) != cards(&want) {
			t.Fatalf("%d cards, want %d", cards(&got), cards(&want))
		}
	})
}

func cards(p *gpu.Placement) (n int) {
	for _, g := range p.Grants {
		n += len(g.Shares)
	}
	return n
}
