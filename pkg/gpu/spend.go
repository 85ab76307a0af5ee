package gpu

import (
	"cmp"
	"fmt"
	"slices"
)

// Account is what quotas are charged to: a namespace, or a tenant with all of
// its namespaces.
type Account string

// NamespaceAccount is charged for the pods of one namespace.
func NamespaceAccount(namespace string) Account { return Account("namespace/" + namespace) }

// TenantAccount is charged for the pods of all namespaces that the tenant claims.
func TenantAccount(name string) Account { return Account("tenant/" + name) }

// Spend is what is held of one vendor's cards by way of one resource.
type Spend struct {
	Vendor Vendor
	// Resource is the one by whose count the containers asked, as Ask.Plugin has
	// it; "" for the neutral form.
	Resource string
	Devices  int64 // containers' parts of cards, a slice counting as one
	Whole    int64 // cards that are held whole
	Memory   MiB
	Cores    Cores
}

// Spending is what is held in all: one Spend for each vendor and resource, in
// order, none of them empty. It is never edited.
type Spending []Spend

// Plus adds other to s.
func (s Spending) Plus(other Spending) Spending { return s.add(other, 1) }

// Minus takes other off s.
func (s Spending) Minus(other Spending) Spending { return s.add(other, -1) }

// Max covers what is held one after the other.
func (s Spending) Max(other Spending) Spending {
	most := slices.Clone(s)
	for _, o := range other {
		t := most.at(o.Vendor, o.Resource)
		t.Devices, t.Whole = max(t.Devices, o.Devices), max(t.Whole, o.Whole)
		t.Memory, t.Cores = max(t.Memory, o.Memory), max(t.Cores, o.Cores)
	}
	return most
}

// at returns the entry of that vendor and resource, a new one if there is none.
func (s *Spending) at(v Vendor, resource string) *Spend {
	entry := Spend{Vendor: v, Resource: resource}
	i, found := slices.BinarySearchFunc(*s, entry, compareSpend)
	if !found {
		*s = slices.Insert(*s, i, entry)
	}
	return &(*s)[i]
}

func (s Spending) add(other Spending, sign int64) Spending {
	if len(other) == 0 {
		return s
	}
	sum := slices.Clone(s)
	for _, o := range other {
		t := sum.at(o.Vendor, o.Resource)
		t.Devices += sign * o.Devices
		t.Whole += sign * o.Whole
		t.Memory += MiB(sign) * o.Memory
		t.Cores += Cores(sign) * o.Cores
	}
	return slices.DeleteFunc(sum, func(t Spend) bool { return t == Spend{Vendor: t.Vendor, Resource: t.Resource} })
}

func compareSpend(a, b Spend) int {
	return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Resource, b.Resource))
}

// Measure is what a limit counts.
type Measure int

// The measures. Memory is in MiB, Cores in percent of one card.
const (
	Devices Measure = iota
	WholeCards
	Memory
	Compute
)

// Limit is one line of a quota.
type Limit struct {
	// Quota says whose it is, for people: "Tenant blue", "ResourceQuota ml/gpus".
	Quota string
	// Name is the line as it is written: "cards", "requests.nvidia.com/gpumem".
	Name    string
	Measure Measure
	Vendor  Vendor // counts the cards of this vendor only; "" for any
	// Resource narrows that to what was asked for by way of this resource, or in
	// the neutral form; "" for any.
	Resource string
	Most     int64 // in the measure's unit
}

// Of returns how much of s the limit counts.
func (l *Limit) Of(s Spending) (sum int64) {
	for i := range s {
		t := &s[i]
		if l.Vendor != "" && l.Vendor != t.Vendor || l.Resource != "" && t.Resource != "" && l.Resource != t.Resource {
			continue
		}
		sum += t.of(l.Measure)
	}
	return sum
}

// Sum returns all of s by that measure, in its unit.
func (s Spending) Sum(m Measure) (sum int64) {
	for i := range s {
		sum += s[i].of(m)
	}
	return sum
}

func (s *Spend) of(m Measure) int64 {
	switch m {
	case Devices:
		return s.Devices
	case WholeCards:
		return s.Whole
	case Memory:
		return int64(s.Memory)
	case Compute:
		return int64(s.Cores)
	}
	return 0
}

// Excess is a limit that would be passed.
type Excess struct {
	Limit       *Limit // never edited
	Used, Asked int64  // in the measure's unit
}

// String reads as "cards of Tenant blue: 4 of 4 used, 1 asked".
func (x Excess) String() string {
	return fmt.Sprintf("%s of %s: %d of %d used, %d asked", x.Limit.Name, x.Limit.Quota, x.Used, x.Limit.Most, x.Asked)
}

// Check returns the first of the limits that used and asked together pass, false
// when there is none. A limit that asked adds nothing to is not passed by it,
// however much is used: it may have been lowered since.
func Check(limits []Limit, used, asked Spending) (Excess, bool) {
	for i := range limits {
		l := &limits[i]
		if more := l.Of(asked); more > 0 {
			if u := l.Of(used); u+more > l.Most {
				return Excess{l, u, more}, true
			}
		}
	}
	return Excess{}, false
}

// Spending returns what a pod so placed is charged for: what it holds on each
// card, in full. Of what containers hold that asked by different resources each
// is charged, though they may run one after the other. Of cards that cannot be
// named only the number is known; the claim on all that there are counts as one.
func (p *Placement) Spending() Spending {
	var s Spending
	for i := range p.Grants {
		resource := p.Grants[i].Resource
		asked := func(g Grant) bool { return g.Resource == resource }
		if slices.IndexFunc(p.Grants, asked) == i { // the first of its like
			s.charge(p, resource)
		}
	}
	for _, f := range p.Foreign {
		n := int64(f.Cards)
		if f.Cards < 0 { // AllCards
			n = 1
		}
		s = s.Plus(Spending{{Vendor: f.Vendor, Devices: n, Whole: n, Cores: Cores(n) * MostCores}})
	}
	return s
}

// charge adds what the containers hold that asked by way of the resource.
func (s *Spending) charge(p *Placement, resource string) {
	some := Placement{Grants: p.Grants}
	others := func(g Grant) bool { return g.Resource != resource }
	if slices.ContainsFunc(p.Grants, others) {
		some.Grants = slices.DeleteFunc(slices.Clone(p.Grants), others)
	}
	for _, u := range some.Uses() {
		t := s.at(some.Vendor(u.Card), resource)
		t.Devices += int64(u.Use.Slots)
		t.Memory += u.Use.Memory
		t.Cores += u.Use.Cores
		if u.Use.Exclusive {
			t.Whole++
		}
	}
}
