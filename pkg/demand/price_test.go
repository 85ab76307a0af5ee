package demand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Of 40 cards 10 are B and 6 are C. At full load all pods together want 40.
func TestPriceByHand(t *testing.T) {
	a, b, c := model("A"), model("B"), model("C")
	supply := Supply{KindOf(&a): 24, KindOf(&b): 10, KindOf(&c): 6}
	any, two := request(0, whole(1)), request(0, whole(2))
	onB, onBC, onC := named(request(0, whole(1)), "B"), named(request(0, whole(1)), "B", "C"), named(request(0, whole(1)), "C")
	half := named(request(0, slice(500)), "C")
	none := request(100)
	tests := map[string]struct {
		mix  []wish
		r    int // whose prices, by its place in the mix
		want [3]float64
	}{
		"nobody names any": {[]wish{{any, 3}, {two, 1}}, 0, [3]float64{}},
		// One in eight names B: 5 of the 10.
		"half of B is asked for":           {[]wish{{any, 7}, {onB, 1}}, 0, [3]float64{0, 0.5, 0}},
		"who names it does not pay":        {[]wish{{any, 7}, {onB, 1}}, 1, [3]float64{}},
		"more is asked for than there is":  {[]wish{{any, 1}, {onB, 1}}, 0, [3]float64{0, 1, 0}},
		"who asks for no card":             {[]wish{{any, 7}, {onB, 1}, {none, 99}}, 0, [3]float64{0, 0.5, 0}},
		"split by the supply":              {[]wish{{any, 9}, {onBC, 1}}, 0, [3]float64{0, 4.0 / 16, 4.0 / 16}},
		"to one of two the other's no bar": {[]wish{{any, 9}, {onBC, 1}}, 1, [3]float64{}},
		// 4 of 40 by each.
		"who can have more pays for those who cannot": {[]wish{{any, 8}, {onBC, 1}, {onB, 1}}, 1, [3]float64{0, 0.4, 0}},
		"and they do not for him where he has both":   {[]wish{{any, 8}, {onBC, 1}, {onB, 1}}, 2, [3]float64{}},
		"two that differ": {[]wish{{any, 8}, {onC, 1}, {onB, 1}}, 0, [3]float64{0, 0.4, 4.0 / 6}},
		// 2 x 1 for two cards, 0.5 for the half: 40 of 10 in all.
		"by cards": {[]wish{{two, 4}, {any, 1}, {half, 2}}, 1, [3]float64{0, 0, 4.0 / 6}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := newForecast(mixOf(tc.mix...), supply).outlook(nil)
			w := o.Of(tc.mix[tc.r].r)
			var got [3]float64
			for i, card := range []Kind{KindOf(&a), KindOf(&b), KindOf(&c)} {
				at, _ := o.kind(card)
				got[i] = w.price(at)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("prices (-want +got):\n%s", diff)
			}
		})
	}
}

// Cards of which there are none, or that nobody wants, have no price, and neither has
// a kind that comes later.
func TestNoPrice(t *testing.T) {
	b := model("B")
	for name, o := range map[string]*Outlook{
		"no cards":         newForecast(mixOf(wish{named(request(0, whole(1)), "B"), 1}), Supply{KindOf(&b): 0}).outlook(nil),
		"no supply":        newForecast(mixOf(wish{named(request(0, whole(1)), "B"), 1}), nil).outlook(nil),
		"nobody wants any": newForecast(mixOf(wish{request(100), 1}), Supply{KindOf(&b): 5}).outlook(nil),
	} {
		at, ok := o.kind(KindOf(&b))
		if price := o.Of(request(0, whole(1))).price(at); !ok || price != 0 {
			t.Errorf("%s: price %v, known %v; want 0, true", name, price, ok)
		}
	}
}
