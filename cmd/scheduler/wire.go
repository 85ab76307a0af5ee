package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/admission"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/controllers/preempt"
	"heteroflow.io/heteroflow/pkg/controllers/rebuild"
	"heteroflow.io/heteroflow/pkg/controllers/runtime"
	"heteroflow.io/heteroflow/pkg/controllers/tenant"
	"heteroflow.io/heteroflow/pkg/controllers/window"
	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/server"
	"heteroflow.io/heteroflow/pkg/telemetry"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// serve runs the program until ctx ends.
func serve(ctx context.Context, cfg config) error {
	p, err := wire(ctx, cfg)
	if err != nil {
		return err
	}
	l, err := open(cfg)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("starting", "version", version, "extender", l.extender.Addr(), "metrics", l.public.Addr())
	if l.webhooks == nil {
		klog.FromContext(ctx).Info("admission is off: there is neither --tls-cert-file nor --webhook-configurations")
	} else {
		klog.FromContext(ctx).Info("admission is on", "address", l.webhooks.Addr(), "certificate", cfg.certFile, "secret", cfg.certificatesSecret)
	}
	if l.replicas != nil {
		klog.FromContext(ctx).Info("replicas are answered", "address", l.replicas.Addr(), "advertised", cfg.replicaAdvertise)
	}
	return p.run(ctx, l)
}

// listeners are where the program is asked.
type listeners struct {
	extender, public net.Listener
	webhooks         net.Listener // nil where there is no certificate
	replicas         net.Listener // likewise
}

// open opens all, or none.
func open(cfg config) (l listeners, err error) {
	var opened []net.Listener
	for _, at := range []struct {
		flag, address string
		into          *net.Listener
		off           bool
	}{
		{"--extender-address", cfg.extenderAddress, &l.extender, false},
		{"--metrics-address", cfg.metricsAddress, &l.public, false},
		{"--admission-address", cfg.admissionAddress, &l.webhooks, !cfg.admits()},
		{"--replica-address", cfg.replicaAddress, &l.replicas, !cfg.forwards()},
	} {
		if at.off {
			continue
		}
		if *at.into, err = net.Listen("tcp", at.address); err != nil {
			err = fmt.Errorf("%s: %w", at.flag, err)
			for _, other := range opened {
				err = errors.Join(err, other.Close())
			}
			return listeners{}, err
		}
		opened = append(opened, *at.into)
	}
	return l, nil
}

// program is all parts, put together.
type program struct {
	books    *kube.Books
	cluster  *kube.Cluster
	leader   *kube.Leader  // nil for one that decides alone
	clashes  *kube.Clashes // has nothing to do then
	engine   *engine.Engine
	events   *kube.Events
	server   *server.Server
	cert     server.Shown       // of the webhooks; nil for none
	identity server.Identity    // among replicas; nil for none
	shared   *kube.Certificates // where these are kept in a Secret, or nil
	longest  time.Duration      // of one answer
	settle   time.Duration      // between two looks for holds that nobody confirms
	tenants  *tenant.Controller
	audit    *kube.Audit
	audits   time.Duration     // between two
	feeder   *telemetry.Feeder // nil where no figures of cards are read
	places   *kube.Places      // nil without a topology file
	settings policy.Settings
	preempts *preempt.Controller
	sleeps   *window.Controller
	rebuilds *rebuild.Controller // nil where the policy leaves that to others
	limits   *runtime.Controller
}

func wire(ctx context.Context, cfg config) (*program, error) {
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	p := &program{settings: cfg.settings, longest: cfg.bindTimeout + cfg.readback + 5*time.Second, settle: cfg.settle, audits: cfg.audit, clashes: &kube.Clashes{}}
	counts := metrics.New(p.view(cfg))
	if err := p.identify(ctx, cfg, c, counts); err != nil {
		return nil, err
	}
	p.events = kube.NewEvents(c.events, time.Now, counts.EventDropped)
	p.books = &kube.Books{
		Ledger: unknown(), Settings: cfg.settings, Linger: cfg.linger, Now: time.Now, Logger: klog.FromContext(ctx),
		InventoryError: counts.InventoryError, TopologyError: func() { counts.TopologyError(metrics.TopologyOfNode) }, Settled: func(pod gpu.PodID) { p.engine.Forget(pod) },
		Gone: func(pod gpu.PodID) { p.events.Forget(pod); p.engine.Forget(pod); p.clashes.Gone(pod) },
		Forged: func(pod *corev1.Pod, kind metrics.Forgery, text string) {
			counts.Forged(kind)
			p.events.Forged(pod, text)
		},
	}
	if p.cluster, err = kube.NewCluster(c.work, c.kinds, p.books); err != nil {
		return nil, err
	}
	if err := p.locate(cfg, counts); err != nil {
		return nil, err
	}
	if cfg.leaderElect {
		if err := p.elect(ctx, cfg, c, counts); err != nil {
			return nil, err
		}
	}
	p.audit = &kube.Audit{Client: c.work, Lister: p.cluster.Pods(), Books: p.books, Ready: p.cluster.Ready, Found: p.events.Mismatch, Standing: counts.Mismatches}
	rules := p.cluster.Rules()
	p.tenants = &tenant.Controller{
		Tenants: rules.Tenants(), Quotas: rules.Quotas(), Law: rules.Law, Changed: rules.Changed, Ledger: p.books.Ledger.Snapshot,
		Writer: c.kinds.HeteroflowV1alpha1().Tenants(), Tell: p.events.Tell, Now: time.Now,
	}
	if p.feeder, err = p.reader(cfg, counts); err != nil {
		return nil, err
	}
	p.engine = p.decider(cfg, c, counts)
	p.preempts = p.preemption(cfg, c, counts)
	p.sleeps, p.rebuilds, p.limits = p.sleeper(c, counts), p.rebuilder(cfg, c, counts), p.limiter(cfg, c, counts)
	p.server = p.answerer(cfg, counts)
	return p, nil
}

