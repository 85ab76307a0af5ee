package cluster

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

func TestStopEndsAChild(t *testing.T) {
	for name, stop := range map[string]func(*process){"asked": (*process).stop, "killed": (*process).kill} {
		t.Run(name, func(t *testing.T) {
			p, err := launch(t.TempDir(), "cat", exec.Command("cat")) // reads its standard input for ever
			if err != nil {
				t.Fatal(err)
			}
			stop(p)
			<-p.done
			if p.err == nil {
				t.Error("cat ended by itself")
			}
			stop(p) // one that has ended is left alone
		})
	}
}

func TestNobodyWaitsForAChildThatFailed(t *testing.T) {
	p, err := launch(t.TempDir(), "complainer", exec.Command("sh", "-c", "echo bad flag >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := p.whileItRuns(t.Context())
	defer stop()
	<-ctx.Done()
	cause := context.Cause(ctx).Error()
	for _, part := range []string{"complainer has ended", "exit status 3", "bad flag"} {
		if !strings.Contains(cause, part) {
			t.Errorf("cause %q does not say %q", cause, part)
		}
	}
}

func TestAnnouncementMayComeInPieces(t *testing.T) {
	a := &announcement{line: "ready\n", seen: make(chan struct{})}
	for _, piece := range []string{"re", "ady", "\n"} {
		select {
		case <-a.seen:
			t.Fatalf("announced before %q", piece)
		default:
		}
		if _, err := a.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	<-a.seen
}
