package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// The components are run through their options and not through their cobra
// commands: each of those sets up the process's signal handler, which panics
// the second time.

const (
	etcdTries    = 3
	etcdPatience = 30 * time.Second // seen: under 1 s
	apiPatience  = 2 * time.Minute  // seen: under 5 s
)

type etcdServer struct {
	url  string
	stop func()
}

// startEtcd tries other ports where one was taken after it was found free.
func startEtcd(dir string, fsync bool) (server etcdServer, err error) {
	for range etcdTries {
		server, err = tryEtcd(dir, fsync)
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return server, err
}

func tryEtcd(dir string, fsync bool) (etcdServer, error) {
	config, err := etcdConfig(dir, fsync)
	if err != nil {
		return etcdServer{}, err
	}
	e, err := embed.StartEtcd(config)
	if err != nil {
		return etcdServer{}, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return etcdServer{config.ListenClientUrls[0].String(), e.Close}, nil
	case <-time.After(etcdPatience):
		e.Close()
		return etcdServer{}, fmt.Errorf("not ready within %s", etcdPatience)
	}
}

func etcdConfig(dir string, fsync bool) (*embed.Config, error) {
	client, err := loopbackURL()
	if err != nil {
		return nil, err
	}
	peer, err := loopbackURL()
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Dir = dir
	c.LogLevel = "error"
	c.UnsafeNoFsync = !fsync      // the data does not outlive the test
	c.QuotaBackendBytes = 4 << 30 // 20,000 pods of churn took 379 MB; the default is 2 GiB
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c, nil
}

func loopbackURL() (url.URL, error) {
	port, err := freePort()
	return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}, err
}

func apiserverArgs(o options, c credentials, etcd string) []string {
	return append([]string{
		"--etcd-servers=" + etcd,
		"--storage-media-type=application/vnd.kubernetes.protobuf",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", o.port),
		// A loopback address may not be advertised. No endpoints are written, so
		// that this one, of a net for documentation, is never used.
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.serverCert, "--tls-private-key-file=" + c.serverKey,
		"--client-ca-file=" + c.ca,
		"--authorization-mode=RBAC",
		// This plugin taints every new Node not-ready, and only the node lifecycle
		// controller, which does not run here, would take the taint off.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.accountPublic, "--service-account-signing-key-file=" + c.accountKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--cert-dir=" + filepath.Join(o.dir, "apiserver"),
		"--shutdown-delay-duration=0s", "--profiling=false",
		"--v=" + o.verbosity,
	}, o.apiserverFlags...)
}

func runAPIServer(ctx context.Context, l net.Listener, args []string) error {
	s := apiserveroptions.NewServerRunOptions()
	s.SecureServing.Listener = l
	if err := parse("kube-apiserver", s.Flags(), args); err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	complete, err := s.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := complete.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return apiserver.Run(ctx, complete)
}

func controllerManagerArgs(o options, c credentials) []string {
	return []string{
		"--kubeconfig=" + c.controllerManager,
		"--controllers=" + o.controllers,
		// Each controller acts as its own account: the manager's own user may not
		// do what all of them need.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.accountKey, "--root-ca-file=" + c.ca,
		"--leader-elect=false", "--secure-port=0",
		// A test sees in seconds what an autoscaler would do in minutes.
		"--horizontal-pod-autoscaler-sync-period=2s", "--horizontal-pod-autoscaler-downscale-stabilization=2s",
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--v=" + o.verbosity,
	}
}

func runControllerManager(ctx context.Context, args []string) error {
	s, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, off, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	flags := s.Flags(known, off, aliases)
	if err := parse("kube-controller-manager", flags, args); err != nil {
		return err
	}
	s.ParsedFlags = &flags
	config, err := s.Config(ctx, known, off, aliases)
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, config.Complete())
}

// parse reads args into a component's sets of flags.
func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	if fs.Lookup("v") == nil {
		fs.String("v", "0", "") // upstream's commands add it as a flag of the whole process
	}
	return fs.Parse(args)
}

// waitReady returns when the API server says that it is ready.
func waitReady(ctx context.Context, c credentials, port int) error {
	ctx, stop := context.WithTimeoutCause(ctx, apiPatience, fmt.Errorf("not ready within %s", apiPatience))
	defer stop()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: c.pool},
	}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !isReady(ctx, client, fmt.Sprintf("https://127.0.0.1:%d/readyz", port)) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// isReady asks without credentials: /readyz is open to everybody.
func isReady(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
