package codec

import (
	"fmt"
	"slices"
	"strings"
)

// other is a wish that HAMi reads and nobody here does. Whoever writes one
// counts on it.
type other struct {
	key      string
	harmless []string // values that come to the same without it, beside ""
	what     string   // for people
}

// others is read only (hami-protocol.md A.6).
var others = [...]other{
	{"nvidia.com/vgpu-mode", []string{"hami-core"}, "how cards are shared"},
	{"huawei.com/vnpu-mode", []string{"hami-core"}, "how cards are shared"},
	{"metax-tech.com/sgpu-qos-policy", []string{"best-effort"}, "how compute is bounded"},
	{"metax-tech.com/sgpu-app-class", nil, "online or offline"},
	{"metax-tech.com/sgpu-topology-aware", []string{"false"}, "cards with the best links"},
	{"hami.io/device-scoring-weights", nil, "what the choice of cards weighs"},
}

// otherWish judges an annotation that is not ours, of a pod that asks for cards:
// as one of HAMi's wishes that are not handled, or as a slip in one that is.
func otherWish(key, value string) error {
	for i := range others {
		if o := &others[i]; o.key == key {
			return o.refuse(strings.TrimSpace(value))
		}
	}
	if meant := nearestAlias(key); meant != "" {
		return fmt.Errorf("unknown annotation %s; did you mean %s?", key, meant)
	}
	return nil
}

func (o *other) refuse(value string) error {
	switch {
	case value == "" || slices.Contains(o.harmless, value):
		return nil
	case len(o.harmless) == 0:
		return fmt.Errorf("annotation %s: is read by HAMi's own scheduler alone and is not handled; leave it out", o.key)
	}
	return fmt.Errorf("annotation %s: %s is read by HAMi's own scheduler alone and is not handled; leave it out", o.key, quoted(value))
}

// longName is from where on two slips in the name of an alias are still meant
// for it; a shorter name with two slips may well be somebody's own.
const longName = 10

// nearestAlias returns the name of a wish in the key's own domain that may have
// been meant by it; "" if none is like it.
func nearestAlias(key string) string {
	domain, name, _ := strings.Cut(key, "/")
	best, least := "", 3
	for alias := range wishNames {
		rest, ok := strings.CutPrefix(alias, domain+"/")
		if !ok {
			continue
		}
		most := 1
		if len(rest) >= longName {
			most = 2
		}
		if d := distance(name, rest); d <= most && (d < least || d == least && alias < best) {
			best, least = alias, d
		}
	}
	return best
}
