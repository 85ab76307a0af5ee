package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// controllers are the ones that tests and the demo need. Node lifecycle is left
// out, so that a Node object stays Ready without a kubelet; pod garbage
// collection as well, so that only the test decides when a pod goes.
var controllers = strings.Join([]string{
	"namespace-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller", "clusterrole-aggregation-controller",
	"garbage-collector-controller", "resourcequota-controller", "disruption-controller",
	"replicaset-controller", "deployment-controller", "statefulset-controller", "job-controller",
	"resourceclaim-controller", "horizontal-pod-autoscaler-controller",
}, ",")

// none as the list of controllers leaves the controller manager out.
const none = "none"

// options are the flags of "up".
type options struct {
	dir            string
	port           int
	controllers    string
	apiserverFlags []string
	fsync          bool
	stopWithStdin  bool
	verbosity      string
}

func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("controlplane up", flag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "where certificates, data and kubeconfigs are written (required)")
	fs.IntVar(&o.port, "port", 0, "kube-apiserver's port on 127.0.0.1; 0 takes a free one")
	fs.StringVar(&o.controllers, "controllers", controllers, "kube-controller-manager's --controllers; "+none+" leaves it out")
	flags := fs.String("apiserver-flags", "", "more flags for kube-apiserver, separated by blanks")
	fs.BoolVar(&o.fsync, "fsync", false, "let etcd sync to disk")
	fs.BoolVar(&o.stopWithStdin, "stop-with-stdin", false, "stop when standard input ends, so that nothing outlives the process that holds its other end")
	fs.StringVar(&o.verbosity, "v", "0", "verbosity of the components' logs")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.apiserverFlags = strings.Fields(*flags)
	if o.dir == "" {
		fmt.Fprintln(os.Stderr, "controlplane up: --dir is required")
		return o, flag.ErrHelp
	}
	return o, nil
}

// plane is a control plane that is coming up or running.
type plane struct {
	options
	say   func(string)
	fail  context.CancelCauseFunc // ends the whole
	creds credentials
	etcd  string       // URL
	api   net.Listener // of kube-apiserver
	stops []func()     // of the parts that run, in the order of their starts
}

// up runs the control plane until ctx ends or one of its parts does.
func up(ctx context.Context, o options) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if o.stopWithStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // any end of the pipe is the parent's end
			fail(nil)
		}()
	}
	p := &plane{options: o, say: stopwatch(), fail: fail}
	defer p.stop()
	for _, step := range []func(context.Context) error{
		p.prepare, p.startEtcd, p.startAPIServer, p.startControllers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	p.say("KUBECONFIG=" + p.creds.admin)
	fmt.Println("ready")

	<-ctx.Done()
	p.say("stopping")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// stop ends the parts in the reverse order of their starts: an API server whose
// etcd is gone hangs.
func (p *plane) stop() {
	for _, stop := range slices.Backward(p.stops) {
		stop()
	}
}

// prepare writes what the parts are started with.
func (p *plane) prepare(context.Context) (err error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	// Held from here on: a port that is only known to be free may be taken by
	// another part, or by any connection, before kube-apiserver listens on it.
	if p.api, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.port)); err != nil {
		return err
	}
	p.port = p.api.Addr().(*net.TCPAddr).Port
	if p.creds, err = writeCredentials(p.dir, p.port); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

func (p *plane) startEtcd(context.Context) error {
	e, err := startEtcd(filepath.Join(p.dir, "etcd"), p.fsync)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	p.etcd = e.url
	p.stops = append(p.stops, e.stop)
	p.say("etcd is ready")
	return nil
}

func (p *plane) startAPIServer(ctx context.Context) error {
	api := start("kube-apiserver", p.fail, func(ctx context.Context) error {
		return runAPIServer(ctx, p.api, apiserverArgs(p.options, p.creds, p.etcd))
	})
	p.stops = append(p.stops, api.end)
	if err := waitReady(ctx, p.creds, p.port); err != nil {
		return fmt.Errorf("wait for kube-apiserver: %w", err)
	}
	p.say("kube-apiserver is ready")
	return nil
}

func (p *plane) startControllers(context.Context) error {
	if p.controllers == none {
		return nil
	}
	manager := start("kube-controller-manager", p.fail, func(ctx context.Context) error {
		return runControllerManager(ctx, controllerManagerArgs(p.options, p.creds))
	})
	// Not waited for at the end: its controllers may linger over requests that
	// nobody needs any more.
	p.stops = append(p.stops, manager.stop)
	return nil
}

// stopwatch returns a function that reports progress with the time since now.
func stopwatch() func(string) {
	began := time.Now()
	return func(what string) {
		fmt.Fprintf(os.Stderr, "controlplane: %5.1fs %s\n", time.Since(began).Seconds(), what)
	}
}

// component is a part of the control plane that runs until it is stopped.
type component struct {
	stop context.CancelFunc
	done chan struct{}
}

var errEnded = errors.New("ended by itself")

// start runs a component on a context of its own, so that parts end one after
// the other. One that ends without being stopped is a failure of the whole.
func start(name string, fail context.CancelCauseFunc, run func(context.Context) error) *component {
	ctx, stop := context.WithCancel(context.Background())
	c := &component{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := run(ctx); ctx.Err() == nil {
			fail(fmt.Errorf("%s: %w", name, cmp.Or(err, errEnded)))
		}
	}()
	return c
}

// end stops the component and waits until it has stopped.
func (c *component) end() {
	c.stop()
	<-c.done
}

// freePort returns a port of the loopback address that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
