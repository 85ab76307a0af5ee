// Command heteroflow-sim replays a public trace of GPU pods through the pipeline that
// the scheduler runs, and says how much of the cards gets put to use: `make quality`.
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
	"strings"
	"syscall"
	"time"

	"heteroflow.io/heteroflow/pkg/simulate"
)

// name is what the program calls itself.
const name = "heteroflow-sim"

// Exit statuses. That there are no traces is none of the reader's faults.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, getenv, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, simulate.ErrNoTrace):
		_, _ = fmt.Fprintf(stdout, "openb: no traces in %s (OPENB_DIR says where): nothing is measured\n", cfg.folder)
		return exitDone
	case err != nil:
		complain(stderr, err)
		return exitMisused
	}
	do := measure
	if cfg.overTime {
		do = stay
	}
	if err := do(ctx, cfg, stdout); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitDone
}

// measure replays all traces, a line for each result as soon as it is there, and
// prints the tables then.
func measure(ctx context.Context, cfg config, stdout io.Writer) error {
	var results []simulate.Result
	var decided time.Duration
	pods, folder := 0, os.DirFS(cfg.folder)
	for _, name := range cfg.traces {
		t, err := simulate.Read(folder, name)
		if err != nil {
			return err
		}
		start := time.Now()
		of, err := simulate.Experiment(ctx, t, cfg.policies, cfg.seeds)
		if err != nil {
			return err
		}
		decided += time.Since(start)
		pods += simulate.Decisions(of)
		if err := simulate.Lines(stdout, of); err != nil {
			return err
		}
		results = append(results, of...)
	}
	_, _ = fmt.Fprintln(stdout)
	if err := simulate.Report(stdout, results); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%d decisions took %.1f s on %d processors\n", pods, decided.Seconds(), runtime.GOMAXPROCS(0))
	return plot(cfg.plot, results)
}

// stay has pods come and go, and prints likewise.
func stay(ctx context.Context, cfg config, stdout io.Writer) error {
	var results []simulate.SteadyResult
	folder := os.DirFS(cfg.folder)
	for _, name := range cfg.traces {
		t, err := simulate.Read(folder, name)
		if err != nil {
			return err
		}
		of, err := simulate.OverTime(ctx, t, cfg.policies, cfg.seeds, simulate.SteadyStay())
		if err != nil {
			return err
		}
		if err := simulate.SteadyLines(stdout, of); err != nil {
			return err
		}
		results = append(results, of...)
	}
	_, _ = fmt.Fprintln(stdout)
	return simulate.SteadyReport(stdout, results)
}

// plot draws into the file, if there is to be one.
func plot(file string, results []simulate.Result) (err error) {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("-plot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return simulate.Plot(f, results)
}

// complain says what is wrong in one line.
func complain(w io.Writer, err error) {
	_, _ = fmt.Fprintf(w, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
}
