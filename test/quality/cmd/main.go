// Command cmd replays a part of a public trace through kube-scheduler and our extender,
// on a real control plane of its own, and compares with the simulator:
// `make quality-e2e`. Its last line is the figures; it ends with 1 if the judge objects
// to what was placed or something does not start, and never because of a figure. That
// there is no trace is said, and is no failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"heteroflow.io/heteroflow/pkg/simulate"
	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/quality"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quality-e2e:", err)
		os.Exit(1)
	}
}

// errNothing is that there is no trace to replay.
var errNothing = errors.New("nothing is measured")

func run(ctx context.Context, args []string, stdout io.Writer) error {
	config, commit, err := parse(args)
	if errors.Is(err, errNothing) {
		_, err = fmt.Fprintln(stdout, "quality-e2e:", err)
		return err
	}
	if err != nil {
		return err
	}
	config.Say = func(f string, args ...any) { _, _ = fmt.Fprintf(stdout, f+"\n", args...) }
	config.Say("trace=%s nodes=%d seed=%d go=%s commit=%s cpus=%d",
		config.Trace.Name, config.Nodes, config.Seed, runtime.Version(), commit, runtime.NumCPU())
	return measure(ctx, config, stdout)
}

// measure runs it and prints what came of it.
func measure(ctx context.Context, config quality.Config, stdout io.Writer) error {
	var report *quality.Report
	if err := cluster.Use(ctx, "quality", func(c *cluster.Cluster, _ string) (err error) {
		report, err = quality.Run(ctx, c, config)
		return err
	}); err != nil {
		return err
	}
	if err := report.Faults(); err != nil {
		return err
	}
	config.Say("")
	return report.Print(stdout)
}

func parse(args []string) (config quality.Config, commit string, err error) {
	fs := flag.NewFlagSet("quality-e2e", flag.ContinueOnError)
	folder := fs.String("openb", "../shared/openb", "folder of the traces")
	name := fs.String("trace", "default", "which one")
	fs.IntVar(&config.Nodes, "nodes", 300, "how many of its nodes, of each kind its share")
	fs.Int64Var(&config.Seed, "seed", 42, "of the arrivals")
	fs.StringVar(&commit, "commit", "unknown", "what is measured, for the record")
	if err := fs.Parse(args); err != nil {
		return config, "", err
	}
	if fs.NArg() > 0 {
		return config, "", fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	if _, err := simulate.Names(os.DirFS(*folder)); errors.Is(err, simulate.ErrNoTrace) {
		return config, "", fmt.Errorf("no traces in %s (OPENB_DIR says where): %w", *folder, errNothing)
	}
	if config.Trace, err = simulate.Read(os.DirFS(*folder), *name); err != nil {
		return config, "", fmt.Errorf("--trace: %w", err)
	}
	return config, commit, config.Validate()
}
