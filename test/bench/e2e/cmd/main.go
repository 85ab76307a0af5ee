// Command cmd measures on a real control plane of its own how many pods a second
// are bound with our extender and without: `make bench-e2e`. It ends with 1 if a
// pod was lost, cards were given wrongly, or something did not start, and never
// because of a figure.
//
//	cmd noop MODE ADDRESS KUBECONFIG
//
// is the extender that decides nothing, which it compares ours with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"heteroflow.io/heteroflow/test/bench/e2e"
	"heteroflow.io/heteroflow/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-e2e:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "noop" {
		return e2e.ServeNoop(ctx, e2e.Mode(args[1]), args[2], args[3])
	}
	config := e2e.Config{Say: func(f string, args ...any) { fmt.Printf(f+"\n", args...) }}
	fs := flag.NewFlagSet("bench-e2e", flag.ContinueOnError)
	fs.IntVar(&config.Nodes, "nodes", 1000, "how many nodes of 8 cards")
	fs.IntVar(&config.Pods, "pods", 3000, "how many pods in a round, half slices, half whole cards")
	fs.IntVar(&config.Rounds, "rounds", 3, "how often each configuration has its turn")
	fs.Func("only", "the configurations that are measured, by their names with commas between them; all if not given", func(text string) error {
		config.Only = strings.Split(text, ",")
		return nil
	})
	commit := fs.String("commit", "unknown", "what is measured, for the record")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	if err := config.Validate(); err != nil {
		return err
	}
	config.Say("nodes=%d pods=%d rounds=%d go=%s commit=%s cpus=%d",
		config.Nodes, config.Pods, config.Rounds, runtime.Version(), *commit, runtime.NumCPU())
	return measure(ctx, config)
}

// measure runs all of it and prints what came of it.
func measure(ctx context.Context, config e2e.Config) error {
	if runtime.GOOS != "linux" {
		return errors.New("needs Linux: what processes cost is read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	config.Noop = func(mode e2e.Mode, address, kubeconfig string) *exec.Cmd {
		return exec.Command(self, "noop", string(mode), address, kubeconfig)
	}
	var report *e2e.Report
	if err := cluster.Use(ctx, "bench", func(c *cluster.Cluster, _ string) (err error) {
		report, err = e2e.Run(ctx, c, config)
		return err
	}); err != nil {
		return err
	}
	fmt.Println()
	if err := report.Print(os.Stdout); err != nil {
		return err
	}
	if faults := report.Faults(); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}
