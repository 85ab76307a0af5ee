package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// charge is what a pod holds of one vendor's cards by way of one resource.
type charge struct {
	vendor, plugin  string // plugin: the count that it asked by; "" for none
	devices, whole  int64
	memory, compute int64
}

// bill is what one pod is charged for.
type bill struct {
	pod, namespace string
	charges        []charge
}

// charges sums up what the containers hold, each resource by itself. taken are
// the cards of each ask.
func charges(wanted []ask, taken []map[*card]use) []charge {
	type piece struct {
		plugin string
		card   *card
	}
	held := map[piece]*parts{}
	for i := range wanted {
		for c, u := range taken[i] {
			at := piece{wanted[i].plugin, c}
			if held[at] == nil {
				held[at] = &parts{}
			}
			held[at].add(wanted[i].role, u)
		}
	}
	var all []charge
	for at, p := range held {
		u := p.sum()
		c := charge{vendor: at.card.Vendor, plugin: at.plugin, devices: int64(u.slots), memory: u.memory, compute: u.cores}
		if u.exclusive {
			c.whole = c.devices
		}
		all = append(all, c)
	}
	return all
}

// measure is what a line of a quota counts.
type measure func(charge) int64

func devicesOf(c charge) int64 { return c.devices }
func wholeOf(c charge) int64   { return c.whole }
func memoryOf(c charge) int64  { return c.memory }
func computeOf(c charge) int64 { return c.compute }

// line is one limit.
type line struct {
	name           string // whose, and what of
	vendor, plugin string // "" counts all
	of             measure
	most           int64
	covers         func(namespace string) bool
}

// counts is how much of a bill the line counts. A line of one resource counts
// what was asked for by no resource in particular too.
func (l *line) counts(b bill) (sum int64) {
	if !l.covers(b.namespace) {
		return 0
	}
	for _, c := range b.charges {
		foreign := l.vendor != "" && l.vendor != c.vendor || l.plugin != "" && c.plugin != "" && l.plugin != c.plugin
		if !foreign {
			sum += l.of(c)
		}
	}
	return sum
}

// lines are all limits that there are.
func (r *rules) lines(quotas []corev1.ResourceQuota) []line {
	var all []line
	for _, name := range slices.Sorted(maps.Keys(r.tenants)) {
		all = append(all, r.tenantLines(r.tenants[name])...)
	}
	for i := range quotas {
		all = append(all, namespaceLines(&quotas[i])...)
	}
	return all
}

func (r *rules) tenantLines(t *Tenant) []line {
	var all []line
	covers := func(namespace string) bool { return r.claims(t, namespace) }
	for _, l := range []struct {
		name  string
		of    measure
		limit *int64
	}{
		{"cards", devicesOf, t.Spec.Quota.Cards.Limit},
		{"memoryMiB", memoryOf, t.Spec.Quota.MemoryMiB.Limit},
		{"cores", computeOf, t.Spec.Quota.Cores.Limit},
	} {
		if l.limit != nil {
			all = append(all, line{name: "Tenant " + t.Metadata.Name + ": " + l.name, of: l.of, most: *l.limit, covers: covers})
		}
	}
	return all
}

// namespaceLines reads a ResourceQuota. One with scopes covers pods by what we
// do not judge by, so it bounds nothing here.
func namespaceLines(q *corev1.ResourceQuota) []line {
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		return nil
	}
	var all []line
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		bare := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits.")
		l, found := lineOf(bare)
		if !found {
			continue
		}
		amount := q.Spec.Hard[name]
		l.most = (min(amount.Value(), mostAmount)*l.most + mostShare - 1) / mostShare
		l.name = fmt.Sprintf("ResourceQuota %s/%s: %s", q.Namespace, q.Name, name)
		l.covers = func(namespace string) bool { return namespace == q.Namespace }
		all = append(all, l)
	}
	return all
}

// mostAmount is more than any cluster has, and can be multiplied.
const mostAmount = 1 << 40

// lineOf is the line that a resource name stands for. Its most is what 100 of
// the name's units are in those of the measure.
func lineOf(name string) (line, bool) {
	switch name {
	case neutralNames.count:
		return line{of: wholeOf, most: mostShare}, true
	case neutralNames.memory:
		return line{of: memoryOf, most: mostShare}, true
	case neutralNames.cores:
		return line{of: computeOf, most: mostShare}, true
	}
	for _, n := range vendorNames {
		l := line{vendor: n.vendor, most: mostShare}
		if n.oneOfSeveral() {
			l.plugin = n.count
		}
		switch name {
		case "": // a name that a form does not have
		case n.count:
			l.of = devicesOf
		case n.memory:
			l.of, l.most = memoryOf, mostShare*max(1, n.unit)
		case n.cores, n.coresAlias:
			l.of, l.most = computeOf, mostShare*mostShare/cmp.Or(n.full, mostShare)
		}
		if l.of != nil {
			return l, true
		}
	}
	return line{}, false
}

// oneOfSeveral reports whether the vendor has other forms besides.
func (n names) oneOfSeveral() bool {
	return slices.ContainsFunc(vendorNames, func(o names) bool { return o.vendor == n.vendor && o.count != n.count })
}

// judgeQuotas checks that nobody holds more than any limit, but for those who
// held it before.
func (b *books) judgeQuotas() {
	for _, l := range b.lines {
		var sum int64
		var pods []string
		late := false
		for _, bill := range b.bills {
			if n := l.counts(bill); n > 0 {
				sum += n
				pods = append(pods, bill.pod)
				late = late || !b.before[bill.pod]
			}
		}
		if sum > l.most && late {
			b.say("%s: %d of %d are held by %s", l.name, sum, l.most, strings.Join(pods, ", "))
		}
	}
}

// bears reports whether one more bill keeps within all limits that it adds to.
func (b *books) bears(more bill) bool {
	for _, l := range b.lines {
		sum := l.counts(more)
		if sum == 0 {
			continue
		}
		for _, bill := range b.bills {
			sum += l.counts(bill)
		}
		if sum > l.most {
			return false
		}
	}
	return true
}
