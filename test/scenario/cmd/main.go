// Command cmd runs the placement scenario on a real control plane of its own:
// `make scenario`. Its last lines are the figures; it ends with 1 if the judge
// objects to what was placed or something does not start, and never because of a
// figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scenario:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	config, commit, err := parse(args)
	if err != nil {
		return err
	}
	config.Say("nodes=%d load=%g seeds=%d..%d length=%v wait=%v go=%s commit=%s cpus=%d", config.Floor.Nodes, config.Load,
		config.Seed, config.Seed+uint64(config.Runs)-1, config.Length, config.Wait, runtime.Version(), commit, runtime.NumCPU())
	var report *scenario.Report
	if err := cluster.Use(ctx, "scenario", func(c *cluster.Cluster, _ string) (err error) {
		report, err = scenario.Run(ctx, c, config)
		return err
	}); err != nil {
		return err
	}
	if faults := report.Faults(); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	fmt.Println()
	return report.Print(os.Stdout)
}

func parse(args []string) (config scenario.Config, commit string, err error) {
	config.Say = func(f string, args ...any) { fmt.Printf(f+"\n", args...) }
	fs := flag.NewFlagSet("scenario", flag.ContinueOnError)
	fs.IntVar(&config.Floor.Nodes, "nodes", 128, "how many nodes of 8 cards, 8 to a rack")
	fs.Float64Var(&config.Load, "load", 0.9, "how much of all cards the tasks would hold if none waited")
	fs.DurationVar(&config.Fill, "fill", 30*time.Second, "time in which the cluster fills; what comes in it does not count")
	fs.DurationVar(&config.Length, "length", 150*time.Second, "of one run; a second stands for a minute")
	fs.DurationVar(&config.Wait, "wait", 15*time.Second, "how long a task waits before it is withdrawn")
	fs.IntVar(&config.Runs, "runs", 3, "how often each configuration has its turn")
	fs.Uint64Var(&config.Seed, "seed", 1, "of the first run; the others follow")
	only := fs.String("only", "stock,stock-all,default,tuned", "the configurations, by their names with commas between them; there are blind and heterogeneous besides")
	fs.StringVar(&commit, "commit", "unknown", "what is measured, for the record")
	if err := fs.Parse(args); err != nil {
		return config, "", err
	}
	if fs.NArg() > 0 {
		return config, "", fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	if config.Setups, err = scenario.Choose(strings.Split(*only, ",")); err != nil {
		return config, "", err
	}
	return config, commit, config.Validate()
}
