// Command heteroflow-scheduler is the scheduler extender: it reads its flags,
// puts the packages together, and runs them until it is told to stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

// version is set when linking: -X main.version=v1.2.3
var version = "dev"

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 2 // a wrong flag or policy
)

func main() {
	boundGarbage()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	klog.Flush()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		complain(stderr, err)
		return exitMisused
	case cfg.version:
		_, _ = fmt.Fprintln(stdout, name, version)
		return exitDone
	}
	if err := serve(ctx, cfg); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitDone
}

// complain says what is wrong, in one line: it is what an operator sees first.
func complain(w io.Writer, err error) {
	_, _ = fmt.Fprintf(w, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
}
