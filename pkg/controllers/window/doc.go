// Package window does what the windows of TaskGroups ask for: it puts services to sleep
// outside of them, and wakes them as they were. What is to be done is decided by
// pkg/window; here is looked, done and told. The leader runs it.
//
//	group, its target, who else is about it --window.Decide--> steps, in order
//	steps --> status of the group (the image first), HPA, KEDA, scale; or the other way round
//
// What counts is read from the API server in each pass, and not from a cache. What is
// remembered of an action is in the status of its group, so the next leader goes on from
// there, whenever the one before has died.
//
// It promises:
//
//   - Nothing is written to a target before its image is in the status, and the group has
//     a finalizer. The image and the cards that are kept for the wake-up are written in
//     one update.
//   - What is written is of the version that was read in the same pass. If any of it has
//     changed meanwhile, the pass begins anew. A pass that has taken so long that there
//     may be another leader writes nothing more.
//   - A group that is deleted, or turned to another target, first restores the one it has
//     a record of. It stays until then: for an inactive tenant, until that is active. Only
//     where the target is gone there is nothing to wait for.
//   - While a spec cannot be read, nothing is done: what it asks for is not known. What
//     was done before stays, and is restored by the next that can be read, or when the
//     group is deleted.
//   - Of what its members had no more is kept for a service that goes to sleep than fits,
//     beside what others keep, within each quota that its namespace is charged to.
//   - A status is written only if it says something else than what is there.
//
// A group is looked at when it has changed, when its windows open or close, and each
// minute: edits by hand of the target are seen then.
package window
