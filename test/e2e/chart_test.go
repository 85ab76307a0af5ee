package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

// system is the namespace of the release.
const system = "heteroflow-system"

// TestChart installs the chart on a control plane of its own, as a user would, and
// runs the pods of its Deployment: the arguments, configuration and rights are the
// chart's, for kube-scheduler and for the scheduler alike.
func TestChart(t *testing.T) {
	s := ownStage(t)
	s.part("dry run", (*scene).triesValues)
	s.must("install", s.Install(s.ctx))
	pods := s.deployed()
	first, err := s.RunPod(s.ctx, &pods[0], true)
	s.must("run "+pods[0].Name, err)
	t.Cleanup(first.Stop)
	s.ready(first)
	second, err := s.RunPod(s.ctx, &pods[1], false)
	s.must("run "+pods[1].Name, err)
	t.Cleanup(second.Stop)
	s.ready(second)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(first.Log(60), second.Log(60))
		}
	})

	s.add(simnode.Spec{Name: "chart", Cards: simnode.Cards("chart", 4, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	s.part("places a pod", (*scene).placesAnyonesPod)
	s.part("keeps keys", (*scene).keepsKeys)
	s.part("hands over", func(s *scene) { s.handsOver(first) })
	second.Stop()
	s.part("is away", (*scene).stopsOnlyItsOwn)
	s.verify()
}

// ownStage is a control plane for this test alone, with a kubelet and no scheduler.
func ownStage(t *testing.T) *scene {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(stop)
	c, err := cluster.Start(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	s := &scene{stage: &stage{Cluster: c, nodes: simnode.New(c.Client)}, T: t, ctx: ctx, ns: "chart"}
	kubelet := make(chan error, 1)
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() { kubelet <- s.nodes.Run(run) }()
	t.Cleanup(func() { end(); <-kubelet })
	s.must("namespace", s.Namespace(ctx, s.ns))
	s.must("namespace", s.Namespace(ctx, system))
	s.restrict()
	return s
}

// restrict has the API server take no pod into our namespace that Kubernetes'
// strictest standard would not.
func (s *scene) restrict() {
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	_, err := s.Client.CoreV1().Namespaces().Patch(s.ctx, system, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must("restrict", err)
}

// others are kinds of cert-manager and Prometheus's operator, as far as the API
// server has to know them to take an object.
var others = []string{"certificates.cert-manager.io/v1/Certificate", "issuers.cert-manager.io/v1/Issuer", "servicemonitors.monitoring.coreos.com/v1/ServiceMonitor"}

// triesValues has the API server judge every object under every set of values.
func (s *scene) triesValues() {
	for _, other := range others {
		parts := strings.Split(other, "/")
		plural, group, _ := strings.Cut(parts[0], ".")
		path := filepath.Join(s.TempDir(), plural+".yaml")
		s.must("write", os.WriteFile(path, fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s}
  versions: [{name: %s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, parts[0], group, parts[2], plural, parts[1]), 0o600))
		s.must("define "+parts[2], s.Apply(s.ctx, path))
	}
	sets, err := filepath.Glob(filepath.Join(s.Root(), "test", "chart", "testdata", "*.yaml"))
	if err != nil || len(sets) < 3 {
		s.Fatalf("sets of values are %v (%v)", sets, err)
	}
	s.eventually("the default values", func() error { return s.Try(s.ctx, "") }) // until all kinds are served
	for _, set := range sets {
		values, err := os.ReadFile(set)
		s.must("read", err)
		if err := s.Try(s.ctx, string(values)); err != nil {
			s.Errorf("%s:\n%v", filepath.Base(set), err)
		}
	}
}

// deployed returns the pods that the Deployment has made.
func (s *scene) deployed() (pods []corev1.Pod) {
	s.Helper()
	s.eventually("the Deployment's pods", func() error {
		list, err := s.Client.CoreV1().Pods(system).List(s.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=heteroflow-scheduler"})
		if err != nil {
			return err
		}
		if pods = list.Items; len(pods) != 2 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	return pods
}

func (s *scene) ready(p *cluster.ChartPod) {
	s.Helper()
	s.eventually("a replica", func() error { return p.Ready(s.ctx) })
}

// placesAnyonesPod: a pod that names no scheduler goes through the webhooks, whose
// certificate the chart's rights let the scheduler make and announce, and is bound
// with its cards.
func (s *scene) placesAnyonesPod() {
	s.eventually("the API server to ask the webhooks", func() error {
		_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, bare(podFor("first", amount{wholeCards, 1})), metav1.CreateOptions{})
		return err
	})
	p := s.runs("first")
	if p.Spec.SchedulerName != "heteroflow-scheduler" || p.Spec.PriorityClassName != "heteroflow-50" || p.Annotations[allocationOf] == "" {
		s.Errorf("scheduler %q, class %q, annotations %v", p.Spec.SchedulerName, p.Spec.PriorityClassName, p.Annotations)
	}
}

// keepsKeys: the chart's policies are in force.
func (s *scene) keepsKeys() {
	patch := []byte(`{"metadata":{"annotations":{"` + allocationOf + `":"{}"}}}`)
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, "first", types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "heteroflow-authorproof") {
		s.Errorf("an allocation that is changed by hand is answered %v", err)
	}
}

// handsOver: when a pod of the Deployment ends, the other one goes on.
func (s *scene) handsOver(first *cluster.ChartPod) {
	late := bare(podFor("late", amount{wholeCards, 1}))
	late.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	s.create(late)
	first.Stop()
	ended := time.Now()
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, "late", types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{})
	s.must("open the gate", err)
	s.runs("late")
	s.Logf("a pod runs %v after the end of the replica before", time.Since(ended).Round(time.Millisecond))
}

// stopsOnlyItsOwn: with no replica left, only pods that ask for cards wait.
func (s *scene) stopsOnlyItsOwn() {
	s.create(bare(podFor("processor-alone")))
	_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, bare(podFor("refused", amount{wholeCards, 1})), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "heteroflow.io") {
		s.Errorf("a pod that asks for cards is answered %v", err)
	}
	s.keepsKeys()
	s.remove("first", false)
	s.gone("first")
}
