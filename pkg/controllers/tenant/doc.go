// Package tenant writes what is found of tenants: into the status of each Tenant,
// and as events for those who can mend it. It decides nothing: what a pod gets is
// the ledger's and the engine's business, and nothing reads what is written here
// but people.
//
// It is the first of the controllers, which all look alike:
//
//	list    what the caches and a snapshot of the ledger say at one moment
//	decide  what should be, in plain functions of that: no client, no lock, no clock
//	apply   what differs, so much a round and the rest in the next
//
// A controller runs on the leader alone, in one goroutine, from Run(ctx) to the end
// of ctx. It keeps nothing that it could not find out again: a new leader begins
// with nothing and comes to write the same. A status that could not be written comes up
// again in the next round, so an error is logged and forgotten.
//
// What is promised:
//   - A status is written only if it says something else than what is there, and
//     never over one that is newer than what it was found by.
//   - A round writes 200 statuses and tells 200 events at most, and who had to wait
//     is first in the next.
//   - What is the case is told once, again when it has changed, and every half hour:
//     the API server keeps an event for an hour, and one may not have got through.
package tenant
