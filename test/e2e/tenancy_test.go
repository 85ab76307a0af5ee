package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/oracle"
)

// tenantKey on a namespace says whose it is, on a node whom it is kept for.
const tenantKey = ours + "tenant"

// in is the scene in another namespace of the test's own.
func (s *scene) in(name string) *scene {
	s.Helper()
	other := *s
	other.ns = s.ns + "-" + name
	s.must("namespace", s.Namespace(s.ctx, other.ns))
	return &other
}

// claiming is a Tenant that has these namespaces and these groups.
func claiming(groups []string, namespaces ...*scene) v1alpha1.TenantSpec {
	spec := v1alpha1.TenantSpec{SharingGroups: groups}
	for _, s := range namespaces {
		spec.Namespaces.Names = append(spec.Namespaces.Names, s.ns)
	}
	return spec
}

// tenant makes a Tenant, or makes another of the one there is, and waits until the
// scheduler goes by it.
func (s *scene) tenant(name string, spec v1alpha1.TenantSpec) {
	s.Helper()
	now, err := s.tenants().Get(s.ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = s.tenants().Create(s.ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil:
		now.Spec = spec
		_, err = s.tenants().Update(s.ctx, now, metav1.UpdateOptions{})
	}
	s.must("write Tenant "+name, err)
	s.status(name, "to be followed", func(t *v1alpha1.Tenant) error {
		if t.Status.ObservedGeneration != t.Generation {
			return fmt.Errorf("generation %d is followed, %d is there", t.Status.ObservedGeneration, t.Generation)
		}
		return nil
	})
}

// status waits until check is content with the Tenant.
func (s *scene) status(name, what string, check func(*v1alpha1.Tenant) error) {
	s.Helper()
	s.eventually("Tenant "+name+" "+what, func() error {
		t, err := s.tenants().Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(t)
	})
}

// judged waits until a condition of the Tenant is false for that reason, or true
// if there is none, and returns what it says.
func (s *scene) judged(name, condition, reason string) (message string) {
	s.Helper()
	s.status(name, "to be judged", func(t *v1alpha1.Tenant) error {
		c := meta.FindStatusCondition(t.Status.Conditions, condition)
		if c == nil || (c.Status == metav1.ConditionTrue) != (reason == "") || reason != "" && c.Reason != reason {
			return fmt.Errorf("%s is %+v, want reason %q", condition, c, reason)
		}
		message = c.Message
		return nil
	})
	return message
}

// label sets a label of the scene's namespace; an empty value takes it off.
func (s *scene) label(value string) {
	s.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, tenantKey, text)
	_, err := s.Client.CoreV1().Namespaces().Patch(s.ctx, s.ns, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must("label the namespace", err)
}

// says waits until an event of ours on the pod has all the words, and returns it.
func (s *scene) says(pod string, words ...string) (text string) {
	s.Helper()
	s.eventually("an event on "+pod, func() error {
		told := s.told(s.pod(pod))
		for _, text = range told {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
				return nil
			}
		}
		return fmt.Errorf("none of %q says %q", told, words)
	})
	return text
}

