package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Replica is one of several extenders. They have addresses of their own, and
// agree among themselves on who decides.
type Replica struct {
	name    string
	at      addresses
	process *process
}

// certificates is the Secret that replicas share.
const certificates = "heteroflow-scheduler-certs"

// StartReplica starts a replica and returns when it is ready, which says nothing
// about who leads. Its log is under its name.
func (c *Cluster) StartReplica(ctx context.Context, name string, e Extender) (*Replica, error) {
	r := &Replica{name: name}
	var others string
	if err := chooseAddresses(&r.at.extender, &r.at.metrics, &r.at.admission, &others); err != nil {
		return nil, err
	}
	args, err := c.extenderArgs(e, r.at)
	if err != nil {
		return nil, err
	}
	args = append(args, "--certificates-secret", certificates, "--replica-address", others, "--replica-advertise", others)
	if r.process, err = launch(c.dir, name, exec.Command(c.schedulerBinary, args...)); err != nil {
		return nil, err
	}
	ctx, stop := r.process.whileItRuns(ctx)
	defer stop()
	err = Eventually(ctx, name, r.Ready)
	if err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// Name is what the replica is called in the test.
func (r *Replica) Name() string { return r.name }

// URL is where the replica answers /filter, /score and /bind.
func (r *Replica) URL() string { return "http://" + r.at.extender }

// Stop ends the replica as a rollout would, and returns when it has ended.
func (r *Replica) Stop() { r.process.stop() }

// Kill ends the replica as a crash would.
func (r *Replica) Kill() { r.process.kill() }

// Pause stops the replica in the middle of whatever it does; Resume has it go on.
func (r *Replica) Pause() error  { return r.process.cmd.Process.Signal(syscall.SIGSTOP) }
func (r *Replica) Resume() error { return r.process.cmd.Process.Signal(syscall.SIGCONT) }

// Runs reports whether the process has not ended.
func (r *Replica) Runs() bool {
	select {
	case <-r.process.done:
		return false
	default:
		return true
	}
}

// Ended waits until the process has ended, and returns its status.
func (r *Replica) Ended(ctx context.Context) (status int, err error) {
	select {
	case <-r.process.done:
		return r.process.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for %s to end: %w", r.name, context.Cause(ctx))
	}
}

// Log returns the last lines of what the replica has logged.
func (r *Replica) Log(lines int) string {
	return fmt.Sprintf("--- %s (%s)\n%s\n", r.name, r.process.log, tail(r.process.log, lines))
}

// metricsTime is short, as replicas are asked that do not go on.
const metricsTime = time.Second

// Metrics returns what the replica says of itself.
func (r *Replica) Metrics(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, metricsTime)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.at.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

var errStandby = errors.New("it does not lead")

// Ready returns nil if the replica answers, itself or by another.
func (r *Replica) Ready(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, metricsTime)
	defer stop()
	return get(ctx, r.URL()+"/readyz")
}

// Leads returns nil if the replica decides.
func (r *Replica) Leads(ctx context.Context) error {
	text, err := r.Metrics(ctx)
	if err == nil && !strings.Contains(text, "\nheteroflow_leading 1\n") {
		err = errStandby
	}
	return err
}
