// Package oracle judges what a scheduler has done, from the API server's objects
// alone. It imports nothing of the scheduler and does all arithmetic anew, so
// that a mistake there cannot hide itself here.
//
// Check proves of a World that no card is oversold, that no two pods share one
// whose tenants may not, that nobody holds more than a Tenant or a ResourceQuota
// allows, or is on a node that is kept for another; that exactly the bound pods
// carry an allocation, that each allocation gives every container what it asked
// for and no more, and that no annotation of ours and no variable shows a
// container other cards than its own. Room finds by exhaustive search where one
// more pod would fit.
//
// It knows the names of all vendors' forms, and what their amounts mean, from
// the vendors' documents. It judges by the default policy: the standard reserve,
// no overcommit. Pods that have ended count for nothing.
package oracle
