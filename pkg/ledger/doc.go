// Package ledger is the one place that knows who holds which card, and the only
// one that can say yes.
//
//	(none) --Reserve--> held --Confirm--> bound --Drain--> draining
//	held --Unreserve--> (none)
//	(none) --Confirm--> bound             a pod bound by somebody else, or before a restart
//	held, bound, draining --Linger--> lingering --Expire--> (none)
//	lingering --Confirm--> bound          the object is there after all
//	(none) --Claim--> claimed --Reserve--> held --Unreserve--> claimed
//	claimed --Unclaim, Linger--> (none)
//	claimed --Confirm--> bound
//	any --Release--> (none)
//
// All of these count in full until they are back at (none). The table of all
// moves is in state.go; a move that is not in it changes nothing.
//
// What is promised:
//   - Reserve takes all of a placement or none of it, never gives out more of a
//     card than it has, never puts anybody beside an exclusive holder, never puts
//     two tenants onto one card that the Boundary keeps apart, and never passes a
//     limit of the Budget, however many ask at once. That is checked here and
//     nowhere else. Reserving the same again is a no-op.
//   - A claim keeps room for a pod while others make it: those who are to go count until
//     they have gone, and the claim where it takes more than they have. So whoever comes
//     fits beside both, and what is given back goes to nobody else. Reserve takes
//     the claimant where it fits without its own claim, on that node alone, and
//     Unreserve leads back to the claim. Nobody is there for a claim: it divides no card,
//     and nothing that is measured is put down to it.
//   - What a Service takes back is kept for it: Node.For shows a node as it is to somebody
//     who would still be there then, with that claimed as far as no member has it. It is a
//     promise of who decides and no hold: nothing is counted for it, and Reserve does not
//     look at it. It stays with a node whatever happens to that, and with a plan.
//   - Confirm records what the API server says, whatever that leads to: a card
//     may then hold more than it has, or an account more than its limit, and
//     takes nothing more.
//   - Whose a hold is, and what it is charged to, is what the Rules say of its
//     namespace: those in force, since Govern goes by them about all holds. What
//     a Placement says of its tenant does not matter.
//   - Govern ends no hold. Two who may not be together any more divide their card:
//     it takes nobody until one of them has gone, or they may again.
//   - A Snapshot never changes. Equal books give equal snapshots, in one order.
//   - Every method of Ledger is safe for concurrent use, and none does any I/O.
//
// What is not done here: health, cordons and unavailable nodes do not stop
// Reserve (the pipeline judges those), nor do CPU and main memory (kube-scheduler
// does), which are only counted. Nothing here reads a clock, logs, or knows of
// Kubernetes.
package ledger
