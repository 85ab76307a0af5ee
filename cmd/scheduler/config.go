package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/server"
	"heteroflow.io/heteroflow/pkg/telemetry"
)

// name is what the program calls itself, and the schedulerName of our pods.
const name = codec.SchedulerName

// config is what the flags and the files that they name say.
type config struct {
	kubeconfig       string
	policyFile       string
	extenderAddress  string
	metricsAddress   string
	admissionAddress string
	certFile         string // of admission; empty: there is none
	keyFile          string
	bindTimeout      time.Duration
	lockWait         time.Duration
	readback         time.Duration
	linger           time.Duration
	settle           time.Duration
	audit            time.Duration
	qps              float64
	burst            int
	version          bool

	leaderElect    bool
	leaseNamespace string
	preemptBare    bool
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration
	fenceDelay     time.Duration

	replicaAddress        string
	replicaAdvertise      string // where other replicas reach this one; "" for nowhere
	replicaCertFile       string
	replicaKeyFile        string
	replicaCAFile         string
	certificatesSecret    string
	webhookConfigurations string
	certificateHosts      string

	telemetryFile string // "" for none
	topologyFile  string // "" for none

	settings  policy.Settings
	telemetry telemetry.Config // if there is a file
}

// parse reads the flags. Help, when asked for, goes to help.
func parse(args []string, help io.Writer) (config, error) {
	var c config
	flags := c.flags()
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(help)
		flags.Usage()
		return c, err
	case err != nil:
		return c, err
	case flags.NArg() > 0:
		return c, fmt.Errorf("%q: there are only flags", flags.Arg(0))
	case c.version:
		return c, nil
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if c.settings, err = readPolicy(c.policyFile); err != nil {
		return c, err
	}
	if c.telemetryFile != "" {
		if c.telemetry, err = telemetry.ReadConfig(c.telemetryFile); err != nil {
			return c, fmt.Errorf("--telemetry-config: %w", err)
		}
	}
	return c, nil
}

func (c *config) flags() *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "how to reach the API server; in-cluster configuration without it")
	f.StringVar(&c.policyFile, "policy", "", "file with a SchedulerPolicy; built-in defaults without it")
	f.StringVar(&c.topologyFile, "topology-file", "", "file that says where nodes are that have no labels for it, such as /etc/heteroflow/topology.yaml; read again when it changes")
	f.StringVar(&c.telemetryFile, "telemetry-config", "", "file that says where figures of cards come from; without it none are known")
	f.StringVar(&c.extenderAddress, "extender-address", "127.0.0.1:9000", "of the extender routes; loopback only")
	f.StringVar(&c.metricsAddress, "metrics-address", ":9395", "of metrics and health")
	f.StringVar(&c.admissionAddress, "admission-address", ":9443", "of the admission webhooks, with --tls-cert-file or --webhook-configurations")
	f.StringVar(&c.certFile, "tls-cert-file", "", "certificate of the admission webhooks, read again when it changes; no admission without it, or --webhook-configurations")
	f.StringVar(&c.keyFile, "tls-private-key-file", "", "key of the certificate")
	f.DurationVar(&c.bindTimeout, "bind-timeout", 20*time.Second, "of one bind, from its arrival; it has to lie below kube-scheduler's httpTimeout")
	f.DurationVar(&c.lockWait, "lock-wait", 5*time.Second, "longest wait for another bind of the same pod or node")
	f.DurationVar(&c.readback, "readback-timeout", 5*time.Second, "longest search for the outcome of a Binding; a part of --bind-timeout")
	f.BoolVar(&c.preemptBare, "preempt-bare-pods", true, "pods without an owner may be ended for others, if the policy says so too, and are made anew; off: they are left alone, and no right to create pods is needed")
	f.DurationVar(&c.linger, "linger-timeout", time.Minute, "how long past its grace period a pod's cards stay held whose object has gone before its containers")
	f.DurationVar(&c.audit, "audit-interval", time.Minute, "between two comparisons of the ledger with all pods, read anew")
	f.DurationVar(&c.settle, "settle-interval", 30*time.Second, "between two looks for holds that nobody confirms")
	f.Float64Var(&c.qps, "kube-api-qps", 500, "requests a second to the API server")
	f.IntVar(&c.burst, "kube-api-burst", 1000, "requests to the API server at once")
	f.BoolVar(&c.version, "version", false, "print the version")
	c.leaderFlags(f)
	c.replicaFlags(f)
	klog.InitFlags(f)
	return f
}

func (c *config) check() error {
	var errs []error
	if err := server.CheckLoopback(c.extenderAddress); err != nil {
		errs = append(errs, fmt.Errorf("--extender-address: %w", err))
	}
	if (c.certFile == "") != (c.keyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file, --tls-private-key-file: one is of no use without the other"))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--bind-timeout", c.bindTimeout}, {"--lock-wait", c.lockWait},
		{"--readback-timeout", c.readback}, {"--linger-timeout", c.linger}, {"--settle-interval", c.settle},
		{"--audit-interval", c.audit},
		{"--lease-duration", c.leaseDuration}, {"--renew-deadline", c.renewDeadline}, {"--retry-period", c.retryPeriod},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v is not more than 0", d.flag, d.value))
		}
	}
	if c.readback >= c.bindTimeout {
		errs = append(errs, fmt.Errorf("--readback-timeout: %v leaves nothing of --bind-timeout, %v", c.readback, c.bindTimeout))
	}
	if !(c.qps > 0) { // NaN neither
		errs = append(errs, fmt.Errorf("--kube-api-qps: %g is not more than 0", c.qps))
	}
	if c.burst < 1 {
		errs = append(errs, fmt.Errorf("--kube-api-burst: %d is less than 1", c.burst))
	}
	return errors.Join(slices.Concat(errs, c.checkLeader(), c.checkReplicas())...)
}

func readPolicy(file string) (policy.Settings, error) {
	if file == "" {
		return policy.Default(), nil
	}
	manifest, err := os.ReadFile(file)
	if err != nil {
		return policy.Settings{}, fmt.Errorf("--policy: %w", err)
	}
	settings, err := codec.Policy(manifest)
	if err != nil {
		return policy.Settings{}, fmt.Errorf("--policy %s: %w", file, err)
	}
	return settings, nil
}
