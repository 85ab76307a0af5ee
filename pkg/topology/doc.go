// Package topology knows how the cards of one node hang together, and how near
// two nodes are.
//
//	ParseMatrix: what a vendor's tool prints            -> Matrix
//	Builder:     matrix, pairs, HAMi's scores, NUMA     -> Links
//	Links.Best, Links.Tightest: open cards, how many    -> Choice
//	Closest: open cards, any weight of a pair    -> Set
//	Matching, Near: two Locations                       -> what they share
//
// A domain is a set of cards that are joined by links of the NVLink class, over
// other cards too; a card without such links is a domain of its own. What is
// not known stays unknown: it speaks neither for cards nor against them, and no
// text, however broken, does more than return an error.
//
// Everything is a plain value that never changes once built. Names of
// annotations and labels, and what plugins make of these facts, lie elsewhere.
package topology