// looksAtFile is how often the topology file is looked at.
const looksAtFile = 10 * time.Second

// locate reads the topology file, if there is one.
func (p *program) locate(cfg config, counts *metrics.Metrics) error {
	if cfg.topologyFile == "" {
		return nil
	}
	p.places = &kube.Places{File: cfg.topologyFile, Every: looksAtFile, Books: p.books, Nodes: p.cluster.Nodes(),
		Unreadable: func() { counts.TopologyError(metrics.TopologyOfFile) }}
	if err := p.places.Read(); err != nil {
		return fmt.Errorf("--topology-file: %w", err)
	}
	return nil
}

// unknown is a ledger that lets nobody have anything: what is written about tenants
// is not known yet, and the cluster is not ready before it is.
func unknown() *ledger.Ledger { return ledger.New(tenancy.New(tenancy.World{})) }

// view is what the metrics read. It is not asked before all is put together.
func (p *program) view(cfg config) metrics.View {
	v := metrics.View{
		Ledger:  func() ledger.Snapshot { return p.books.Ledger.Snapshot() },
		Ready:   func() bool { return p.cluster.Ready() },
		Tenancy: p.directory,
	}
	if cfg.leaderElect {
		v.Leadership = func() metrics.Leadership { return p.leader.View() }
	}
	return v
}

// directory is what is known of tenants; nil before anything is.
func (p *program) directory() *tenancy.Directory { return p.cluster.Rules().Law().Directory }

func (p *program) decider(cfg config, c clients, counts *metrics.Metrics) *engine.Engine {
	binder := &kube.Binder{Client: c.work, Lister: p.cluster.Pods(), Now: time.Now}
	if p.leader != nil {
		binder.Term, binder.Sending, binder.FenceRefused = p.leader.Term, p.clashes.Sending, p.leader.FenceRefused
	}
	pipe := cfg.settings.Pipeline()
	return engine.New(engine.Config{
		Ledger:   p.books.Ledger,
		Now:      time.Now,
		Pipeline: func() *pipeline.Pipeline { return pipe },
		Demand:   demand.New(),
		Pods:     p.finder(cfg, c, counts),
		Binder:   binder,
		Wait:     cfg.lockWait, Readback: cfg.readback, Retry: cfg.readback / 10, Linger: cfg.linger,
		Leads: p.leads,
	})
}

func (p *program) answerer(cfg config, counts *metrics.Metrics) *server.Server {
	serving := server.Config{
		Engine: p.engine, Reporter: p.events, Metrics: counts, Ready: p.cluster.Ready, Certified: p.certified,
		Ledger: p.books.Ledger.Snapshot, Differences: p.audit.Differences, Replicas: p.peers(cfg),
		BindTimeout: cfg.bindTimeout,
		Admission: admission.Rules{Settings: cfg.settings, Scheduler: name, Foresee: p.engine.Foresee,
			MaxPriority: p.cluster.Rules().MaxPriority, Succeeds: p.cluster.Succeeds,
			User: "system:serviceaccount:" + cfg.leaseNamespace + ":" + name},
		Decode: func(pod *corev1.Pod) (gpu.Request, error) { return codec.Request(pod, cfg.settings) },
	}
	if p.leader != nil {
		serving.Leadership = leadership{p.leader}
	}
	return server.New(serving)
}

// clients are one for the work, and one for each of what must not wait for it,
// nor it for that: a flood of events, or of pods that are ended for others, must not
// keep Bindings waiting for their turn, nor Bindings the renewal of the Lease. Those for kinds of our own are apart:
// the API server has them in JSON only.
type clients struct {
	work, events, deeds, lease kubernetes.Interface
	kinds                      versioned.Interface
	any                        dynamic.Interface // of whatever kind has a scale
}

