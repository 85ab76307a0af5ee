// Package tenancy says who may sit beside whom on a shared card.
//
// It answers from what the cluster's administrators wrote, never from anything
// that a pod's author can write. An answer that cannot be found is a no.
package tenancy

import "heteroflow.io/heteroflow/pkg/gpu"

// Separate lets nobody share a card with another tenant. Its zero value is
// ready for use and safe for concurrent use.
type Separate struct{}

// MayShare reports whether pods of a and b may be on one card. A pod whose
// tenant is not known shares with nobody.
func (Separate) MayShare(a, b gpu.TenantID) bool { return a != "" && a == b }
