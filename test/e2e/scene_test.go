package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// stage is what all tests share.
type stage struct {
	*cluster.Cluster
	nodes   *simnode.Nodes
	proxy   *faults.Proxy    // in front of the API server, for those who want it
	running cluster.Extender // how the extender runs now
}

// shared is set by TestMain before any test runs, and never again.
var shared *stage

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := perform(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// perform runs the tests on a stage of their own.
func perform(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "heteroflow-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	c, err := cluster.Start(ctx, dir)
	if err != nil {
		stop()
		return 0, err
	}
	defer c.Stop()
	leaveWhenInterrupted(dir)

	proxy, err := newProxy(c)
	if err != nil {
		stop()
		return 0, err
	}
	defer proxy.Close()
	s := &stage{Cluster: c, nodes: simnode.New(c.Client), proxy: proxy, running: defaults}
	kubelet := make(chan error, 1)
	go func() { kubelet <- s.nodes.Run(ctx) }()
	defer func() { stop(); <-kubelet }()

	if err := c.StartExtender(ctx, s.running); err != nil {
		return 0, err
	}
	if err := c.StartKubeScheduler(ctx); err != nil {
		return 0, err
	}
	shared = s
	return m.Run(), nil
}

// newProxy stands between the extender and the API server.
func newProxy(c *cluster.Cluster) (*faults.Proxy, error) {
	url, transport, err := c.Upstream()
	if err != nil {
		return nil, err
	}
	return faults.New(url, transport)
}

// leaveWhenInterrupted removes the files of a run that is interrupted. Its
// processes end by themselves when this one does.
func leaveWhenInterrupted(dir string) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = os.RemoveAll(dir)
		os.Exit(130)
	}()
}

// linger is short, so that a test sees its end.
const linger = 5 * time.Second

// defaults are how the extender runs unless a test wants it otherwise.
var defaults = cluster.Extender{Linger: linger, Verbosity: 2}

// scene is one test on the stage.
type scene struct {
	*stage
	*testing.T
	ctx context.Context
	ns  string
}

// begin gives a test an empty cluster, a namespace and the extender it wants.
func begin(t *testing.T, want cluster.Extender) *scene {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	s := &scene{stage: shared, T: t, ctx: ctx, ns: strings.ToLower(t.Name())}
	t.Cleanup(stop)
	t.Cleanup(s.clear)
	s.must("namespace", s.Namespace(ctx, s.ns))
	if want != s.running {
		s.StopExtender()
		s.must("extender", s.StartExtender(ctx, want))
		s.running = want
	}
	return s
}

// part runs one part of the scene as a subtest.
func (s *scene) part(name string, play func(*scene)) {
	s.Helper()
	s.Run(name, func(t *testing.T) {
		part := *s
		part.T = t
		play(&part)
	})
}

// clear removes what the test has made, and shows the logs if it did not like
// what it saw.
func (s *scene) clear() {
	if s.Failed() {
		s.Log(s.Logs(60))
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	all := metav1.ListOptions{}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	background := metav1.DeletePropagationBackground
	jobs := metav1.DeleteOptions{GracePeriodSeconds: now.GracePeriodSeconds, PropagationPolicy: &background}
	namespaces, err := s.Client.CoreV1().Namespaces().List(ctx, all)
	s.check("list namespaces", err)
	s.check("delete preemptions", s.ourKinds().HeteroflowV1alpha1().Preemptions().DeleteCollection(ctx, now, all)) // or bare pods would be made anew
	for _, ns := range namespaces.Items {
		s.check("delete services", s.clearServices(ctx, ns.Name))
		s.check("delete replica sets", s.Client.AppsV1().ReplicaSets(ns.Name).DeleteCollection(ctx, now, all))
		s.check("delete jobs", s.Client.BatchV1().Jobs(ns.Name).DeleteCollection(ctx, jobs, all))
		s.check("delete pods", s.Client.CoreV1().Pods(ns.Name).DeleteCollection(ctx, now, all))
	}
	s.check("delete tenants", s.tenants().DeleteCollection(ctx, now, all))
	s.check("delete nodes", s.nodes.Clear(ctx))
	s.check("empty the cluster", cluster.Eventually(ctx, "the pods to go", func(ctx context.Context) error {
		pods, err := s.Client.CoreV1().Pods("").List(ctx, all)
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return err
	}))
}

func (s *scene) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func (s *scene) check(what string, err error) {
	s.Helper()
	if err != nil {
		s.Errorf("%s: %v", what, err)
	}
}

// eventually ends the test unless check is content in time.
func (s *scene) eventually(what string, check func() error) {
	s.Helper()
	s.must(what, cluster.Eventually(s.ctx, what, func(context.Context) error { return check() }))
}

// meanwhile ends the test if check is not content all that time.
func (s *scene) meanwhile(d time.Duration, what string, check func() error) {
	s.Helper()
	over := time.NewTimer(d)
	defer over.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s.must(what, check())
		select {
		case <-over.C:
			return
		case <-tick.C:
		}
	}
}

