package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

const injectionPolicy = `apiVersion: heteroflow.io/v1alpha1
kind: SchedulerPolicy
metadata:
  name: default
spec:
  injection: downwardAPI
`

// TestEachContainerSeesItsOwnCards has two webhooks of others put containers
// before a pod's own, one before our turn and one after it, which shifts every
// place in the pod. By the variables that admission injects, each container is
// still shown its own cards, whatever its author or another webhook wrote.
func TestEachContainerSeesItsOwnCards(t *testing.T) {
	s := begin(t, cluster.Extender{Policy: injectionPolicy, Linger: linger, Verbosity: 2})
	s.add(simnode.Spec{Name: "sees", Cards: simnode.Cards("sees", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	s.admit()
	s.injector("aaa.example.com", injected{name: "first"})
	s.injector("zzz.example.com", injected{name: "last", init: true})

	all := corev1.EnvVar{Name: visibleVariable, Value: "all"}
	see := func(c corev1.Container) corev1.Container {
		c.Env = append(c.Env, all)
		return c
	}
	worker := bare(podOf("worker",
		see(container("train", amount{vendorCards, 2})),
		see(container("watch", amount{vendorCards, 1}, amount{vendorMemory, 4000}, amount{vendorCores, 25})),
		see(container("log"))))
	s.create(worker)
	pod := s.runs("worker")

	// The one before us is counted with the pod's own; the one after us gets
	// what is left.
	wantNumbers := map[string]int{"first": 0, "train": 1, "watch": 2, "log": 3, "last": 4}
	if diff := cmp.Diff(wantNumbers, numbersIn(t, pod)); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if got := places(pod); !slices.Equal(got, []string{"last", "first", "train", "watch", "log"}) {
		t.Errorf("the containers are %v", got)
	}
	want := cardsByContainer(t, pod)
	if len(want["train"]) != 2 || len(want["watch"]) != 1 {
		t.Fatalf("the allocation has %v", want)
	}
	if diff := cmp.Diff(want, s.seen(pod)); diff != "" {
		t.Errorf("cards seen by each container (-allocated +seen):\n%s", diff)
	}
	limits := [2]string{s.variable("worker", "watch", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), s.variable("worker", "watch", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")}
	if limits != [2]string{"0=4000M", "25"} {
		t.Errorf("the slice is limited to %q", limits)
	}
	s.verify()
}

// seen lists the cards that the variable shows to the containers of a pod, but for
// those that are told they have none.
func (s *scene) seen(pod *corev1.Pod) map[string][]string {
	s.Helper()
	seen := map[string][]string{}
	for _, c := range places(pod) {
		if cards := s.variable(pod.Name, c, visibleVariable); cards != "void" {
			seen[c] = slices.Sorted(strings.SplitSeq(cards, ","))
		}
	}
	return seen
}

// TestContainersOfTwoVendors: on a node with cards of two vendors a variable of
// the wrong one would show a container cards that are not its own. What authors
// write in one goes.
func TestContainersOfTwoVendors(t *testing.T) {
	s := begin(t, cluster.Extender{Policy: injectionPolicy, Linger: linger, Verbosity: 2})
	s.add(simnode.Spec{Name: "vendors", Cards: slices.Concat(
		simnode.Cards("vendors", 4, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920), simnode.Cards("vendors", 4, "ascend", "910B3", 65536))})
	s.admit()
	const ascendVariable = "ASCEND_VISIBLE_DEVICES"
	see := func(c corev1.Container) corev1.Container {
		c.Env = []corev1.EnvVar{{Name: visibleVariable, Value: "all"}, {Name: ascendVariable, Value: "0,1,2,3"}}
		return c
	}
	s.create(
		bare(podOf("both", see(container("gpu", amount{vendorCards, 1})), see(container("npu", amount{"huawei.com/Ascend910B3", 2})), see(container("log")))),
		bare(with(podOf("typed", see(container("npu", amount{wholeCards, 1}))), typeKey, "Ascend")))
	seen := func(pod, container string) [2]string {
		return [2]string{s.variable(pod, container, visibleVariable), s.variable(pod, container, ascendVariable)}
	}
	cards := cardsByContainer(t, s.runs("both"))
	if got := seen("both", "gpu"); got != [2]string{strings.Join(cards["gpu"], ","), ""} {
		t.Errorf("gpu sees %q, its cards are %v", got, cards["gpu"])
	}
	if got := seen("both", "log"); strings.ContainsAny(got[0]+got[1], "0123456789") || got[0] == "all" {
		t.Errorf("log sees %q", got)
	}
	typed := cardsByContainer(t, s.runs("typed"))["npu"]
	index := func(uuids ...string) string { // the number that ends a simulated card's name
		for i := range uuids {
			uuids[i] = uuids[i][strings.LastIndexByte(uuids[i], '-')+1:]
		}
		return strings.Join(uuids, ",")
	}
	want := [2][2]string{{"void", index(cards["npu"]...)}, {"void", index(typed...)}}
	if diff := cmp.Diff(want, [2][2]string{seen("both", "npu"), seen("typed", "npu")}); diff != "" {
		t.Errorf("what the containers with an NPU see (-want +got):\n%s", diff)
	}
	s.verify()
}

const visibleVariable = "NVIDIA_VISIBLE_DEVICES"

// places lists a pod's containers as they are counted.
func places(p *corev1.Pod) []string {
	var names []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		names = append(names, c.Name)
	}
	return names
}

// injected is a container that another webhook puts before a pod's own. It asks
// for no card and would see all.
type injected struct {
	name string
	init bool // a sidecar among the init containers
}

// ServeHTTP is the webhook. Called again for a pod, it changes nothing.
func (i injected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&review), json.Unmarshal(review.Request.Object.Raw, &pod)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if !slices.Contains(places(&pod), i.name) {
		jsonPatch := admissionv1.PatchTypeJSONPatch
		review.Response.PatchType, review.Response.Patch = &jsonPatch, i.patch()
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // the API server may have gone
}

func (i injected) patch() []byte {
	c := container(i.name)
	c.Env = []corev1.EnvVar{{Name: visibleVariable, Value: "all"}}
	path, value := "/spec/containers/0", any(c)
	if i.init {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		path, value = "/spec/initContainers", []corev1.Container{c}
	}
	b, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
	if err != nil {
		panic(err) // a container can be encoded
	}
	return b
}

// injector has a webhook add the container to each new pod of the scene until
// the test ends. It asks to be called again when others change the pod, as ours
// does.
func (s *scene) injector(name string, what injected) {
	s.Helper()
	url, ca := s.serve(what)
	fail, none, again := registration.Fail, registration.SideEffectClassNone, registration.IfNeededReinvocationPolicy
	configuration := &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registration.MutatingWebhook{{
			Name:                    "injector." + name,
			ClientConfig:            registration.WebhookClientConfig{URL: &url, CABundle: ca},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			ReinvocationPolicy:      &again,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create},
				Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	webhooks := s.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := webhooks.Create(s.ctx, configuration, metav1.CreateOptions{})
	s.must("injector", err)
	s.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.check("remove injector", webhooks.Delete(ctx, name, metav1.DeleteOptions{}))
	})
	s.eventually("the injector to be asked", func() error {
		probe := podFor("probe")
		made, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && !slices.Contains(places(made), what.name) {
			err = fmt.Errorf("its containers are %v", places(made))
		}
		return err
	})
}

// serve answers at a URL of its own, with a certificate for it.
func (s *scene) serve(h http.Handler) (url string, ca []byte) {
	s.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	s.must("certificate", err)
	pair, err := tls.X509KeyPair(certificate, key)
	s.must("certificate", err)
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	s.Cleanup(server.Close)
	return server.URL, certificate
}
