// Package soak has pods of many tenants come and go through the real engine and
// the real ledger, as fast as they can, while everything that administrators
// write changes under them: tenants, sharing groups, quotas, which namespace
// belongs to whom, which node is kept for whom. The API server is a little one of
// its own that refuses, loses requests and answers, hangs, and delivers Bindings
// late; the informer lags; nodes go and come back.
//
// An oracle of its own, which shares no code with what it judges, knows which
// containers are really on which card. It judges every pod that comes onto one:
//
//   - oversold: more of a card is in use than there is, or somebody is beside a
//     holder of the whole card;
//   - neighbours: two pods are on a card that may not be together, or it was
//     closed to newcomers since two were already; or the node is another tenant's;
//   - overquota: a limit is passed, or nothing may come from the pod's namespace;
//     or the books add up to another sum than their holds;
//   - leaked: when all is quiet somebody holds cards who is not there, or holds
//     none who is.
//
// What is done follows from a seed, which is printed; what comes of it depends on
// timing, as in a cluster. Rules change while pods are on their way: the oracle
// asks that what was decided was right by the rules at some moment between the
// start of the bind and the sending of the Binding.
package soak
