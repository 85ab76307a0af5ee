package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Two on a card that only a later leader finds are both bound when it starts: it is
// told on the node, once until it changes, and both stay.
func TestAuditTellsOfCrowdedCards(t *testing.T) {
	a := newAuditor(t)
	p, q, r := boundPod(t, "p"), boundPod(t, "q"), boundPod(t, "r")
	for _, pod := range []*corev1.Pod{p, q} {
		a.shelf.PodSeen(pod)
	}
	a.pods(p, q)
	a.pass(t)
	a.want(t, 0) // one of them may be leaving
	const both = "n1: card GPU-a is held by 2 pods that have no room on it together, 81920 of 40960 MiB and 200 of 100 percent: ns/p, ns/q"
	for range 3 {
		a.pass(t)
		a.want(t, 1, both)
	}
	for _, id := range []gpu.PodID{"uid-p", "uid-q"} {
		if got := standing(a.shelf.Ledger, id); got != "bound" {
			t.Errorf("%s is %s", id, got)
		}
	}
	if a.takes("GPU-a", 0) || !a.takes("GPU-b", 1) {
		t.Error("the crowded card takes somebody, or the other one nobody")
	}

	a.shelf.PodSeen(r)
	a.pods(p, q, r)
	a.pass(t)
	a.pass(t)
	const three = "n1: card GPU-a is held by 3 pods that have no room on it together, 122880 of 40960 MiB and 300 of 100 percent: ns/p, ns/q, ns/r"
	a.want(t, 1, both, three)

	for _, name := range []string{"q", "r"} {
		a.shelf.PodSeen(boundPod(t, name, ended(corev1.PodSucceeded)))
	}
	a.pods(p)
	a.pass(t)
	a.want(t, 0, both, three)

	a.shelf.PodSeen(q) // as it was before: that is news again
	a.pods(p, q)
	a.pass(t)
	a.pass(t)
	a.want(t, 1, both, three, both)
}

// A card is crowded when its holders could not all have been let onto it.
func TestWhatIsCrowded(t *testing.T) {
	alone := gpu.Use{Memory: 40960, Cores: 100, Slots: 1, Exclusive: true}
	slice := func(memory gpu.MiB, cores gpu.Cores) gpu.Use { return gpu.Use{Memory: memory, Cores: cores, Slots: 1} }
	for name, tc := range map[string]struct {
		uses []gpu.Use
		want bool
	}{
		"nobody":                           {nil, false},
		"one alone":                        {[]gpu.Use{alone}, false},
		"slices that fit":                  {[]gpu.Use{slice(10000, 50), slice(20000, 50)}, false},
		"past the reserve":                 {[]gpu.Use{slice(20480, 0), slice(20480, 0)}, false},
		"a MiB past the board":             {[]gpu.Use{slice(20480, 0), slice(20481, 0)}, true},
		"as much compute as may be lent":   {[]gpu.Use{slice(1, 100), slice(1, 50)}, false},
		"too much compute":                 {[]gpu.Use{slice(1, 100), slice(1, 51)}, true},
		"a slice on a whole card":          {[]gpu.Use{alone, slice(1, 0)}, true},
		"a whole card on a slice":          {[]gpu.Use{slice(1, 0), alone}, true},
		"as many as it carries":            {[]gpu.Use{slice(1, 0), slice(1, 0), slice(1, 0)}, false},
		"one more":                         {[]gpu.Use{slice(1, 0), slice(1, 0), slice(1, 0), slice(1, 0)}, true},
		"one who is too large, by himself": {[]gpu.Use{slice(50000, 200)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &ledger.Card{Card: gpu.Card{Memory: 40960, Usable: 38000, Cores: 100, UsableCores: 150, MaxSlices: 3}}
			for _, u := range tc.uses {
				c.Used = c.Used.Plus(u)
				c.Holders = append(c.Holders, ledger.Holder{Use: u})
			}
			if got := crowded(c); got != tc.want {
				t.Errorf("crowded: %t", got)
			}
		})
	}
}
