package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

// Keys that admission looks at.
const (
	priorityKey = ours + "priority"
	numbersOf   = ours + "containers"
	unknownKey  = ours + "nobody-knows"
)

// admit has the API server ask the extender about pods until the test ends.
func (s *scene) admit() {
	s.Helper()
	s.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.check("end of admission", s.Unadmit(ctx))
	})
	s.must("admission", s.Admit(s.ctx))
}

// bare leaves it to admission who schedules the pod.
func bare(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = ""
	return p
}

// TestAdmission takes single pods through the webhooks.
func TestAdmission(t *testing.T) {
	s := begin(t, defaults)
	s.add(
		simnode.Spec{Name: "admission-a", Cards: simnode.Cards("admission-a", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)},
		simnode.Spec{Name: "admission-b", Cards: simnode.Cards("admission-b", 4, "ascend", "910B3", 65536)},
	)
	s.withOldFaults()
	s.admit()
	s.part("adopted", (*scene).adopts)
	s.part("untouched", (*scene).leavesOthersAlone)
	s.part("copy", (*scene).stripsCopies)
	s.part("update", (*scene).judgesChangesOnly)
	s.verify()
}

// adopts: who asks for cards and names no scheduler becomes ours.
func (s *scene) adopts() {
	type adopted struct {
		Scheduler, Class, Numbers string
		Priority                  int32
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		want adopted
	}{
		"plain": {
			bare(podFor("plain", amount{wholeCards, 1})),
			adopted{"heteroflow-scheduler", "heteroflow-50", `{"main":0}`, 50}},
		"urgent": {
			bare(with(podFor("urgent", amount{vendorCards, 1}), priorityKey, "90")),
			adopted{"heteroflow-scheduler", "heteroflow-90", `{"main":0}`, 90}},
		"two": {
			bare(with(podOf("two", container("front"), container("back", amount{"huawei.com/Ascend910B3", 1})), priorityKey, "0")),
			adopted{"heteroflow-scheduler", "heteroflow-0", `{"back":1,"front":0}`, 0}},
	}
	for name, tc := range tests {
		s.create(tc.pod)
		p := s.runs(tc.pod.Name)
		got := adopted{p.Spec.SchedulerName, p.Spec.PriorityClassName, p.Annotations[numbersOf], *p.Spec.Priority}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			s.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	s.verify()
}

// leavesOthersAlone: a pod without cards is not even sent.
func (s *scene) leavesOthersAlone() {
	before := s.count("heteroflow_admission_requests_total", "")
	s.create(bare(podFor("processor-alone")))
	s.annotate("processor-alone", "example.com/note", "1")
	if got := s.count("heteroflow_admission_requests_total", "") - before; got != 0 {
		s.Errorf("the webhooks were asked %d times about a pod without cards", got)
	}
	s.untouched("processor-alone")
	if p := s.pod("processor-alone"); p.Spec.SchedulerName != corev1.DefaultSchedulerName || p.Spec.PriorityClassName != "" {
		s.Errorf("it is for scheduler %q with class %q", p.Spec.SchedulerName, p.Spec.PriorityClassName)
	}
}

// stripsCopies: a copy of a bound pod, as a debugger or a restore makes it, is a
// pod of its own.
func (s *scene) stripsCopies() {
	s.create(bare(podOf("original", container("front", amount{wholeCards, 1}), container("back", amount{sliceMemory, 4000}))))
	original := s.runs("original")
	twin := bare(podOf("twin", container("front", amount{wholeCards, 1}), container("back", amount{sliceMemory, 4000})))
	twin.Annotations, twin.Labels = maps.Clone(original.Annotations), maps.Clone(original.Labels)
	if twin.Annotations[allocationOf] == "" || len(twin.Labels) == 0 {
		s.Fatalf("the original has annotations %v and labels %v", twin.Annotations, twin.Labels)
	}
	created, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, twin, metav1.CreateOptions{})
	s.must("create the copy", err)
	for key := range created.Annotations {
		if key != numbersOf {
			s.Errorf("the copy has %s", key)
		}
	}
	if len(created.Labels) > 0 {
		s.Errorf("the copy has labels %v", created.Labels)
	}
	if s.runs("twin").Annotations[allocationOf] == original.Annotations[allocationOf] {
		s.Errorf("the copy has the original's cards")
	}
	s.verify()
}

