package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// Stage is what a run works on: a cluster with Nodes, in which kube-scheduler
// runs, and the extender as Extender says, behind Proxy.
type Stage struct {
	Cluster   *cluster.Cluster
	Proxy     *faults.Proxy // in front of Cluster.Upstream
	Namespace string
	Say       func(format string, args ...any)
}

// Sizes of a run: its pods ask for about twice the cards that there are, so that
// a quarter of them wait, and whatever becomes free is given again at once.
const (
	machines = 12
	each     = 8   // cards of a machine
	together = 240 // pods that are there at once
)

// Nodes are those that a run is made for.
func Nodes() []simnode.Spec {
	nodes := make([]simnode.Spec, machines)
	for i := range nodes {
		name := fmt.Sprintf("chaos-%02d", i)
		nodes[i] = simnode.Spec{Name: name, Cards: simnode.Cards(name, each, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)}
	}
	return nodes
}

// Extender is how the extender runs: in a hurry, so that a run sees the end of
// what takes minutes in life.
func (s *Stage) Extender() cluster.Extender {
	return cluster.Extender{
		APIServer: s.Proxy.URL(), Linger: 5 * time.Second, Audit: 5 * time.Second, Settle: 5 * time.Second, Verbosity: 2,
	}
}

// Result is what came of a run.
type Result struct {
	Pods int
	// Oversold counts complaints of the oracle about cards, Halfbound those about
	// a pod's record; Lost pods that fitted in the end and had no node, Leaked
	// cards' holders whose pods were gone.
	Oversold, Halfbound, Lost, Leaked int
	// Wrong says in words what these are, the first few of many.
	Wrong []string
	// Waiting is how many in 100 of the pods had no node, on average.
	Waiting int
}

func (r Result) String() string {
	return fmt.Sprintf("chaos: pods=%d oversold=%d halfbound=%d lost=%d leaked=%d", r.Pods, r.Oversold, r.Halfbound, r.Lost, r.Leaked)
}

// OK reports whether nothing went wrong.
func (r Result) OK() bool { return r.Oversold+r.Halfbound+r.Lost+r.Leaked == 0 }

// rate is how many pods come and go a second.
const rate = 20

// Run makes chaos for that long, lets it settle, and counts.
func Run(ctx context.Context, s Stage, seed uint64, d time.Duration) (Result, error) {
	s.Say("seed %d, %s", seed, d)
	r := &run{Stage: s, random: rand.New(rand.NewPCG(seed, 0))}
	until, stop := context.WithTimeout(ctx, d)
	defer stop()
	var g errgroup.Group
	trouble := rand.New(rand.NewPCG(seed, 1))
	g.Go(func() error { return r.podsComeAndGo(until, ctx) })
	g.Go(func() error { return r.thingsGoWrong(until, ctx, trouble) })
	g.Go(func() error { return r.watch(until, ctx) })
	if err := g.Wait(); err != nil {
		return r.result, err
	}
	for _, share := range r.shares {
		r.result.Waiting += share
	}
	r.result.Waiting /= max(1, len(r.shares))
	s.Say("%d %% of the pods waited for cards", r.result.Waiting)
	return r.result, r.settle(ctx)
}

type run struct {
	Stage
	random *rand.Rand
	result Result
	shares []int    // of the pods that had no node, in percent, at each look
	alive  []string // names of the pods that have been made and not deleted
}

// tick calls f so often a second until ctx ends.
func tick(ctx context.Context, every time.Duration, f func() error) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := f(); err != nil {
				return err
			}
		}
	}
}

// podsComeAndGo makes a pod, and ends another, at the rate.
func (r *run) podsComeAndGo(until, ctx context.Context) error {
	return tick(until, time.Second/rate, func() error {
		name := fmt.Sprintf("chaos-%d", r.result.Pods)
		pod := somePod(r.random, name)
		if _, err := r.Cluster.Client.CoreV1().Pods(r.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod: %w", err)
		}
		r.result.Pods++
		r.alive = append(r.alive, name)
		if len(r.alive) < together {
			return nil
		}
		i := r.random.IntN(len(r.alive))
		gone := r.alive[i]
		r.alive = slices.Delete(r.alive, i, i+1)
		return r.remove(ctx, gone, r.random.IntN(10) == 0)
	})
}

func (r *run) remove(ctx context.Context, name string, force bool) error {
	var o metav1.DeleteOptions
	if force {
		o.GracePeriodSeconds = new(int64)
	}
	err := r.Cluster.Client.CoreV1().Pods(r.Namespace).Delete(ctx, name, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// watch has the oracle look at all pods now and then.
func (r *run) watch(until, ctx context.Context) error {
	return tick(until, 3*time.Second, func() error {
		if err := r.judge(ctx); err != nil {
			return err
		}
		all, waiting, err := r.pods(ctx)
		if err == nil && len(all) >= together*9/10 {
			r.shares = append(r.shares, 100*len(waiting)/len(all))
		}
		return err
	})
}

// pods lists all pods that nobody has deleted, and those of them without a node.
func (r *run) pods(ctx context.Context) (all []corev1.Pod, waiting []string, err error) {
	list, err := r.Cluster.Client.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range list.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		all = append(all, p)
		if p.Spec.NodeName == "" {
			waiting = append(waiting, p.Name)
		}
	}
	return all, waiting, nil
}

// judge counts what the oracle complains of, each thing once.
func (r *run) judge(ctx context.Context) error {
	wrong, err := oracle.Verify(ctx, r.Cluster.Client)
	if err != nil {
		return err
	}
	for _, text := range wrong {
		if slices.Contains(r.result.Wrong, text) {
			continue
		}
		r.result.Wrong = append(r.result.Wrong, text)
		if strings.HasPrefix(text, "pod ") {
			r.result.Halfbound++
		} else {
			r.result.Oversold++
		}
	}
	return nil
}
