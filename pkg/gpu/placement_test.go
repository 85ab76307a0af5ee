package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func part(card CardID, memory MiB, cores Cores) Share {
	return Share{Card: card, Memory: memory, Cores: cores}
}

func whole(card CardID) Share {
	return Share{Card: card, Memory: 1000, Cores: 100, Exclusive: true}
}

func grant(role Role, shares ...Share) Grant { return Grant{Role: role, Shares: shares} }

func TestPlacementUses(t *testing.T) {
	tests := map[string]struct {
		grants []Grant
		want   []CardUse
	}{
		"no cards": {nil, []CardUse{}},
		"ordered by card, not as given": {
			[]Grant{grant(App, part("b", 1, 1), part("a", 2, 2)), grant(App, part("c", 3, 3))},
			[]CardUse{{"a", Use{2, 2, 1, false}}, {"b", Use{1, 1, 1, false}}, {"c", Use{3, 3, 1, false}}},
		},
		"app containers add up": {
			[]Grant{grant(App, part("a", 10, 5)), grant(App, part("a", 20, 7))},
			[]CardUse{{"a", Use{30, 12, 2, false}}},
		},
		"of init containers the largest counts, each unit by itself": {
			[]Grant{grant(Init, part("a", 10, 50)), grant(Init, part("a", 30, 5))},
			[]CardUse{{"a", Use{30, 50, 1, false}}},
		},
		"the larger of init and app": {
			[]Grant{grant(Init, part("a", 100, 1)), grant(App, part("a", 10, 5)), grant(App, part("a", 20, 7))},
			[]CardUse{{"a", Use{100, 12, 2, false}}},
		},
		"sidecars come on top of both": {
			[]Grant{
				grant(Init, part("a", 100, 1)), grant(App, part("a", 30, 12)),
				grant(Sidecar, part("a", 1, 2)), grant(Sidecar, part("a", 3, 4)),
			},
			[]CardUse{{"a", Use{104, 18, 3, false}}},
		},
		"an init container on a card of its own": {
			[]Grant{grant(Init, part("b", 5, 5)), grant(App, part("a", 10, 5))},
			[]CardUse{{"a", Use{10, 5, 1, false}}, {"b", Use{5, 5, 1, false}}},
		},
		"whole is exclusive": {
			[]Grant{grant(App, whole("a"))},
			[]CardUse{{"a", Use{1000, 100, 1, true}}},
		},
		"whole for an init container keeps the card exclusive for good": {
			[]Grant{grant(Init, whole("a")), grant(App, part("a", 10, 5))},
			[]CardUse{{"a", Use{1000, 100, 1, true}}},
		},
		"whole and slice on two cards": {
			[]Grant{grant(App, whole("a")), grant(App, part("b", 10, 5))},
			[]CardUse{{"a", Use{1000, 100, 1, true}}, {"b", Use{10, 5, 1, false}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := Placement{Grants: tc.grants}
			if diff := cmp.Diff(tc.want, p.Uses()); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}
