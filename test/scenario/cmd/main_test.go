package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	config, commit, err := parse([]string{"--nodes", "32", "--seed", "7", "--only", "default,blind", "--commit", "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if config.Floor.Nodes != 32 || config.Seed != 7 || config.Runs != 3 || commit != "abc" {
		t.Errorf("parsed as %+v of %s", config, commit)
	}
	if len(config.Setups) != 2 || config.Setups[0].Name != "blind" || config.Setups[1].Name != "default" {
		t.Errorf("configurations: %+v", config.Setups)
	}
}

func TestParseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--nodes 31":   "whole racks",
		"--runs 0":     "0 runs",
		"--load 0":     "load: 0",
		"--length 40s": "length: of 40s nothing is left",
		"--only ours":  "configurations: there are blind, stock, stock-all, default, heterogeneous",
		"often":        `unknown argument "often"`,
	} {
		if _, _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", args, err, want)
		}
	}
}
