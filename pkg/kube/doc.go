// Package kube talks to the API server: what it says of nodes and pods goes into
// the ledger, Bindings and events go out. It is the one place that knows
// client-go; what objects mean is package codec's business, and what follows
// from it the ledger's and the engine's.
//
//	node seen, changed, gone ------> SetNode, RemoveNode
//	pod bound and not ended -------> Confirm
//	pod ended ---------------------> Release
//	pod gone, ended before --------> Release
//	pod gone, never bound ---------> Unreserve
//	pod gone, perhaps running -----> Linger, until its grace and then some have passed
//
// What is promised:
//   - Ready is true only once the ledger has been told of every node and pod of
//     a list that is as new as the last write, not one from some cache.
//   - A Binding carries the pod's UID and its cards, in one request that is sent
//     once. Its error says whether it definitely has not happened; where that is
//     not certain it says so.
//   - Events never hold anybody up; those that are not written are counted.
//   - The replicas' certificates are shown only once the API server has been told
//     to trust them.
package kube
