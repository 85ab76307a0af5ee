// Command cmd measures the scheduler with a large cluster on a control plane of
// its own: `make bench-scale NODES=5000 PODS=40000`. It ends with 1 on a fault,
// whatever the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heteroflow.io/heteroflow/test/bench/scale"
	"heteroflow.io/heteroflow/test/cluster"
)

func main() {
	o := scale.Options{Say: func(f string, args ...any) { fmt.Printf(f+"\n", args...) }}
	flag.IntVar(&o.Nodes, "nodes", 5000, "nodes, of 8 cards each")
	flag.IntVar(&o.Pods, "pods", 40000, "pods that run; 16 a node at most")
	flag.IntVar(&o.Rate, "rate", 500, "changes of nodes and pods a second in the storm")
	flag.DurationVar(&o.Settle, "settle", time.Minute, "from ready to the second look at the memory")
	flag.DurationVar(&o.Audit, "audit-interval", 20*time.Second, "the scheduler's")
	flag.DurationVar(&o.Ask, "ask", 30*time.Second, "how long /filter is asked, quiet and in the storm")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o scale.Options) error {
	if o.Nodes < 1 || o.Pods < 1 || o.Pods > 16*o.Nodes || o.Rate < 1 {
		return fmt.Errorf("%d nodes, %d pods, rate %d: each is at least 1, and pods at most 16 a node", o.Nodes, o.Pods, o.Rate)
	}
	return cluster.Use(ctx, "scale", func(c *cluster.Cluster, dir string) error { return scale.Run(ctx, c, dir, o) })
}
