package cluster

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestProcessesAreThoseThatRun(t *testing.T) {
	c := &Cluster{}
	if got := c.Processes(); len(got) != 0 {
		t.Errorf("nothing was started, and %v run", got)
	}
	for _, p := range []struct {
		at   **process
		name string
	}{{&c.controlPlane, ControlPlane}, {&c.extender, ExtenderName}} {
		var err error
		if *p.at, err = launch(t.TempDir(), p.name, exec.Command("cat")); err != nil {
			t.Fatal(err)
		}
		defer (*p.at).kill()
	}
	want := map[string]int{ControlPlane: c.controlPlane.cmd.Process.Pid, ExtenderName: c.extender.cmd.Process.Pid}
	if diff := cmp.Diff(want, c.Processes()); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}

	ctx, stop := c.WhileAllRun(t.Context())
	defer stop()
	c.KillExtender()
	<-ctx.Done()
	if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "extender has ended") {
		t.Errorf("cause %q", cause)
	}
	delete(want, ExtenderName)
	if diff := cmp.Diff(want, c.Processes()); diff != "" {
		t.Errorf("processes without the extender (-want +got):\n%s", diff)
	}

	left, stop := c.WhileAllRun(t.Context())
	if left.Err() != nil {
		t.Error("one that had ended before counts")
	}
	stop()
	if <-left.Done(); !errors.Is(context.Cause(left), context.Canceled) {
		t.Errorf("stopped: %v", context.Cause(left))
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
