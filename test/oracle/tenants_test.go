package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tenant is one that claims these namespaces.
func tenant(name string, groups []string, namespaces ...string) (t Tenant) {
	t.Metadata.Name, t.Spec.SharingGroups, t.Spec.Namespaces.Names = name, groups, namespaces
	return t
}

// idle is a tenant whose new pods get nothing.
func idle(t Tenant) Tenant {
	t.Spec.Active = new(bool)
	return t
}

// selecting is a tenant that claims what has the label as well.
func selecting(t Tenant, key, value string) Tenant {
	t.Spec.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return t
}

func labelled(name, key, value string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value}}}
}

// slice is a pod of a tenant with a slice of card a.
func slice(namespace, name, owner string) *build {
	b := newPod(namespace, name).ask(app, limits(sliceMemory, 100), part("a", 100, 1))
	b.alloc.Tenant = owner
	return b.on("n1")
}

func TestCheckNeighbours(t *testing.T) {
	g, h := []string{"g"}, []string{"h"}
	tests := map[string]struct {
		world  World
		before []string
		want   []string
	}{
		"two namespaces of one tenant": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x", "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "blue"))}},
		"two tenants of one group": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("red", []string{"other", "g"}, "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "red"))}},
		"two tenants of different groups": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("red", h, "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "red"))},
			want: []string{`node n1: card a: is shared by x/p of "blue" and y/q of "red"`}},
		"two tenants without a group": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x"), tenant("red", nil, "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "red"))},
			want: []string{`node n1: card a: is shared by x/p of "blue" and y/q of "red"`}},
		"a third between two": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("green", []string{"g", "h"}, "y"), tenant("red", h, "z")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "green"), slice("z", "r", "red"))},
			want: []string{`node n1: card a: is shared by x/p of "blue" and z/r of "red"`}},
		"a tenant and a namespace of its name": {
			world: World{
				Tenants: []Tenant{tenant("y", nil, "x")},
				Pods:    pods(slice("x", "p", "y"), slice("y", "q", "namespace/y"))},
			want: []string{`node n1: card a: is shared by x/p of "y" and y/q of "namespace/y"`}},
		"two pods of a namespace of two tenants": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("red", g, "x")},
				Pods:    pods(slice("x", "p", ""), slice("x", "q", ""))},
			want: []string{`node n1: card a: is shared by x/p of "" and x/q of ""`}},
		"a pod of a namespace of two tenants, alone": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("red", g, "x")},
				Pods:    pods(slice("x", "p", ""))}},
		"one by label, one by selector": {
			world: World{
				Tenants:    []Tenant{tenant("blue", g), selecting(tenant("red", g), "team", "red")},
				Namespaces: []corev1.Namespace{labelled("x", tenantLabel, "blue"), labelled("y", "team", "red")},
				Pods:       pods(slice("x", "p", "blue"), slice("y", "q", "red"))}},
		"claimed by name and by another's label": {
			world: World{
				Tenants:    []Tenant{tenant("blue", nil, "x"), tenant("red", nil)},
				Namespaces: []corev1.Namespace{labelled("x", tenantLabel, "red")},
				Pods:       pods(slice("x", "p", "blue"))},
			want: []string{`pod x/p: tenant is "", recorded as "blue"`}},
		"claimed twice by one tenant": {
			world: World{
				Tenants:    []Tenant{tenant("blue", nil, "x")},
				Namespaces: []corev1.Namespace{labelled("x", tenantLabel, "blue")},
				Pods:       pods(slice("x", "p", "blue"), slice("x", "q", "blue"))}},
		"a label that leads nowhere": {
			world: World{
				Namespaces: []corev1.Namespace{labelled("x", tenantLabel, "nobody")},
				Pods:       pods(slice("x", "p", ""))},
			want: []string{"pod x/p: its tenant is inactive"}},
		"an inactive tenant": {
			world: World{
				Tenants: []Tenant{idle(tenant("blue", nil, "x"))},
				Pods:    pods(slice("x", "p", "blue"))},
			want: []string{"pod x/p: its tenant is inactive"}},
		"inactive by one of two": {
			world: World{
				Tenants: []Tenant{idle(tenant("blue", nil, "x")), tenant("red", nil, "x")},
				Pods:    pods(slice("x", "p", ""))},
			want: []string{"pod x/p: its tenant is inactive"}},
		"inactive since": {
			world: World{
				Tenants: []Tenant{idle(tenant("blue", nil, "x"))},
				Pods:    pods(slice("x", "p", "blue"))},
			before: []string{"x/p"}},
		"recorded for another": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x")},
				Pods:    pods(slice("x", "p", "namespace/x"))},
			want: []string{`pod x/p: tenant is "blue", recorded as "namespace/x"`}},
		"moved since": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x")},
				Pods:    pods(slice("x", "p", "namespace/x"))},
			before: []string{"x/p"}},
		"a group that has ended since": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x"), tenant("red", nil, "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "red"))},
			before: []string{"x/p", "y/q"}},
		"who came after the end of a group": {
			world: World{
				Tenants: []Tenant{tenant("blue", nil, "x"), tenant("red", nil, "y")},
				Pods:    pods(slice("x", "p", "blue"), slice("y", "q", "red"), slice("y", "new", "red"))},
			before: []string{"x/p", "y/q"},
			want:   []string{`node n1: card a: is shared by x/p of "blue" and y/new of "red"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.world.Nodes = world()
			if diff := cmp.Diff(tc.want, tc.world.Check(tc.before...)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// A node may be kept for a Tenant, or for a namespace where no Tenant has the name.
func TestCheckKeptNodes(t *testing.T) {
	kept := func(p *build, label string) World {
		w := World{Nodes: world(), Tenants: []Tenant{tenant("blue", []string{"g"}, "x"), tenant("red", []string{"g"}, "z")}, Pods: pods(p)}
		w.Nodes[0].Labels = map[string]string{tenantLabel: label}
		return w
	}
	tests := map[string]struct {
		world  World
		before []string
		want   []string
	}{
		"its tenant":              {world: kept(slice("x", "p", "blue"), "blue")},
		"its namespace":           {world: kept(slice("y", "p", "namespace/y"), "y")},
		"another tenant":          {world: kept(slice("y", "p", "namespace/y"), "blue"), want: []string{"pod y/p: node n1 is kept for blue"}},
		"another tenant's friend": {world: kept(slice("z", "p", "red"), "blue"), want: []string{"pod z/p: node n1 is kept for blue"}},
		"a namespace of a Tenant": {world: kept(slice("x", "p", "blue"), "x"), want: []string{"pod x/p: node n1 is kept for x"}},
		"kept since":              {world: kept(slice("y", "p", "namespace/y"), "blue"), before: []string{"y/p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.world.Check(tc.before...)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoomByTenant(t *testing.T) {
	g, h := []string{"g"}, []string{"h"}
	full := []*build{ // of the four cards of n1 only a has room for a slice
		newPod("f", "1").ask(app, limits(wholeCards, 1), whole("b")).on("n1"),
		newPod("f", "2").ask(app, limits(wholeCards, 1), whole("d")).on("n1"),
	}
	on := func(more ...*build) []corev1.Pod { return pods(append(more, full...)...) }
	tests := map[string]struct {
		world World
		kept  string
		want  []string
	}{
		"beside its own": {
			world: World{Pods: on(slice("x", "p", "namespace/x"))}, want: []string{"n1"}},
		"beside another": {
			world: World{Pods: on(slice("y", "p", "namespace/y"))}},
		"beside a friend": {
			world: World{Tenants: []Tenant{tenant("blue", g, "x"), tenant("red", g, "y")}, Pods: on(slice("y", "p", "red"))}, want: []string{"n1"}},
		"beside a friend and a stranger": {
			world: World{
				Tenants: []Tenant{tenant("blue", g, "x"), tenant("green", []string{"g", "h"}, "y"), tenant("red", h, "z")},
				Pods:    on(slice("y", "p", "green"), slice("z", "q", "red"))}},
		"where strangers are together": {
			world: World{
				Tenants: []Tenant{tenant("blue", []string{"g", "h"}, "x"), tenant("green", g, "y"), tenant("red", h, "z")},
				Pods:    on(slice("y", "p", "green"), slice("z", "q", "red"))}},
		"inactive": {
			world: World{Tenants: []Tenant{idle(tenant("blue", g, "x"))}, Pods: on()}},
		"kept for it":    {world: World{Pods: on()}, kept: "x", want: []string{"n1"}},
		"kept for other": {world: World{Pods: on()}, kept: "y"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.world.Nodes = world()
			if tc.kept != "" {
				tc.world.Nodes[0].Labels = map[string]string{tenantLabel: tc.kept}
			}
			got := tc.world.Room(newPod("x", "new").ask(app, limits(sliceMemory, 50)).pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes with room (-want +got):\n%s", diff)
			}
		})
	}
}
