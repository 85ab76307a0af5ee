// Command cmd soaks the engine and the ledger and says what came of it: `make soak
// DURATION=10m`. Its last line is the result; it ends with 1 if anything went wrong.
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

	"heteroflow.io/heteroflow/test/soak"
)

func main() {
	duration := flag.Duration("duration", 10*time.Minute, "how long")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	fmt.Printf("seed %d\n", *seed)
	result := soak.Run(ctx, soak.Plan{Seed: *seed, Duration: *duration})
	if len(result.Wrong) > 0 {
		fmt.Println(strings.Join(result.Wrong, "\n"))
	}
	fmt.Println(result.Refusals())
	fmt.Println(result)
	if !result.OK() {
		os.Exit(1)
	}
}
