package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/policy"
)

// write puts text into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	got, err := parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		extenderAddress: "127.0.0.1:9000", metricsAddress: ":9395", admissionAddress: ":9443",
		bindTimeout: 20 * time.Second, lockWait: 5 * time.Second, readback: 5 * time.Second, linger: time.Minute, settle: 30 * time.Second, audit: time.Minute,
		qps: 500, burst: 1000, settings: policy.Default(),
		leaderElect: true, preemptBare: true, leaseNamespace: "heteroflow-system", leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second,
		retryPeriod: 500 * time.Millisecond, fenceDelay: time.Second,
		replicaAddress: ":9444",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{})); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestFlagsAreRead(t *testing.T) {
	manifest := write(t, "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec: {memoryReserve: {percent: 7, fixedMiB: 0}}\n")
	got, err := parse(strings.Fields("--kubeconfig k --extender-address [::1]:1 --metrics-address 0.0.0.0:2 --admission-address :3 --tls-cert-file c --tls-private-key-file p --bind-timeout 9s --lock-wait 2s "+
		"--readback-timeout 3s --linger-timeout 4s --settle-interval 7s --audit-interval 8s --kube-api-qps 5.5 --kube-api-burst 6 --leader-elect=false --preempt-bare-pods=false --lease-namespace n --lease-duration 5s --renew-deadline 4s --retry-period 1s --fence-delay 0s "+
		"--replica-address :4 --replica-advertise ::1:4 --certificates-secret s --certificate-hosts h,127.0.0.1 -v=4 --policy "+manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := policy.Default()
	settings.Reserve = policy.Reserve{Percent: 7}
	want := config{
		kubeconfig: "k", policyFile: manifest, extenderAddress: "[::1]:1", metricsAddress: "0.0.0.0:2",
		admissionAddress: ":3", certFile: "c", keyFile: "p",
		bindTimeout: 9 * time.Second, lockWait: 2 * time.Second, readback: 3 * time.Second, linger: 4 * time.Second, settle: 7 * time.Second, audit: 8 * time.Second,
		qps: 5.5, burst: 6, settings: settings,
		leaseNamespace: "n", leaseDuration: 5 * time.Second, renewDeadline: 4 * time.Second, retryPeriod: time.Second,
		replicaAddress: ":4", replicaAdvertise: "[::1]:4", certificatesSecret: "s", certificateHosts: "h,127.0.0.1",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{})); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if _, err := parse([]string{"-v=0"}, nil); err != nil { // klog's flags are one for the process
		t.Fatal(err)
	}
}

// What is wrong is said in one line that names the flag or the field.
func TestMisuse(t *testing.T) {
	spec := func(text string) string {
		return write(t, "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec: "+text+"\n")
	}
	tests := map[string]struct{ args, want string }{
		"unknown flag":          {"--gpu-type nvidia", "-gpu-type"},
		"no duration":           {"--bind-timeout soon", "-bind-timeout"},
		"no time to bind":       {"--bind-timeout 0s", "--bind-timeout: 0s is not more than 0"},
		"negative lock wait":    {"--lock-wait -1s", "--lock-wait: -1s"},
		"no read-back":          {"--readback-timeout 0s", "--readback-timeout: 0s"},
		"read-back takes all":   {"--bind-timeout 5s", "--readback-timeout: 5s leaves nothing of --bind-timeout, 5s"},
		"no audits":             {"--audit-interval 0s", "--audit-interval: 0s"},
		"negative lingering":    {"--linger-timeout -1m", "--linger-timeout: -1m0s"},
		"lease nowhere":         {"--lease-namespace=", "--lease-namespace: is empty"},
		"no lease":              {"--lease-duration 0s", "--lease-duration: 0s is not more than 0"},
		"part of a second":      {"--lease-duration 10500ms", "--lease-duration: 10.5s is not a number of whole seconds"},
		"renewed too late":      {"--renew-deadline 15s", "--renew-deadline: 15s leaves nothing of --lease-duration, 15s"},
		"looks too seldom":      {"--retry-period 9s", "--retry-period: 9s leaves no time"},
		"negative fence delay":  {"--fence-delay -1s", "--fence-delay: -1s"},
		"no requests":           {"--kube-api-qps 0", "--kube-api-qps: 0"},
		"not a number":          {"--kube-api-qps NaN", "--kube-api-qps: NaN"},
		"no burst":              {"--kube-api-burst 0", "--kube-api-burst: 0"},
		"open to all":           {"--extender-address :9000", "--extender-address: \"\" is not a loopback host"},
		"open to the network":   {"--extender-address 192.0.2.1:9000", "--extender-address: \"192.0.2.1\" is not a loopback host"},
		"no port":               {"--extender-address 127.0.0.1", "--extender-address: address 127.0.0.1: missing port"},
		"no key":                {"--tls-cert-file c", "--tls-cert-file, --tls-private-key-file: one is of no use"},
		"no certificate":        {"--tls-private-key-file k", "--tls-cert-file, --tls-private-key-file: one is of no use"},
		"a file is missing":     {"--replica-cert-file c --replica-key-file k", "--replica-cert-file, --replica-key-file, --replica-ca-file: none"},
		"files and a Secret":    {"--certificates-secret s --replica-cert-file c --replica-key-file k --replica-ca-file a --replica-advertise h:1", "--certificates-secret, --replica-cert-file: there can be only one"},
		"webhooks of nobody":    {"--webhook-configurations w", "--webhook-configurations: is of no use without --certificates-secret"},
		"two certificates":      {"--tls-cert-file c --tls-private-key-file k --certificates-secret s --webhook-configurations w --replica-advertise h:1", "--webhook-configurations, --tls-cert-file: there can be only one"},
		"out of reach":          {"--certificates-secret s", "--replica-advertise: is empty"},
		"no port to reach":      {"--replica-advertise h", "--replica-advertise: address h: missing port"},
		"no host to reach":      {"--replica-advertise :9444", "--replica-advertise: \":9444\" is not host:port"},
		"two faults, one line":  {"--kube-api-qps 0 --kube-api-burst 0", "--kube-api-qps: 0 is not more than 0; --kube-api-burst: 0 is less than 1"},
		"something else":        {"run", `"run": there are only flags`},
		"no such policy":        {"--policy /nowhere/policy.yaml", "--policy: open /nowhere/policy.yaml"},
		"unknown field":         {"--policy " + spec("{pluginz: []}"), "pluginz"},
		"value out of range":    {"--policy " + spec("{deviceMemoryScaling: 99}"), "deviceMemoryScaling"},
		"no such plugin":        {"--policy " + spec("{plugins: [{name: astrology, enabled: true}]}"), "astrology"},
		"not a policy":          {"--policy " + write(t, "kind: ConfigMap\napiVersion: v1\n"), "ConfigMap"},
		"not even YAML":         {"--policy " + write(t, "{"), "--policy"},
		"API server not stated": {"--kubeconfig /nowhere/config --policy " + spec("{pluginz: []}"), "pluginz"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, complaint bytes.Buffer
			if status := run(t.Context(), strings.Fields(tc.args), &out, &complaint); status != exitMisused {
				t.Errorf("status %d, want %d", status, exitMisused)
			}
			text := complaint.String()
			if !strings.HasPrefix(text, "heteroflow-scheduler: ") || !strings.Contains(text, tc.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("complaint %q, want one line with %q", text, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, want := range map[string]string{
		"--version":                            "heteroflow-scheduler dev\n",
		"--help":                               "-bind-timeout",
		"--version --extender-address 0.0.0.0": "heteroflow-scheduler dev\n",
	} {
		var out, complaint bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &out, &complaint); status != exitDone {
			t.Errorf("%s: status %d: %s", args, status, complaint.String())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: printed %q, want %q", args, out.String(), want)
		}
	}
}

func TestNoAPIServerIsAFailure(t *testing.T) {
	var out, complaint bytes.Buffer
	status := run(t.Context(), []string{"--kubeconfig", "/nowhere/config"}, &out, &complaint)
	if status != exitFailed || !strings.Contains(complaint.String(), "--kubeconfig: ") {
		t.Errorf("status %d, complaint %q", status, complaint.String())
	}
}
