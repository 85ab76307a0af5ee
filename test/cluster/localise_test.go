package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocalise(t *testing.T) {
	const example = `# kubeconfig and urlPrefix depend on the place
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf # who it is
  qps: 1000
extenders:
- urlPrefix: http://127.0.0.1:9000
  weight: 1
`
	const want = `# kubeconfig and urlPrefix depend on the place
clientConnection:
  kubeconfig: /tmp/s.kubeconfig # who it is
  qps: 1000
extenders:
- urlPrefix: http://127.0.0.1:1234
  weight: 1
`
	got, err := localise([]byte(example), "/tmp/s.kubeconfig", "http://127.0.0.1:1234")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLocaliseRefuses(t *testing.T) {
	tests := map[string]string{
		"no kubeconfig": "extenders:\n- urlPrefix: http://127.0.0.1:9000\n",
		"no extender":   "clientConnection:\n  kubeconfig: f\n",
		"two extenders": "kubeconfig: f\n- urlPrefix: http://a\n- urlPrefix: http://b\n",
	}
	for name, example := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := localise([]byte(example), "f", "u"); err == nil {
				t.Errorf("localise = %q, want an error", got)
			}
		})
	}
}
