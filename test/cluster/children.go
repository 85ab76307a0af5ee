package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Extender says how our scheduler is to run. The zero value is its defaults.
type Extender struct {
	Policy    string        // a SchedulerPolicy manifest
	Linger    time.Duration // how long a hold of a pod that was force-deleted counts
	Audit     time.Duration // between two comparisons of the books
	Settle    time.Duration // between two looks for holds that nobody confirms
	APIServer string        // where it finds the API server, if not where that is: see Upstream
	Verbosity int
	Elect     Election // how it agrees with others; zero: it decides alone
	Telemetry string   // where it reads figures of cards from, as its file says; "" for nowhere
}

// Election says how replicas agree on who decides. The zero value is that there is
// one replica, which asks nobody.
type Election struct {
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	FenceDelay                                time.Duration
}

// args are the flags that say so.
func (e Election) args() []string {
	if e == (Election{}) {
		return []string{"--leader-elect=false"}
	}
	return []string{
		"--lease-duration", e.LeaseDuration.String(), "--renew-deadline", e.RenewDeadline.String(),
		"--retry-period", e.RetryPeriod.String(), "--fence-delay", e.FenceDelay.String(),
	}
}

// StartExtender starts our scheduler and returns when it is ready. It is always
// at the same addresses.
func (c *Cluster) StartExtender(ctx context.Context, e Extender) error {
	args, err := c.extenderArgs(e, c.addresses())
	if err != nil {
		return err
	}
	return c.startExtender(ctx, exec.Command(c.schedulerBinary, args...))
}

// StartStandIn starts another program in the extender's place: it is given the
// extender's address and a kubeconfig with its rights, and answers /readyz with
// 200 when it is ready. StopExtender ends it.
func (c *Cluster) StartStandIn(ctx context.Context, program func(address, kubeconfig string) *exec.Cmd) error {
	return c.startExtender(ctx, program(c.extenderAddress, c.state("extender.kubeconfig")))
}

func (c *Cluster) startExtender(ctx context.Context, cmd *exec.Cmd) (err error) {
	if c.extender, err = launch(c.dir, ExtenderName, cmd); err != nil {
		return err
	}
	ctx, stop := c.extender.whileItRuns(ctx)
	defer stop()
	return Eventually(ctx, "the extender", func(ctx context.Context) error {
		return get(ctx, c.ExtenderURL()+"/readyz")
	})
}

// StopExtender ends our scheduler as a rollout would.
func (c *Cluster) StopExtender() { c.extender.stop() }

// KillExtender ends our scheduler as a crash would.
func (c *Cluster) KillExtender() { c.extender.kill() }

// addresses are where an extender listens.
type addresses struct{ extender, metrics, admission string }

func (c *Cluster) addresses() addresses {
	return addresses{c.extenderAddress, c.metricsAddress, c.admissionAddress}
}

func (c *Cluster) extenderArgs(e Extender, at addresses) ([]string, error) {
	kubeconfig := c.state("extender.kubeconfig")
	if e.APIServer != "" {
		kubeconfig = filepath.Join(c.dir, "proxied-"+strings.Map(plain, e.APIServer)+".kubeconfig")
		if err := os.WriteFile(kubeconfig, proxied(e.APIServer), 0o600); err != nil {
			return nil, err
		}
	}
	args := []string{
		"--kubeconfig", kubeconfig,
		"--extender-address", at.extender,
		"--metrics-address", at.metrics,
		"--admission-address", at.admission,
		"--tls-cert-file", c.certificateFile(),
		"--tls-private-key-file", c.keyFile(),
		"-v", strconv.Itoa(e.Verbosity),
	}
	args = append(args, e.Elect.args()...)
	for flag, value := range map[string]time.Duration{
		"--linger-timeout": e.Linger, "--audit-interval": e.Audit, "--settle-interval": e.Settle,
	} {
		if value > 0 {
			args = append(args, flag, value.String())
		}
	}
	for flag, content := range map[string]string{"policy": e.Policy, "telemetry-config": e.Telemetry} {
		if content == "" {
			continue
		}
		path := filepath.Join(c.dir, flag+".yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--"+flag, path)
	}
	return args, nil
}

// plain keeps what may stand in a file's name.
func plain(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}

// get returns nil when the URL answers 200.
func get(ctx context.Context, url string) error { return getBy(ctx, http.DefaultClient, url) }

func getBy(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// StartKubeScheduler starts a stock kube-scheduler with the configuration from
// examples/.
func (c *Cluster) StartKubeScheduler(ctx context.Context) error {
	return c.StartKubeSchedulerAt(ctx, c.ExtenderURL())
}

// StartKubeSchedulerAt starts one that finds the extender at that URL.
func (c *Cluster) StartKubeSchedulerAt(_ context.Context, extender string) error {
	config, err := c.KubeSchedulerConfig(extender)
	if err != nil {
		return err
	}
	return c.StartKubeSchedulerWith(config)
}

// KubeSchedulerConfig is the configuration from examples/ for this cluster, with
// the extender at that URL.
func (c *Cluster) KubeSchedulerConfig(extender string) ([]byte, error) {
	example, err := os.ReadFile(filepath.Join(c.root, "examples", "kube-scheduler.yaml"))
	if err != nil {
		return nil, err
	}
	config, err := localise(example, c.state("scheduler.kubeconfig"), extender)
	if err != nil {
		return nil, fmt.Errorf("examples/kube-scheduler.yaml: %w", err)
	}
	return config, nil
}

// StartKubeSchedulerWith starts one with that configuration: see
// KubeSchedulerConfig.
func (c *Cluster) StartKubeSchedulerWith(config []byte) (err error) {
	path := filepath.Join(c.dir, "kube-scheduler.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(c.controlPlaneBinary, "kube-scheduler",
		"--config", path,
		"--feature-gates=SchedulerPopFromBackoffQ=false", // as the example asks for; the file has no place for it
		"--secure-port=0",
	)
	c.kubeScheduler, err = launch(c.dir, KubeScheduler, cmd)
	return err
}

// StopKubeScheduler ends kube-scheduler: pods then wait unseen. It does not
// always come to give up its Lease, for whose end the next would wait; so that
// goes too.
func (c *Cluster) StopKubeScheduler(ctx context.Context) error {
	c.kubeScheduler.stop()
	err := c.Client.CoordinationV1().Leases("heteroflow-system").Delete(ctx, "heteroflow-kube-scheduler", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// What differs between the example and a test, and nothing else does: each must
// be there exactly once.
var (
	kubeconfigLine = regexp.MustCompile(`(?m)^(\s*kubeconfig:\s*)\S+`)
	urlPrefixLine  = regexp.MustCompile(`(?m)^(\s*(?:-\s*)?urlPrefix:\s*)\S+`)
)

// localise sets the two values of a kube-scheduler configuration that depend on
// where it runs.
func localise(example []byte, kubeconfig, extender string) ([]byte, error) {
	for _, set := range []struct {
		line  *regexp.Regexp
		value string
	}{{kubeconfigLine, kubeconfig}, {urlPrefixLine, extender}} {
		if n := len(set.line.FindAll(example, -1)); n != 1 {
			return nil, fmt.Errorf("%d lines match %s, want 1", n, set.line)
		}
		example = set.line.ReplaceAll(example, []byte("${1}"+set.value))
	}
	return example, nil
}
