package quality

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/simulate"
	"heteroflow.io/heteroflow/test/simnode"
)

// The scheduler reads of each pod what the trace says.
func TestPodsAreThoseOfTheTrace(t *testing.T) {
	base := gpu.Request{Namespace: namespace, Name: "pod-00007", CPU: 6500, Memory: 12288 << 20, NUMA: gpu.NoNUMA}
	with := func(models []string, asks ...gpu.Ask) gpu.Request {
		r := base
		r.Models, r.Asks = models, asks
		return r
	}
	tests := map[string]struct {
		shape simulate.Shape
		want  gpu.Request
	}{
		"no card":                   {simulate.Shape{}, with(nil)},
		"part of a card":            {simulate.Shape{Cards: 1, Milli: 460}, with(nil, gpu.Ask{Count: 1, Memory: 4140, ProportionalCores: true})},
		"one card":                  {simulate.Shape{Cards: 1, Milli: 1000}, with(nil, gpu.Ask{Count: 1, Whole: true})},
		"eight cards of two models": {simulate.Shape{Cards: 8, Milli: 1000, Models: "V100M16|V100M32"}, with([]string{"V100M16", "V100M32"}, gpu.Ask{Count: 8, Whole: true})},
		"part of a card of a model": {simulate.Shape{Cards: 1, Milli: 50, Models: "T4"}, with([]string{"T4"}, gpu.Ask{Count: 1, Memory: 450, ProportionalCores: true})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.shape.CPU, tc.shape.Memory = 6500, 12288
			got, err := codec.Request(pod(7, tc.shape), settings(t))
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Options{
				cmpopts.IgnoreFields(gpu.Ask{}, "Container"), cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(gpu.Request{}, "Tenant", "RDMA", "Type", "Runtime"), // nobody keeps anything there
			}
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func settings(t *testing.T) policy.Settings {
	t.Helper()
	s, known := policy.Preset(policy.Packing)
	if !known {
		t.Fatal("there is no such preset")
	}
	return s
}

// Whatever slices come: as many fit a card as have a thousand thousandths together, and
// neither compute nor their number is in the way.
func TestCardsHoldAThousandThousandths(t *testing.T) {
	for n := range 8 {
		card := read(t, simulate.Node{CPU: 1000, Memory: 1024, Cards: n + 1, Model: "T4"}, 3)[n]
		if card.Usable != mostMilli*milliMiB || card.NUMA != gpu.NoNUMA || !card.TakesSlices() || !card.TakesWhole() {
			t.Errorf("card of %d: %+v", n+1, card)
		}
		r := rand.New(rand.NewSource(int64(n)))
		for range 500 {
			slices, milli, use := 0, 0, gpu.Use{}
			for milli < mostMilli {
				part := min(10+r.Intn(400), mostMilli-milli)
				ask := gpu.Ask{Count: 1, Memory: gpu.MiB(part * milliMiB), ProportionalCores: true}
				more := ask.On(&card)
				slices, milli = slices+1, milli+part
				use.Memory, use.Cores = use.Memory+more.Memory, use.Cores+more.Cores
			}
			if use.Memory != card.Usable || use.Cores > card.UsableCores || slices > card.MaxSlices {
				t.Fatalf("%d slices take %+v of %+v", slices, use, card)
			}
		}
	}
}

// read returns the cards as the scheduler reads them from the node.
func read(t *testing.T, n simulate.Node, rank int) []gpu.Card {
	t.Helper()
	client := fake.NewClientset()
	if err := simnode.New(client).Add(t.Context(), specs([]simulate.Node{n}, []int{rank})...); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), fmt.Sprintf("node-%06d", rank), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := codec.Facts(node, settings(t))
	if err != nil {
		t.Fatal(err)
	}
	if facts.CPU != n.CPU || facts.Memory != gpu.Bytes(n.Memory)<<20 || len(facts.Cards) != n.Cards {
		t.Fatalf("%d CPU, %d bytes and %d cards, want %d, %d MiB and %d", facts.CPU, facts.Memory, len(facts.Cards), n.CPU, n.Memory, n.Cards)
	}
	return facts.Cards
}
