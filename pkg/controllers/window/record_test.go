package window

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

var states = rapid.Custom(func(t *rapid.T) window.State {
	s := window.State{Replicas: rapid.Int32Min(0).Draw(t, "replicas"), Asleep: rapid.Bool().Draw(t, "asleep")}
	if rapid.Bool().Draw(t, "HPA") {
		s.HPA = &window.Bounds{Min: rapid.Int32Min(0).Draw(t, "min"), Max: rapid.Int32Min(1).Draw(t, "max")}
	}
	if rapid.Bool().Draw(t, "KEDA") {
		paused := rapid.SampledFrom([]string{"", "0", "7", "many"}).Draw(t, "paused")
		s.KEDA = &paused
	}
	return s
})

// What is remembered of an action comes back from the API server exactly as it was.
func TestRecordIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := window.Record{
			Target: rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "target"), Action: rapid.SampledFrom([]window.Action{window.Pause, window.Scale, window.Stop}).Draw(t, "action"),
			Image: states.Draw(t, "image"), Set: states.Draw(t, "set"),
			Phase: rapid.SampledFrom([]window.Phase{window.Acting, window.Acted, window.Restoring}).Draw(t, "phase"), Tries: rapid.IntRange(0, 5).Draw(t, "tries"),
		}
		if rapid.Bool().Draw(t, "written") {
			r.Written = time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "at"), 0).UTC()
		}
		ref := v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
		written := encodeRecord(&r, ref)
		text, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		var read v1alpha1.TaskGroupRecord
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&r, decodeRecord(&read)); diff != "" {
			t.Fatalf("record (-want +got):\n%s", diff)
		}
		if again := encodeRecord(decodeRecord(&read), ref); cmp.Diff(written, again) != "" || read.Target != ref {
			t.Fatalf("written again:\n%s", cmp.Diff(written, again))
		}
	})
}

func TestNoRecord(t *testing.T) {
	if r := decodeRecord(nil); r != nil {
		t.Errorf("a record of nothing: %+v", r)
	}
}
