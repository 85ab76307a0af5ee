package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// warnings are those of one request.
type warnings struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// warned creates a pod, which has to be let in with these warnings, whatever else
// each of them says, and returns what came of it.
func (s *scene) warned(p *corev1.Pod, want ...string) *corev1.Pod {
	s.Helper()
	w := &warnings{}
	config := rest.CopyConfig(s.Config)
	config.WarningHandler = w
	client, err := kubernetes.NewForConfig(config)
	s.must("client", err)
	p, err = client.CoreV1().Pods(s.ns).Create(s.ctx, p, metav1.CreateOptions{})
	s.must("create", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.EqualFunc(w.texts, want, strings.Contains) {
		s.Errorf("pod %s: the warnings are %q, want %q", p.Name, w.texts, want)
	}
	return p
}

// TestTenantsAtAdmission: what its tenant never allows a pod is refused when it is
// created; what it does not allow at present, or lowers, is said.
func TestTenantsAtAdmission(t *testing.T) {
	s := begin(t, defaults)
	s.admit()
	team, idle, torn := s.in("team"), s.in("idle"), s.in("torn")
	capped := limitedTo(2, claiming(nil, team, torn))
	capped.MaxPriority = new(int32(60))
	s.tenant("capped", capped)
	off := claiming(nil, idle)
	off.Active = new(bool)
	s.tenant("off", off)
	s.tenant("another", claiming(nil, torn))
	idle.resourceQuota(map[string]string{"limits.nvidia.com/gpumem": "5000"})
	s.add(ofNvidia("capped", 8))
	try := func(s *scene, p *corev1.Pod) error {
		_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, p, metav1.CreateOptions{})
		return err
	}

	team.warned(bare(podFor("modest", amount{wholeCards, 1})))
	team.runs("modest")
	p := team.warned(with(bare(podFor("urgent", amount{wholeCards, 1})), priorityKey, "90"), "priority 90 is lowered to 60, ")
	if diff := cmp.Diff([]any{"heteroflow-60", int32(60), "60"}, []any{p.Spec.PriorityClassName, *p.Spec.Priority, p.Annotations[priorityKey]}); diff != "" {
		t.Errorf("class, priority and annotation (-want +got):\n%s", diff)
	}
	team.runs("urgent")
	classed := bare(podFor("classed", amount{wholeCards, 1}))
	classed.Spec.PriorityClassName = "system-cluster-critical"
	s.refused("another class above the cap", try(team, classed), "system-cluster-critical", "allows 60", "spec.maxPriority")

	s.refused("more than there ever is", try(team, bare(podFor("never", amount{wholeCards, 3}))), "asks for 3 cards", "Tenant capped allows 2", "spec.quota.cards.limit")
	team.warned(bare(podFor("later", amount{wholeCards, 1})), "(QuotaExceeded): cards of Tenant capped: 2 of 2 used, 1 asked")
	team.refusedFor("later", "QuotaExceeded")
	idle.warned(bare(podFor("idle", amount{vendorCards, 1}, amount{vendorMemory, 1000})), "TenantInactive")
	idle.refusedFor("idle", "TenantInactive")
	torn.warned(bare(podFor("torn", amount{sliceMemory, 1000})), "more than one Tenant claims namespace "+torn.ns, "cards of Tenant capped: 2 of 2 used, 1 asked")
	idle.tenant("off", claiming(nil, idle))
	s.refused("more than a ResourceQuota", try(idle, bare(podFor("large", amount{vendorCards, 2}, amount{vendorMemory, 3000}))),
		"asks for 6000 MiB", "ResourceQuota "+idle.ns+"/cards allows 5000", "limits.nvidia.com/gpumem")
	idle.runs("idle")
	s.verify()
}

// TestQuotasThatDoNotCount: what of a ResourceQuota limits nothing is said on it,
// and does limit nothing.
func TestQuotasThatDoNotCount(t *testing.T) {
	s := begin(t, defaults)
	s.add(ofNvidia("uncounted", 1))
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "uncounted"}}
	q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
	q.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("10"), "limits." + wholeCards: resource.MustParse("0")}
	_, err := s.Client.CoreV1().ResourceQuotas(s.ns).Create(s.ctx, q, metav1.CreateOptions{})
	s.must("create", err)
	s.eventually("an event on the quota", func() error {
		l, err := s.Client.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ResourceQuota,reason=QuotaUnsupported"})
		s.must("list events", err)
		for _, e := range l.Items {
			if strings.Contains(e.Message, "spec.hard[limits.heteroflow.io/gpu]") && strings.Contains(e.Message, "spec.scopes") {
				t.Log(e.Message)
				return nil
			}
		}
		return fmt.Errorf("there are %q", texts(l.Items))
	})
	s.create(podFor("p", amount{wholeCards, 1}))
	s.runs("p")
	s.verify()
}
