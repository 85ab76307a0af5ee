package topology

import "testing"

func TestNear(t *testing.T) {
	tests := map[string]struct {
		a, b           Location
		matching, near Shared
	}{
		"nothing is like nothing": {},
		"all the same":            {Location{"eu", "a", "r1", "s1"}, Location{"eu", "a", "r1", "s1"}, Shared{true, true, true, true}, Shared{true, true, true, true}},
		"the rack only":           {Location{Rack: "r1"}, Location{Rack: "r1"}, Shared{Rack: true}, Shared{Rack: true}},
		"the rack, one zone unknown": {
			Location{Zone: "a", Rack: "r1"}, Location{Rack: "r1"}, Shared{Rack: true}, Shared{Rack: true},
		},
		"a rack's name in two zones": {
			Location{Region: "eu", Zone: "a", Rack: "r1", Switch: "s1"}, Location{Region: "eu", Zone: "b", Rack: "r1", Switch: "s1"},
			Shared{Region: true, Rack: true, Switch: true}, Shared{Region: true},
		},
		"a zone's name in two regions": {
			Location{Region: "eu", Zone: "a", Rack: "r1"}, Location{Region: "us", Zone: "a", Rack: "r1"},
			Shared{Zone: true, Rack: true}, Shared{},
		},
		"two racks on one switch": {
			Location{Zone: "a", Rack: "r1", Switch: "s1"}, Location{Zone: "a", Rack: "r2", Switch: "s1"},
			Shared{Zone: true, Switch: true}, Shared{Zone: true, Switch: true},
		},
		"unknown on one side": {Location{"eu", "a", "r1", "s1"}, Location{}, Shared{}, Shared{}},
		"case matters":        {Location{Rack: "R1"}, Location{Rack: "r1"}, Shared{}, Shared{}},
	}
	for name, tc := range tests {
		for _, turned := range []bool{false, true} {
			a, b := tc.a, tc.b
			if turned {
				a, b = b, a
			}
			if got := Matching(a, b); got != tc.matching {
				t.Errorf("%s: matching %+v, want %+v", name, got, tc.matching)
			}
			if got := Near(a, b); got != tc.near {
				t.Errorf("%s: near %+v, want %+v", name, got, tc.near)
			}
		}
	}
}
