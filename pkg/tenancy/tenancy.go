// Package tenancy says whose a namespace is, who may sit beside whom on a shared
// card, and how much anybody may hold.
//
//	World --New--> Directory
//
// It answers from what the cluster's administrators wrote, never from anything
// that a pod's author can write. An answer that cannot be found is a no. All claims
// on a namespace count together:
//
//	claimed by        its tenant            new pods
//	no Tenant         the namespace itself  get cards
//	one               that Tenant           get cards if it is active
//	one that is gone  unknown               get none
//	two or more       unknown               get cards if all are there and active
//	not seen yet      unknown               get none
//
// The unknown share cards with nobody, not even with their own. Limits of every
// claimant count.
package tenancy

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Separate are the rules where nothing is written: every namespace is its own
// tenant, shares with nobody, and may hold what there is. Its zero value is ready
// for use and safe for concurrent use.
type Separate struct{}

var _ ledger.Rules = Separate{}

// Boundary returns the value itself.
func (s Separate) Boundary() ledger.Boundary { return s }

// Equal reports whether the other is one as well.
func (s Separate) Equal(other ledger.Boundary) bool { return other == ledger.Boundary(s) }

// MayShare reports whether pods of a and b may be on one card. A pod whose
// tenant is not known shares with nobody.
func (Separate) MayShare(a, b gpu.TenantID) bool { return a != "" && a == b }

// Owner returns the namespace as its own tenant.
func (Separate) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	return gpu.TenantID(namespace), ""
}

// Dedicated takes the label for a namespace's name.
func (Separate) Dedicated(label string) gpu.TenantID { return gpu.TenantID(label) }

// Accounts returns none.
func (Separate) Accounts(string) []gpu.Account { return nil }

// Limits returns none.
func (Separate) Limits(gpu.Account) []gpu.Limit { return nil }
