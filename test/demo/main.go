// Command demo shows the scheduler at work: a real control plane, simulated
// nodes of several vendors and sizes, pods of three tenants on a card that two of
// them may share, one that is ended for a more urgent one, the pods of examples/, and
// 200 generated ones. It prints where each went, with which cards, and why
// the others wait.
//
// With --exit it then ends; otherwise everything stays up until it is
// interrupted. It judges the outcome by package oracle, and fails when a card
// is oversold, tenants share one that may not, a quota is passed, or a pod is
// neither placed nor told why.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

const (
	namespace = "demo"
	generated = 200
)

func main() {
	exit := flag.Bool("exit", false, "end when everything has been shown")
	flag.Parse()
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(os.Stdout, rest.WarningWriterOptions{})) // as kubectl shows them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *exit); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, exit bool) error {
	dir, err := os.MkdirTemp("", "heteroflow-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}

	say("starting etcd, kube-apiserver, controllers")
	c, err := cluster.Start(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Stop()
	nodes := simnode.New(c.Client)
	kubelet := make(chan error, 1)
	kubeletCtx, stopKubelet := context.WithCancel(ctx)
	defer func() { stopKubelet(); <-kubelet }()
	go func() { kubelet <- nodes.Run(kubeletCtx) }()
	if err := nodes.Add(ctx, inventory()...); err != nil {
		return err
	}
	say("%d nodes with %d cards of %s", len(inventory()), cardCount(), vendors())
	if err := startSchedulers(ctx, c); err != nil {
		return err
	}
	say("heteroflow-scheduler and kube-scheduler run, pods pass through admission")

	if err := place(ctx, c, say); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Logs(10))
	}
	if exit {
		say("ending")
		return nil
	}
	fmt.Printf("\nStays up; end it with Ctrl-C. Look around with\n\n  export KUBECONFIG=%s\n  kubectl get pods -A -o wide\n  kubectl get tenants,taskgroups,preemptions\n\nLogs are in %s\n",
		c.Kubeconfig(), dir)
	<-ctx.Done()
	return nil
}

// startSchedulers starts ours, which pods then pass through, and kube-scheduler.
func startSchedulers(ctx context.Context, c *cluster.Cluster) error {
	if err := c.StartExtender(ctx, cluster.Extender{}); err != nil {
		return err
	}
	if err := c.Admit(ctx); err != nil {
		return err
	}
	return c.StartKubeScheduler(ctx)
}

// part is a part of the show.
type part struct {
	what   string
	first  func(context.Context, *cluster.Cluster) error // before the pods are made; nil: nothing
	pods   []*corev1.Pod
	beside []string // pods that are there already and are shown too
	ended  bool     // somebody is ended for one of the pods
	kind   string   // a kind of ours that is shown; "": none
}

// parts begins with those that need cards of their own: others would be on them.
func parts(examples []*corev1.Pod) []part {
	return []part{
		{what: "pods of the tenants of examples/tenants.yaml: vision and speech may share a card, payments with nobody", pods: tenantPods(), kind: v1alpha1.TenantResource},
		{what: "a service that is awake by day: two replicas, with both cards of node a16-1", first: serve, kind: v1alpha1.TaskGroupResource},
		{what: "night falls and it sleeps; of two tasks for its cards one will have ended by morning, and gets one", first: sleep, pods: nightTasks(), kind: v1alpha1.TaskGroupResource},
		{what: "two experiments that may be ended for others; they take both cards of node a30-1", pods: experiments()},
		{what: "a pod with a deadline, for a card of the same model: one experiment is ended for it, and made anew to wait", pods: deadline(), beside: named(experiments()), ended: true},
		{what: "the pods of examples/", pods: examples},
		{what: fmt.Sprintf("%d generated pods", generated), pods: generatedPods(generated), kind: v1alpha1.TenantResource},
	}
}

// place creates the pods and shows what became of them.
func place(ctx context.Context, c *cluster.Cluster, say func(string, ...any)) error {
	examples, err := examplePods(filepath.Join(c.Root(), "examples"))
	if err != nil {
		return err
	}
	if err := c.Namespace(ctx, namespace); err != nil {
		return err
	}
	if err := found(ctx, c); err != nil {
		return err
	}
	for _, p := range parts(examples) {
		say("%s", p.what)
		if p.first != nil {
			if err := p.first(ctx, c); err != nil {
				return err
			}
		}
		names, err := create(ctx, c, p.pods)
		if err != nil {
			return err
		}
		state, err := settled(ctx, c)
		if err != nil {
			return err
		}
		say("settled")
		if err := show(ctx, c, &p, state, append(names, p.beside...)); err != nil {
			return err
		}
		if err := state.judge(); err != nil {
			return err
		}
	}
	return nil
}

func show(ctx context.Context, c *cluster.Cluster, p *part, s *state, names []string) error {
	if len(names) > 0 {
		s.print(os.Stdout, names)
	}
	printPreemptions(os.Stdout, s.preemptions, names)
	if p.ended && len(s.preemptions) == 0 {
		return errors.New("nobody was ended for the pod with the deadline")
	}
	if p.kind == "" {
		return nil
	}
	return printKind(ctx, c, p.kind, os.Stdout)
}

func create(ctx context.Context, c *cluster.Cluster, pods []*corev1.Pod) ([]string, error) {
	var names []string
	for _, pod := range pods {
		pod.Namespace = cmp.Or(pod.Namespace, namespace)
		if _, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		names = append(names, nameOf(pod))
	}
	return names, nil
}
