package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/test/simnode"
)

const (
	boundBy    = ours + "bound-by"
	byAlone    = "written by the scheduler alone"
	hamiPhase  = "hami.io/bind-phase"
	hamiPlugin = "system:serviceaccount:kube-system:hami-device-plugin"
)

// ownedKeys has one of each kind that no author writes.
var ownedKeys = []string{
	allocationOf, ours + "epoch", ours + "preempt-count", ours + "port", visibleTo + "0", visibleTo + "12", ours + "mem-limit-0", ours + "core-limit-3",
	"hami.io/bind-node", "hami.io/device-allocated", "hami.io/vgpu-node", hamiPhase, "hami.io/vgpu-devices-to-allocate", "hami.io/Ascend910B3-devices-allocated",
}

// TestForgery tries to write what only the scheduler may, in every way that the
// API has, under the policies of the chart; and to do all that is none of that.
func TestForgery(t *testing.T) {
	s := begin(t, defaults)
	s.add(simnode.Spec{Name: "forgery", Cards: simnode.Cards("forgery", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	s.police(authorProof)
	waits := with(podFor("waits", amount{wholeCards, 1}), "example.com/note", "1")
	waits.Spec.SchedulerName = "nobody"
	s.create(waits, podFor("runs", amount{sliceMemory, 4000}))
	s.resizable(s.runs("runs"))

	s.part("at creation", (*scene).forgesAtCreation)
	s.part("later", (*scene).forgesLater)
	s.part("in a Binding", (*scene).forgesBindings)
	s.part("in a template", (*scene).forgesTemplates)
	s.part("by HAMi's plugin", (*scene).lendsToHAMi)
	s.part("by a node", (*scene).nodesReport)
	s.part("none of it", (*scene).livesUnderThePolicies)
	s.part("with webhooks", (*scene).admitsUnderThePolicies)
	s.verify()
}

// resizable has the pod's status say, as a kubelet's does, that its node can
// resize it.
func (s *scene) resizable(p *corev1.Pod) {
	s.Helper()
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].Resources = p.Spec.Containers[i].Resources.DeepCopy()
	}
	_, err := s.Client.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, p, metav1.UpdateOptions{})
	s.must("status", err)
}

// forgesAtCreation: each key alone, and the label.
func (s *scene) forgesAtCreation() {
	mallory := s.as("mallory").CoreV1().Pods(s.ns)
	for _, key := range ownedKeys {
		_, err := mallory.Create(s.ctx, with(podFor("forged"), key, "x"), metav1.CreateOptions{})
		s.forbidden(key, err, "annotation "+key+": "+byAlone)
	}
	labelled := podFor("forged")
	labelled.Labels = map[string]string{boundBy: "heteroflow"}
	_, err := mallory.Create(s.ctx, labelled, metav1.CreateOptions{})
	s.forbidden("the label", err, "label "+boundBy+": "+byAlone)
	labelled.Name, labelled.GenerateName = "", "forged-"
	_, err = mallory.Create(s.ctx, labelled, metav1.CreateOptions{})
	s.forbidden("the label on a pod without a name", err, "label "+boundBy)

	twin := podFor("twin", amount{sliceMemory, 4000})
	original := s.pod("runs")
	twin.Annotations, twin.Labels = maps.Clone(original.Annotations), maps.Clone(original.Labels)
	_, err = mallory.Create(s.ctx, twin, metav1.CreateOptions{})
	s.forbidden("a copy of a bound pod", err, allocationOf, visibleTo+"0", byAlone, "leave it out")
}

// way is one of the ways to change a pod.
type way struct {
	name        string
	subresource []string
	kind        types.PatchType
	// silent says that the API server itself may drop a change of metadata there.
	silent bool
}

var ways = []way{
	{"merge patch", nil, types.MergePatchType, false},
	{"strategic merge patch", nil, types.StrategicMergePatchType, false},
	{"JSON patch", nil, types.JSONPatchType, false},
	{"apply", nil, types.ApplyPatchType, false},
	{"status", []string{"status"}, types.MergePatchType, false},
	{"status by apply", []string{"status"}, types.ApplyPatchType, false},
	{"ephemeral containers", []string{"ephemeralcontainers"}, types.StrategicMergePatchType, true},
	{"resize", []string{"resize"}, types.StrategicMergePatchType, true},
}

