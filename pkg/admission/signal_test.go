package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSignal(t *testing.T) {
	pod := func(signal, os, lifecycle string) []byte {
		return raw(t, "{metadata: {name: p, annotations: {heteroflow.io/containers: '{\"main\":0}', heteroflow.io/preempt-signal: "+signal+"}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, os: "+os+
			", containers: [{name: main, "+lifecycle+"resources: {limits: {nvidia.com/gpu: 1}}}]}}")
	}
	const linux, windows = "{name: linux}", "{name: windows}"
	const set = "lifecycle: {stopSignal: SIGUSR1}, "
	for name, tc := range map[string]struct {
		signal, os, before, after string
	}{
		"none of its own":   {"SIGUSR1", linux, "", set},
		"beside a hook":     {"SIGUSR1", linux, "lifecycle: {preStop: {sleep: {seconds: 1}}, future: 1}, ", "lifecycle: {preStop: {sleep: {seconds: 1}}, future: 1, stopSignal: SIGUSR1}, "},
		"one of its own":    {"SIGUSR1", linux, "lifecycle: {stopSignal: SIGINT}, ", "lifecycle: {stopSignal: SIGINT}, "},
		"of another system": {"SIGUSR1", windows, "", ""},
		"of any system":     {"SIGUSR1", "null", "", ""},
		"no signal":         {"SIGKILL", linux, "", ""}, // Validate refuses it
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := mutated(t, rules(), pod(tc.signal, tc.os, tc.before))
			if diff := cmp.Diff(document(t, pod(tc.signal, tc.os, tc.after)), document(t, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, answer := mutated(t, rules(), after); answer.Patch != nil {
				t.Errorf("asked again: %s", answer.Patch)
			}
		})
	}
	answer, err := rules().Validate(creation(pod("SIGUSR1", "null", "")))
	if err != nil || !answer.Allowed || !strings.Contains(strings.Join(answer.Warnings, "; "), "annotation heteroflow.io/preempt-signal has no effect: the pod does not say that it is for Linux (spec.os.name: linux)") {
		t.Errorf("%v, %+v", err, answer)
	}
}