// withOldFaults makes, before the webhooks are at work, pods with a key that
// they would refuse: one that waits with a finalizer, one that is bound.
func (s *scene) withOldFaults() {
	waits := with(podFor("old", amount{wholeCards, 1}), unknownKey, "1")
	waits.Spec.SchedulerName = "nobody"
	waits.Finalizers = []string{"example.com/keep"}
	runs := with(podFor("old-running"), unknownKey, "1")
	runs.Spec.SchedulerName = "nobody"
	s.create(waits, runs)
	s.Cleanup(func() { // should the test not come to it
		_, _ = s.Client.CoreV1().Pods(s.ns).Patch(context.Background(), waits.Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
	})
}

var noFinalizers = []byte(`{"metadata":{"finalizers":null}}`)

// judgesChangesOnly: what was wrong before holds nothing up; what becomes wrong
// is refused.
func (s *scene) judgesChangesOnly() {
	s.must("bind", s.Client.CoreV1().Pods(s.ns).Bind(s.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "old-running"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "admission-a"},
	}, metav1.CreateOptions{}))
	s.runs("old-running") // by the kubelet's update of its status

	before := s.count("heteroflow_admission_requests_total", `operation="validate"`)
	s.must("an unrelated annotation", s.patch("old", `{"metadata":{"annotations":{"example.com/note":"1"}}}`))
	s.refused("another unknown key", s.patch("old", `{"metadata":{"annotations":{"heteroflow.io/nor-this":"1"}}}`), "heteroflow.io/nor-this")
	s.refused("a bad value", s.patch("old", `{"metadata":{"annotations":{"heteroflow.io/node-policy":"binpak"}}}`), "binpak")
	s.refused("a key as a label", s.patch("old", `{"metadata":{"labels":{"heteroflow.io/priority":"5"}}}`), "heteroflow.io/priority", "metadata.annotations")
	s.refused("what the scheduler alone writes", s.patch("old-running", `{"metadata":{"annotations":{"heteroflow.io/visible-devices-0":"GPU-of-others"}}}`), "visible-devices-0", "by the scheduler alone")
	// A patch that meets another change of its pod is applied anew, and asked about anew.
	if got := s.count("heteroflow_admission_requests_total", `operation="validate"`) - before; got < 5 || got > 6 {
		s.Errorf("the webhook was asked %d times about 5 changes of annotations and labels", got)
	}
	s.remove("old", false)
	s.must("removal of the finalizer", s.patch("old", string(noFinalizers)))
	s.gone("old")
}

// patch changes a pod of the scene.
func (s *scene) patch(pod, change string) error {
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, pod, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	return err
}

// refused checks that err is a webhook's refusal that says all the words.
func (s *scene) refused(what string, err error, words ...string) {
	s.Helper()
	if err == nil {
		s.Errorf("%s is let through", what)
		return
	}
	for _, word := range append(words, "admission webhook", "denied the request") {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("%s: the refusal does not say %q: %v", what, word, err)
		}
	}
}

