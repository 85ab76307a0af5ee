package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/simulate"
)

// config is what the flags, or the environment, and the files that they name say.
type config struct {
	folder   string // of the traces
	traces   []string
	seeds    []int64
	policies []simulate.Policy
	plot     string // file; "" for none
	overTime bool
}

// parse reads the flags. What has a name in the environment can be given there too;
// make does.
func parse(args []string, getenv func(string) string, help io.Writer) (config, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	folder := flags.String("openb", getenv("OPENB_DIR"), "folder of the traces; default ../shared/openb (OPENB_DIR)")
	traces := flags.String("traces", getenv("TRACES"), "which traces, with commas between; default all (TRACES)")
	seeds := flags.String("seeds", cmp.Or(getenv("SEEDS"), "42-51"), "seeds of the arrivals, as in 42-51,100 (SEEDS)")
	policies := flags.String("policies", cmp.Or(getenv("POLICIES"), strings.Join(simulate.PolicyNames(), ",")), "which policies to compare (POLICIES)")
	file := flags.String("policy", getenv("POLICY"), "file of a SchedulerPolicy to compare too (POLICY)")
	plot := flags.String("plot", getenv("PLOT"), "file for a drawing of all traces, SVG; none is made over time (PLOT)")
	overTime := flags.Bool("over-time", getenv("OVER_TIME") == "1", "have pods come and go instead (OVER_TIME=1)")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(help)
		flags.Usage()
		return config{}, err
	case err != nil:
		return config{}, err
	case flags.NArg() > 0:
		return config{}, fmt.Errorf("%q: there are only flags", flags.Arg(0))
	}
	c := config{folder: cmp.Or(*folder, "../shared/openb"), plot: *plot, overTime: *overTime}
	if c.policies, err = simulate.Policies(list(*policies)); err != nil {
		return c, fmt.Errorf("-policies: %w", err)
	}
	if *file != "" {
		p, err := fromFile(*file)
		if err != nil {
			return c, err
		}
		c.policies = append([]simulate.Policy{p}, c.policies...)
	}
	if c.seeds, err = parseSeeds(*seeds); err != nil {
		return c, fmt.Errorf("-seeds: %w", err)
	}
	return c, c.find(list(*traces))
}

// find looks for the traces, all that there are if none is named.
func (c *config) find(names []string) (err error) {
	there, err := simulate.Names(os.DirFS(c.folder))
	if err != nil {
		return fmt.Errorf("%s: %w", c.folder, err)
	}
	if c.traces = there; len(names) > 0 {
		c.traces = names
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return fmt.Errorf("-traces: there is no trace %q; there are %s", name, strings.Join(there, ", "))
		}
	}
	return nil
}

// fromFile reads a policy, which is called as the file is.
func fromFile(file string) (simulate.Policy, error) {
	manifest, err := os.ReadFile(file)
	if err != nil {
		return simulate.Policy{}, fmt.Errorf("-policy: %w", err)
	}
	settings, err := codec.Policy(manifest)
	if err != nil {
		return simulate.Policy{}, fmt.Errorf("-policy: %s: %w", file, err)
	}
	base := filepath.Base(file)
	return simulate.Ours(strings.TrimSuffix(base, filepath.Ext(base)), settings), nil
}

// list returns what stands between the commas.
func list(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// parseSeeds reads numbers and ranges of them.
func parseSeeds(text string) (seeds []int64, err error) {
	const most = 10_000
	for _, item := range list(text) {
		from, to, ranged := strings.Cut(item, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err := errors.Join(err, err2); err != nil || last < first || last-first >= most {
			return nil, fmt.Errorf("%q is no number, and no range as in 42-51", item)
		}
		for s := first; s <= last; s++ {
			seeds = append(seeds, s)
		}
	}
	if len(seeds) == 0 {
		return nil, errors.New("there are none")
	}
	return seeds, nil
}
