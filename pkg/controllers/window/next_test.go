package window

import (
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestChangeInWords(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	for want, tc := range map[string]struct {
		change change
		zone   *time.Location
	}{
		"closes Mon 30 Nov 22:00 CET, frees 16 cards":          {change{at: closed(), cards: 16}, berlin},
		"closes Mon 30 Nov 22:00 CET, frees 1 card":            {change{at: closed(), cards: 1}, berlin},
		"closes Mon 30 Nov 22:00 CET, frees 16 cards for good": {change{at: closed(), cards: 16, forGood: true}, berlin},
		"closes Mon 30 Nov 21:00 UTC":                          {change{at: closed()}, time.UTC},
		"closes Tue 1 Dec 02:45 +0545, frees 2 cards":          {change{at: closed(), cards: 2}, kathmandu},
		"opens Tue 1 Dec 08:00 CET, takes back 16 cards":       {change{at: opened(), opens: true, cards: 16}, berlin},
		"opens Tue 1 Dec 08:00 CET":                            {change{at: opened(), opens: true}, berlin},
		"opens Tue 1 Dec 08:00 CET, stays stopped":             {change{at: opened(), opens: true, forGood: true}, berlin},
		"opens Wed 1 Dec 2027 08:00 CET, takes back 16 cards":  {change{at: opened().AddDate(1, 0, 0), opens: true, cards: 16}, berlin},
		"closes Thu 1 Jul 09:00 CEST, frees 3 cards":           {change{at: time.Date(2027, 7, 1, 7, 0, 0, 0, time.UTC), cards: 3}, berlin},
	} {
		if got := tc.change.text(start(), tc.zone); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFreed(t *testing.T) {
	members := []gpu.Placement{placed("a", "n0", "1", "2"), placed("b", "n0", "3"), placed("c", "n1", "1", "2", "3")}
	for stay, want := range map[int32]int64{0: 6, 1: 3, 2: 1, 3: 0, 9: 0} {
		if got := freed(members, stay); got != want {
			t.Errorf("where %d stay %d cards are freed, want %d", stay, got, want)
		}
	}
}
