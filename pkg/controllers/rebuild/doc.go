// Package rebuild has pods of services replaced whose nodes are lost: members of
// inference TaskGroups on nodes that are gone, or not ready for longer than a grace.
// It evicts them; their owner makes others, which are placed like any pod.
//
//	look    which members are where, and which nodes are lost, by what is cached
//	decide  who is to go, and who is not for now: a plain function of that
//	apply   each is read from the API server anew, with its node, before it is evicted
//
// What is promised:
//   - Who still serves is never evicted: a pod that is ready by its own condition,
//     which a kubelet that lives keeps true, however its node looks. The eviction is of
//     the very version of the pod that was read: one that has become ready since stays.
//     Where the Node object is gone the condition says nothing, as nobody takes it back;
//     Kubernetes itself deletes such pods by force.
//   - Of one TaskGroup no more pods are on their way at once than the rules say:
//     evicted a moment ago, or new and without a node. While a replacement finds no
//     place, no more are evicted, for 5 minutes: then it counts no more.
//   - Where more than half of all nodes that there are, or of the TaskGroup's own, are
//     not ready at once, nobody is evicted from such nodes: it is likelier that the
//     control plane is cut off than that all of them have died. Kubernetes does
//     likewise. Nodes that are gone have been taken off by somebody who knows.
//   - PodDisruptionBudgets are asked, and nobody is deleted by force. A pod on a dead
//     node stays, terminating, until the node is back or gone: a ReplicaSet makes
//     another at once, a StatefulSet only then.
//   - Who has no owner that would make another elsewhere is left alone, and told.
//   - A round looks at 200 pods at most, and who was looked at is behind who was not.
//
// It runs on the leader alone, and keeps nothing that it could not find out again: a
// new leader counts the grace of a node that is gone anew.
package rebuild
