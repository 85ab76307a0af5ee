// Package certs makes and renews the certificates that the replicas share: one
// leaf, which they show the API server (as webhooks), and each other (as clients
// and as servers), and the authorities that sign it.
//
//	authority: made --(a day)--> signs --(two thirds of its year: the next is made; a day later that signs)--> forgotten
//	leaf:      made --(two thirds of 90 days, or other hosts)--> made anew
//
// What is promised:
//   - An authority is trusted for a day before the first leaf that it signs is
//     made, and for a day after the last one is replaced. So those who read the
//     set anew at least once a day always trust each other, whoever is ahead. The
//     very first authority, and one made because all others had expired, signs at
//     once.
//   - The same set, hosts and time give the same answer about what is to be
//     renewed, and what has just been renewed needs nothing more.
//   - What Parse accepts is whole: keys fit certificates, and the leaf is of one of
//     the authorities.
//
// It neither stores nor sends anything, and is told the time.
package certs
