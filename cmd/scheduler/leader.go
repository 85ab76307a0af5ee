package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/server"
)

// leaderFlags are about which replica decides.
func (c *config) leaderFlags(f *flag.FlagSet) {
	f.BoolVar(&c.leaderElect, "leader-elect", true, "replicas agree on one of them to decide; off: this one decides alone, there must be no other, and no fence")
	f.StringVar(&c.leaseNamespace, "lease-namespace", "heteroflow-system", "namespace of the Lease "+kube.LeaseName)
	f.DurationVar(&c.leaseDuration, "lease-duration", 15*time.Second, "how long a leader is waited for that is not heard of; whole seconds")
	f.DurationVar(&c.renewDeadline, "renew-deadline", 10*time.Second, "how long a leader tries to renew the Lease before it ends")
	f.DurationVar(&c.retryPeriod, "retry-period", 500*time.Millisecond, "between two looks at the Lease")
	f.DurationVar(&c.fenceDelay, "fence-delay", time.Second, "how long a new leader waits for all API servers to know its epoch, unless the one before has ended in order")
}

// checkLeader refuses what client-go's elector would refuse without a flag's name.
func (c *config) checkLeader() (errs []error) {
	if c.leaseNamespace == "" {
		errs = append(errs, errors.New("--lease-namespace: is empty"))
	}
	if c.fenceDelay < 0 {
		errs = append(errs, fmt.Errorf("--fence-delay: %v is less than 0", c.fenceDelay))
	}
	if c.leaseDuration%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--lease-duration: %v is not a number of whole seconds", c.leaseDuration))
	}
	if c.renewDeadline >= c.leaseDuration {
		errs = append(errs, fmt.Errorf("--renew-deadline: %v leaves nothing of --lease-duration, %v", c.renewDeadline, c.leaseDuration))
	}
	if longest := time.Duration(leaderelection.JitterFactor * float64(c.retryPeriod)); c.renewDeadline <= longest {
		errs = append(errs, fmt.Errorf("--retry-period: %v leaves no time for a second look within --renew-deadline, %v", c.retryPeriod, c.renewDeadline))
	}
	return errs
}

// leaseRequests bounds the requests about the Lease and the Epoch, a few a second.
const leaseRequests = 50

// leaseConfig is that of the work but for the bounds. A dead connection is found
// while there is time for another try.
func leaseConfig(cfg config, work *rest.Config) *rest.Config {
	r := rest.CopyConfig(work)
	r.QPS, r.Burst = leaseRequests, leaseRequests
	r.Timeout = max(cfg.renewDeadline/2, time.Second)
	return r
}

// elect has this replica take part in agreeing on who decides.
func (p *program) elect(ctx context.Context, cfg config, c clients, counts *metrics.Metrics) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host's name, which is a part of the leader's: %w", err)
	}
	holder := kube.NewHolder(host, cfg.replicaAdvertise)
	p.leader = kube.NewLeader(kube.LeaderConfig{
		Lock:          kube.NewLease(c.lease, cfg.leaseNamespace, holder),
		LeaseDuration: cfg.leaseDuration, RenewDeadline: cfg.renewDeadline, RetryPeriod: cfg.retryPeriod, FenceDelay: cfg.fenceDelay,
		Epochs:  &kube.Epochs{Client: c.lease, Now: time.Now},
		Fence:   &kube.Fence{Client: c.lease, Namespace: cfg.leaseNamespace},
		Ready:   p.cluster.Ready,
		CatchUp: func(ctx context.Context) error { return p.cluster.CatchUp(ctx, c.work, c.kinds) },
		Idle:    func() bool { return len(p.books.Ledger.Unconfirmed()) == 0 },
		Hindered: func(ctx context.Context, why string) {
			p.events.Hindered(kube.LeaseReference(ctx, c.lease, cfg.leaseNamespace), holder, why)
		},
		Now:    time.Now,
		Logger: klog.FromContext(ctx),
	})
	p.clashes = &kube.Clashes{
		Client: c.work, Ledger: p.books.Ledger, First: p.leader.First, Logger: klog.FromContext(ctx),
		Lost: func(pod *gpu.Placement, text string) { counts.Clashed(); p.events.Lost(pod, text) },
	}
	p.books.Appeared = p.clashes.Appeared
	return nil
}

// lead takes part until ctx ends, or until another replica may lead.
func (p *program) lead(ctx context.Context) error {
	if p.leader == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.leader.Run(ctx)
}

// leads reports whether this replica decides at this moment.
func (p *program) leads() bool { return p.leader == nil || p.leader.State().Here }

// leadership is the leader as the server asks for it.
type leadership struct{ *kube.Leader }

func (l leadership) State() server.Leading { return server.Leading(l.Leader.State()) }

// whenLeading runs what only the leader does, from when this replica leads. Who
// has led does not go on as a standby, so it goes on until the Lease is given up;
// what must not go on while leading is interrupted asks for itself, see leads.
func (p *program) whenLeading(ctx context.Context, run func(context.Context) error) error {
	if p.leader != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.leader.Led():
		}
	}
	return run(ctx)
}
