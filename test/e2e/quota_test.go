package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// limitedTo gives the Tenant a limit of cards.
func limitedTo(cards int64, spec v1alpha1.TenantSpec) v1alpha1.TenantSpec {
	spec.Quota = &v1alpha1.TenantQuota{Cards: &v1alpha1.TenantAmount{Limit: &cards}}
	return spec
}

// boundIn are the pods of these namespaces that have a node, and those that wait.
func (s *scene) boundIn(namespaces ...*scene) (bound, waiting []corev1.Pod) {
	s.Helper()
	for _, p := range s.pods() {
		switch ours := slices.ContainsFunc(namespaces, func(o *scene) bool { return o.ns == p.Namespace }); {
		case !ours:
		case p.Spec.NodeName != "":
			bound = append(bound, p)
		default:
			waiting = append(waiting, p)
		}
	}
	return bound, waiting
}

// holdExactly waits until the namespaces have as many pods with nodes, and all
// others have been refused with QuotaExceeded alone.
func (s *scene) holdExactly(want int, namespaces ...*scene) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d pods with cards", want), func() error {
		bound, waiting := s.boundIn(namespaces...)
		for _, p := range waiting {
			if got := codesIn(condition(&p)); !slices.Equal(got, []string{"QuotaExceeded"}) {
				return fmt.Errorf("%s/%s is told %v", p.Namespace, p.Name, got)
			}
		}
		if len(bound) != want {
			return fmt.Errorf("%d have cards", len(bound))
		}
		return nil
	})
}

// keepTo sees that the namespaces have no more pods with nodes for a while.
func (s *scene) keepTo(want int, namespaces ...*scene) {
	s.Helper()
	s.meanwhile(2*time.Second, "pods at their limit", func() error {
		if bound, _ := s.boundIn(namespaces...); len(bound) != want {
			return fmt.Errorf("%d pods have cards, want %d", len(bound), want)
		}
		return nil
	})
	s.verify()
}

// burstOf are pods of all kinds, a card each, in the namespaces by turns.
func burstOf(n int, namespaces ...*scene) []*corev1.Pod {
	shapes := [][]amount{
		{{wholeCards, 1}}, {{sliceMemory, 8000}}, {{vendorCards, 1}, {vendorMemory, 4000}}, {{vendorCards, 1}}, {{sliceCores, 20}},
	}
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = podFor(fmt.Sprintf("p-%d", i), shapes[i%len(shapes)]...)
		pods[i].Namespace = namespaces[i%len(namespaces)].ns
	}
	return pods
}

// TestTenantQuotaInABurst throws 30 pods of three namespaces at a limit of 7 that
// their Tenant has for all of them, where there are cards for all. Exactly 7 run, the
// others are told whose limit it is, and each that ends lets one more in.
func TestTenantQuotaInABurst(t *testing.T) {
	const most = 7
	s := begin(t, defaults)
	teams := []*scene{s.in("a"), s.in("b"), s.in("c")}
	s.tenant("many", limitedTo(most, claiming(nil, teams...)))
	s.add(ofNvidia("burst-0", 16), ofNvidia("burst-1", 16))
	s.create(burstOf(30, teams...)...)
	s.holdExactly(most, teams...)
	s.keepTo(most, teams...)
	bound, waiting := s.boundIn(teams...)
	judgeCondition(t, condition(&waiting[0]))
	team := *s
	team.ns = waiting[0].Namespace
	t.Log(team.says(waiting[0].Name, "2 QuotaExceeded (cards of Tenant many: 7 of 7 used, 1 asked)"))
	s.used("many", most)

	for _, p := range bound[:2] {
		s.must("delete", s.Client.CoreV1().Pods(p.Namespace).Delete(s.ctx, p.Name, metav1.DeleteOptions{}))
	}
	s.eventually("two to leave", func() error {
		if now, _ := s.boundIn(teams...); slices.ContainsFunc(now, func(p corev1.Pod) bool { return p.UID == bound[0].UID || p.UID == bound[1].UID }) {
			return errors.New("they are there")
		}
		return nil
	})
	s.holdExactly(most, teams...)
	s.keepTo(most, teams...)
}

