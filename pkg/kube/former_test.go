package kube

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// claimedBy is a namespace that says whose it is, unless tenant is "".
func claimedBy(uid types.UID, name, tenant string) *corev1.Namespace {
	n := newNamespace(name, nil)
	if n.UID = uid; tenant != "" {
		n.Labels = map[string]string{codec.TenantLabel: tenant}
	}
	return n
}

// delete takes the namespace away.
func (s *statutes) delete(name string) {
	if err := s.store["Namespace"].Delete(newNamespace(name, nil)); err != nil {
		panic(err)
	}
	s.look()
}

// holds has the pod hold a card in the namespace, and lingers until then.
func (s *statutes) holds(pod gpu.PodID, namespace string, until time.Time) {
	s.ledger.Confirm(gpu.Placement{Pod: pod, Namespace: namespace, Name: string(pod), Node: "n1", Grants: []gpu.Grant{{
		Container: "main", Shares: []gpu.Share{{Card: "GPU-a", Vendor: gpu.Nvidia, Memory: 100}},
	}}})
	s.ledger.Linger(pod, until)
}

// view is what the ledger goes by about namespace ns and the pod that lingers there.
type view struct {
	Owner, Holder gpu.TenantID
	Closed        gpu.Reason
	Red, Blue     int64 // devices that they are charged for
}

func (s *statutes) view() (v view) {
	in := s.ledger.Snapshot()
	v.Owner, v.Closed = in.Owner("ns")
	h, _ := s.ledger.Hold("p")
	v.Holder = h.Tenant
	devices := gpu.Limit{}
	v.Red, v.Blue = devices.Of(in.Spent("tenant/red")), devices.Of(in.Spent("tenant/blue"))
	return v
}

// A namespace is deleted while a pod of it lingers for a minute; what comes then is
// seen a moment later, and what is left when the minute is over.
func TestANamespaceThatHasGoneStaysAsItWas(t *testing.T) {
	asItWas := view{Owner: "red", Holder: "red", Red: 1}
	gone := view{Closed: gpu.TenantInactive}
	tests := map[string]struct {
		first, then *corev1.Namespace // nil: it stays away
		want, after view
	}{
		"it is not made anew":         {claimedBy("1", "ns", "red"), nil, asItWas, gone},
		"it is made anew":             {claimedBy("1", "ns", "red"), claimedBy("2", "ns", "red"), asItWas, view{Owner: "red"}},
		"by another tenant":           {claimedBy("1", "ns", "red"), claimedBy("2", "ns", "blue"), view{Red: 1, Blue: 1}, view{Owner: "blue"}},
		"by nobody":                   {claimedBy("1", "ns", "red"), claimedBy("2", "ns", ""), view{Red: 1}, view{Owner: "namespace/ns"}},
		"it was nobody's":             {claimedBy("1", "ns", ""), claimedBy("2", "ns", "blue"), view{Blue: 1}, view{Owner: "blue"}},
		"it was, and stays nobody's":  {claimedBy("1", "ns", ""), claimedBy("2", "ns", ""), view{Owner: "namespace/ns", Holder: "namespace/ns"}, view{Owner: "namespace/ns"}},
		"another namespace is made":   {claimedBy("1", "ns", "red"), claimedBy("2", "other", "blue"), asItWas, gone},
		"one that is as it was there": {claimedBy("1", "ns", "red"), claimedBy("1", "ns", "blue"), view{Owner: "blue", Holder: "blue", Blue: 1}, view{Owner: "blue"}}, // only its label is another
	}
	for name, tc := range tests {
		for how, apart := range map[string]time.Duration{"together": 0, "apart": 10 * time.Second} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStatutes(newTenant("red", 1, nil), newTenant("blue", 1, nil), tc.first)
					running(t, s, func() {
						s.holds("p", "ns", time.Now().Add(time.Minute))
						if tc.then == nil || tc.then.UID != tc.first.UID {
							s.delete("ns")
							time.Sleep(apart)
						}
						if tc.then != nil {
							s.put(tc.then)
						}
						time.Sleep(time.Second)
						synctest.Wait()
						if diff := cmp.Diff(tc.want, s.view()); diff != "" {
							t.Errorf("while the pod lingers (-want +got):\n%s", diff)
						}
						time.Sleep(time.Minute)
						s.ledger.Expire(time.Now())
						time.Sleep(2 * time.Second)
						synctest.Wait()
						if diff := cmp.Diff(tc.after, s.view()); diff != "" {
							t.Errorf("after its end (-want +got):\n%s", diff)
						}
					})
				})
			})
		}
	}
}

// What pods of the new namespace hold keeps nothing of the old one.
func TestANewNamespaceHasItsNameSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatutes(newTenant("red", 1, nil), newTenant("blue", 1, nil), claimedBy("1", "ns", "red"))
		running(t, s, func() {
			s.holds("p", "ns", time.Now().Add(time.Minute))
			s.put(claimedBy("2", "ns", "blue"))
			time.Sleep(time.Second)
			s.holds("new", "ns", time.Now().Add(time.Hour))
			s.ledger.Release("p")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if diff := cmp.Diff(view{Owner: "blue", Blue: 1}, s.view()); diff != "" {
				t.Errorf("after the end of the old pod (-want +got):\n%s", diff)
			}
		})
	})
}

// Nothing is read anew as long as everything goes on.
func TestWhatLingersCostsNoLaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatutes(newTenant("red", 1, nil), claimedBy("1", "ns", "red"), claimedBy("2", "quiet", "red"))
		running(t, s, func() {
			s.holds("p", "ns", time.Now().Add(time.Hour))
			s.delete("ns")
			s.delete("quiet")
			time.Sleep(time.Second)
			synctest.Wait()
			before := len(s.made())
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := len(s.made()) - before; got > 0 {
				t.Errorf("%d laws while a pod lingers", got)
			}
			if got := len(s.former.left); got != 1 {
				t.Errorf("%d namespaces are kept, want one", got)
			}
		})
	})
}

// A namespace that has gone and come is told of as a change of one.
func TestAnotherNamespaceOfTheNameIsLookedAt(t *testing.T) {
	r := newStatutes().Rules
	h := rulesHandler(r, sameNamespace)
	was := claimedBy("1", "ns", "red")
	for uid, want := range map[types.UID]bool{"1": false, "2": true} {
		h.OnUpdate(was, claimedBy(uid, "ns", "red"))
		select {
		case <-r.news:
			if !want {
				t.Error("the same one is looked at")
			}
		default:
			if want {
				t.Error("another one is not looked at")
			}
		}
	}
}