// verifyBut lets the oracle judge, who knows that these pods were bound under
// other rules.
func (s *scene) verifyBut(before ...*corev1.Pod) {
	s.Helper()
	var names []string
	for _, p := range before {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	wrong, err := oracle.Verify(s.ctx, s.Client, names...)
	s.must("oracle", err)
	if len(wrong) > 0 {
		s.Errorf("the oracle complains:\n%s", strings.Join(wrong, "\n"))
	}
}

// stay sees that the pods run on for a while.
func (s *scene) stay(d time.Duration, pods ...*corev1.Pod) {
	s.Helper()
	s.meanwhile(d, "pods that run", func() error {
		for _, p := range pods {
			now, err := s.Client.CoreV1().Pods(p.Namespace).Get(s.ctx, p.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if now.Status.Phase != corev1.PodRunning || now.DeletionTimestamp != nil || now.UID != p.UID {
				return fmt.Errorf("%s/%s is %s, deleted at %v", p.Namespace, p.Name, now.Status.Phase, now.DeletionTimestamp)
			}
		}
		return nil
	})
}

// slice is a pod with a small part of a card.
func slice(name string) *corev1.Pod { return podFor(name, amount{sliceMemory, 10000}) }

// TestNeighbours has one card and three tenants, of which the second is in a group
// with the first and in another with the third: the first and the third are never
// on it together, whoever comes between them. That is said, with how many cards
// are closed, and it is another thing than a full card.
func TestNeighbours(t *testing.T) {
	s := begin(t, defaults)
	blue, green, red, alone := s.in("blue"), s.in("green"), s.in("red"), s.in("alone")
	s.tenant("blue", claiming([]string{"warm"}, blue))
	s.tenant("green", claiming([]string{"warm", "cold"}, green))
	s.tenant("red", claiming([]string{"cold"}, red))
	s.add(ofNvidia("neighbours", 1))
	blue.create(slice("first"))
	blue.runs("first")
	red.create(slice("stranger"))
	red.refusedFor("stranger", "NoTenantEligibleGPU")
	judgeCondition(t, condition(red.pod("stranger")))
	t.Log(red.says("stranger", "1 NoTenantEligibleGPU (", "1 card"))
	green.create(slice("between"))
	green.runs("between")
	s.verify()

	green.create(podFor("large", amount{sliceMemory, 70000}))
	green.refusedFor("large", "InsufficientGPUMemory")
	alone.create(podFor("whole", amount{wholeCards, 1}), slice("nobody"))
	alone.refusedFor("whole", "InsufficientGPUCount") // whoever waits for a free card waits for no tenant
	alone.refusedFor("nobody", "NoTenantEligibleGPU")
	s.meanwhile(2*time.Second, "a third between two", func() error { return errors.Join(red.waits("stranger"), alone.waits("nobody")) })

	blue.remove("first", false)
	red.runs("stranger")
	s.verify()
	if err := alone.waits("nobody"); err != nil {
		t.Error(err)
	}
}

// TestRulesThatChange ends, in each way there is, what lets two tenants share the
// card that they are on: it is told of, nobody is ended, and nobody new comes. When
// it is put back, who waits comes.
func TestRulesThatChange(t *testing.T) {
	s := begin(t, defaults)
	tests := map[string]struct {
		arrange, part, mend func(s, a, b *scene)
		tenants             []string // that are told of it
	}{
		"group": {
			arrange: func(s, a, b *scene) {
				s.tenant("left", claiming([]string{"lr"}, a))
				s.tenant("right", claiming([]string{"other", "lr"}, b))
			},
			part:    func(s, a, b *scene) { s.tenant("right", claiming([]string{"other"}, b)) },
			mend:    func(s, a, b *scene) { s.tenant("right", claiming([]string{"lr"}, b)) },
			tenants: []string{"left", "right"},
		},
		"deleted": {
			arrange: func(s, a, b *scene) { s.tenant("both", claiming(nil, a, b)) },
			part:    func(s, _, _ *scene) { s.must("delete", s.tenants().Delete(s.ctx, "both", metav1.DeleteOptions{})) },
			mend:    func(s, a, b *scene) { s.tenant("both", claiming(nil, a, b)) },
		},
		"moved": {
			arrange: func(s, a, b *scene) {
				s.tenant("from", claiming(nil))
				s.tenant("to", claiming(nil))
				a.label("from")
				b.label("from")
			},
			part:    func(_, _, b *scene) { b.label("to") },
			mend:    func(_, _, b *scene) { b.label("from") },
			tenants: []string{"from", "to"},
		},
	}
	for name, tc := range tests {
		s.part(name, func(s *scene) {
			a, b, node := s.in(name+"-a"), s.in(name+"-b"), "change-"+name
			tc.arrange(s, a, b)
			s.add(ofNvidia(node, 1))
			a.create(slice("p"))
			p := a.runs("p")
			b.create(slice("q"))
			q := b.runs("q")
			s.verify()

			tc.part(s, a, b)
			s.eventually("an event on the node", func() error { return s.toldOfNeighbours(node, "TenantBoundaryViolated", a.ns+"/p", b.ns+"/q") })
			s.dividedCards(1)
			for _, tenant := range tc.tenants {
				s.Log(s.judged(tenant, v1alpha1.TenantCardsSeparated, v1alpha1.TenantReasonSharedAcrossBoundary))
			}
			a.create(slice("new"))
			b.create(slice("new"))
			a.refusedFor("new", "NoTenantEligibleGPU")
			b.refusedFor("new", "NoTenantEligibleGPU")
			s.stay(time.Second, p, q)
			s.verifyBut(p, q)

			tc.mend(s, a, b)
			a.runs("new")
			b.runs("new")
			s.stay(0, p, q)
			s.verify()
			s.eventually("the end of it on the node", func() error { return s.toldOfNeighbours(node, "TenantBoundaryRestored") })
			s.dividedCards(0)
			for _, tenant := range tc.tenants {
				s.judged(tenant, v1alpha1.TenantCardsSeparated, "")
			}
		})
	}
}

// toldOfNeighbours returns nil once an event of that reason on the node has all the
// names.
func (s *scene) toldOfNeighbours(node, reason string, names ...string) error {
	told := s.toldOn(node)
	for _, text := range told {
		missing := slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(text, name) })
		if strings.HasPrefix(text, reason+": ") && !missing {
			s.Log(text)
			return nil
		}
	}
	return fmt.Errorf("node %s was told %q", node, told)
}

// dividedCards waits until the scheduler counts so many cards whose holders may not
// be together.
func (s *scene) dividedCards(want int) {
	s.Helper()
	s.eventually("the number of divided cards", func() error {
		text, err := s.metrics()
		if line := fmt.Sprintf("\nheteroflow_divided_cards %d\n", want); err == nil && !strings.Contains(text, line) {
			err = fmt.Errorf("it is not %d", want)
		}
		return err
	})
}

