// Package simulate replays a public trace of GPU pods through the very pipeline that
// the server runs, and says how much of the cards gets put to use.
//
//	Read -> Trace --Arrive--> Arrivals --Replay--> Run (one policy, one seed)
//	                                       Experiment: Results -> Report, Plot
//
// The trace, the experiment and its published results are described in
// docs/placement.md. Nothing here rates a node or chooses a card but the pipeline
// that is replayed; the published policies to compare with are plugins of their own
// here, which no SchedulerPolicy can name.
//
// # How the trace is told in our words
//
//   - A GPU is a card of 1,000 MiB of which nothing is kept back, so that a MiB is a
//     thousandth of a GPU. Compute is not asked for: the trace has one dimension.
//   - A pod with gpu_milli 1000 asks for whole cards, one with less for a slice.
//   - gpu_spec "A|B" is the request's list of models. Models are matched by a part of
//     their names: a trace is refused in which that would be another model's.
//   - CPU and main memory are the node's. Whether they fit is what kube-scheduler looks
//     at, and here in one line of its own.
//   - Pods without GPUs are placed and rated too, and hold CPU.
//   - Nodes are named by their rank, so that where two are rated alike the lower rank
//     wins, as the server has it with names.
package simulate
