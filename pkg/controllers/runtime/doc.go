// Package runtime ends pods that have run for as long as they may: by their own
// max-runtime, or by the policy's default where that is enforced. Services are exempt.
//
//	look    who runs since when, and for how long it may, by what is cached
//	decide  who is to be told, and who is to be ended: a plain function of that
//	apply   each is read from the API server anew before anything is done to it
//
// What is promised:
//   - The time counts from status.startTime, as spec.activeDeadlineSeconds does.
//   - Nobody is ended that was not told before: when a tenth of the time is left, ten
//     minutes at most, or at the latest right before.
//   - A pod that a batch/v1 Job controls is ended by suspending the Job, which ends its
//     other pods too and can be resumed: the pods that it makes then count anew. A pod
//     that goes on for five minutes all the same is ended as any other.
//   - Any other is ended by its own kubelet, by a deadline that is written into it: with
//     its own grace, and it stays to be looked at, with its logs, as Failed
//     (DeadlineExceeded). No PodDisruptionBudget is asked: the limit is the author's.
//     Where the API server refuses that deadline the pod is evicted, and then it is.
//   - A pod that is being deleted goes with its own grace: one that whoever deleted it has
//     made longer is cut to that at its end.
//   - What is written is of the very version that was read. Doing it again is no harm.
//   - Where the default is not enforced, who has run for longer is told once, and left
//     alone.
//   - A round does 200 things at most, and those that could not be done are behind the
//     others in the next.
//
// It runs on the leader alone, and keeps nothing that it could not find out again.
package runtime
