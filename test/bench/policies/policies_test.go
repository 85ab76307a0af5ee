package policies

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/proc"
)

const (
	perLot = 100 // pods
	lots   = 20  // in each of the two namespaces, for one iteration
	atOnce = 16  // requests in flight, about as many as kube-scheduler's binds
)

// The two namespaces. Only in one of them do the policies hold.
const (
	plain   = "plain"
	policed = "policed"
)

// BenchmarkPolicies takes pods through what a life costs the API server: made by
// their author, bound by us, reported by a kubelet. Small lots with the policies
// and without alternate, and so does which of them comes first: whatever else the
// machine does meets both. For each step it reports the processor time of the
// control plane per pod in microseconds without the policies, and how much more it
// is with them in percent: the median over the pairs of lots. Processor time is
// dearer on a busy machine too, so take the figures from a quiet one.
func BenchmarkPolicies(b *testing.B) {
	w := newWorld(b)
	took := map[string][]lot{}
	for _, namespace := range []string{plain, policed} {
		w.play(b, namespace) // the first are slower than any later
	}
	for b.Loop() {
		for n := range lots {
			order := []string{plain, policed}
			if n%2 == 1 {
				slices.Reverse(order)
			}
			for _, namespace := range order {
				took[namespace] = append(took[namespace], w.play(b, namespace))
			}
		}
	}
	for i, step := range steps {
		report(b, step.name, took, func(l lot) time.Duration { return l[i] })
	}
	report(b, "all", took, lot.all)
}

// report tells the medians of one figure.
func report(b *testing.B, what string, took map[string][]lot, of func(lot) time.Duration) {
	var without, more []float64
	for i, l := range took[plain] {
		without = append(without, float64(of(l).Microseconds())/perLot)
		more = append(more, 100*(of(took[policed][i]).Seconds()/of(l).Seconds()-1))
	}
	b.ReportMetric(median(without), what+"-us/pod")
	b.ReportMetric(median(more), what+"-more-%")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// lot is what the steps of some pods took.
type lot [len(steps)]time.Duration

func (l lot) all() (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// steps are one request a pod each. The array is read only.
var steps = [...]struct {
	name string
	do   func(w *world, ctx context.Context, namespace, name string) error
}{
	{"created", (*world).create}, {"bound", (*world).bind}, {"reported", (*world).report},
}

// world is an API server and who comes to it.
type world struct {
	*cluster.Cluster
	scheduler, kubelet *kubernetes.Clientset
	count              int // lots made
}

func newWorld(b *testing.B) *world {
	c, err := cluster.Start(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Stop)
	w := &world{Cluster: c}
	w.scheduler, err = c.As(cluster.SchedulerUser)
	w.must(b, err)
	w.kubelet, err = c.As("system:node:bench", "system:nodes")
	w.must(b, err)
	for _, namespace := range []string{plain, policed} {
		w.must(b, c.Namespace(b.Context(), namespace))
	}
	w.must(b, c.Install(b.Context(), "heteroflow.io_epochs.yaml", "policy-authorproof.yaml", "policy-fence.yaml"))
	client, err := dynamic.NewForConfig(c.Config)
	w.must(b, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "heteroflow.io", Version: "v1alpha1", Resource: "epochs"}).
		Create(b.Context(), epoch(), metav1.CreateOptions{})
	w.must(b, err)
	w.must(b, w.confine(b.Context()))
	return w
}

// confine has the policies hold in one namespace alone, and returns when they do.
func (w *world) confine(ctx context.Context) error {
	bindings := w.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	only := fmt.Appendf(nil, `{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}}}}}`, policed)
	for _, name := range []string{"heteroflow-authorproof", "heteroflow-fence"} {
		if _, err := bindings.Patch(ctx, name, types.MergePatchType, only, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return cluster.Eventually(ctx, "the policies to hold in one namespace", func(ctx context.Context) error {
		for namespace, refused := range map[string]bool{plain: false, policed: true} {
			forged := pod("forged")
			forged.Annotations["heteroflow.io/allocation"] = "{}"
			_, err := w.Client.CoreV1().Pods(namespace).Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if apierrors.IsForbidden(err) != refused {
				return fmt.Errorf("a forged pod in %s: %w", namespace, err)
			}
			stale := binding("nobody-is-called-so")
			stale.Annotations["heteroflow.io/epoch"] = "6"
			err = w.scheduler.CoreV1().Pods(namespace).Bind(ctx, stale, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if apierrors.IsForbidden(err) != refused {
				return fmt.Errorf("a Binding of another epoch in %s: %w", namespace, err)
			}
		}
		return nil
	})
}

func (w *world) must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		fmt.Fprintln(os.Stderr, w.Logs(20))
		b.Fatal(err)
	}
}

// play takes some pods through all steps, and removes them.
func (w *world) play(b *testing.B, namespace string) (took lot) {
	w.count++
	for i, step := range steps {
		began := w.effort(b)
		var g errgroup.Group
		g.SetLimit(atOnce)
		for n := range perLot {
			g.Go(func() error { return step.do(w, b.Context(), namespace, fmt.Sprintf("p-%d-%d", w.count, n)) })
		}
		w.must(b, g.Wait())
		took[i] = max(w.effort(b)-began, time.Millisecond)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	w.must(b, w.Client.CoreV1().Pods(namespace).DeleteCollection(b.Context(), now, metav1.ListOptions{}))
	return took
}

func (w *world) effort(b *testing.B) time.Duration {
	s, err := proc.Read(w.Processes()[cluster.ControlPlane])
	w.must(b, err)
	return s.CPU
}

func (w *world) create(ctx context.Context, namespace, name string) error {
	_, err := w.Client.CoreV1().Pods(namespace).Create(ctx, pod(name), metav1.CreateOptions{})
	return err
}

func (w *world) bind(ctx context.Context, namespace, name string) error {
	return w.scheduler.CoreV1().Pods(namespace).Bind(ctx, binding(name), metav1.CreateOptions{})
}

func (w *world) report(ctx context.Context, namespace, name string) error {
	_, err := w.kubelet.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType,
		[]byte(`{"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	return err
}

// pod is an ordinary one, with the annotations and labels of tools.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"app.kubernetes.io/name": "train", "app.kubernetes.io/part-of": "bench", "pod-template-hash": "6d4cf56db6"},
			Annotations: map[string]string{
				"heteroflow.io/gpu-type": "nvidia", "heteroflow.io/containers": `{"main":0}`,
				"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
			},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "main", Image: "registry.example/app"}},
		},
	}
}

func binding(name string) *corev1.Binding {
	const record = `{"version":1,"tenant":"policed","boundAt":"2026-01-01T00:00:00Z","epoch":7,"containers":[{"name":"main","init":false,"cards":[` +
		`{"vendor":"nvidia","uuid":"GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76","index":0,"memoryMiB":20480,"cores":25,"exclusive":false,"isolation":"soft"}]}]}`
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"heteroflow.io/bound-by": "heteroflow"},
			Annotations: map[string]string{
				"heteroflow.io/allocation": record, "hami.io/device-allocated": record, "hami.io/bind-node": "bench", "heteroflow.io/epoch": "7",
				"heteroflow.io/visible-devices-0": "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76", "heteroflow.io/mem-limit-0": "20480", "heteroflow.io/core-limit-0": "25",
			},
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: "bench"},
	}
}

func epoch() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "heteroflow.io/v1alpha1", "kind": "Epoch", "metadata": map[string]any{"name": "scheduler"},
		"spec": map[string]any{"number": int64(7), "holder": "bench"},
	}}
}
