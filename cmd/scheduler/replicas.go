package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/server"
)

// replicaFlags are about what replicas say to each other, and the certificates
// that they share.
func (c *config) replicaFlags(f *flag.FlagSet) {
	f.StringVar(&c.replicaAddress, "replica-address", ":9444", "of requests that other replicas send on, with --certificates-secret or --replica-cert-file")
	f.StringVar(&c.replicaAdvertise, "replica-advertise", "", "host:port where other replicas reach --replica-address")
	f.StringVar(&c.replicaCertFile, "replica-cert-file", "", "certificate of the replicas, for the name heteroflow-scheduler, read again when it changes")
	f.StringVar(&c.replicaKeyFile, "replica-key-file", "", "key of that certificate")
	f.StringVar(&c.replicaCAFile, "replica-ca-file", "", "authorities of the replicas' certificates; they must not sign for anybody else")
	f.StringVar(&c.certificatesSecret, "certificates-secret", "", "Secret in --lease-namespace with the replicas' certificates, which are made and renewed there; instead of files")
	f.StringVar(&c.webhookConfigurations, "webhook-configurations", "", "names of webhook configurations, separated by commas, that are to trust --certificates-secret; admission is on with it")
	f.StringVar(&c.certificateHosts, "certificate-hosts", "", "names and IP addresses, separated by commas, by which the API server calls the webhooks; heteroflow-scheduler.<lease-namespace>.svc without it")
}

// forwards reports whether replicas send requests on to each other.
func (c *config) forwards() bool {
	return c.leaderElect && (c.certificatesSecret != "" || c.replicaCertFile != "")
}

// admits reports whether the API server is answered.
func (c *config) admits() bool { return c.certFile != "" || c.webhookConfigurations != "" }

// checkReplicas also brings --replica-advertise into one form, by which a replica
// knows itself.
func (c *config) checkReplicas() (errs []error) {
	files := []string{c.replicaCertFile, c.replicaKeyFile, c.replicaCAFile}
	if slices.Contains(files, "") && slices.ContainsFunc(files, func(f string) bool { return f != "" }) {
		errs = append(errs, errors.New("--replica-cert-file, --replica-key-file, --replica-ca-file: none is of use without the others"))
	}
	if c.certificatesSecret != "" && c.replicaCertFile != "" {
		errs = append(errs, errors.New("--certificates-secret, --replica-cert-file: there can be only one"))
	}
	if c.webhookConfigurations != "" && c.certificatesSecret == "" {
		errs = append(errs, errors.New("--webhook-configurations: is of no use without --certificates-secret"))
	}
	if c.webhookConfigurations != "" && c.certFile != "" {
		errs = append(errs, errors.New("--webhook-configurations, --tls-cert-file: there can be only one certificate of the webhooks"))
	}
	if c.replicaAdvertise == "" {
		if c.forwards() {
			errs = append(errs, errors.New("--replica-advertise: is empty, so no other replica could send requests here"))
		}
		return errs
	}
	var err error
	if c.replicaAdvertise, err = hostPort(c.replicaAdvertise); err != nil {
		errs = append(errs, fmt.Errorf("--replica-advertise: %w", err))
	}
	return errs
}

// hostPort also takes an IPv6 address without brackets, as pods are told theirs.
func hostPort(text string) (string, error) {
	if at := strings.LastIndexByte(text, ':'); at > 0 && net.ParseIP(text[:at]) != nil {
		text = net.JoinHostPort(text[:at], text[at+1:])
	}
	host, port, err := net.SplitHostPort(text)
	switch {
	case err != nil:
		return "", err
	case host == "" || port == "":
		return "", fmt.Errorf("%q is not host:port", text)
	}
	return net.JoinHostPort(host, port), nil
}

// list takes a text with commas apart.
func list(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}

// identify finds the certificates that this replica shows to the API server and
// to the other replicas.
func (p *program) identify(ctx context.Context, cfg config, c clients, counts *metrics.Metrics) error {
	logger := klog.FromContext(ctx)
	if cfg.certFile != "" {
		cert, err := server.ReadCertificate(cfg.certFile, cfg.keyFile, logger)
		if err != nil {
			return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
		p.cert = cert
	}
	switch {
	case cfg.certificatesSecret != "":
		p.shared = sharedCertificates(cfg, c, counts, logger)
		p.identity = p.shared
		if p.cert == nil {
			p.cert = p.shared
		}
	case cfg.replicaCertFile != "":
		id, err := server.ReadIdentity(cfg.replicaCertFile, cfg.replicaKeyFile, cfg.replicaCAFile, logger)
		if err != nil {
			return fmt.Errorf("--replica-cert-file, --replica-key-file, --replica-ca-file: %w", err)
		}
		p.identity = id
	}
	return nil
}

func sharedCertificates(cfg config, c clients, counts *metrics.Metrics, logger klog.Logger) *kube.Certificates {
	hosts := list(cfg.certificateHosts)
	if len(hosts) == 0 {
		hosts = []string{fmt.Sprintf("%s.%s.svc", name, cfg.leaseNamespace)}
	}
	return &kube.Certificates{
		Client: c.lease, Namespace: cfg.leaseNamespace, Name: cfg.certificatesSecret,
		Webhooks: list(cfg.webhookConfigurations), Hosts: hosts,
		Now: time.Now, Logger: logger, Expires: counts.Certificates,
	}
}

// certified reports whether there is a certificate to show, where there has to be.
func (p *program) certified() bool {
	if p.shared == nil {
		return true
	}
	_, err := p.shared.Current()
	return err == nil
}

// peers is how the other replicas are reached.
func (p *program) peers(cfg config) server.Replicas {
	r := server.Replicas{Self: cfg.replicaAdvertise, Longest: cfg.bindTimeout + cfg.readback}
	if cfg.forwards() {
		r.Transport = server.ReplicaTransport(p.identity)
	}
	return r
}