func connect(cfg config) (c clients, err error) {
	r, err := restConfig(cfg.kubeconfig)
	if err != nil {
		return c, fmt.Errorf("--kubeconfig: %w", err)
	}
	r.QPS, r.Burst = float32(cfg.qps), cfg.burst
	r.UserAgent = name + "/" + version
	r.ContentType = "application/vnd.kubernetes.protobuf"
	r.AcceptContentTypes = r.ContentType + ",application/json"
	if c.work, err = kubernetes.NewForConfig(r); err != nil {
		return c, err
	}
	if c.events, err = kubernetes.NewForConfig(rest.CopyConfig(r)); err != nil {
		return c, err
	}
	if c.deeds, err = kubernetes.NewForConfig(rest.CopyConfig(r)); err != nil {
		return c, err
	}
	if c.lease, err = kubernetes.NewForConfig(leaseConfig(cfg, r)); err != nil {
		return c, err
	}
	if c.any, err = dynamic.NewForConfig(kindsConfig(r)); err != nil {
		return c, err
	}
	c.kinds, err = versioned.NewForConfig(kindsConfig(r))
	return c, err
}

// kindsConfig is that of the work, with bounds of its own: what is found of tenants
// is written as it changes, and nobody waits for it.
func kindsConfig(work *rest.Config) *rest.Config {
	r := rest.CopyConfig(work)
	r.QPS, r.Burst = kindsRequests, kindsRequests
	r.ContentType, r.AcceptContentTypes = "application/json", "application/json"
	return r
}

// kindsRequests bounds the requests about Tenants, at a thousand of them in 20 s.
const kindsRequests = 50

func restConfig(file string) (*rest.Config, error) {
	if file == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", file)
}

// run answers until ctx ends, or until another replica may lead. What answers
// lean on ends after them: a bind in flight still needs the pods and the ledger,
// and the Lease is given up when there is none. Requests that bind nobody do not
// keep it.
func (p *program) run(ctx context.Context, l listeners) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var support errgroup.Group
	for _, loop := range p.loops() {
		support.Go(func() error { return loop(behind) })
	}
	office, leave := context.WithCancel(behind)
	defer leave()
	for _, duty := range p.duties() {
		support.Go(func() error { return p.whenLeading(office, duty) })
	}
	lead, resign := context.WithCancel(behind)
	defer resign()
	led := make(chan error, 1)
	go func() { led <- p.lead(lead) }()
	front, ctx := errgroup.WithContext(ctx)
	decided := p.answer(ctx, front, l)

	select {
	case err := <-led:
		// Nothing is waited for: what is on its way is fenced.
		return err
	case <-decided:
	}
	resign()
	ended := <-led
	leave() // another may lead from now on, while some requests are still open
	err := front.Wait()
	if !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	stop()
	if ended := support.Wait(); !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	return err
}

// answer has front answer on all listeners until ctx ends. The channel is closed
// when those that decide have no request any more.
func (p *program) answer(ctx context.Context, front *errgroup.Group, l listeners) (decided <-chan struct{}) {
	var open sync.WaitGroup
	deciding := func(serve func() error) {
		open.Add(1)
		front.Go(func() error { defer open.Done(); return serve() })
	}
	deciding(func() error { return server.Serve(ctx, l.extender, p.server.Extender(), p.longest) })
	if l.replicas != nil {
		deciding(func() error {
			return server.ServeReplicas(ctx, l.replicas, p.server.Replica(), p.longest, p.identity)
		})
	}
	front.Go(func() error { return server.Serve(ctx, l.public, p.server.Public(), p.longest) })
	if l.webhooks != nil {
		front.Go(func() error { return server.ServeTLS(ctx, l.webhooks, p.server.Webhooks(), p.longest, p.cert) })
	}
	none := make(chan struct{})
	go func() { open.Wait(); close(none) }()
	return none
}

// loops are what goes on behind the answers, each until its context ends.
func (p *program) loops() []func(context.Context) error {
	always := []func(context.Context) error{p.cluster.Run, p.events.Run}
	if p.shared != nil {
		always = append(always, p.shared.Run)
	}
	if p.places != nil {
		always = append(always, p.places.Run)
	}
	if p.feeder != nil {
		always = append(always, func(ctx context.Context) error { p.feeder.Run(ctx); return ctx.Err() })
	}
	return always
}

// duties are the leader's alone, each until its context ends.
func (p *program) duties() []func(context.Context) error {
	all := []func(context.Context) error{
		func(ctx context.Context) error { return p.engine.Run(ctx, p.settle) },
		func(ctx context.Context) error { return p.engine.Wake(ctx, engine.WakePeriod) },
		func(ctx context.Context) error { return p.audit.Run(ctx, p.audits) },
		p.clashes.Run, p.tenants.Run, p.learn, p.preempts.Run, p.sleeps.Run, p.limits.Run,
	}
	if p.rebuilds != nil {
		all = append(all, p.rebuilds.Run)
	}
	return all
}
