// Package demand learns what is asked for, and says what placing a request costs
// those that come after it.
//
//	Note: each new pod -> weights of shapes
//	Look: the cluster now -> Outlook: a frozen mix, and for what places run out
//	Outlook.Of: a request as the outlook sees it -> Wanted.Cost: on a state of a node
//
// The cost is in cards, the lower the better:
//
//	cost = dV + 0.25 dF + 3 regret + price + places
//
// V is what stays idle of a node if the mix alone fills it, the mean over streams of
// requests drawn from the mix; see idle.go. F is what stays idle because a request of
// the mix, the next one, cannot use it (Weng et al., Beware of Fragmentation, USENIX
// ATC'23); see fragments.go. V looks far ahead but sees small differences badly, as it
// is a mean over few streams; F sees the next request alone, but exactly. Regret is
// what a slice spoils of a card for the slices that go with what it leaves; see
// cutting.go. Price keeps cards of a kind for those who cannot do with others; see
// price.go. Places keeps nodes that are free enough for the pods that want many cards
// at once, where the odds are that they will be missed; see scarce.go. That alone
// looks beyond the node.
//
// Nothing here knows who holds which card: the caller says what is left of a node.
// There is no clock either, what is old is told by what has come since. A Learner and
// an Outlook are safe for concurrent use.
//
// Of a card there is memory and compute, each in thousandths of what it has; slots are
// not looked at, nor main memory, NUMA nodes, links and lists of cards. A container's
// devices may here come from cards of two vendors.
package demand
