package quality

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/simulate"
	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// Config says what is run.
type Config struct {
	Trace *simulate.Trace // the whole of it
	Nodes int             // as many of its nodes
	Seed  int64           // of the arrivals
	Say   func(format string, args ...any)
}

// Validate says what is wrong with the figures.
func (c *Config) Validate() error {
	if most := len(c.Trace.Nodes); c.Nodes < 1 || c.Nodes > most {
		return fmt.Errorf("nodes: %d is outside 1..%d", c.Nodes, most)
	}
	return nil
}

// Run has the arrivals come to a cluster in which nothing runs yet but its control
// plane, and to the simulator.
func Run(ctx context.Context, c *cluster.Cluster, config Config) (*Report, error) {
	part := config.Trace.Part(config.Nodes)
	arrivals := simulate.Arrive(part, config.Seed)
	ours, err := simulate.Policies([]string{policy.Packing})
	if err != nil {
		return nil, err
	}
	r := &Report{Trace: part.Name, Nodes: config.Nodes, Seed: config.Seed}
	if r.Simulated, err = simulate.Replay(part, arrivals, ours[0]); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	config.Say("%d pods come to %d nodes with %d GPUs", len(arrivals.Pods), len(part.Nodes), part.Capacity()/mostMilli)
	s := &stage{cluster: c, say: config.Say, part: part, arrivals: arrivals}
	return r, s.run(ctx, r)
}

// stage is a run on a real control plane.
type stage struct {
	cluster  *cluster.Cluster
	client   kubernetes.Interface
	say      func(format string, args ...any)
	part     *simulate.Trace
	arrivals simulate.Arrivals
}

func (s *stage) run(ctx context.Context, r *Report) (err error) {
	if s.client, err = kubernetes.NewForConfig(cluster.Quick(s.cluster.Config)); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	ctx, stop := s.cluster.WhileAllRun(ctx)
	defer stop()
	d, end, err := s.driver(ctx)
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	if r.Placed, err = s.perform(ctx, d); err != nil {
		return err
	}
	r.Took, r.Second, r.Missed = time.Since(began), d.second, d.missed
	return s.judge(ctx, d, r)
}

// start adds the nodes, whose kubelet is left out as nothing waits for a pod to run, and
// starts both schedulers.
func (s *stage) start(ctx context.Context) error {
	if err := s.cluster.Namespace(ctx, namespace); err != nil {
		return err
	}
	if err := simnode.New(s.client).Add(ctx, specs(s.part.Nodes, s.arrivals.Rank)...); err != nil {
		return fmt.Errorf("add nodes: %w", err)
	}
	packing, err := os.ReadFile(filepath.Join(s.cluster.Root(), "examples", "policy-packing.yaml"))
	if err != nil {
		return err
	}
	if err := s.cluster.StartExtender(ctx, cluster.Extender{Policy: string(packing)}); err != nil {
		return fmt.Errorf("start the extender: %w", err)
	}
	example, err := s.cluster.KubeSchedulerConfig(s.cluster.ExtenderURL())
	if err != nil {
		return err
	}
	config, err := schedulerConfig(example)
	if err != nil {
		return err
	}
	return s.cluster.StartKubeSchedulerWith(config)
}

// driver returns one that watches the pods until end is called.
func (s *stage) driver(ctx context.Context) (d *driver, end func(), err error) {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	server := s.client.CoreV1().Pods(namespace)
	now, err := server.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return server.Watch(ctx, o) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch pods: %w", err)
	}
	room := func(bound []corev1.Pod, pod *corev1.Pod) bool { return len(oracle.Room(nodes.Items, bound, pod)) > 0 }
	return &driver{pods: podServer{server}, watch: w.ResultChan(), room: room, full: map[simulate.Shape]bool{}}, w.Stop, nil
}

// perform has all pods come.
func (s *stage) perform(ctx context.Context, d *driver) (simulate.Run, error) {
	tally := simulate.NewTally(s.part)
	for i := range s.arrivals.Pods {
		shape := s.arrivals.Pods[i].Shape
		placed, err := d.place(ctx, i, shape)
		if err != nil {
			return tally.Run(), err
		}
		tally.Add(shape, placed)
		if n := i + 1; n%500 == 0 {
			s.say("%d pods have come, %d are placed, %d of them with a nominated node", n, len(d.bound), d.second)
		}
	}
	return tally.Run(), nil
}

// judge has the oracle check what is there in the end, which has to be what was seen.
func (s *stage) judge(ctx context.Context, d *driver, r *Report) (err error) {
	w, err := oracle.Read(ctx, s.client)
	if err != nil {
		return fmt.Errorf("list pods and nodes: %w", err)
	}
	r.Wrong = append(w.Check(), unseen(d.bound, w.Pods)...)
	return nil
}

// unseen says which pods are not where they were seen to be bound.
func unseen(bound, now []corev1.Pod) (wrong []string) {
	seen := map[types.UID]string{}
	for i := range bound {
		seen[bound[i].UID] = bound[i].Spec.NodeName
	}
	for i := range now {
		p := &now[i]
		if node, known := seen[p.UID]; !known || node != p.Spec.NodeName {
			wrong = append(wrong, fmt.Sprintf("pod %s/%s: is on %q, was seen on %q", p.Namespace, p.Name, p.Spec.NodeName, node))
		}
		delete(seen, p.UID)
	}
	if len(seen) > 0 {
		wrong = append(wrong, fmt.Sprintf("%d pods that were bound are gone", len(seen)))
	}
	return wrong
}

// podServer is the API server's pods.
type podServer struct{ corev1client.PodInterface }

func (s podServer) Create(ctx context.Context, p *corev1.Pod) (types.UID, error) {
	made, err := s.PodInterface.Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.UID, nil
}

func (s podServer) Delete(ctx context.Context, name string) error {
	return s.PodInterface.Delete(ctx, name, *metav1.NewDeleteOptions(0))
}
