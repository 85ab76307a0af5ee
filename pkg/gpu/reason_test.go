package gpu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The codes are API. One that is missing here has been renamed or removed; a new
// one is added at its end.
func TestReasons(t *testing.T) {
	want := strings.Fields(`
		InvalidRequest NodeUnavailable NodeNotRegistered TenantNodeMismatch DeviceTypeMismatch DeviceModelMismatch
		DeviceUnhealthy DeviceCordoned UUIDFiltered NUMAUnsatisfied NVLinkUnsatisfied RDMAUnsupported InsufficientGPUCount
		InsufficientGPUMemory InsufficientGPUCores InsufficientGPUSlots NoTenantEligibleGPU QuotaExceeded TenantInactive
		LoadThresholdExceeded Overheated IsolationUnavailable InsufficientPorts GPUTypeUnavailable GangIncomplete HeldForOther
		PreemptionPending NoSchedulableNodes InsufficientResources LedgerMismatch NotLeader BindConflict`)
	var got []string
	for _, r := range Reasons() {
		got = append(got, string(r.Reason))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

func TestReasonsAreExplained(t *testing.T) {
	for _, r := range Reasons() {
		for what, text := range map[string]string{"sentence": r.Sentence, "hint": r.Hint} {
			if len(text) < 10 || !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] {
				t.Errorf("%s: %s %q is no sentence", r.Reason, what, text)
			}
		}
		if diff := cmp.Diff(r, r.Reason.Info()); diff != "" {
			t.Errorf("%s: Info (-want +got):\n%s", r.Reason, diff)
		}
	}
}

// The unit is part of the event's text.
func TestReasonUnits(t *testing.T) {
	for _, r := range Reasons() {
		switch r.Unit {
		case "", "cards", "MiB", "percent", "slots":
		default:
			t.Errorf("%s: unit %q is unknown", r.Reason, r.Unit)
		}
	}
	for r, unit := range map[Reason]string{
		InsufficientGPUCount: "cards", InsufficientGPUMemory: "MiB", InsufficientGPUCores: "percent", InsufficientGPUSlots: "slots",
	} {
		if got := r.Info(); got.Unit != unit || got.Final {
			t.Errorf("%s: unit %q, final %v, want %q and not final", r, got.Unit, got.Final, unit)
		}
	}
}

func TestUnknownReason(t *testing.T) {
	if diff := cmp.Diff(ReasonInfo{}, Reason("Nonsense").Info()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

func TestReasonsCannotBeChanged(t *testing.T) {
	Reasons()[0].Reason = "Nonsense"
	if got := Reasons()[0].Reason; got != InvalidRequest {
		t.Errorf("a caller has changed the list of reasons: %s comes first", got)
	}
}
