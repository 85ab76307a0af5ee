package policies

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/test/cluster"
)

const (
	perRound = 500 // pods
	atOnce   = 16  // requests in flight, about as many as kube-scheduler's binds
)

// BenchmarkPolicies takes pods through what a life costs the API server: made by
// their author, bound by us, reported by a kubelet. Rounds with the policies and
// without alternate, in the order without, with, with, without, so that a machine
// that slows down slows both. For each step it reports the processor time of the
// control plane per pod in microseconds without the policies, and how much more it
// is with them in percent; and the same of the clock, which tells nothing while
// the machine does anything else.
func BenchmarkPolicies(b *testing.B) {
	w := newWorld(b)
	var without, with taken
	w.round(b, &taken{}) // the first is slower than any later
	for b.Loop() {
		for _, policed := range []bool{false, true, true, false} {
			into := &without
			if policed {
				w.must(b, w.Install(b.Context(), "policy-authorproof.yaml", "policy-fence.yaml"))
				into = &with
			}
			w.round(b, into)
			w.must(b, w.Repeal(b.Context()))
		}
	}
	for i, step := range steps {
		report(b, step.name, without.effort[i], with.effort[i], without.pods)
	}
	report(b, "all", sum(without.effort), sum(with.effort), without.pods)
	report(b, "all-clock", sum(without.clock), sum(with.clock), without.pods)
}

func report(b *testing.B, what string, without, with time.Duration, pods int) {
	b.ReportMetric(float64(without.Microseconds())/float64(pods), what+"-us/pod")
	b.ReportMetric(100*(with.Seconds()/without.Seconds()-1), what+"-more-%")
}

// taken is what the steps of so many pods took.
type taken struct {
	pods          int
	effort, clock durations
}

type durations [len(steps)]time.Duration

func sum(by durations) (all time.Duration) {
	for _, d := range by {
		all += d
	}
	return all
}

// steps are one request a pod each. The array is read only.
var steps = [...]struct {
	name string
	do   func(*world, context.Context, string) error
}{
	{"created", (*world).create}, {"bound", (*world).bind}, {"reported", (*world).report},
}

// world is an API server and who comes to it.
type world struct {
	*cluster.Cluster
	scheduler, kubelet *kubernetes.Clientset
	rounds             int
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
	w.must(b, c.Namespace(b.Context(), namespace))
	w.must(b, c.Install(b.Context(), "heteroflow.io_epochs.yaml"))
	client, err := dynamic.NewForConfig(c.Config)
	w.must(b, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "heteroflow.io", Version: "v1alpha1", Resource: "epochs"}).
		Create(b.Context(), epoch(), metav1.CreateOptions{})
	w.must(b, err)
	return w
}

const namespace = "bench"

func (w *world) must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		fmt.Fprintln(os.Stderr, w.Logs(20))
		b.Fatal(err)
	}
}

// round takes one lot of pods through all steps, and removes them.
func (w *world) round(b *testing.B, t *taken) {
	w.rounds++
	t.pods += perRound
	for i, step := range steps {
		effort, clock := w.effort(b), time.Now()
		var g errgroup.Group
		g.SetLimit(atOnce)
		for n := range perRound {
			g.Go(func() error { return step.do(w, b.Context(), fmt.Sprintf("p-%d-%d", w.rounds, n)) })
		}
		w.must(b, g.Wait())
		t.effort[i] += w.effort(b) - effort
		t.clock[i] += time.Since(clock)
		if os.Getenv("DEBUG_BENCH") != "" {
			fmt.Fprintln(os.Stderr, step.name, w.effort(b)-effort, time.Since(clock))
		}
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	w.must(b, w.Client.CoreV1().Pods(namespace).DeleteCollection(b.Context(), now, metav1.ListOptions{}))
}

func (w *world) effort(b *testing.B) time.Duration {
	d, err := w.Effort()
	w.must(b, err)
	return d
}

func (w *world) create(ctx context.Context, name string) error {
	_, err := w.Client.CoreV1().Pods(namespace).Create(ctx, pod(name), metav1.CreateOptions{})
	return err
}

func (w *world) bind(ctx context.Context, name string) error {
	return w.scheduler.CoreV1().Pods(namespace).Bind(ctx, binding(name), metav1.CreateOptions{})
}

func (w *world) report(ctx context.Context, name string) error {
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
	const record = `{"version":1,"tenant":"bench","boundAt":"2026-01-01T00:00:00Z","epoch":7,"containers":[{"name":"main","init":false,"cards":[` +
		`{"vendor":"nvidia","uuid":"GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76","index":0,"memoryMiB":20480,"cores":25,"exclusive":false,"isolation":"soft"}]}]}`
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
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
