// Package quality replays a public trace of GPU pods through a stock kube-scheduler
// and our extender, on a real API server, and compares with the simulator what was
// placed: `make quality-e2e`.
//
//	simulate.Trace --Part, Arrive--> arrivals --a pod at a time--> API server,
//	    kube-scheduler, extender --> simulate.Tally  beside  simulate.Replay
//
// The simulator looks at all nodes and breaks ties by name. kube-scheduler looks at a
// sample of the nodes, breaks ties at random, and forgets nothing of how pods are
// queued, tried again and nominated. How far the two are apart is what is measured.
//
// A pod is tried until it is bound or has no room: once, and if kube-scheduler refuses
// it although a node that its sample left out has room, until the node that is then
// nominated for it has had its time. Whether there is room is asked of the oracle, which
// knows nothing of the scheduler. Nothing ends: what a shape finds no room for once, it
// never will.
package quality