// forgesLater: on a pod that waits and on one that runs, keys are added, changed
// and taken off.
func (s *scene) forgesLater() {
	mallory := s.as("mallory")
	for _, w := range ways {
		for _, pod := range []string{"waits", "runs"} {
			s.attempts(mallory, pod, w, visibleTo+"0", "GPU-of-others")
			s.attempts(mallory, pod, w, visibleTo+"7", "GPU-of-others")
			s.attempts(mallory, pod, w, allocationOf, "{}")
			s.attempts(mallory, pod, w, numbersOf, `{"main":7}`)
		}
	}
	for _, pod := range []string{"waits", "runs"} {
		p := s.pod(pod)
		p.Annotations[allocationOf], p.Labels = "{}", map[string]string{boundBy: "heteroflow", "a": "b"}
		_, err := mallory.CoreV1().Pods(s.ns).Update(s.ctx, p, metav1.UpdateOptions{})
		s.forbidden("replacement of "+pod, err, allocationOf)
		_, err = mallory.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, p, metav1.UpdateOptions{})
		s.forbidden("replacement of the status of "+pod, err, allocationOf)
	}
	for _, key := range []string{allocationOf, visibleTo + "0", ours + "mem-limit-0", ours + "epoch", "hami.io/bind-node"} {
		off := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
		s.forbidden("taking off "+key, s.patch("runs", off), key, byAlone)
	}
	s.forbidden("taking off all", s.patch("runs", `{"metadata":{"annotations":null}}`), allocationOf, visibleTo+"0", byAlone)
	s.forbidden("taking off the label", s.patch("runs", `{"metadata":{"labels":{"heteroflow.io/bound-by":null}}}`), "label "+boundBy, byAlone)
	s.forbidden("another label", s.patch("runs", `{"metadata":{"labels":{"heteroflow.io/bound-by":"me"}}}`), "label "+boundBy, byAlone)
	s.forbidden("a label", s.patch("waits", `{"metadata":{"labels":{"heteroflow.io/bound-by":"heteroflow"}}}`), "label "+boundBy, byAlone)
}

// attempts writes one key in one way, and wants it refused by name; or at least
// without effect, where the API server drops what does not belong there.
func (s *scene) attempts(by *kubernetes.Clientset, pod string, w way, key, value string) {
	s.Helper()
	before := s.pod(pod)
	options := metav1.PatchOptions{}
	body := map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}
	if w.kind == types.ApplyPatchType {
		body["apiVersion"], body["kind"] = "v1", "Pod"
		force := true
		options.FieldManager, options.Force = "mallory", &force
	}
	text, err := json.Marshal(body)
	s.must("encode", err)
	if w.kind == types.JSONPatchType {
		text = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations/%s","value":%q}]`, strings.ReplaceAll(key, "/", "~1"), value)
	}
	_, err = by.CoreV1().Pods(s.ns).Patch(s.ctx, pod, w.kind, text, options, w.subresource...)
	what := fmt.Sprintf("%s of %s on the pod that %s", w.name, key, pod)
	if err != nil || !w.silent {
		s.forbidden(what, err, "annotation "+key+": "+byAlone)
	}
	if now := s.pod(pod).Annotations[key]; now != before.Annotations[key] {
		s.Errorf("%s: it is %q now", what, now)
	}
}

