// Package e2e holds the tests that take a pod all the way: a real API server, a
// stock kube-scheduler configured by examples/, our scheduler, and simulated
// nodes. Each ends with the oracle's verdict on all nodes and pods.
//
// The tests share one control plane and run one after the other; each finds an
// empty cluster and leaves one. Run them by make e2e: the first run on a machine
// builds Kubernetes.
package e2e
