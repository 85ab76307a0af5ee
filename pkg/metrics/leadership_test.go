package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"heteroflow.io/heteroflow/pkg/ledger"
)

// How a replica stands is read when it is asked for, and a state of the fence that
// is left is 0 again.
func TestLeadershipIsRead(t *testing.T) {
	now := Leadership{Fence: FenceStandby}
	m := New(View{
		Ledger: func() ledger.Snapshot { return ledger.Snapshot{} }, Ready: func() bool { return true },
		Leadership: func() Leadership { return now },
	})
	for _, step := range []struct {
		now                            Leadership
		leading, epoch, holders, fence string
	}{
		{Leadership{Fence: FenceStandby, Holders: 1}, "0", "0", "1", "standby"},
		{Leadership{Fence: FenceUnproven, Holders: 2, Epoch: 1795996397}, "0", "1.795996397e+09", "2", "unproven"},
		{Leadership{Leading: true, Fence: FenceProven, Holders: 2, Epoch: 1795996397}, "1", "1.795996397e+09", "2", "proven"},
	} {
		now = step.now
		var want strings.Builder
		for _, f := range leadershipFamilies()[:4] {
			want.WriteString("# HELP " + f.Name + " " + f.Help + "\n# TYPE " + f.Name + " " + string(f.Kind) + "\n")
			switch f.Name {
			case nameLeading:
				want.WriteString(f.Name + " " + step.leading + "\n")
			case nameEpoch:
				want.WriteString(f.Name + " " + step.epoch + "\n")
			case nameHolders:
				want.WriteString(f.Name + " " + step.holders + "\n")
			case nameFence:
				for _, state := range fenceStates() {
					value := map[bool]string{true: "1", false: "0"}[string(state) == step.fence]
					want.WriteString(f.Name + `{state="` + string(state) + `"} ` + value + "\n")
				}
			}
		}
		err := testutil.GatherAndCompare(m.registry, strings.NewReader(want.String()), nameLeading, nameEpoch, nameHolders, nameFence)
		if err != nil {
			t.Error(err)
		}
	}
}

// Who decides alone leads when it is ready, and counts its clashes as any other.
func TestLeadershipOfOneAlone(t *testing.T) {
	ready := false
	m := New(View{Ledger: func() ledger.Snapshot { return ledger.Snapshot{} }, Ready: func() bool { return ready }})
	for _, want := range []float64{0, 1} {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == nameLeading && f.GetMetric()[0].GetGauge().GetValue() != want {
				t.Errorf("leading is %v, want %v", f.GetMetric()[0].GetGauge().GetValue(), want)
			}
		}
		ready = true
	}
	m.Clashed()
	if n := testutil.ToFloat64(m.clashes); n != 1 {
		t.Errorf("%v clashes, want 1", n)
	}
}