// used waits until the Tenant is shown with so many cards, where kubectl shows it.
func (s *scene) used(tenant string, cards int64) {
	s.Helper()
	ours := s.ourKinds().HeteroflowV1alpha1().RESTClient()
	s.eventually("the table of Tenants", func() error {
		raw, err := ours.Get().Resource(v1alpha1.TenantResource).Name(tenant).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(s.ctx).Raw()
		if err != nil {
			return err
		}
		var table metav1.Table
		if err := json.Unmarshal(raw, &table); err != nil {
			return err
		}
		at := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Cards" })
		if got := table.Rows[0].Cells[at]; got != float64(cards) {
			return fmt.Errorf("it shows %v cards, want %d", got, cards)
		}
		return nil
	})
}

// TestTenantQuotaOfReplicas is the same with two replicas, of which the one that
// decides is killed in the middle of the burst.
func TestTenantQuotaOfReplicas(t *testing.T) {
	const most = 7
	f := beginFleet(t)
	teams := []*scene{f.in("a"), f.in("b"), f.in("c")}
	first := f.start("first", electing(quick))
	f.leads(first)
	f.tenant("several", limitedTo(most, claiming(nil, teams...)))
	f.start("second", electing(quick))
	f.schedules()
	f.add(ofNvidia("replicas-0", 16), ofNvidia("replicas-1", 16))
	created := make(chan error, 1)
	go func() { created <- f.burst(burstOf(30, teams...)) }()
	f.eventually("some pods", func() error { return f.bound(most / 2) })
	first.Kill()
	f.must("create", <-created)
	f.holdExactly(most, teams...)
	f.keepTo(most, teams...)
}

