package resourcefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// What fits, and where it goes; "" when it does not fit.
func TestPackPlaces(t *testing.T) {
	app := func(memory gpu.MiB, cores gpu.Cores) gpu.Ask { return gpu.Ask{Memory: memory, Cores: cores} }
	all := func(count int) gpu.Ask { return gpu.Ask{Count: count, Whole: true} }
	in := func(role gpu.Role, a gpu.Ask) gpu.Ask { a.Role = role; return a }
	from := func(v gpu.Vendor, a gpu.Ask) gpu.Ask { a.Vendor = v; return a }
	times := func(n int, a gpu.Ask) gpu.Ask { a.Count = n; return a }
	mixed := append(cards(2), card("e0", of(gpu.Ascend)), card("e1", of(gpu.Ascend)), card("e2", of(gpu.Ascend)))
	tests := map[string]struct {
		cards   []gpu.Card
		held    []gpu.Share
		foreign []gpu.Foreign
		asks    []gpu.Ask
		want    string
	}{
		// One slice at the edges of what is left.
		"exactly fits memory":                      {cards: cards(1), held: []gpu.Share{slice("d0", 300, 0)}, asks: []gpu.Ask{app(600, 0)}, want: "c0:d0"},
		"one MiB over":                             {cards: cards(1), held: []gpu.Share{slice("d0", 300, 0)}, asks: []gpu.Ask{app(601, 0)}},
		"the reserve is no room":                   {cards: cards(1), asks: []gpu.Ask{app(901, 0)}},
		"exactly fits compute":                     {cards: cards(1), held: []gpu.Share{slice("d0", 1, 40)}, asks: []gpu.Ask{app(1, 60)}, want: "c0:d0"},
		"one core over":                            {cards: cards(1), held: []gpu.Share{slice("d0", 1, 40)}, asks: []gpu.Ask{app(1, 61)}},
		"the last slot":                            {cards: cards(1), held: []gpu.Share{slice("d0", 1, 0), slice("d0", 1, 0)}, asks: []gpu.Ask{app(1, 0)}, want: "c0:d0"},
		"no slot":                                  {cards: cards(1), held: []gpu.Share{slice("d0", 1, 0), slice("d0", 1, 0), slice("d0", 1, 0)}, asks: []gpu.Ask{app(1, 0)}},
		"no compute, and none left":                {cards: cards(1), held: []gpu.Share{slice("d0", 1, 100)}, asks: []gpu.Ask{app(1, 0)}},
		"no compute, and one left":                 {cards: cards(1), held: []gpu.Share{slice("d0", 1, 99)}, asks: []gpu.Ask{app(1, 0)}, want: "c0:d0"},
		"beside a whole holder":                    {cards: cards(1), held: []gpu.Share{whole("d0")}, asks: []gpu.Ask{app(1, 0)}},
		"percent of each card":                     {cards: []gpu.Card{card("d0", size(100)), card("d1", size(1000))}, asks: []gpu.Ask{{MemoryPercent: 100, Count: 2}}, want: "c0:d0,d1"},
		"proportion of compute, more than is left": {cards: cards(1), held: []gpu.Share{slice("d0", 1, 51)}, asks: []gpu.Ask{{Memory: 450, ProportionalCores: true}}},

		// Kinds of cards.
		"no whole card of MIG":             {cards: cards(1, mode(gpu.ModeMIG)), asks: []gpu.Ask{all(1)}},
		"no whole card of vNPU":            {cards: cards(1, mode(gpu.ModeVNPU)), asks: []gpu.Ask{all(1)}},
		"whole beside MIG":                 {cards: []gpu.Card{card("d0", mode(gpu.ModeMIG)), card("d1")}, asks: []gpu.Ask{all(1)}, want: "c0:d1"},
		"whole needs no isolation":         {cards: cards(1, unbounded), asks: []gpu.Ask{all(1)}, want: "c0:d0"},
		"a slice needs isolation":          {cards: cards(1, unbounded), asks: []gpu.Ask{app(1, 0)}},
		"a slice of a card in one piece":   {cards: cards(1, mode(gpu.ModeWhole)), asks: []gpu.Ask{app(1, 0)}},
		"whole of a card in one piece":     {cards: cards(1, mode(gpu.ModeWhole)), asks: []gpu.Ask{all(1)}, want: "c0:d0"},
		"the second card has isolation":    {cards: []gpu.Card{card("d0", unbounded), card("d1")}, asks: []gpu.Ask{app(1, 0)}, want: "c0:d1"},
		"whole with a least size":          {cards: []gpu.Card{card("d0", size(999)), card("d1")}, asks: []gpu.Ask{{Whole: true, Memory: 1000}}, want: "c0:d1"},
		"whole, all cards a MiB too small": {cards: cards(2, size(999)), asks: []gpu.Ask{{Whole: true, Memory: 1000}}},
		"whole compares with the total":    {cards: cards(1), asks: []gpu.Ask{{Whole: true, Memory: 1000}}, want: "c0:d0"},

		// Whole cards are free ones.
		"all cards":                  {cards: cards(4), asks: []gpu.Ask{all(4)}, want: "c0:d0,d1,d2,d3"},
		"one card too few":           {cards: cards(4), asks: []gpu.Ask{all(5)}},
		"one has a slice":            {cards: cards(2), held: []gpu.Share{slice("d0", 1, 0)}, asks: []gpu.Ask{all(2)}},
		"one is held":                {cards: cards(2), held: []gpu.Share{whole("d1")}, asks: []gpu.Ask{all(1)}, want: "c0:d0"},
		"a foreign pod has one":      {cards: cards(2), foreign: []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 1}}, asks: []gpu.Ask{all(2)}},
		"beside a foreign pod":       {cards: cards(2), foreign: []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 1}}, asks: []gpu.Ask{all(1)}, want: "c0:d0"},
		"slices beside foreign ones": {cards: cards(2), foreign: []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 1}}, asks: []gpu.Ask{times(2, app(1, 0))}},
		"foreign on any card":        {cards: cards(2), foreign: []gpu.Foreign{{Cards: gpu.AllCards}}, asks: []gpu.Ask{app(1, 0)}},

		// Vendors.
		"devices of one container are of one vendor": {cards: mixed, asks: []gpu.Ask{all(3)}, want: "c0:e0,e1,e2"},
		"not even if all together are enough":        {cards: mixed, asks: []gpu.Ask{all(4)}},
		"the vendor that was asked for":              {cards: mixed, asks: []gpu.Ask{from(gpu.Ascend, all(1))}, want: "c0:e0"},
		"containers of two vendors":                  {cards: mixed, asks: []gpu.Ask{from(gpu.Ascend, all(3)), from(gpu.Nvidia, all(2))}, want: "c0:e0,e1,e2 c1:d0,d1"},
		"any vendor gives way to a picky one":        {cards: mixed, asks: []gpu.Ask{all(2), from(gpu.Nvidia, app(900, 0))}, want: "c0:e0,e1 c1:d0"},

		// Several containers.
		"slices share a card":                        {cards: cards(2), asks: []gpu.Ask{app(400, 0), app(500, 0)}, want: "c0:d0 c1:d0"},
		"slices share until it is full":              {cards: cards(2), asks: []gpu.Ask{app(400, 0), app(501, 0)}, want: "c0:d1 c1:d0"},
		"compute is shared too":                      {cards: cards(2), asks: []gpu.Ask{app(1, 50), app(1, 51)}, want: "c0:d1 c1:d0"},
		"slots are shared too":                       {cards: cards(1), asks: []gpu.Ask{app(1, 0), app(1, 0), app(1, 0), app(1, 0)}},
		"two devices are two cards":                  {cards: cards(1), asks: []gpu.Ask{times(2, app(1, 0))}},
		"two devices each, on the same two cards":    {cards: cards(2), asks: []gpu.Ask{times(2, app(400, 0)), times(2, app(500, 0))}, want: "c0:d0,d1 c1:d0,d1"},
		"whole and slice are never on one card":      {cards: cards(1), asks: []gpu.Ask{all(1), app(1, 0)}},
		"whole and slice on two":                     {cards: cards(2), asks: []gpu.Ask{app(1, 0), all(1)}, want: "c0:d1 c1:d0"},
		"two whole ones on two":                      {cards: cards(2), asks: []gpu.Ask{all(1), all(1)}, want: "c0:d0 c1:d1"},
		"two whole ones on one":                      {cards: cards(1), asks: []gpu.Ask{all(1), all(1)}},
		"whole takes the big card, slice the small":  {cards: []gpu.Card{card("d0"), card("d1", size(500))}, asks: []gpu.Ask{app(400, 0), {Whole: true, Memory: 1000}}, want: "c0:d1 c1:d0"},
		"the first choice is taken back":             {cards: []gpu.Card{card("d0"), card("d1", mode(gpu.ModeWhole))}, asks: []gpu.Ask{all(1), app(1, 0)}, want: "c0:d1 c1:d0"},
		"large slices first":                         {cards: []gpu.Card{card("d0"), card("d1", size(500))}, asks: []gpu.Ask{app(450, 0), app(900, 0)}, want: "c0:d1 c1:d0"},
		"a choice that looks best at first is wrong": {cards: []gpu.Card{card("d0"), card("d1")}, held: []gpu.Share{slice("d1", 0, 60)}, asks: []gpu.Ask{app(500, 40), app(450, 60)}, want: "c0:d1 c1:d0"},

		"whole and slice, though the card is overcommitted": {
			cards: cards(1, func(c *gpu.Card) { c.Usable, c.UsableCores = 2000, 200 }), asks: []gpu.Ask{all(1), app(1, 0)},
		},
		"a card that the pod is on is another than its equal": { // only with c1 beside c3, and not beside c0
			cards: cards(2), asks: []gpu.Ask{app(500, 10), app(400, 10), app(350, 60), app(300, 41)}, want: "c0:d0 c1:d1 c2:d0 c3:d1",
		},

		// Init containers and sidecars.
		"the card that the sidecar has is another": {
			cards: cards(2), asks: []gpu.Ask{in(gpu.Sidecar, app(500, 10)), app(400, 10), app(350, 60), app(300, 41)}, want: "c0:d0 c1:d1 c2:d0 c3:d1",
		},
		"an init container goes where the app is, not to the first": {
			cards: []gpu.Card{card("d0", size(400)), card("d1")}, asks: []gpu.Ask{in(gpu.Init, app(100, 0)), app(500, 0)}, want: "c0:d1 c1:d1",
		},
		"an init container goes where the app is":       {cards: cards(2), asks: []gpu.Ask{in(gpu.Init, app(900, 100)), app(500, 50)}, want: "c0:d0 c1:d0"},
		"whole for init, on the app's cards":            {cards: cards(2), asks: []gpu.Ask{in(gpu.Init, all(1)), all(1)}, want: "c0:d0 c1:d0"},
		"whole for init, slice for the app, one card":   {cards: cards(1), asks: []gpu.Ask{in(gpu.Init, all(1)), app(900, 100)}, want: "c0:d0 c1:d0"},
		"slice for init, whole for the app, one card":   {cards: cards(1), asks: []gpu.Ask{in(gpu.Init, app(900, 100)), all(1)}, want: "c0:d0 c1:d0"},
		"init larger than the card that the app has":    {cards: cards(1), asks: []gpu.Ask{in(gpu.Init, app(901, 0)), all(1)}},
		"init without a bound, on the app's whole card": {cards: cards(1, unbounded), asks: []gpu.Ask{in(gpu.Init, app(1, 0)), all(1)}},
		"init containers run one after the other":       {cards: cards(1), asks: []gpu.Ask{in(gpu.Init, app(900, 100)), in(gpu.Init, app(900, 100)), app(900, 100)}, want: "c0:d0 c1:d0 c2:d0"},
		"init of more cards than the app":               {cards: cards(2), asks: []gpu.Ask{in(gpu.Init, all(2)), app(1, 0)}, want: "c0:d0,d1 c1:d0"},
		"init too large for the app's card goes beyond": {cards: []gpu.Card{card("d0", size(500)), card("d1")}, asks: []gpu.Ask{in(gpu.Init, app(900, 0)), app(100, 0)}, want: "c0:d1 c1:d0"},
		"a sidecar runs beside both":                    {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(100, 10)), in(gpu.Init, app(800, 90)), app(800, 90)}, want: "c0:d0 c1:d0 c2:d0"},
		"a sidecar leaves init one MiB too little":      {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(100, 10)), in(gpu.Init, app(801, 90)), app(800, 90)}},
		"a sidecar leaves the app one core too little":  {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(100, 10)), in(gpu.Init, app(800, 90)), app(800, 91)}},
		"a sidecar beside whole":                        {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(1, 0)), all(1)}},
		"a sidecar beside init's whole":                 {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(1, 0)), in(gpu.Init, all(1))}},
		"a whole sidecar beside the app":                {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, all(1)), app(1, 0)}},
		"a whole sidecar beside init":                   {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, all(1)), in(gpu.Init, app(1, 0))}},
		"a sidecar on a card of its own":                {cards: cards(2), asks: []gpu.Ask{in(gpu.Sidecar, app(1, 0)), all(1)}, want: "c0:d1 c1:d0"},
		"a whole sidecar and a whole app":               {cards: cards(2), asks: []gpu.Ask{in(gpu.Sidecar, all(1)), in(gpu.Init, all(1)), all(1)}, want: "c0:d0 c1:d1 c2:d1"},
		"slots: init needs none beside the app":         {cards: cards(1), asks: []gpu.Ask{in(gpu.Init, app(1, 0)), app(1, 0), app(1, 0), app(1, 0)}, want: "c0:d0 c1:d0 c2:d0 c3:d0"},
		"slots: a sidecar needs one":                    {cards: cards(1), asks: []gpu.Ask{in(gpu.Sidecar, app(1, 0)), app(1, 0), app(1, 0), app(1, 0)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := books(tc.cards, tc.held, tc.foreign...)
			r := request(tc.asks...)
			grants, v := pack(t, r, l)
			if diff := cmp.Diff(tc.want, where(grants)); diff != "" {
				t.Errorf("cards (-want +got):\n%s%+v", diff, v)
			}
			if v.OK() != (tc.want != "") {
				t.Fatalf("verdict %+v", v)
			}
			if v.OK() {
				if err := l.Reserve(gpu.Placement{Pod: r.Pod, Namespace: r.Namespace, Node: "n1", Grants: grants}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A share carries what the container's limits are made of.
func TestPackShares(t *testing.T) {
	l := books([]gpu.Card{card("d0"), card("d1", size(500))}, nil)
	r := request(gpu.Ask{Memory: 90, ProportionalCores: true}, gpu.Ask{Whole: true, Memory: 1000, Role: gpu.Sidecar})
	r.Asks[1].Number = 7
	got, v := pack(t, r, l)
	if !v.OK() {
		t.Fatalf("verdict %+v", v)
	}
	want := []gpu.Grant{
		{Container: "c0", Number: 0, Role: gpu.App, Shares: []gpu.Share{
			{Card: "d1", Vendor: gpu.Nvidia, Memory: 90, Cores: 20, Isolation: gpu.IsolationSoft},
		}},
		{Container: "c1", Number: 7, Role: gpu.Sidecar, Shares: []gpu.Share{
			{Card: "d0", Vendor: gpu.Nvidia, Memory: 1000, Cores: 100, Exclusive: true, Isolation: gpu.IsolationExclusive},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

// The order of Open is the order of preference.
func TestPackPrefersTheFirstOpen(t *testing.T) {
	n := candidate(books(cards(4), nil))
	n.Open = []int{2, 0, 3, 1}
	for count, want := range map[int]string{1: "c0:d2", 2: "c0:d0,d2", 3: "c0:d0,d2,d3"} {
		got, _ := plugin(request(gpu.Ask{Whole: true, Count: count}), n)
		if where(got) != want {
			t.Errorf("%d cards: %s, want %s", count, where(got), want)
		}
	}
}

// Cards that are not open are not there.
func TestPackLeavesClosedCardsAlone(t *testing.T) {
	n := candidate(books(cards(4), nil))
	n.Open = []int{1, 3}
	if got, v := plugin(request(gpu.Ask{Memory: 1, Count: 2}), n); where(got) != "c0:d1,d3" {
		t.Errorf("%s, %+v, want d1 and d3", where(got), v)
	}
	if got, v := plugin(request(gpu.Ask{Memory: 1, Count: 3}), n); v.OK() {
		t.Errorf("three cards of two open ones: %s", where(got))
	}
}
