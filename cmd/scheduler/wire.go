package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/admission"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/server"
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
		klog.FromContext(ctx).Info("admission is off: there is no --tls-cert-file")
	} else {
		klog.FromContext(ctx).Info("admission is on", "address", l.webhooks.Addr(), "certificate", cfg.certFile)
	}
	return p.run(ctx, l)
}

// listeners are where the program is asked.
type listeners struct {
	extender, public net.Listener
	webhooks         net.Listener // nil where there is no certificate
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
		{"--admission-address", cfg.admissionAddress, &l.webhooks, cfg.certFile == ""},
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
	cluster *kube.Cluster
	engine  *engine.Engine
	events  *kube.Events
	server  *server.Server
	cert    *server.Certificate // of the webhooks
	longest time.Duration       // of one answer
	settle  time.Duration       // between two looks for holds that nobody confirms
	audit   *kube.Audit
	audits  time.Duration // between two
}

func wire(ctx context.Context, cfg config) (*program, error) {
	client, eventClient, err := clients(cfg)
	if err != nil {
		return nil, err
	}
	p := &program{longest: cfg.bindTimeout + cfg.readback + 5*time.Second, settle: cfg.settle, audits: cfg.audit}
	if cfg.certFile != "" {
		if p.cert, err = server.ReadCertificate(cfg.certFile, cfg.keyFile, klog.FromContext(ctx)); err != nil {
			return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
	}
	boundary := tenancy.Separate{}
	ledgers := ledger.New(boundary)
	ready := func() bool { return p.cluster.Ready() }
	counts := metrics.New(metrics.View{Ledger: ledgers.Snapshot, Ready: ready})
	p.events = kube.NewEvents(eventClient, time.Now, counts.EventDropped)
	books := &kube.Books{
		Ledger: ledgers, Settings: cfg.settings, Linger: cfg.linger, Now: time.Now, Logger: klog.FromContext(ctx),
		InventoryError: counts.InventoryError, Settled: func(pod gpu.PodID) { p.engine.Forget(pod) },
		Gone: func(pod gpu.PodID) { p.events.Forget(pod); p.engine.Forget(pod) },
	}
	if p.cluster, err = kube.NewCluster(client, books); err != nil {
		return nil, err
	}
	p.audit = &kube.Audit{Client: client, Lister: p.cluster.Pods(), Books: books, Ready: ready, Found: p.events.Mismatch, Standing: counts.Mismatches}
	pipe := cfg.settings.Pipeline(boundary)
	p.engine = engine.New(engine.Config{
		Ledger:   ledgers,
		Now:      time.Now,
		Pipeline: func() *pipeline.Pipeline { return pipe },
		Pods: &kube.Pods{Client: client, Lister: p.cluster.Pods(), Nodes: p.cluster.Nodes(), Settings: cfg.settings, Now: time.Now,
			Touched: counts.PodTouched, Nominated: counts.PodNominated},
		Binder: &kube.Binder{Client: client, Lister: p.cluster.Pods(), Now: time.Now},
		Wait:   cfg.lockWait, Readback: cfg.readback, Retry: cfg.readback / 10,
	})
	p.server = server.New(server.Config{
		Engine: p.engine, Reporter: p.events, Metrics: counts, Ready: ready, Ledger: ledgers.Snapshot, Differences: p.audit.Differences,
		BindTimeout: cfg.bindTimeout,
		Admission:   admission.Rules{Settings: cfg.settings, Scheduler: name},
		Decode:      func(pod *corev1.Pod) (gpu.Request, error) { return codec.Request(pod, cfg.settings) },
	})
	return p, nil
}

// clients returns one for the work and one for events: a flood of events must
// not keep Bindings waiting for their turn.
func clients(cfg config) (work, events kubernetes.Interface, err error) {
	r, err := restConfig(cfg.kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	r.QPS, r.Burst = float32(cfg.qps), cfg.burst
	r.UserAgent = name + "/" + version
	r.ContentType = "application/vnd.kubernetes.protobuf"
	r.AcceptContentTypes = r.ContentType + ",application/json"
	if work, err = kubernetes.NewForConfig(r); err != nil {
		return nil, nil, err
	}
	events, err = kubernetes.NewForConfig(rest.CopyConfig(r))
	return work, events, err
}

func restConfig(file string) (*rest.Config, error) {
	if file == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", file)
}

// run answers until ctx ends. What answers lean on ends after them: a bind in
// flight still needs the pods and the ledger.
func (p *program) run(ctx context.Context, l listeners) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var support errgroup.Group
	support.Go(func() error { return p.cluster.Run(behind) })
	support.Go(func() error { return p.events.Run(behind) })
	support.Go(func() error { return p.engine.Run(behind, p.settle) })
	support.Go(func() error { return p.engine.Wake(behind, engine.WakePeriod) })
	support.Go(func() error { return p.audit.Run(behind, p.audits) })

	front, ctx := errgroup.WithContext(ctx)
	front.Go(func() error { return server.Serve(ctx, l.extender, p.server.Extender(), p.longest) })
	front.Go(func() error { return server.Serve(ctx, l.public, p.server.Public(), p.longest) })
	if l.webhooks != nil {
		front.Go(func() error { return server.ServeTLS(ctx, l.webhooks, p.server.Webhooks(), p.longest, p.cert) })
	}
	err := front.Wait()
	stop()
	if ended := support.Wait(); !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	return err
}
