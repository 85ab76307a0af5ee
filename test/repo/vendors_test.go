package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// There is one pod for each vendor beside NVIDIA, and it asks for what its
// comment says.
func TestExamplesOfVendors(t *testing.T) {
	want := map[gpu.Vendor]gpu.Ask{
		gpu.Musa:      {Plugin: "mthreads.com/vgpu", Count: 1, Memory: 16 << 10, Cores: 50},
		gpu.Hygon:     {Plugin: "hygon.com/dcunum", Count: 1, Memory: 8000, Cores: 60},
		gpu.Cambricon: {Plugin: "cambricon.com/vmlu", Count: 1, Memory: 5 << 10, Cores: 10},
		gpu.Biren:     {Plugin: "birentech.com/gpu", Count: 2, Whole: true},
		gpu.Ascend:    {Plugin: "huawei.com/Ascend910B3", Count: 8, Whole: true, Model: "910B3"},
		gpu.Kunlun:    {Plugin: "kunlunxin.com/vxpu", Count: 1, Memory: 24 << 10},
		gpu.Iluvatar:  {Plugin: "iluvatar.ai/MR-V100-vgpu", Count: 1, Memory: 16 << 10, Cores: 50, Model: "MR-V100"},
		gpu.Metax:     {Plugin: "metax-tech.com/sgpu", Count: 2, Memory: 4 << 10, Cores: 60},
		gpu.Enflame:   {Count: 1, Memory: 20 << 10, Cores: 40},
	}
	files, err := filepath.Glob("../../examples/vendors/*")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, want %d (%v)", len(files), len(want), err)
	}
	for _, file := range files {
		vendor := gpu.Vendor(strings.TrimSuffix(filepath.Base(file), ".yaml"))
		t.Run(string(vendor), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict(text, &pod); err != nil {
				t.Fatal(err)
			}
			got, err := codec.Request(&pod, policy.Default())
			if err != nil {
				t.Fatal(err)
			}
			ask := want[vendor]
			ask.Container, ask.Vendor = "main", vendor
			if diff := cmp.Diff([]gpu.Ask{ask}, got.Asks); diff != "" {
				t.Errorf("asks (-want +got):\n%s", diff)
			}
			if pod.Name != string(vendor) || pod.Spec.SchedulerName == "" {
				t.Errorf("pod %q for scheduler %q", pod.Name, pod.Spec.SchedulerName)
			}
		})
	}
}
