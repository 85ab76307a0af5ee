package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func full() *SchedulerPolicy {
	yes, weight, percent, fixed, scale, timeout := true, 2.5, int64(5), int64(100), 1.5, "2h"
	return &SchedulerPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: SchedulerPolicyKind},
		ObjectMeta: metav1.ObjectMeta{Name: SchedulerPolicyName, Labels: map[string]string{"a": "b"}},
		Spec: SchedulerPolicySpec{
			Plugins:             []PluginPolicy{{Name: "spread", Enabled: &yes, Weight: &weight, Args: &runtime.RawExtension{Raw: []byte("{}")}}},
			MemoryReserve:       &MemoryReserve{Percent: &percent, FixedMiB: &fixed},
			DeviceMemoryScaling: &scale,
			DeviceCoreScaling:   &scale,
			DefaultSliceCores:   "none",
			Injection:           "downwardAPI",
			Shortlist:           &fixed,
			DefaultTaskTimeout:  &timeout,
			EnforceTaskTimeout:  &yes,
		},
	}
}

// What a cache hands out is shared: a copy must not lead back to it.
func TestDeepCopy(t *testing.T) {
	p := full()
	c := p.DeepCopyObject().(*SchedulerPolicy)
	if diff := cmp.Diff(p, c); diff != "" {
		t.Fatalf("copy (-original +copy):\n%s", diff)
	}
	c.Labels["a"] = "c"
	*c.Spec.Plugins[0].Enabled = false
	*c.Spec.Plugins[0].Weight = 0
	c.Spec.Plugins[0].Args.Raw[0] = '['
	*c.Spec.MemoryReserve.Percent = 0
	*c.Spec.MemoryReserve.FixedMiB = 0
	*c.Spec.DeviceMemoryScaling = 0
	*c.Spec.DeviceCoreScaling = 0
	*c.Spec.DefaultTaskTimeout = ""
	*c.Spec.EnforceTaskTimeout = false
	if diff := cmp.Diff(full(), p); diff != "" {
		t.Errorf("the original has changed (-before +after):\n%s", diff)
	}
}