// forgesBindings: what a Binding carries gets onto the pod.
func (s *scene) forgesBindings() {
	mallory := s.as("system:kube-scheduler")
	forged := func(annotations, labels map[string]string) *corev1.Binding {
		return &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "waits", Annotations: annotations, Labels: labels},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "forgery"},
		}
	}
	bind := map[string]func(*corev1.Binding) error{
		"pods/binding": func(b *corev1.Binding) error {
			return mallory.CoreV1().Pods(s.ns).Bind(s.ctx, b, metav1.CreateOptions{})
		},
		"bindings": func(b *corev1.Binding) error {
			return mallory.CoreV1().RESTClient().Post().Namespace(s.ns).Resource("bindings").Body(b).Do(s.ctx).Error()
		},
	}
	for resource, post := range bind {
		for _, key := range append(ownedKeys, numbersOf) {
			s.forbidden(resource+" with "+key, post(forged(map[string]string{key: "x"}, nil)), "annotation "+key+": "+byAlone)
		}
		s.forbidden(resource+" with the label", post(forged(nil, map[string]string{boundBy: "heteroflow"})), "label "+boundBy+": "+byAlone)
	}
	s.must("a pod for another scheduler", s.waits("waits"))
	other := podFor("others")
	other.Spec.SchedulerName = "nobody"
	s.create(other)
	plain := forged(map[string]string{"example.com/note": "1"}, map[string]string{"a": "b"})
	plain.Name = "others"
	s.must("another scheduler's Binding", bind["pods/binding"](plain))
	if p := s.runs("others"); p.Annotations["example.com/note"] != "1" {
		s.Errorf("the Binding's own annotation is lost: %v", p.Annotations)
	}
}

// forgesTemplates: the pods of a template are made by a controller, which may no
// more than its author.
func (s *scene) forgesTemplates() {
	s.templated("forged", map[string]string{visibleTo + "0": "GPU-of-others"})
	s.templated("honest", map[string]string{"example.com/note": "1"})
	s.eventually("the honest template's pod", func() error { return s.podsOf("honest", 1) })
	s.eventually("the controller's complaint", func() error {
		return s.hasEvent("forged", "FailedCreate", "annotation "+visibleTo+"0: "+byAlone)
	})
	s.must("the forged template", s.podsOf("forged", 0))
}

func (s *scene) templated(name string, annotations map[string]string) {
	s.Helper()
	one, labels := int32(1), map[string]string{"app": name}
	template := podFor(name, amount{sliceMemory, 1000})
	template.Annotations, template.Labels, template.Spec.RestartPolicy = annotations, labels, corev1.RestartPolicyAlways
	_, err := s.Client.AppsV1().ReplicaSets(s.ns).Create(s.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	s.must("create a replica set", err)
}

// podsOf wants so many pods of an app to run.
func (s *scene) podsOf(app string, want int) error {
	l, err := s.Client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.must("list pods", err)
	n := 0
	for i := range l.Items {
		if l.Items[i].Status.Phase == corev1.PodRunning {
			n++
		}
	}
	if len(l.Items) != want || n != want {
		return fmt.Errorf("%s: %d pods, %d of them run, want %d", app, len(l.Items), n, want)
	}
	return nil
}

// lendsToHAMi: its plugin may write its own keys and no other, whoever else may
// not.
func (s *scene) lendsToHAMi() {
	plugin := s.as(hamiPlugin).CoreV1().Pods(s.ns)
	write := func(key, value string) error {
		_, err := plugin.Patch(s.ctx, "waits", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value), metav1.PatchOptions{})
		return err
	}
	s.must("allocating", write(hamiPhase, "allocating"))
	s.must("a list", write("hami.io/vgpu-devices-to-allocate", ";"))
	s.must("success", write(hamiPhase, "success"))
	s.forbidden("the plugin's key by another", s.patch("waits", `{"metadata":{"annotations":{"hami.io/bind-phase":"failed"}}}`), hamiPhase)
	for _, key := range []string{allocationOf, visibleTo + "0", "hami.io/bind-node", "hami.io/device-allocated", "hami.io/vgpu-node", numbersOf} {
		s.forbidden("by the plugin: "+key, write(key, "x"), "annotation "+key+": "+byAlone)
	}
	_, err := plugin.Patch(s.ctx, "waits", types.MergePatchType, []byte(`{"metadata":{"labels":{"heteroflow.io/bound-by":"heteroflow"}}}`), metav1.PatchOptions{})
	s.forbidden("by the plugin: the label", err, "label "+boundBy)
}

