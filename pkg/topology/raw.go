package topology

// The parts of a card set's raw score, as the plugin nvlink rates them. Together they lie between 20 and MostRaw.
const (
	Neutral = 50 // nothing is known

	rawDomain  = 50 // all in one domain
	rawUsedUp  = 30 // and they are the whole domain
	rawAllFree = 40 // and nobody is on any card of the domain
	rawAcross  = -20
	rawNUMA    = 15 // all on one NUMA node
	rawTorn    = -10

	MostRaw = Neutral + rawDomain + rawUsedUp + rawAllFree + rawNUMA // 185
)

// Raw rates a set of cards, free being the cards that nobody is on. A domain is
// used up by a set that is the whole of it. Cards whose NUMA node is not known
// neither make a set one of one NUMA node nor tear it apart. Where nothing is
// known of the links, every set is Neutral.
func (l Links) Raw(cards, free Set) int {
	if !l.Known() || cards == 0 {
		return Neutral
	}
	raw := Neutral + l.t.numaPart(cards)
	domain := l.holding(cards)
	if domain == 0 {
		return raw + rawAcross
	}
	return raw + domainPart(domain, cards.Len(), free)
}

// domainPart is what n cards of the domain are worth for being in it.
func domainPart(domain Set, n int, free Set) int {
	part := rawDomain
	if n == domain.Len() {
		part += rawUsedUp
	}
	if domain.Within(free) {
		part += rawAllFree
	}
	return part
}

func (t *table) numaPart(cards Set) int {
	touched := 0
	for _, node := range t.nodes {
		if cards&node != 0 {
			touched++
		}
	}
	switch {
	case touched > 1:
		return rawTorn
	case touched == 1 && cards&t.homeless == 0:
		return rawNUMA
	}
	return 0
}

// Score brings a raw score into 0..100, where Neutral stays what it is: 50..185 is
// compressed to 50..100 in proportion, the rest kept. A better raw score is a
// better score.
func Score(raw int) float64 {
	if raw <= Neutral {
		return float64(max(raw, 0))
	}
	return Neutral + float64(min(raw, MostRaw)-Neutral)*(100-Neutral)/(MostRaw-Neutral)
}
