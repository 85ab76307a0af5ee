// Package window decides when an inference service is to be awake, and what is done
// about it. It is pure: what it sees and what time it is are handed to it, what is to
// be done it returns, and it does nothing.
//
//	what is written --Parse--> Rule (Schedule, action)
//	Rule, Record, Seen, now --Decide--> Plan (steps in order, and what to say)
//
// # When
//
// A Schedule is open while any of its windows is. Without windows it is always open:
// all that a window asks for is done outside it. Windows that overlap or adjoin are
// one, with no transition between them.
//
// Times of day are those of a clock in the window's zone. One that the clock skips is
// where the skip ends. One that it shows twice opens a window the first time and closes
// it the second: the service is then awake for longer, never for less. So a window of
// which the clock skips all does not open on that day.
//
// A window is either days, from and to, or a pair of cron expressions: open from when
// start comes until end comes, and open where both come at once. The expressions are
// those of a CronJob (robfig/cron reads them, and is not asked when they come: its
// idea of a skipped hour is another), without time zone, without @names, and
// at most six times a day.
//
// # What
//
//	           saved        outside its windows          inside again
//	pause      replicas,    0 replicas                   all as saved
//	scale      HPA bounds,  that many replicas, pinned   all as saved
//	stop       KEDA pause   0 replicas                   stays
//
// The image of before is taken once, when the schedule closes, and is kept until it
// has been restored: edits of the rule in the meantime change what is set, never what
// is saved. A rule that was edited to do something else does it, whatever was done to
// the target by hand before; with other windows only, it is restored as soon as one is
// open. Everything goes by what the state is, not by what has happened: a pass that was
// missed, repeated or interrupted between two steps, or a clock that was set back, changes
// nothing about the end.
//
//	(no record) --closed--> acting --seen as it was set--> acted     (45 s after it was written)
//	                           `------- open --------------- |
//	                                                         v
//	                        (no record) <--all is written-- restoring
//
// Who pulls at the target as well:
//
//   - A HorizontalPodAutoscaler does nothing to a target of 0 replicas, so for 0 its
//     bounds are left as they are: who wakes the service by hand has an autoscaler that
//     works, where one pinned to 1..1 would pull it back. Only a minimum of 0 becomes 1,
//     since where the gate HPAScaleToZero was still alpha a minimum of 0 kept it at work.
//     Since Kubernetes 1.37 it also is at work at 0 where it has gone there by itself
//     (its condition ScaledToZero; a minimum of 1 would then wake the target at once). Such
//     a target is asleep already and left to it; once it has woken it, it is paused,
//     and the autoscaler then keeps still. For more than 0 it is pinned, min = max.
//   - A KEDA ScaledObject is pinned with its annotation paused-replicas. The HPA that
//     KEDA makes is KEDA's and is not touched.
//   - An HPA can write once more what it had worked out before, over what was just
//     set, since it retries on conflict. So what is set counts as done once it is seen so
//     45 s after, and until then is written up to three times. What is restored where
//     there is KEDA, which may set the number once more that it was pinned to, likewise.
//   - Whoever edits by hand after that is not fought: what they changed is left alone,
//     when the schedule opens too, and the rest is restored. What is pinned to its number
//     by an autoscaler the autoscaler puts back, as it always does.
//
// What stop has pinned stays pinned, since an autoscaler that is let go might start the
// service; whoever starts it by hand takes the pin off too.
//
// A target that was deleted and made anew is another one: what was saved of the old is
// forgotten. For a tenant that is inactive nothing is done that adds replicas; all is
// kept until it is active again. Of groups that have one target the oldest rules it;
// a younger one that had got hold of it lets go first.
package window