// nodesReport: a kubelet reports, and shows static pods as they are; it changes
// nothing else.
func (s *scene) nodesReport() {
	kubelet := s.as("system:node:forgery", "system:nodes").CoreV1().Pods(s.ns)
	status := `{"status":{"message":"checked"}}`
	_, err := kubelet.Patch(s.ctx, "runs", types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	s.must("a kubelet's report", err)
	forged := `{"metadata":{"annotations":{"heteroflow.io/visible-devices-0":"GPU-of-others"}},"status":{"message":"forged"}}`
	_, err = kubelet.Patch(s.ctx, "runs", types.StrategicMergePatchType, []byte(forged), metav1.PatchOptions{}, "status")
	s.forbidden("a kubelet's forgery", err, visibleTo+"0")
	mirror := with(with(podFor("static"), "kubernetes.io/config.mirror", "x"), allocationOf, "{}")
	mirror.Spec.NodeName, mirror.Spec.SchedulerName, mirror.Spec.TerminationGracePeriodSeconds = "forgery", "", new(int64)
	_, err = s.as("mallory").CoreV1().Pods(s.ns).Create(s.ctx, mirror, metav1.CreateOptions{})
	s.forbidden("a mirror by an author", err, allocationOf)
	_, err = kubelet.Create(s.ctx, mirror, metav1.CreateOptions{})
	s.must("the mirror of a static pod", err)
	s.eventually("the forgery to be told of", func() error {
		if s.count("heteroflow_forgeries_total", `kind="doubted"`) == 0 {
			return fmt.Errorf("it is not counted")
		}
		return s.hasEvent("static", "RecordForged", "it is a static pod")
	})
	s.remove("static", true)
}

// hasEvent returns nil once the pod has an event of that reason with these words.
func (s *scene) hasEvent(pod, reason, words string) error {
	events, err := s.Client.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=" + reason})
	s.must("list events", err)
	for _, e := range events.Items {
		if strings.Contains(e.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("none of %d events %s of pod %s says %q", len(events.Items), reason, pod, words)
}

// livesUnderThePolicies: what is nobody's forgery is let through.
func (s *scene) livesUnderThePolicies() {
	for _, pod := range []string{"waits", "runs"} {
		s.must("an administrator's annotation", s.patch(pod, `{"metadata":{"annotations":{"example.com/note":"2"},"labels":{"a":"b"}}}`))
		s.must("its end", s.patch(pod, `{"metadata":{"annotations":{"example.com/note":null},"labels":{"a":null}}}`))
	}
	p := s.pod("runs")
	p.Annotations["example.com/note"] = "3"
	_, err := s.Client.CoreV1().Pods(s.ns).Update(s.ctx, p, metav1.UpdateOptions{})
	s.must("a replacement with the same keys", err)
	_, err = s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, "runs", types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"registry.example/debug"}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
	s.must("an ephemeral container", err)
	larger := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	resize, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{"requests": larger}}}}})
	s.must("encode", err)
	_, err = s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, "runs", types.StrategicMergePatchType, resize, metav1.PatchOptions{}, "resize")
	s.must("a resize", err)

	s.create(podFor("impossible", amount{wholeCards, 60}))
	s.eventually("kube-scheduler's condition", func() error {
		if condition(s.pod("impossible")) == "" {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	keeps := podFor("keeps", amount{wholeCards, 1})
	keeps.Finalizers, keeps.Spec.TerminationGracePeriodSeconds = []string{"example.com/keep"}, new(int64)
	s.create(keeps)
	s.runs("keeps")
	s.remove("keeps", false)
	s.must("removal of a finalizer", s.patch("keeps", string(noFinalizers)))
	s.gone("keeps")
}

// admitsUnderThePolicies: the webhooks come first. They number containers, and
// take off what a copy carries.
func (s *scene) admitsUnderThePolicies() {
	s.admit()
	s.create(bare(podFor("numbered", amount{sliceMemory, 1000})))
	if p := s.runs("numbered"); p.Annotations[numbersOf] != `{"main":0}` {
		s.Errorf("its containers are numbered %q", p.Annotations[numbersOf])
	}
	s.forbidden("other numbers", s.patch("numbered", `{"metadata":{"annotations":{"heteroflow.io/containers":"{\"main\":1}"}}}`), "annotation "+numbersOf)
	original, twin := s.pod("runs"), bare(podFor("twin", amount{sliceMemory, 4000}))
	twin.Annotations, twin.Labels = maps.Clone(original.Annotations), maps.Clone(original.Labels)
	s.create(twin)
	if s.runs("twin").Annotations[allocationOf] == original.Annotations[allocationOf] {
		s.Error("the copy has the original's cards")
	}
}
