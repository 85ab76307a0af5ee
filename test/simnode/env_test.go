package simnode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEnvironment(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "train-0", Namespace: "team", UID: "u-1",
			Labels:      map[string]string{"app": "train"},
			Annotations: map[string]string{"heteroflow.io/visible-devices-0": "GPU-a,GPU-b", "odd": "$(A)"},
		},
		Spec: corev1.PodSpec{NodeName: "n1"},
	}
	from := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	is := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

	tests := map[string]struct {
		env     []corev1.EnvVar
		want    map[string]string
		wantErr error
	}{
		"literal": {env: []corev1.EnvVar{is("A", "1")}, want: map[string]string{"A": "1"}},
		"the last of one name counts": {
			env: []corev1.EnvVar{is("A", "1"), is("A", "2")}, want: map[string]string{"A": "2"}},
		"earlier variables are seen, later ones not": {
			env:  []corev1.EnvVar{is("A", "1"), is("B", "$(A)-$(C)"), is("C", "3")},
			want: map[string]string{"A": "1", "B": "1-$(C)", "C": "3"}},
		"two dollars are one": {
			env:  []corev1.EnvVar{is("A", "1"), is("B", "$$(A) $$$(A) 5$ $x $(A")},
			want: map[string]string{"A": "1", "B": "$(A) $1 5$ $x $(A"}},
		"fields": {
			env: []corev1.EnvVar{
				from("N", "metadata.name"), from("NS", "metadata.namespace"), from("UID", "metadata.uid"),
				from("NODE", "spec.nodeName"), from("SA", "spec.serviceAccountName"), from("L", "metadata.labels['app']")},
			want: map[string]string{"N": "train-0", "NS": "team", "UID": "u-1", "NODE": "n1", "SA": "default", "L": "train"}},
		"an annotation and its use": {
			env: []corev1.EnvVar{
				from("CARDS", "metadata.annotations['heteroflow.io/visible-devices-0']"), is("NVIDIA_VISIBLE_DEVICES", "$(CARDS)")},
			want: map[string]string{"CARDS": "GPU-a,GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}},
		"an annotation that is not there is empty": {
			env: []corev1.EnvVar{from("A", "metadata.annotations['none']")}, want: map[string]string{"A": ""}},
		"what a field holds is not expanded": {
			env: []corev1.EnvVar{is("A", "1"), from("B", "metadata.annotations['odd']")}, want: map[string]string{"A": "1", "B": "$(A)"}},
		"a path nobody knows": {env: []corev1.EnvVar{from("A", "metadata.colour")}, wantErr: errNotSimulated},
		"a secret": {
			env:     []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}},
			wantErr: errNotSimulated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Environment(pod, &corev1.Container{Name: "main", Env: tc.env})
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("environment: %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
