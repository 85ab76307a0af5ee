package tenancy

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Directory is the rules that a World makes. It never changes, and is safe for
// concurrent use. Of a nil one nothing is known: every namespace is closed, and
// nobody shares.
type Directory struct {
	world      World // sorted by name
	boundary   *boundary
	namespaces map[string]*namespace
	claimed    map[string][]string // Tenant -> namespaces, sorted
	limits     map[gpu.Account][]gpu.Limit
}

// namespace is what follows for one.
type namespace struct {
	owner    gpu.TenantID
	closed   gpu.Reason
	accounts []gpu.Account
	priority int
}

var _ ledger.Rules = (*Directory)(nil)

// New makes the rules of the world.
func New(w World) *Directory {
	d := &Directory{
		world: World{
			Tenants:    slices.SortedFunc(slices.Values(w.Tenants), func(a, b Tenant) int { return cmp.Compare(a.Name, b.Name) }),
			Namespaces: slices.SortedFunc(slices.Values(w.Namespaces), func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) }),
			Quotas:     slices.SortedFunc(slices.Values(w.Quotas), compareQuotas),
		},
		namespaces: make(map[string]*namespace, len(w.Namespaces)),
		claimed:    map[string][]string{},
		limits:     map[gpu.Account][]gpu.Limit{},
	}
	d.boundary = newBoundary(d.world.Tenants)
	for i := range d.world.Tenants {
		if t := &d.world.Tenants[i]; len(t.Limits) > 0 {
			d.limits[gpu.TenantAccount(t.Name)] = t.Limits
		}
	}
	for _, q := range d.world.Quotas {
		if len(q.Limits) > 0 {
			account := gpu.NamespaceAccount(q.Namespace)
			d.limits[account] = append(d.limits[account], q.Limits...)
		}
	}
	d.enterNamespaces()
	return d
}

func compareQuotas(a, b Quota) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (d *Directory) enterNamespaces() {
	for i := range d.world.Namespaces {
		n := &d.world.Namespaces[i]
		n.Claims = slices.Compact(slices.Sorted(slices.Values(n.Claims)))
		d.namespaces[n.Name] = d.resolve(n)
		for _, tenant := range n.Claims {
			d.claimed[tenant] = append(d.claimed[tenant], n.Name)
		}
	}
}

// resolve says what follows from the namespace's claims, all of them together.
func (d *Directory) resolve(n *Namespace) *namespace {
	r := &namespace{priority: MostPriority}
	for _, name := range n.Claims {
		t := d.tenant(name)
		if t == nil {
			r.closed = gpu.TenantInactive
			continue
		}
		if t.Inactive {
			r.closed = gpu.TenantInactive
		}
		r.owner = gpu.TenantID(name)
		r.priority = min(r.priority, t.MaxPriority)
		r.accounts = append(r.accounts, gpu.TenantAccount(name))
	}
	switch {
	case n.Torn, len(n.Claims) > 1:
		r.owner = "" // shares with nobody, itself included
	case len(n.Claims) == 0:
		r.owner = ownTenant(n.Name)
	}
	if own := gpu.NamespaceAccount(n.Name); d.limits[own] != nil {
		r.accounts = append(r.accounts, own)
	}
	return r
}

// ownTenant is the tenant that a namespace of no Tenant is. No Tenant has such a
// name: it has a slash.
func ownTenant(namespace string) gpu.TenantID { return gpu.TenantID("namespace/" + namespace) }

func (d *Directory) tenant(name string) *Tenant {
	i, ok := slices.BinarySearchFunc(d.world.Tenants, name, func(t Tenant, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return nil
	}
	return &d.world.Tenants[i]
}

// Boundary returns who may share cards. It does not keep the Directory alive.
func (d *Directory) Boundary() ledger.Boundary {
	if d == nil {
		return (*boundary)(nil)
	}
	return d.boundary
}

// Owner returns the tenant that pods of the namespace belong to: the one that
// claims it, else the namespace itself. It is "" for a namespace that two claim or
// that is torn, that one claims who does not exist, or that has not been seen. The
// last two are closed, and so is one of which a claimant is not active.
func (d *Directory) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	n := d.of(namespace)
	if n == nil {
		return "", gpu.TenantInactive
	}
	return n.owner, n.closed
}

func (d *Directory) of(namespace string) *namespace {
	if d == nil {
		return nil
	}
	return d.namespaces[namespace]
}

// Accounts returns those of all Tenants that claim the namespace, and its own if
// it has quotas about cards.
func (d *Directory) Accounts(namespace string) []gpu.Account {
	n := d.of(namespace)
	if n == nil {
		return nil
	}
	return n.accounts
}

// Limits returns those of the account.
func (d *Directory) Limits(account gpu.Account) []gpu.Limit {
	if d == nil {
		return nil
	}
	return d.limits[account]
}

// MaxPriority returns the highest priority that pods of the namespace may ask for,
// the lowest of all its Tenants'. Of a namespace that has not been seen that is not
// known: it may be the Tenant's with the lowest of all.
func (d *Directory) MaxPriority(namespace string) (most int, known bool) {
	if n := d.of(namespace); n != nil {
		return n.priority, true
	}
	if d == nil {
		return 0, false
	}
	most = MostPriority
	for i := range d.world.Tenants {
		most = min(most, d.world.Tenants[i].MaxPriority)
	}
	return most, false
}

// Tenants returns all of them by name. The list is never edited.
func (d *Directory) Tenants() []Tenant {
	if d == nil {
		return nil
	}
	return d.world.Tenants
}

// Quotas returns all of them by namespace and name. The list is never edited.
func (d *Directory) Quotas() []Quota {
	if d == nil {
		return nil
	}
	return d.world.Quotas
}

// Claimed returns the namespaces that the Tenant claims, in order, those that
// another claims too included. The list is never edited.
func (d *Directory) Claimed(tenant string) []string {
	if d == nil {
		return nil
	}
	return d.claimed[tenant]
}

// Contested returns the namespaces that more than one claims, in order, with all
// who do; not those that are torn, where nobody has to decide.
func (d *Directory) Contested() (all []Namespace) {
	if d == nil {
		return nil
	}
	for _, n := range d.world.Namespaces {
		if len(n.Claims) > 1 && !n.Torn {
			all = append(all, n)
		}
	}
	return all
}
