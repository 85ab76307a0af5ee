// Command controlplane is a Kubernetes control plane in one binary, for tests
// and the demo. It is not for real clusters: one etcd that by default does not
// sync to disk, everything on loopback, certificates made anew at each start.
//
//	controlplane up --dir DIR ...   etcd, kube-apiserver and kube-controller-manager in one process
//	controlplane kube-scheduler ... the upstream command with its own flags; also kube-apiserver,
//	                                kube-controller-manager and etcd
//
// "up" writes its certificates, data and kubeconfigs under DIR and says "ready"
// on standard output once the API server is. kube-scheduler is never part of
// it: it registers its configuration once per process, so one that is to be
// restarted or configured differently has to be a process of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics, as upstream's main has them
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = "usage: controlplane up --dir DIR [flags] | kube-scheduler|kube-apiserver|kube-controller-manager|etcd [upstream flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	os.Args = os.Args[1:] // upstream's commands read os.Args themselves
	os.Exit(run(os.Args[0]))
}

// run hands over to the named command and returns its exit status.
func run(command string) int {
	switch command {
	case "up":
		return runUp(os.Args[1:])
	case "kube-scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(controllermanager.NewControllerManagerCommand())
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	}
	fmt.Fprintln(os.Stderr, usage)
	return 2
}

func runUp(args []string) int {
	o, err := parseOptions(args)
	if err != nil {
		return 2 // the flag package has said what is wrong
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := up(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane up:", err)
		return 1
	}
	return 0
}
