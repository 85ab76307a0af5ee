package e2e

import (
	"testing"
	"time"

	"heteroflow.io/heteroflow/test/chaos"
)

// TestChaos is a minute of what `make chaos` makes for longer.
func TestChaos(t *testing.T) {
	stage := chaos.Stage{Cluster: shared.Cluster, Proxy: shared.proxy, Say: t.Logf}
	s := begin(t, stage.Extender())
	t.Cleanup(s.proxy.Clear)
	stage.Namespace = s.ns
	s.add(chaos.Nodes()...)
	result, err := chaos.Run(s.ctx, stage, uint64(time.Now().UnixNano()), time.Minute)
	s.must("chaos", err)
	t.Log(result)
	if result.Waiting < 10 {
		t.Errorf("%d %% of the pods waited for cards: this is no crowd", result.Waiting)
	}
	for _, wrong := range result.Wrong {
		t.Error(wrong)
	}
}