// resourceQuota makes one in the scene's namespace, and waits until both Kubernetes
// and the scheduler go by it.
func (s *scene) resourceQuota(hard map[string]string) {
	s.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "cards"}}
	q.Spec.Hard = corev1.ResourceList{}
	for name, amount := range hard {
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	_, err := s.Client.CoreV1().ResourceQuotas(s.ns).Create(s.ctx, q, metav1.CreateOptions{})
	s.must("create a quota", err)
	s.eventually("the quota to be followed", func() error {
		now, err := s.Client.CoreV1().ResourceQuotas(s.ns).Get(s.ctx, q.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(now.Spec.Hard, now.Status.Hard); diff != "" {
			return errors.New(diff)
		}
		if s.count("heteroflow_resourcequota_limit", fmt.Sprintf("namespace=%q", s.ns)) == 0 {
			return errors.New("the scheduler does not tell of it")
		}
		return nil
	})
}

// TestResourceQuotas creates three pods in the same instant where two are allowed,
// in all the spellings of a limit: bare, with limits. and with requests., which
// Kubernetes counts too, but not times the devices. A percentage and a whole card
// are counted in full from the start.
func TestResourceQuotas(t *testing.T) {
	s := begin(t, defaults)
	tests := map[string]struct {
		hard  map[string]string
		asks  []amount
		words string
	}{
		"bare":            {map[string]string{"nvidia.com/gpu": "2"}, []amount{{vendorCards, 1}}, "nvidia.com/gpu of ResourceQuota %s/cards: 2 of 2 used, 1 asked"},
		"limits":          {map[string]string{"limits.nvidia.com/gpu": "5"}, []amount{{vendorCards, 2}, {vendorMemory, 1000}}, "limits.nvidia.com/gpu of ResourceQuota %s/cards: 4 of 5 used, 2 asked"},
		"requests":        {map[string]string{"requests.nvidia.com/gpumem": "40000"}, []amount{{vendorCards, 2}, {vendorMemory, 10000}}, "requests.nvidia.com/gpumem of ResourceQuota %s/cards: 40000 of 40000 used, 20000 asked"},
		"neutral-memory":  {map[string]string{"heteroflow.io/gpu-memory": "25000"}, []amount{{sliceMemory, 10000}}, "heteroflow.io/gpu-memory of ResourceQuota %s/cards: 20000 of 25000 used, 10000 asked"},
		"neutral-compute": {map[string]string{"limits.heteroflow.io/gpu-cores": "50"}, []amount{{sliceMemory, 1000}, {sliceCores, 25}}, "limits.heteroflow.io/gpu-cores of ResourceQuota %s/cards: 50 of 50 used, 25 asked"},
		"percentage":      {map[string]string{"nvidia.com/gpumem": "80000"}, []amount{{vendorCards, 1}, {"nvidia.com/gpumem-percentage", 50}}, "nvidia.com/gpumem of ResourceQuota %s/cards: 73728 of 80000 used, 36864 asked"},
		"whole":           {map[string]string{"limits.heteroflow.io/gpu-memory": "200000"}, []amount{{wholeCards, 1}}, "limits.heteroflow.io/gpu-memory of ResourceQuota %s/cards: 163840 of 200000 used, 81920 asked"},
	}
	teams := map[string]*scene{}
	var burst []*corev1.Pod
	for name, tc := range tests {
		teams[name] = s.in(name)
		teams[name].resourceQuota(tc.hard)
		burst = append(burst, many(3, teams[name].ns, "p", nil, tc.asks...)...)
	}
	for i := range 4 {
		s.add(ofNvidia(fmt.Sprintf("quotas-%d", i), 8))
	}
	s.create(burst...)
	for _, team := range teams {
		s.holdExactly(2, team)
	}
	s.keepTo(2*len(tests), slices.Collect(maps.Values(teams))...)
	next := map[string]string{}
	for name, tc := range tests {
		bound, waiting := s.boundIn(teams[name])
		next[name] = waiting[0].Name
		t.Log(teams[name].says(next[name], "QuotaExceeded ("+fmt.Sprintf(tc.words, teams[name].ns)))
		teams[name].remove(bound[0].Name, false)
	}
	for name := range tests {
		teams[name].runs(next[name])
	}
	s.verify()
}

// TestKubernetesCountsRequests: what Kubernetes itself counts it refuses at
// creation, and we count no more than that.
func TestKubernetesCountsRequests(t *testing.T) {
	s := begin(t, defaults)
	s.resourceQuota(map[string]string{"requests.heteroflow.io/gpu": "2"})
	s.add(ofNvidia("requests", 4))
	refused := 0
	for _, p := range many(3, s.ns, "p", nil, amount{wholeCards, 1}) {
		switch _, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, p, metav1.CreateOptions{}); {
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
			refused++
		default:
			s.must("create", err)
		}
	}
	s.eventually("two pods", func() error { return s.bound(2) })
	if refused != 1 {
		t.Errorf("%d of 3 are refused, want 1", refused)
	}
	s.verify()
}

// TestQuotaLowered: when a limit falls below what is held, nobody is ended, and
// nobody comes until as much has been given back.
func TestQuotaLowered(t *testing.T) {
	s := begin(t, defaults)
	team := s.in("team")
	s.tenant("less", limitedTo(3, claiming(nil, team)))
	s.add(ofNvidia("less", 8))
	team.create(many(3, team.ns, "p", nil, amount{wholeCards, 1})...)
	s.eventually("three pods", func() error { return s.bound(3) })
	before, _ := s.boundIn(team)

	s.tenant("less", limitedTo(1, claiming(nil, team)))
	t.Log(s.judged("less", v1alpha1.TenantWithinQuota, v1alpha1.TenantReasonOverLimit))
	team.create(podFor("new", amount{wholeCards, 1}))
	team.refusedFor("new", "QuotaExceeded")
	t.Log(team.says("new", "QuotaExceeded (cards of Tenant less: 3 of 1 used, 1 asked)"))
	s.stay(time.Second, &before[0], &before[1], &before[2])
	s.verifyBut(&before[0], &before[1], &before[2])

	for _, p := range before[1:] {
		team.remove(p.Name, false)
		team.gone(p.Name)
	}
	s.judged("less", v1alpha1.TenantWithinQuota, "")
	s.meanwhile(2*time.Second, "a tenant at its limit", func() error { return team.waits("new") })
	team.remove(before[0].Name, false)
	team.runs("new")
	s.verify()
	s.tenant("less", claiming(nil, team)) // without a quota
	team.create(podFor("more", amount{wholeCards, 1}))
	team.runs("more")
	s.verify()
}
