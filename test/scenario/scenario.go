package scenario

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/simnode"
)

// Config says what is run.
type Config struct {
	Plan
	Setups []Setup
	Runs   int
	Seed   uint64 // of the first run; the others follow
	Say    func(format string, args ...any)
}

// Validate says what is wrong with the figures.
func (c *Config) Validate() error {
	if c.Runs < 1 {
		return fmt.Errorf("%d runs: want at least 1", c.Runs)
	}
	return c.Plan.Validate()
}

// Run runs all setups in turn, round after round, on a cluster in which nothing
// runs yet but its control plane.
func Run(ctx context.Context, c *cluster.Cluster, config Config) (*Report, error) {
	client, err := kubernetes.NewForConfig(cluster.Quick(c.Config))
	if err != nil {
		return nil, err
	}
	if err := c.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	nodes := simnode.New(client)
	kubelet := make(chan error, 1)
	kubeletCtx, stop := context.WithCancel(ctx)
	defer func() { stop(); <-kubelet }()
	go func() { kubelet <- nodes.Run(kubeletCtx) }()
	config.Say("adding %d nodes in %d racks", config.Floor.Nodes, config.Floor.Racks())
	if err := nodes.Add(ctx, config.Floor.specs()...); err != nil {
		return nil, fmt.Errorf("add nodes: %w", err)
	}
	return rounds(ctx, c, client, config)
}

func rounds(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, config Config) (*Report, error) {
	report := &Report{}
	for n := range config.Runs {
		for _, s := range config.Setups {
			seed := config.Seed + uint64(n)
			stage := &stage{
				cluster: c, client: client, plan: config.Plan, setup: s, say: config.Say,
				tasks: Draw(config.Plan, seed), tally: newTally(config.Floor), heat: NewHeat(config.Floor),
			}
			o, err := stage.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("run %d of %s: %w", n+1, s.Name, err)
			}
			o.Seed = seed
			report.Outcomes = append(report.Outcomes, o)
			config.Say("%-13s seed %d: %s", s.Name, seed, &o)
		}
	}
	return report, nil
}

// minute is what stands for a minute of the cluster's own time.
const minute = time.Second

// inCluster is how much of the cluster's own time passes.
func inCluster(d time.Duration) time.Duration { return d * (time.Minute / minute) }
