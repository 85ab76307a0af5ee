// Package e2e measures how many pods a second a stock kube-scheduler binds on a
// real control plane, with our extender and without: `make bench-e2e`.
//
// Four configurations take turns, round after round, on one control plane with
// the same nodes and the same kinds of pods, which all wait before kube-scheduler
// starts:
//
//	none      no extender: what kube-scheduler itself can do
//	noop-all  an extender that lets all nodes pass, rates them alike, and binds
//	noop-one  an extender that names one node, and binds
//	ours      heteroflow-scheduler
//
// All four are examples/kube-scheduler.yaml, but without a Lease; the first without
// its extenders, and with the resources that these hide from kube-scheduler hidden
// by other means.
//
// A figure says little by itself, for the machine is one that others use: only
// those of one run are to be compared. The package passes no judgement on them.
// It fails a run in which a pod was not bound exactly once, or cards were given
// that package oracle objects to.
package e2e
