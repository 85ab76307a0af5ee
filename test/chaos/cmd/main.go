// Command cmd makes chaos on a real control plane of its own and says what came
// of it: `make chaos DURATION=5m`. Its last line is the result; it ends with 1 if
// anything went wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"heteroflow.io/heteroflow/test/chaos"
	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/faults"
	"heteroflow.io/heteroflow/test/simnode"
)

func main() {
	duration := flag.Duration("duration", 5*time.Minute, "how long")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	result, err := run(ctx, *seed, *duration)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	if len(result.Wrong) > 0 {
		fmt.Println(strings.Join(result.Wrong, "\n"))
	}
	fmt.Println(result)
	if !result.OK() {
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, d time.Duration) (chaos.Result, error) {
	dir, err := os.MkdirTemp("", "heteroflow-chaos-")
	if err != nil {
		return chaos.Result{}, err
	}
	defer os.RemoveAll(dir)
	c, err := cluster.Start(ctx, dir)
	if err != nil {
		return chaos.Result{}, err
	}
	defer c.Stop()
	nodes := simnode.New(c.Client)
	kubelet := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer func() { stop(); <-kubelet }()
	go func() { kubelet <- nodes.Run(ctx) }()
	if err := nodes.Add(ctx, chaos.Nodes()...); err != nil {
		return chaos.Result{}, err
	}
	return perform(ctx, c, seed, d)
}

func perform(ctx context.Context, c *cluster.Cluster, seed uint64, d time.Duration) (chaos.Result, error) {
	url, transport, err := c.Upstream()
	if err != nil {
		return chaos.Result{}, err
	}
	proxy, err := faults.New(url, transport)
	if err != nil {
		return chaos.Result{}, err
	}
	defer proxy.Close()
	s := chaos.Stage{Cluster: c, Proxy: proxy, Namespace: "chaos", Say: func(f string, args ...any) { fmt.Printf(f+"\n", args...) }}
	if err := c.Namespace(ctx, s.Namespace); err != nil {
		return chaos.Result{}, err
	}
	if err := c.StartExtender(ctx, s.Extender()); err != nil {
		return chaos.Result{}, fmt.Errorf("%w\n%s", err, c.Logs(30))
	}
	if err := c.StartKubeScheduler(ctx); err != nil {
		return chaos.Result{}, err
	}
	result, err := chaos.Run(ctx, s, seed, d)
	if err != nil || !result.OK() {
		fmt.Fprintln(os.Stderr, c.Logs(60))
	}
	return result, err
}
