package codec

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestOwned(t *testing.T) {
	for key, want := range map[string]bool{
		AnnotationAllocation:                      true,
		AnnotationContainers:                      true,
		AnnotationEpoch:                           true,
		AnnotationPreemptCount:                    true,
		AnnotationPort:                            true,
		"heteroflow.io/visible-devices-0":         true,
		"heteroflow.io/mem-limit-12":              true,
		"heteroflow.io/core-limit-007":            true,
		"hami.io/bind-node":                       true,
		"hami.io/device-allocated":                true,
		"hami.io/vgpu-devices-to-allocate":        true,
		"hami.io/Ascend910B3-devices-to-allocate": true,
		"hami.io/metax-sgpu-devices-allocated":    true,
		"hami.io/bind-phase":                      true,

		"heteroflow.io/visible-devices-":  false, // no number: unknown, and refused as that
		"heteroflow.io/visible-devices-x": false,
		"heteroflow.io/ports":             false, // an author's
		"heteroflow.io/gpu-model":         false,
		"hami.io/-devices-allocated":      false,
		"hami.io/gpu-uuid-include":        false,
		"hami.io/node-scheduler-policy":   false,
		"example.com/hami.io/bind-node":   false,
		"hami.io.example.com/bind-node":   false,
		"":                                false,
	} {
		if got := owned(key); got != want {
			t.Errorf("owned(%q) = %t", key, got)
		}
	}
}

// What the API server refuses by the pattern is what the code takes for owned:
// a key that only one of them knows could be forged, or never be written.
func TestOwnedPattern(t *testing.T) {
	pattern := regexp.MustCompile(OwnedPattern())
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{own, hami, "visible-devices", "mem-limit", "core-limit", "-", "devices", "allocated", "to-allocate",
			"allocation", "containers", "epoch", "port", "bind-node", "bind-phase", "vgpu", "hamiXio/", "s"}),
		rapid.StringMatching(`[a-zA-Z0-9._-]{0,3}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		key := ""
		for _, s := range rapid.SliceOfN(piece, 0, 5).Draw(t, "key") {
			key += s
		}
		if owned(key) != pattern.MatchString(key) {
			t.Errorf("owned(%q) = %t, and the pattern says otherwise", key, owned(key))
		}
	})
	for i := range wishes {
		for _, key := range append(wishes[i].aliases, wishes[i].key) {
			if pattern.MatchString(key) {
				t.Errorf("no author could write %s", key)
			}
		}
	}
}

// The chart's policies get the pattern from a file of theirs.
func TestOwnedGolden(t *testing.T) {
	golden(t, "../../charts/heteroflow/templates/_owned.tpl", "{{- /* Made by `go test ./pkg/codec -run Golden -update`. Do not edit. */}}\n"+
		"{{- define \"heteroflow.owned\" -}}\n"+OwnedPattern()+"\n{{- end }}\n"+
		"{{- define \"heteroflow.boundBy\" -}}\n"+BoundByLabel+"\n{{- end }}\n")
}
