package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long a child may take to end on SIGTERM before it is
// killed. The control plane takes about 1 s.
const stopPatience = 20 * time.Second

// process is a child of ours whose output goes to a file.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	done  chan struct{} // closed once it has ended
	err   error         // how it ended; read after done
}

// launch starts the command. What it writes is appended to NAME.log in dir, so
// that the log of a restarted child tells the whole story.
func launch(dir, name string, cmd *exec.Cmd) (*process, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Stderr = log
	dieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, log: path, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started, log)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run starts the child and waits for it on one thread: the kernel takes the end
// of the thread that started a child for the end of its parent.
func (p *process) run(started chan<- error, log io.Closer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer log.Close()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
}

// runs reports whether the process has not ended yet.
func (p *process) runs() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// failure says how a process that was to go on has ended.
func (p *process) failure() error {
	return fmt.Errorf("%s has ended: %w\n%s", p.name, cmp.Or(p.err, errEnded), tail(p.log, 20))
}

var errEnded = errors.New("exit status 0")

// whileItRuns returns a context that ends with the process, so that nobody
// waits for one that has failed.
func (p *process) whileItRuns(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(p.failure())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() { p.signal(syscall.SIGTERM) }

// kill ends the process without giving it a chance to tidy up.
func (p *process) kill() { p.signal(syscall.SIGKILL) }

func (p *process) signal(s syscall.Signal) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(s) // one that has ended needs none
	select {
	case <-p.done:
	case <-time.After(stopPatience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = p.stdin.Close()
}

// output runs a command of the build in dir and returns what it prints. Its
// progress goes to our standard error.
func output(ctx context.Context, dir string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
