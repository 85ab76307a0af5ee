package main

import (
	"strings"
	"testing"
)

// TestRefusesBeforeAnythingStarts: a control plane takes a while to start.
func TestRefusesBeforeAnythingStarts(t *testing.T) {
	tests := map[string]struct {
		args []string
		says string
	}{
		"no nodes":          {[]string{"--nodes", "0"}, "0 nodes"},
		"too many pods":     {[]string{"--nodes", "10", "--pods", "500"}, "more than four fifths"},
		"no rounds":         {[]string{"--rounds", "0"}, "0 rounds"},
		"no such setup":     {[]string{"--only", "ours,fast"}, `"fast"`},
		"an argument":       {[]string{"quick"}, `"quick"`},
		"no number":         {[]string{"--pods", "many"}, "-pods"},
		"an idle extender":  {[]string{"noop", "some", "127.0.0.1:0", "none"}, `"some"`},
		"half of a command": {[]string{"noop"}, `"noop"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tc.args)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("run = %v, want it to say %s", err, tc.says)
			}
		})
	}
}
