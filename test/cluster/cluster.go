package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// module is the first line of the go.mod that marks the repository's root.
const module = "module heteroflow.io/heteroflow\n"

// Cluster is a running control plane and what runs beside it. Its methods are
// for one goroutine at a time.
type Cluster struct {
	Client *kubernetes.Clientset
	Config *rest.Config

	dir  string // state and logs
	root string // of the repository

	controlPlaneBinary string
	schedulerBinary    string
	extenderAddress    string // the same over restarts, as in a real cluster
	metricsAddress     string
	admissionAddress   string
	certificate        []byte // of the admission listener, in PEM

	controlPlane  *process
	kubeScheduler *process
	extender      *process

	sentinels atomic.Int32 // policies by which it is seen that those before are in force
}

// Start builds what is missing and starts a control plane whose state and logs
// are in dir. It has the custom resources and the roles of the chart; neither
// kube-scheduler nor the extender runs yet.
func Start(ctx context.Context, dir string) (*Cluster, error) {
	c := &Cluster{dir: dir}
	for _, step := range []func(context.Context) error{
		c.build, c.startControlPlane, c.connect, c.defineOurs, c.allow, c.choosePorts, c.certify,
	} {
		if err := step(ctx); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// Stop ends everything, the control plane last.
func (c *Cluster) Stop() {
	c.kubeScheduler.stop()
	c.extender.stop()
	c.controlPlane.stop()
}

// Root is the repository's top folder.
func (c *Cluster) Root() string { return c.root }

// Kubeconfig is the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.state("admin.kubeconfig") }

// ExtenderURL is where the extender answers /filter, /score and /bind.
func (c *Cluster) ExtenderURL() string { return "http://" + c.extenderAddress }

// MetricsURL is where the extender answers /metrics.
func (c *Cluster) MetricsURL() string { return "http://" + c.metricsAddress + "/metrics" }

// The names of the children, in Processes and as their logs have them.
const (
	ControlPlane  = "controlplane"
	KubeScheduler = "kube-scheduler"
	ExtenderName  = "extender" // ours, or what stands in for it
)

// Processes are the ids of the children that run, by name.
func (c *Cluster) Processes() map[string]int {
	ids := map[string]int{}
	for _, p := range c.children() {
		if p.runs() {
			ids[p.name] = p.cmd.Process.Pid
		}
	}
	return ids
}

// WhileAllRun returns a context that ends when one of the children does that run
// now, so that nobody waits for what can no longer come.
func (c *Cluster) WhileAllRun(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	for _, p := range c.children() {
		if p.runs() {
			ctx, _ = p.whileItRuns(ctx) // ends with its parent, which stop ends
		}
	}
	return ctx, stop
}

// children are those that were started, the latest of each name.
func (c *Cluster) children() []*process {
	return slices.DeleteFunc([]*process{c.controlPlane, c.kubeScheduler, c.extender}, func(p *process) bool { return p == nil })
}

// Logs returns the last lines of each child's log.
func (c *Cluster) Logs(lines int) string {
	var b strings.Builder
	for _, p := range c.children() {
		fmt.Fprintf(&b, "--- %s (%s)\n%s\n", p.name, p.log, tail(p.log, lines))
	}
	return b.String()
}

// state is the path of a file that the control plane writes.
func (c *Cluster) state(name string) string { return filepath.Join(c.dir, "state", name) }

func (c *Cluster) build(ctx context.Context) (err error) {
	if c.root, err = findRoot(); err != nil {
		return err
	}
	if c.controlPlaneBinary, err = output(ctx, c.root, filepath.Join(c.root, "test", "controlplane", "build.sh")); err != nil {
		return err
	}
	c.schedulerBinary = filepath.Join(c.dir, "heteroflow-scheduler")
	_, err = output(ctx, c.root, "go", "build", "-o", c.schedulerBinary, "./cmd/scheduler")
	return err
}

// findRoot walks up from the working directory: go test runs in the package's
// folder, the demo at the top.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		content, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte(module)) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the repository", dir)
		}
	}
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	ready := &announcement{line: "ready\n", seen: make(chan struct{})}
	cmd := exec.Command(c.controlPlaneBinary, "up", "--dir", c.state(""), "--stop-with-stdin")
	cmd.Stdout = ready
	var err error
	if c.controlPlane, err = launch(c.dir, ControlPlane, cmd); err != nil {
		return err
	}
	select {
	case <-ready.seen:
		return nil
	case <-c.controlPlane.done:
		return c.controlPlane.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait for the control plane: %w", context.Cause(ctx))
	}
}

// announcement closes seen when the line has been written to it.
type announcement struct {
	line string
	seen chan struct{}
	got  []byte
}

func (a *announcement) Write(b []byte) (int, error) {
	if a.got = append(a.got, b...); string(a.got) == a.line {
		close(a.seen)
	}
	return len(b), nil
}

func (c *Cluster) connect(context.Context) (err error) {
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = 1000, 2000 // the default of 5 a second would be the bottleneck
	c.Client, err = kubernetes.NewForConfig(c.Config)
	return err
}

func (c *Cluster) choosePorts(context.Context) error {
	return chooseAddresses(&c.extenderAddress, &c.metricsAddress, &c.admissionAddress)
}

// Namespace makes a namespace in which pods can be created: the API server
// refuses them until the default service account is there.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return Eventually(ctx, "the default service account of "+name, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// patience is how long Eventually waits where ctx sets no earlier end.
const patience = time.Minute

// Eventually returns as soon as check does not complain any more. What it
// complained of last is the error.
func Eventually(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}
