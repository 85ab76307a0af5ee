// Package cluster runs a real Kubernetes control plane with a stock
// kube-scheduler and our extender beside it, for tests and the demo.
//
// It promises that nothing it starts is reachable from outside the machine, and
// that nothing outlives the process that started it, however that ends: the
// control plane stops when its standard input does, and the kernel kills the
// other children with their parent.
//
// kube-scheduler is configured by examples/kube-scheduler.yaml; the rights of both,
// the webhooks and the policies come from the chart, so that what users are given
// is what is tested. The package builds the binaries it needs, says nothing
// about what they ought to do, and makes no nodes: see package simnode.
package cluster
