package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the kubelet fills in is filled in, and all else stays as the chart has it.
func TestArguments(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	container := corev1.Container{
		Args: []string{"--lease-namespace=$(SPACE)", "--at=$(IP):9444", "--policy=/etc/heteroflow/policy.yaml", "--etc=/etc/other", "--fixed=$(FIXED)", "--unknown=$(UNKNOWN)"},
		Env: []corev1.EnvVar{
			{Name: "SPACE", ValueFrom: field("metadata.namespace")}, {Name: "IP", ValueFrom: field("status.podIP")}, {Name: "FIXED", Value: "v"},
		},
		VolumeMounts: []corev1.VolumeMount{{MountPath: "/etc/heteroflow"}},
	}
	want := []string{"--lease-namespace=n", "--at=127.0.0.1:9444", "--policy=/here/policy.yaml", "--etc=/etc/other", "--fixed=v", "--unknown=$(UNKNOWN)"}
	if diff := cmp.Diff(want, arguments(pod, container, placement{dir: "/here"})); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestEstablished(t *testing.T) {
	for conditions, want := range map[string]bool{
		"[]":                                      false,
		"[{type: Established, status: 'True'}]":   true,
		"[{type: Established, status: 'False'}]":  false,
		"[{type: NamesAccepted, status: 'True'}]": false,
		"[{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]": true,
	} {
		objects, err := decode(strings.NewReader("status: {conditions: " + conditions + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := established(objects[0]); (err == nil) != want {
			t.Errorf("%s: %v", conditions, err)
		}
	}
}
