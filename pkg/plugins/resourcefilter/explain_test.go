package resourcefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// The reason is that of the step that took the last card needed; the figures
// are those of that card.
func TestPackExplains(t *testing.T) {
	because := func(r gpu.Reason, have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: r, Have: have, Want: want}
	}
	type held = []gpu.Share
	tests := map[string]struct {
		cards   []gpu.Card
		held    held
		foreign []gpu.Foreign
		asks    []gpu.Ask
		want    pipeline.Verdict
	}{
		"no cards at all": {nil, nil, nil, []gpu.Ask{{Whole: true}}, because(gpu.NodeNotRegistered, 0, 0)},

		// Whole cards: number, total memory, free.
		"too few cards": {cards(2), nil, nil, []gpu.Ask{{Whole: true, Count: 3}}, because(gpu.InsufficientGPUCount, 2, 3)},
		"too few cards, of which one is free": {
			cards(2), held{whole("d0")}, nil, []gpu.Ask{{Whole: true, Count: 3}}, because(gpu.InsufficientGPUCount, 1, 3),
		},
		"too few are free": {
			cards(3), held{whole("d0"), slice("d1", 1, 0)}, nil, []gpu.Ask{{Whole: true, Count: 2}}, because(gpu.InsufficientGPUCount, 1, 2),
		},
		"a foreign pod has one": {
			cards(2), nil, []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 1}}, []gpu.Ask{{Whole: true, Count: 2}}, because(gpu.InsufficientGPUCount, 1, 2),
		},
		"MIG is no whole card": {
			[]gpu.Card{card("d0"), card("d1", mode(gpu.ModeMIG))}, nil, nil, []gpu.Ask{{Whole: true, Count: 2}}, because(gpu.InsufficientGPUCount, 1, 2),
		},
		"too small": {
			[]gpu.Card{card("d0", size(700)), card("d1", size(800)), card("d2")}, nil, nil,
			[]gpu.Ask{{Whole: true, Count: 2, Memory: 900}}, because(gpu.InsufficientGPUMemory, 800, 900),
		},
		"the large ones are held, the small ones free": {
			[]gpu.Card{card("d0", size(700)), card("d1")}, held{whole("d1")}, nil,
			[]gpu.Ask{{Whole: true, Memory: 900}}, because(gpu.InsufficientGPUCount, 0, 1),
		},

		"too few are of the model": {
			[]gpu.Card{card("d0", ofModel("x")), card("d1", ofModel("y"))}, nil, nil,
			[]gpu.Ask{{Whole: true, Count: 2, Model: "x"}}, because(gpu.InsufficientGPUCount, 1, 2),
		},
		"room on a card of another model does not count": {
			[]gpu.Card{card("d0", ofModel("x")), card("d1", ofModel("y"))}, held{slice("d0", 800, 0)}, nil,
			[]gpu.Ask{{Memory: 500, Model: "x"}}, because(gpu.InsufficientGPUMemory, 100, 500),
		},

		// Slices: kind, memory, compute, slots.
		"fewer cards than devices": {cards(1), nil, nil, []gpu.Ask{{Memory: 1, Count: 2}}, because(gpu.InsufficientGPUCount, 1, 2)},
		"nothing bounds a slice":   {cards(2, unbounded), nil, nil, []gpu.Ask{{Memory: 1}}, because(gpu.IsolationUnavailable, 0, 1)},
		"too few bound a slice": {
			[]gpu.Card{card("d0", unbounded), card("d1")}, nil, nil, []gpu.Ask{{Memory: 1, Count: 2}}, because(gpu.IsolationUnavailable, 1, 2),
		},
		"one MiB over": {cards(1), held{slice("d0", 300, 0)}, nil, []gpu.Ask{{Memory: 601}}, because(gpu.InsufficientGPUMemory, 600, 601)},
		"the best of them counts": {
			cards(3), held{slice("d0", 800, 0), slice("d1", 500, 0), slice("d2", 600, 0)}, nil,
			[]gpu.Ask{{Memory: 500}}, because(gpu.InsufficientGPUMemory, 400, 500),
		},
		"of two devices the second": {
			cards(3), held{slice("d0", 800, 0), slice("d1", 100, 0), slice("d2", 600, 0)}, nil,
			[]gpu.Ask{{Memory: 500, Count: 2}}, because(gpu.InsufficientGPUMemory, 300, 500),
		},
		"of two devices neither": {
			cards(3), held{slice("d0", 800, 0), slice("d1", 500, 0), slice("d2", 600, 0)}, nil,
			[]gpu.Ask{{Memory: 500, Count: 2}}, because(gpu.InsufficientGPUMemory, 300, 500),
		},
		"percent of unequal cards: never what would do": {
			[]gpu.Card{card("d0"), card("d1", size(100))}, held{slice("d0", 600, 0)}, nil,
			[]gpu.Ask{{MemoryPercent: 50, Count: 2}}, because(gpu.InsufficientGPUMemory, 300, 450),
		},
		"held whole":    {cards(1), held{whole("d0")}, nil, []gpu.Ask{{Memory: 5}}, because(gpu.InsufficientGPUMemory, 0, 5)},
		"one core over": {cards(1), held{slice("d0", 1, 40)}, nil, []gpu.Ask{{Memory: 1, Cores: 61}}, because(gpu.InsufficientGPUCores, 60, 61)},
		"no compute asked, none left": {
			cards(1), held{slice("d0", 1, 100)}, nil, []gpu.Ask{{Memory: 1}}, because(gpu.InsufficientGPUCores, 0, 1),
		},
		"memory on one card, compute on the other: the last step": {
			cards(2), held{slice("d0", 900, 0), slice("d1", 0, 90)}, nil, []gpu.Ask{{Memory: 100, Cores: 20}}, because(gpu.InsufficientGPUCores, 10, 20),
		},
		"no slot": {
			cards(1), held{slice("d0", 1, 1), slice("d0", 1, 1), slice("d0", 1, 1)}, nil, []gpu.Ask{{Memory: 1}}, because(gpu.InsufficientGPUSlots, 0, 1),
		},
		"cores alone: memory is what lacks": {
			cards(1), held{slice("d0", 500, 0)}, nil, []gpu.Ask{{Cores: 50}}, because(gpu.InsufficientGPUMemory, 400, 450),
		},

		// Several vendors: the one that comes closest.
		"one vendor too few, the other too full": {
			[]gpu.Card{card("d0"), card("e0", of(gpu.Ascend)), card("e1", of(gpu.Ascend))}, held{slice("e1", 700, 0)}, nil,
			[]gpu.Ask{{Memory: 500, Count: 2}}, because(gpu.InsufficientGPUMemory, 200, 500),
		},
		"both too full: the one with more": {
			[]gpu.Card{card("d0"), card("e0", of(gpu.Ascend))}, held{slice("d0", 700, 0), slice("e0", 600, 0)}, nil,
			[]gpu.Ask{{Memory: 500}}, because(gpu.InsufficientGPUMemory, 300, 500),
		},
		"the vendor asked for is not there": {
			cards(2), nil, nil, []gpu.Ask{{Vendor: gpu.Ascend, Whole: true}}, because(gpu.InsufficientGPUCount, 0, 1),
		},

		// Several containers: the first that finds no place, the others being there.
		"the second whole one": {
			cards(1), nil, nil, []gpu.Ask{{Whole: true}, {Whole: true}}, because(gpu.InsufficientGPUCount, 0, 1),
		},
		"the slice beside the pod's own whole": {
			cards(1), nil, nil, []gpu.Ask{{Memory: 5}, {Whole: true}}, because(gpu.InsufficientGPUMemory, 0, 5),
		},
		"what the pod itself takes is gone": {
			cards(1), held{slice("d0", 100, 0)}, nil, []gpu.Ask{{Memory: 500}, {Memory: 400}}, because(gpu.InsufficientGPUMemory, 300, 400),
		},
		"init does not add to the app, but to the sidecar": {
			cards(1), nil, nil,
			[]gpu.Ask{{Memory: 800}, {Memory: 100, Role: gpu.Sidecar}, {Memory: 850, Role: gpu.Init}}, because(gpu.InsufficientGPUMemory, 800, 850),
		},
		"slots that the pod itself takes": {
			cards(1), held{slice("d0", 1, 1)}, nil, []gpu.Ask{{Memory: 1}, {Memory: 1}, {Memory: 1}}, because(gpu.InsufficientGPUSlots, 0, 1),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := pack(t, request(tc.asks...), books(tc.cards, tc.held, tc.foreign...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