// TestAdmissionRefuses wants each mistake refused when the pod is created, in
// words that help its author.
func TestAdmissionRefuses(t *testing.T) {
	s := begin(t, defaults)
	s.admit()
	whole := func() *corev1.Pod { return bare(podFor("refused", amount{wholeCards, 1})) }
	limit := func(name corev1.ResourceName, quantity string) *corev1.Pod {
		p := bare(podFor("refused"))
		l := corev1.ResourceList{name: resource.MustParse(quantity)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: l, Requests: l.DeepCopy()}
		return p
	}
	but := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		change(p)
		return p
	}
	tests := map[string]struct {
		pod   *corev1.Pod
		words []string
	}{
		"an unknown annotation":                  {with(whole(), unknownKey, "1"), []string{"unknown annotation heteroflow.io/nobody-knows"}},
		"an unknown annotation on any pod":       {with(bare(podFor("refused")), unknownKey, "1"), []string{"unknown annotation heteroflow.io/nobody-knows"}},
		"a misspelt annotation":                  {with(whole(), ours+"gpu-modle", "A100"), []string{"heteroflow.io/gpu-modle", "heteroflow.io/gpu-model?"}},
		"an argument of a plugin":                {with(whole(), ours+"require-nvlink", "true"), []string{"unknown annotation heteroflow.io/require-nvlink", "heteroflow.io/nvlink"}},
		"a typo in a policy":                     {with(whole(), ours+"node-policy", "binpak"), []string{"heteroflow.io/node-policy", "binpak", "binpack", "spread"}},
		"a resource as an annotation":            {with(whole(), "nvidia.com/gpumem", "8000"), []string{"nvidia.com/gpumem", "resources.limits"}},
		"an annotation as a label":               {but(whole(), func(p *corev1.Pod) { p.Labels = map[string]string{priorityKey: "5"} }), []string{"heteroflow.io/priority", "metadata.annotations"}},
		"a priority out of range":                {with(whole(), priorityKey, "101"), []string{"heteroflow.io/priority", "101", "0..100"}},
		"bytes where MiB are meant":              {limit(sliceMemory, "16Gi"), []string{"heteroflow.io/gpu-memory", "16384"}},
		"a node of its own choice":               {but(whole(), func(p *corev1.Pod) { p.Spec.NodeName = "somewhere" }), []string{"spec.nodeName"}},
		"training that may be preempted":         {with(with(whole(), ours+"task-type", "training"), ours+"preemptible", "true"), []string{"heteroflow.io/task-type", "heteroflow.io/preemptible"}},
		"a class of another priority":            {but(with(whole(), priorityKey, "90"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "heteroflow-10" }), []string{"heteroflow.io/priority", "heteroflow-10"}},
		"a class of the system":                  {but(with(whole(), priorityKey, "90"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }), []string{"system-node-critical"}},
		"a resource named limits":                {limit("limits.nvidia.com/gpu", "1"), []string{"limits.nvidia.com/gpu", "resources.limits"}},
		"an unknown resource of ours":            {limit("heteroflow.io/gpus", "1"), []string{"heteroflow.io/gpus"}},
		"two forms in one container":             {bare(podFor("refused", amount{wholeCards, 1}, amount{vendorCards, 1})), []string{"heteroflow.io/gpu", "nvidia.com/gpu", "one form"}},
		"compute of whole cards":                 {bare(podFor("refused", amount{wholeCards, 1}, amount{sliceCores, 10})), []string{"heteroflow.io/gpu-cores"}},
		"a partition beside cards":               {bare(podOf("refused", container("a", amount{wholeCards, 1}), container("b", amount{"nvidia.com/mig-1g.5gb", 1}))), []string{"nvidia.com/mig-1g.5gb"}},
		"all faults at once":                     {with(with(whole(), unknownKey, "1"), ours+"numa", "x"), []string{"nobody-knows", "heteroflow.io/numa"}},
		"an unknown annotation, whoever is told": {but(with(whole(), unknownKey, "1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }), []string{"nobody-knows"}},
	}
	for name, tc := range tests {
		s.part(name, func(s *scene) {
			_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, tc.pod, metav1.CreateOptions{})
			s.refused(name, err, tc.words...)
			s.Log(err)
		})
	}
	if got := len(s.pods()); got != 0 {
		t.Errorf("%d pods were made", got)
	}
}

// TestAdmissionIsAway: without us no pod with cards is let through unchecked,
// and nobody else is held up.
func TestAdmissionIsAway(t *testing.T) {
	s := begin(t, defaults)
	s.add(simnode.Spec{Name: "away", Cards: simnode.Cards("away", 2, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	s.admit()
	as := s.running
	s.StopExtender()
	s.running = cluster.Extender{} // whoever comes next starts it, should this test end here
	began := time.Now()
	s.create(bare(podFor("processor-alone")))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a pod without cards took %s", took)
	}
	_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, bare(podFor("with-cards", amount{wholeCards, 1})), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a pod with cards: %v, want a failed call", err)
	}
	s.must("restart", s.StartExtender(s.ctx, as))
	s.running = as
	s.create(bare(podFor("with-cards", amount{wholeCards, 1})))
	s.runs("with-cards")
	s.verify()
}

// variable reads what a variable of a running container holds.
func (s *scene) variable(pod, container, name string) string {
	s.Helper()
	env, err := s.nodes.Env(s.ns, pod, container)
	s.must("environment", err)
	return env[name]
}

// numbersIn decodes a record of numbers.
func numbersIn(t *testing.T, p *corev1.Pod) map[string]int {
	t.Helper()
	numbers := map[string]int{}
	if err := json.Unmarshal([]byte(p.Annotations[numbersOf]), &numbers); err != nil {
		t.Fatalf("%s of %s: %v", numbersOf, p.Name, err)
	}
	return numbers
}
