package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run prints the manifests that the arguments ask for.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chart", flag.ContinueOnError)
	namespace := flags.String("namespace", "heteroflow-system", "of the release")
	file := flags.String("values", "", "file with values that differ from the chart's")
	only := flags.String("only", "", "names of files under templates/ or crds/, separated by commas; all without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%d arguments after the flags, want the chart's folder", flags.NArg())
	}
	var values []byte
	if *file != "" {
		var err error
		if values, err = os.ReadFile(*file); err != nil {
			return err
		}
	}
	manifests, err := Render(context.Background(), flags.Arg(0), *namespace, values)
	if err != nil {
		return err
	}
	return manifests.print(out, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }))
}
