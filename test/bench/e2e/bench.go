package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

// Config says how much is measured.
type Config struct {
	Nodes, Pods, Rounds int
	// Only are the configurations that are measured; none: all of them.
	Only []string
	// Noop is a program that calls ServeNoop.
	Noop func(mode Mode, address, kubeconfig string) *exec.Cmd
	Say  func(format string, args ...any)
}

// Validate says what is wrong with the figures.
func (c Config) Validate() error {
	if c.Rounds < 1 {
		return fmt.Errorf("%d rounds: want at least 1", c.Rounds)
	}
	for _, name := range c.Only {
		if !slices.Contains(setups(), name) {
			return fmt.Errorf("only: there is no configuration %q; there are %v", name, setups())
		}
	}
	return fits(c.Nodes, c.Pods)
}

// The configurations, in the order of a round.
const (
	none    = "none" // kube-scheduler out of the box
	bare    = "bare" // with the profile of ours, and no extender
	noopAll = "noop-all"
	noopOne = "noop-one"
	ours    = "ours"
	fenced  = "fenced" // ours with the chart's policies in force, and an epoch
)

func setups() []string { return []string{none, bare, noopAll, noopOne, ours, fenced} }

// setup is one configuration.
type setup struct {
	name     string
	ours     bool
	policed  bool                        // the chart's policies are in force
	config   []byte                      // of kube-scheduler
	extender func(context.Context) error // starts it
}

// asReleased is how the extender's flags have replicas agree by default. It is told
// of here, since what starts an extender has it decide alone.
var asReleased = cluster.Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond, FenceDelay: time.Second}

// chartPolicies are what the chart has the API server check.
var chartPolicies = []string{"heteroflow.io_epochs.yaml", "policy-authorproof.yaml", "policy-fence.yaml"}

type bench struct {
	Config
	cluster *cluster.Cluster
	client  kubernetes.Interface
}

// Run measures on a cluster in which nothing runs yet but its control plane.
func Run(ctx context.Context, c *cluster.Cluster, config Config) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cluster.Quick(c.Config))
	if err != nil {
		return nil, err
	}
	b := &bench{Config: config, cluster: c, client: client}
	if err := c.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	b.Say("adding %d nodes", b.Nodes)
	// Their kubelet is left out: it would cost every configuration the same, and
	// nothing here waits for a pod to run.
	if err := simnode.New(client).Add(ctx, nodes(b.Nodes)...); err != nil {
		return nil, fmt.Errorf("add nodes: %w", err)
	}
	all, err := b.setups()
	if err != nil {
		return nil, err
	}
	return b.rounds(ctx, all)
}

func (b *bench) rounds(ctx context.Context, all []setup) (*Report, error) {
	b.Say("warming up")
	if _, err := b.round(ctx, all[0], max(2, b.Pods/10)); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	report := &Report{}
	for n := range b.Rounds {
		for _, s := range all {
			if len(b.Only) > 0 && !slices.Contains(b.Only, s.name) {
				continue
			}
			r, err := b.round(ctx, s, b.Pods)
			if err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", n+1, s.name, err)
			}
			b.Say("round %d %-8s %6.1f pods/s  load average before it %s, processor time of others %.1f s",
				n+1, s.name, r.Rate, r.Load, r.Use[others].CPU.Seconds())
			report.Rounds = append(report.Rounds, r)
		}
	}
	return report, nil
}

// setups are the configurations, in the order of their names.
func (b *bench) setups() ([]setup, error) {
	with, without, plain, err := b.configs()
	if err != nil {
		return nil, err
	}
	nobody := func(context.Context) error { return nil }
	return []setup{
		{name: none, config: plain, extender: nobody},
		{name: bare, config: without, extender: nobody},
		{name: noopAll, config: with, extender: b.noop(All)},
		{name: noopOne, config: with, extender: b.noop(One)},
		{name: ours, config: with, ours: true, extender: func(ctx context.Context) error {
			return b.cluster.StartExtender(ctx, cluster.Extender{})
		}},
		{name: fenced, config: with, ours: true, policed: true, extender: func(ctx context.Context) error {
			return b.cluster.StartExtender(ctx, cluster.Extender{Elect: asReleased})
		}},
	}, nil
}

// configs are kube-scheduler's: with an extender, without, and out of the box.
func (b *bench) configs() (with, without, plain []byte, err error) {
	example, err := b.cluster.KubeSchedulerConfig(b.cluster.ExtenderURL())
	if err != nil {
		return nil, nil, nil, err
	}
	if with, err = alone(example); err == nil {
		without, err = withoutExtenders(with)
	}
	var untouched []byte
	if err == nil {
		untouched, err = stock(with)
	}
	if err == nil {
		plain, err = withoutExtenders(untouched)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("examples/kube-scheduler.yaml: %w", err)
	}
	return with, without, plain, nil
}

func (b *bench) noop(mode Mode) func(context.Context) error {
	return func(ctx context.Context) error {
		return b.cluster.StartStandIn(ctx, func(address, kubeconfig string) *exec.Cmd { return b.Noop(mode, address, kubeconfig) })
	}
}