func (s *scene) metrics() (string, error) {
	answer, err := http.Get(s.MetricsURL())
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// TestNamespaceOfTwoTenants: pods of a namespace that two Tenants claim share with
// nobody, not even with each other. It is told of, and ends when one lets go.
func TestNamespaceOfTwoTenants(t *testing.T) {
	s := begin(t, defaults)
	torn, blue := s.in("torn"), s.in("blue")
	s.tenant("blue", claiming([]string{"g"}, torn, blue))
	s.tenant("red", claiming([]string{"g"}, torn))
	s.add(ofNvidia("torn", 2))
	torn.create(slice("one"), slice("two"))
	one, two := torn.runs("one"), torn.runs("two")
	if cards := cardsByContainer(t, one)["main"]; slices.Equal(cards, cardsByContainer(t, two)["main"]) {
		t.Errorf("both are on %v", cards)
	}
	torn.create(slice("three"))
	blue.create(slice("own"))
	torn.refusedFor("three", "NoTenantEligibleGPU")
	blue.refusedFor("own", "NoTenantEligibleGPU")
	for _, tenant := range []string{"blue", "red"} {
		if text := s.judged(tenant, v1alpha1.TenantNamespacesResolved, v1alpha1.TenantReasonClaimedTwice); !strings.Contains(text, torn.ns) {
			t.Errorf("%s is told %q, which does not name the namespace", tenant, text)
		}
		s.eventually("an event on Tenant "+tenant, func() error { return s.toldOnTenant(tenant, "NamespaceClaimedTwice", torn.ns) })
	}
	s.verify()

	s.tenant("red", claiming([]string{"g"}))
	torn.runs("three")
	blue.runs("own")
	s.verifyBut(one, two)
	s.judged("blue", v1alpha1.TenantNamespacesResolved, "")
}

// toldOnTenant returns nil once the Tenant has an event of that reason with the words.
func (s *scene) toldOnTenant(name, reason, words string) error {
	l, err := s.Client.CoreV1().Events(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Tenant,involvedObject.name=" + name + ",reason=" + reason,
	})
	s.must("list events", err)
	for _, e := range l.Items {
		if strings.Contains(e.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("none of %d events %s of Tenant %s says %q", len(l.Items), reason, name, words)
}

// TestKeptNodes: a node that is kept for a tenant takes nobody else's pods, of a
// group with it or not. Kept for a namespace, it takes that one's.
func TestKeptNodes(t *testing.T) {
	s := begin(t, defaults)
	blue, red, alone := s.in("blue"), s.in("red"), s.in("alone")
	s.tenant("blue", claiming([]string{"g"}, blue))
	s.tenant("red", claiming([]string{"g"}, red))
	kept := func(name, label string, cards int) {
		node := ofNvidia(name, cards)
		node.Labels = map[string]string{tenantKey: label}
		s.add(node)
	}
	kept("kept-blue", "blue", 2)
	red.create(podFor("other", amount{wholeCards, 1}))
	red.refusedFor("other", "TenantNodeMismatch")
	blue.create(podFor("own", amount{wholeCards, 1}))
	blue.runs("own")
	alone.create(podFor("own", amount{wholeCards, 1}))
	alone.refusedFor("own", "TenantNodeMismatch")

	kept("kept-alone", alone.ns, 1)
	if p := alone.runs("own"); p.Spec.NodeName != "kept-alone" {
		t.Errorf("a pod of the namespace is on %s", p.Spec.NodeName)
	}
	if err := red.waits("other"); err != nil {
		t.Error(err)
	}
	s.verify()
	_, err := s.Client.CoreV1().Nodes().Patch(s.ctx, "kept-blue", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, tenantKey), metav1.PatchOptions{})
	s.must("open the node", err)
	red.runs("other")
	s.verify()
}

// TestInactiveTenants: new pods of a tenant that is not active wait, and so do
// those of a namespace whose label names a Tenant that is not there. When that
// changes they run soon; who runs is left alone.
func TestInactiveTenants(t *testing.T) {
	s := begin(t, defaults)
	idle, lost := s.in("idle"), s.in("lost")
	off := claiming(nil, idle)
	off.Active = new(bool)
	s.tenant("idle", off)
	lost.label("nobody-yet")
	s.add(ofNvidia("idle", 4))
	idle.create(podFor("waits", amount{wholeCards, 1}), podOf("processor-alone", container("main")))
	lost.create(podFor("waits", amount{wholeCards, 1}))
	idle.refusedFor("waits", "TenantInactive")
	lost.refusedFor("waits", "TenantInactive")
	idle.runs("processor-alone")

	began := time.Now()
	s.tenant("idle", claiming(nil, idle))
	p := idle.runs("waits")
	t.Logf("%s after the tenant was made active its pod runs", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	s.tenant("nobody-yet", claiming(nil))
	lost.runs("waits")
	t.Logf("%s after the Tenant was made the pod runs", time.Since(began).Round(time.Millisecond))
	s.verify()

	s.tenant("idle", off)
	idle.create(podFor("late", amount{wholeCards, 1}))
	idle.refusedFor("late", "TenantInactive")
	s.stay(time.Second, p)
	s.verifyBut(p)
}
