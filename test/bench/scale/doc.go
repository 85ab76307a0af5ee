// Package scale measures the scheduler with a large cluster's nodes and pods: how
// long it takes to be ready, what memory it has, and whether /filter keeps its
// pace while nodes and pods change. `make bench-scale` runs it.
//
// API server and etcd are real, and so is the scheduler's binary. Nodes and pods
// are only objects: they are written as kubelets and Bindings write them, but
// nothing runs. On a machine of few cores the API server's own work under the
// storm is part of what is measured; the processor time of the scheduler is its own.
package scale
