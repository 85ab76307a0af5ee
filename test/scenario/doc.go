// Package scenario sees what kinds of placement come to, on a real control plane
// with a stock kube-scheduler: `make scenario`, docs/placement.md.
//
//	Draw: the same seed, the same tasks    Heat: how busy cards are -> how warm they get
//	     \                                   |  ^
//	      stage: pods, as time goes          v  | from the allocations of running pods
//	     /                            Gauges: as Prometheus would tell it, to our extender
//	Tally: who was bound where, and when -> Outcome
//
// A second on the clock stands for a minute in the cluster: tasks of an hour take
// a minute, and a card warms up in seconds. Every configuration gets the same tasks at the
// same times. Outcomes depend on timing too, as they would anywhere; so there are
// several runs, each of another seed. The package passes no judgement on figures.
// It fails a run at whose end package oracle objects to something.
package scenario
