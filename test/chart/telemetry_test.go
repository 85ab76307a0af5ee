package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// Telemetry is read where the values say, with what they say, and where they say
// nothing it is neither read nor is there a way to anywhere.
func TestTelemetry(t *testing.T) {
	const mounted = "/var/run/heteroflow/telemetry"
	type place struct {
		Config map[string]any // of the file that the flag names; nil without the flag
		Secret string         // of what is mounted where Config finds it
		Peers  []networking.NetworkPolicyPeer
		Port   int32 // that is open to them alone; 0: none is
	}
	monitoring := []networking.NetworkPolicyPeer{{}}
	if err := yaml.Unmarshal([]byte("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}"), &monitoring[0]); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]place{
		"default": {},
		"full": {
			Config: map[string]any{
				"prometheus": map[string]any{"url": "https://prometheus.monitoring.svc:9091", "caFile": mounted + "/ca.crt"},
				"period":     "30s", "stale": "2m",
			},
			Secret: "prometheus-access", Peers: monitoring, Port: 9091,
		},
	} {
		m := rendered(t, "elsewhere", set)
		d, scheduler, _ := deployed(t, m)
		var got place
		if flagOf(scheduler, "--telemetry-config") == "/etc/heteroflow/telemetry.yaml" {
			var config corev1.ConfigMap
			one(t, m, "ConfigMap", "heteroflow-scheduler").into(t, &config)
			if err := yaml.UnmarshalStrict([]byte(config.Data["telemetry.yaml"]), &got.Config); err != nil {
				t.Fatal(err)
			}
		}
		at := slices.IndexFunc(scheduler.VolumeMounts, func(v corev1.VolumeMount) bool { return v.MountPath == mounted && v.ReadOnly && v.SubPath == "" })
		for _, v := range d.Spec.Template.Spec.Volumes {
			if at >= 0 && v.Name == scheduler.VolumeMounts[at].Name {
				got.Secret = v.Secret.SecretName
			}
		}
		var policy networking.NetworkPolicy
		one(t, m, "NetworkPolicy", "heteroflow-scheduler").into(t, &policy)
		for _, rule := range policy.Spec.Egress {
			for _, p := range rule.Ports {
				if !slices.Contains([]int32{53, 443, 6443, 8443, 9444}, p.Port.IntVal) { // names, the API server, replicas
					got.Peers, got.Port = rule.To, p.Port.IntVal
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
}