// verify lets the oracle judge.
func (s *scene) verify() {
	s.Helper()
	wrong, err := oracle.Verify(s.ctx, s.Client)
	s.must("oracle", err)
	if len(wrong) > 0 {
		s.Errorf("the oracle complains:\n%s", strings.Join(wrong, "\n"))
	}
}

// add makes nodes.
func (s *scene) add(specs ...simnode.Spec) {
	s.Helper()
	s.must("make nodes", s.nodes.Add(s.ctx, specs...))
}

// create makes pods, many at once, as a burst would.
func (s *scene) create(pods ...*corev1.Pod) {
	s.Helper()
	s.must("create pods", s.burst(pods))
}

// burst makes pods as create does. It may run beside the test.
func (s *scene) burst(pods []*corev1.Pod) error {
	var g errgroup.Group
	g.SetLimit(16)
	for _, p := range pods {
		if p.Namespace == "" {
			p.Namespace = s.ns
		}
		g.Go(func() error {
			_, err := s.Client.CoreV1().Pods(p.Namespace).Create(s.ctx, p, metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// pod reads one pod of the scene.
func (s *scene) pod(name string) *corev1.Pod {
	s.Helper()
	p, err := s.Client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
	s.must("read pod", err)
	return p
}

// pods lists all pods of the cluster.
func (s *scene) pods() []corev1.Pod {
	s.Helper()
	l, err := s.Client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{})
	s.must("list pods", err)
	return l.Items
}

// nodeList lists all nodes of the cluster.
func (s *scene) nodeList() []corev1.Node {
	s.Helper()
	l, err := s.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	s.must("list nodes", err)
	return l.Items
}

// runs waits until the pod runs, and returns it.
func (s *scene) runs(name string) *corev1.Pod {
	s.Helper()
	var p *corev1.Pod
	s.eventually("pod "+name+" to run", func() error {
		if p = s.pod(name); p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s: %s", p.Status.Phase, condition(p))
		}
		return nil
	})
	return p
}

// waits returns an error once the pod has a node.
func (s *scene) waits(name string) error {
	if node := s.pod(name).Spec.NodeName; node != "" {
		return fmt.Errorf("pod %s is bound to %s", name, node)
	}
	return nil
}

// remove deletes a pod, gracefully or by force.
func (s *scene) remove(name string, force bool) {
	s.Helper()
	var options metav1.DeleteOptions
	if force {
		options.GracePeriodSeconds = new(int64)
	}
	s.must("delete pod", s.Client.CoreV1().Pods(s.ns).Delete(s.ctx, name, options))
}

// gone waits until the pod's object is gone.
func (s *scene) gone(name string) {
	s.Helper()
	s.eventually("pod "+name+" to go", func() error {
		_, err := s.Client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// condition says what kube-scheduler says of the pod.
func condition(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	return ""
}

// newUID is for pods that the API server does not know.
func newUID() string { return string(uuid.NewUUID()) }
