package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What nodes of device plugins have, typed from HAMi's own encodings.
func TestInventoryOfPlugins(t *testing.T) {
	zero, one := 0, 1
	nvidia := card{
		UUID: "GPU-a", Vendor: "nvidia", Model: "NVIDIA-A100", MemoryMiB: 40960, Cores: 100, NUMA: &one, Healthy: true,
		Mode: "slice", MaxSlices: 10, Isolation: "soft", usable: 40960, plugin: "nvidia.com/gpu",
	}
	but := func(c card, change func(*card)) card {
		change(&c)
		return c
	}
	second := but(nvidia, func(c *card) { c.UUID, c.Index, c.Healthy = "GPU-b", 1, false })
	tests := map[string]struct {
		annotations map[string]string
		allocatable map[corev1.ResourceName]string
		want        []card
	}{
		"text of 9 fields": {
			map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,40960,100,NVIDIA-A100,1,true,0,hami-core:GPU-b,10,40960,100,NVIDIA-A100,1,false,1,hami-core:"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "20"}, []card{nvidia, second},
		},
		"text of 7": {
			map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,40960,100,NVIDIA-A100,1,true:GPU-b,10,40960,100,NVIDIA-A100,1,false:"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "10"}, []card{nvidia, second},
		},
		"JSON": {
			map[string]string{"hami.io/node-nvidia-register": `[{"id":"GPU-a","count":10,"devmem":40960,"type":"NVIDIA-A100","numa":1,"health":true},` +
				`{"id":"GPU-b","index":1,"count":10,"devmem":40960,"devcore":150,"type":"NVIDIA-A100","numa":1}]`},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "10"}, []card{nvidia, second},
		},
		"the plugin has stopped": {
			map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,40960,100,NVIDIA-A100,1,true:"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "0"}, []card{but(nvidia, func(c *card) { c.Healthy = false })},
		},
		"the vendor's own has taken its place": {
			map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,40960,100,NVIDIA-A100,1,true:"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "1"}, []card{but(nvidia, func(c *card) { c.Healthy = false })},
		},
		"modes": {
			map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,40960,100,NVIDIA-A100,1,true,0,mps:GPU-b,10,40960,100,NVIDIA-A100,1,false,1,mig:"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "10"}, []card{but(nvidia, func(c *card) { c.Isolation = "driver" }), but(second, func(c *card) { c.Mode, c.Isolation = "mig", "none" })},
		},
		"given out whole": {
			map[string]string{"hami.io/node-register-Ascend910B3": `[{"id":"npu","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]`},
			map[corev1.ResourceName]string{"huawei.com/Ascend910B3": "4"}, []card{{UUID: "npu", Vendor: "ascend", Model: "Ascend910B3", MemoryMiB: 65536, Cores: 100, NUMA: &zero, Healthy: true, Mode: "whole", MaxSlices: 4, Isolation: "none", usable: 65536, plugin: "huawei.com/Ascend910B3"}},
		},
		"MetaX": {
			map[string]string{"metax-tech.com/node-gpu-devices": `[{"uuid":"m","model":"sgpu","totalDevCount":16,"totalCompute":100,"totalVRam":32768,"healthy":true}]`},
			map[corev1.ResourceName]string{"metax-tech.com/gpu": "1", "metax-tech.com/sgpu": "16"},
			[]card{
				{UUID: "m", Vendor: "metax", Model: "sgpu", MemoryMiB: 32768, Cores: 100, NUMA: &zero, Healthy: true, Mode: "slice", MaxSlices: 16, Isolation: "driver", usable: 32768, plugin: "metax-tech.com/sgpu"},
			},
		},
		"counted": {
			nil, map[corev1.ResourceName]string{"metax-tech.com/gpu": "1", "metax-tech.com/sgpu": "4"},
			[]card{{UUID: "n1-metax-0", Vendor: "metax", Cores: 100, Healthy: true, Mode: "whole", MaxSlices: 1, plain: true, plugin: "metax-tech.com/gpu"}},
		},
		"counted, of a model": {
			nil, map[corev1.ResourceName]string{"huawei.com/Ascend310P": "1"},
			[]card{{UUID: "n1-ascend-0", Vendor: "ascend", Model: "310P", Cores: 100, Healthy: true, Mode: "whole", MaxSlices: 1, plain: true, plugin: "huawei.com/Ascend310P"}},
		},
		"by size": {
			nil, map[corev1.ResourceName]string{"cambricon.com/mlu.smlu.vcore": "100", "cambricon.com/mlu.smlu.vmemory": "192", "mthreads.com/sgpu-core": "16", "mthreads.com/sgpu-memory": "96"},
			[]card{
				{UUID: "n1-musa-0", Vendor: "musa", MemoryMiB: 49152, Cores: 100, Healthy: true, Mode: "slice", MaxSlices: 100, Isolation: "driver", usable: 49152, plain: true, plugin: "mthreads.com/vgpu"},
				{UUID: "n1-cambricon-0", Vendor: "cambricon", MemoryMiB: 49152, Cores: 100, Healthy: true, Mode: "slice", MaxSlices: 100, Isolation: "driver", usable: 49152, plain: true, plugin: "cambricon.com/vmlu"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: tc.annotations}}
			node.Status.Allocatable = corev1.ResourceList{}
			for resourceName, amount := range tc.allocatable {
				node.Status.Allocatable[resourceName] = resource.MustParse(amount)
			}
			got, err := inventory(node)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(card{})); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGives(t *testing.T) {
	for plugin, want := range map[string]bool{"": true, "metax-tech.com/sgpu": true, "metax-tech.com/gpu": false} {
		if got := (&card{plugin: plugin}).gives(&ask{plugin: "metax-tech.com/sgpu"}); got != want {
			t.Errorf("a card of %q: %v, want %v", plugin, got, want)
		}
	}
}
