// Package simnode stands in for the nodes of a cluster: Node objects with
// accelerators that nobody has bought, and one kubelet for all of them.
//
// A pod bound to one of its nodes becomes Running at once, with the environment
// that a kubelet would give its containers (see Env), and ends as under a
// kubelet: first its containers are terminated, then its phase is terminal, and
// if it is being deleted its object goes last. A forced delete skips all that,
// as it does in a real cluster. Pods direct it by annotations, which may also be
// set while they run:
//
//	simnode.test/run-for: 2s      ends by itself after that time
//	simnode.test/end: Failed      how it ends (else Succeeded); without run-for it ends at once
//	simnode.test/hang: "true"     ignores its deletion until this is removed
//	simnode.test/start-after: 2s  is started so long after it was bound, as if images were pulled
//	simnode.test/stop-after: 2s   takes so long to end when it is deleted, within its grace, or has been active for too long
//	simnode.test/stop-code: "0"   exits with that when it is deleted (else 143)
//
// A pod ends as well when it has been active for longer than its spec allows
// (activeDeadlineSeconds); its object stays. Nodes are Ready until told otherwise and send no heart-beats. Left out are
// probes, restarts of containers, volumes, pod IPs that mean anything, and
// environment from ConfigMaps, Secrets and resource fields. Nothing of the
// scheduler's own packages is used: what a node publishes is encoded here anew,
// so that a mistake there does not hide itself.
package simnode
