// Package preempt carries out preemptions: it has pods ended so that others can run,
// by the plans of pkg/preempt, and sees to it that nobody is lost by it. The leader
// runs it. What it knows is in Preemption objects, which are written before anything
// is done; the next leader goes on from what they say.
//
//	        create
//	(none) --------> Planned ----> Draining ----> Held ----> Bound
//	                    |              |            |
//	                    +------------->+----------->+------> RolledBack, Expired
//
// Each round lists, decides and applies. To decide is plain functions of one
// Preemption, what has been seen and the time (next). To apply is to write the status
// first, on the version that was read, and to do the deeds then; whoever dies between
// the two has them done by the next, and each does no harm when it is done twice.
//
// It promises:
//
//   - Nobody is asked to go before the plan is written, the ledger keeps the room for
//     the preemptor, and a trial run says that no PodDisruptionBudget keeps any of those
//     who are evicted, and nothing else does that judges evictions. Pods of a Job that is
//     suspended are none of them.
//   - Nobody is evicted before all are marked, each of the version that was looked at: one
//     that has changed in between, and may not be ended any more, costs nobody's life.
//   - A plan that nobody has begun within some seconds, or that another leader has made,
//     is given up: it may not be the smallest any more.
//   - For whom a plan has come to nothing there is none for a while, and for much longer
//     if it has Expired: the more have, the longer.
//   - Who has not been asked to go when the preemptor needs nothing any more is left
//     alone. The mark is taken off it first, which changes its resourceVersion: an
//     eviction that is on its way is of the one before, and fails.
//   - A pod that nobody else makes anew is made anew by us, once: the new one says
//     from which pod it is. Who has deleted such a pod himself, after it was written
//     down that it is to go, gets it back too.
//   - A Job is resumed once, if we have suspended it and nobody has touched that since.
//   - Who has been asked and does not go is deleted without grace a minute past its
//     own, and again every half minute. Its cards are the ledger's to free.
//
// A budget that is used up between the trial run and the eviction is asked again until
// those who were asked before have gone, and a minute has passed. Then the rest is
// spared, the preemption is rolled back, and the next plan needs fewer.
//
// To delete a Preemption is to forget what is owed to its victims: a pod that was to
// be made anew from it is not.
package preempt
