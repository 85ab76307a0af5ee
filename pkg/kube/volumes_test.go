package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func volume(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	v.Spec.NFS = &corev1.NFSVolumeSource{Server: "s", Path: "/"}
	change(v)
	return v
}

func claimOf(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "c"}}
	c.Spec.VolumeName, c.Status.Phase = "v", corev1.ClaimBound
	change(c)
	return c
}

func TestAnywhere(t *testing.T) {
	asIs := func(*corev1.PersistentVolume) {}
	bound := func(*corev1.PersistentVolumeClaim) {}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    bool
	}{
		"a share":        {[]runtime.Object{claimOf(bound), volume(asIs)}, true},
		"no such claim":  {[]runtime.Object{volume(asIs)}, false},
		"no such volume": {[]runtime.Object{claimOf(bound)}, false},
		"not bound yet":  {[]runtime.Object{claimOf(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }), volume(asIs)}, false},
		"one pod at a time": {[]runtime.Object{claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		}), volume(asIs)}, false},
		"being deleted": {[]runtime.Object{claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x"}
		}), volume(asIs)}, false},
		"of some nodes": {[]runtime.Object{claimOf(bound), volume(func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{} })}, false},
		"in a zone":     {[]runtime.Object{claimOf(bound), volume(func(v *corev1.PersistentVolume) { v.Labels = map[string]string{corev1.LabelTopologyZone: "a"} })}, false},
		"a disk of one node": {[]runtime.Object{claimOf(bound), volume(func(v *corev1.PersistentVolume) {
			v.Spec.NFS, v.Spec.ISCSI = nil, &corev1.ISCSIPersistentVolumeSource{}
		})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Volumes{Client: fake.NewClientset(tc.objects...), Now: func() time.Time { return time.Unix(1, 0) }}
			if got := v.Anywhere("x", "c"); got != tc.want {
				t.Errorf("anywhere: %t, want %t", got, tc.want)
			}
		})
	}
}

// What was found is good for a minute; of too many at once nothing is known, which is
// a no.
func TestAnywhereIsRemembered(t *testing.T) {
	now := time.Unix(1, 0)
	client := fake.NewClientset(claimOf(func(*corev1.PersistentVolumeClaim) {}), volume(func(*corev1.PersistentVolume) {}))
	v := &Volumes{Client: client, Now: func() time.Time { return now }}
	for i := range volumesAsked {
		v.Anywhere("x", fmt.Sprint(i))
	}
	if v.Anywhere("x", "c") {
		t.Error("it is known of one more than may be asked about")
	}
	now = now.Add(time.Second)
	if !v.Anywhere("x", "c") {
		t.Error("it is not asked about a second later")
	}
	if err := client.CoreV1().PersistentVolumes().Delete(context.Background(), "v", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if now = now.Add(volumesKnown - time.Second); !v.Anywhere("x", "c") {
		t.Error("it is forgotten before its time")
	}
	if now = now.Add(2 * time.Second); v.Anywhere("x", "c") {
		t.Error("it is remembered past its time")
	}
}
