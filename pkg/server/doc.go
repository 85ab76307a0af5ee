// Package server speaks HTTP and JSON, and nothing else: it turns what
// kube-scheduler's extender protocol asks into questions to the engine, and the
// answers back. It decides nothing.
//
// What is promised, whatever comes in:
//   - A bad request gets 400 (413 when it is too long) with what is wrong with
//     it as text; nothing ends in a panic that leaves the request.
//   - A pod that asks for no card passes untouched, before anything is asked of
//     the engine.
//   - All refused nodes of an answer carry one and the same reason code, without
//     figures: the text becomes the pod's condition, and a condition that
//     changed by itself would wake the pod for nothing.
//   - A bind runs to its end on a deadline of its own, even if kube-scheduler
//     has hung up: otherwise nobody would know what became of it.
//   - A replica that does not lead answers what the leader answers. A request is
//     sent on once, never in circles; it waits for a leader for 5 s in all, and a
//     bind keeps the deadline with which it arrived at the first replica.
//   - Replicas listen to replicas alone: TLS 1.3, an authority of our own, one name.
package server
