package chaos

import (
	"context"
	"errors"
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
// runs. The extender is started by the run, behind Proxy.
type Stage struct {
	Cluster   *cluster.Cluster
	Proxy     *faults.Proxy // in front of Cluster.Upstream
	Namespace string
	Say       func(format string, args ...any)
}

// Nodes are those that a run is made for: more cards than its pods ask for
// together.
func Nodes() []simnode.Spec {
	nodes := make([]simnode.Spec, 24)
	for i := range nodes {
		name := fmt.Sprintf("chaos-%02d", i)
		nodes[i] = simnode.Spec{Name: name, Cards: simnode.Cards(name, 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)}
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
	// holds of pods that were gone.
	Oversold, Halfbound, Lost, Leaked int
	// Wrong says all of these in words.
	Wrong []string
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
	return r.result, r.settle(ctx)
}

type run struct {
	Stage
	random *rand.Rand
	result Result
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
	const together = 150 // about what the nodes hold
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
	return tick(until, 3*time.Second, func() error { return r.judge(ctx) })
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

// settle ends all trouble and waits until nothing changes any more: whoever fits
// has a node, and when all pods are gone nothing is held.
func (r *run) settle(ctx context.Context) error {
	r.Proxy.Clear()
	lost := cluster.Eventually(ctx, "all pods that fit", func(ctx context.Context) error { return r.noneLeftOut(ctx) })
	if lost != nil {
		r.result.Lost++
		r.result.Wrong = append(r.result.Wrong, lost.Error())
	}
	if err := r.judge(ctx); err != nil {
		return err
	}
	pods := r.Cluster.Client.CoreV1().Pods(r.Namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	leaked := cluster.Eventually(ctx, "all cards to be given back", r.noneHeld)
	if leaked != nil {
		r.result.Leaked++
		r.result.Wrong = append(r.result.Wrong, leaked.Error())
	}
	return nil
}

// noneLeftOut complains of pods that have no node while everything has been
// quiet and the cluster is not full: the last ones take a slice, which fits.
func (r *run) noneLeftOut(ctx context.Context) error {
	pods, err := r.Cluster.Client.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var waiting []string
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			waiting = append(waiting, p.Name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return fmt.Errorf("%d wait: %v", len(waiting), waiting[:min(5, len(waiting))])
}

// noneHeld complains of cards that the ledger holds.
func (r *run) noneHeld(ctx context.Context) error {
	held, err := r.Cluster.Holders(ctx)
	if err == nil && len(held) > 0 {
		err = errors.New("held: " + strings.Join(held[:min(5, len(held))], ", "))
	}
	return err
}

// somePod asks for a card, two, or a slice.
func somePod(random *rand.Rand, name string) *corev1.Pod {
	asks := [...]map[corev1.ResourceName]int64{
		{"heteroflow.io/gpu": 1},
		{"heteroflow.io/gpu": 2},
		{"heteroflow.io/gpu-memory": 8000},
		{"heteroflow.io/gpu-memory": 30000, "heteroflow.io/gpu-cores": 40},
		{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000, "nvidia.com/gpucores": 30},
	}
	return podOf(name, asks[random.IntN(len(asks))])
}
