package admission

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/policy"
)

// made is a pod that has all but its variables.
func made(record, containers string) string {
	return "{metadata: {name: p, annotations: {" + record + "}}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, " + containers + "}}"
}

const (
	number0 = `heteroflow.io/containers: '{"main":0}'`
	number7 = `heteroflow.io/containers: '{"main":7}'`
	numbers = `heteroflow.io/containers: '{"a":0,"b":1}'`
)

// void stands behind the variables of a container with cards of others.
const void = ", {name: NVIDIA_VISIBLE_DEVICES, value: void}"

// reads is a variable that the kubelet fills from an annotation of ours.
func reads(variable, key string) string {
	return "{name: " + variable + ", valueFrom: {fieldRef: {apiVersion: v1, fieldPath: \"metadata.annotations['heteroflow.io/" + key + "']\"}}}"
}

func TestInject(t *testing.T) {
	tests := map[string]struct {
		pod  string
		want string // the same pod afterwards; "": unchanged
	}{
		"a whole card": {
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]"),
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+"]}]"),
		},
		"by the container's own number": {
			made(number7, "containers: [{name: main, resources: {limits: {hygon.com/dcunum: 1}}}]"),
			made(number7, "containers: [{name: main, resources: {limits: {hygon.com/dcunum: 1}}, env: ["+reads("DCU_VISIBLE_DEVICES", "visible-devices-7")+void+"]}]"),
		},
		"a vendor that the pod names": {
			made(number0+", heteroflow.io/gpu-type: Ascend", "containers: [{name: main, resources: {limits: {heteroflow.io/gpu: 1}}}]"),
			made(number0+", heteroflow.io/gpu-type: Ascend", "containers: [{name: main, resources: {limits: {heteroflow.io/gpu: 1}}, env: ["+reads("ASCEND_VISIBLE_DEVICES", "visible-devices-0")+void+"]}]"),
		},
		"a vendor that nobody names is left to be refused": {
			pod: made(number0, "containers: [{name: main, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], resources: {limits: {heteroflow.io/gpu: 1}}}]"),
		},
		"a slice of memory": {
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 1000}}}]"),
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 1000}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+", "+
				reads("HETEROFLOW_MEMORY_MIB", "mem-limit-0")+", {name: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, value: 0=$(HETEROFLOW_MEMORY_MIB)M}]}]"),
		},
		"two slices with compute": {
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 1000, nvidia.com/gpucores: 30}}}]"),
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem: 1000, nvidia.com/gpucores: 30}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+", "+
				reads("HETEROFLOW_MEMORY_MIB", "mem-limit-0")+", {name: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, value: '0=$(HETEROFLOW_MEMORY_MIB)M,1=$(HETEROFLOW_MEMORY_MIB)M'}, "+
				reads("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "core-limit-0")+"]}]"),
		},
		"compute in proportion is a limit too": {
			made(number0+", heteroflow.io/gpu-type: nvidia", "containers: [{name: main, resources: {limits: {heteroflow.io/gpu-memory: 1000}}}]"),
			made(number0+", heteroflow.io/gpu-type: nvidia", "containers: [{name: main, resources: {limits: {heteroflow.io/gpu-memory: 1000}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+", "+
				reads("HETEROFLOW_MEMORY_MIB", "mem-limit-0")+", {name: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, value: 0=$(HETEROFLOW_MEMORY_MIB)M}, "+
				reads("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "core-limit-0")+"]}]"),
		},
		"two slices that may differ are left to be refused": {
			pod: made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50}}}]"),
		},
		"slices of others have no limits that we know": {
			made(number0, "containers: [{name: main, resources: {limits: {mthreads.com/vgpu: 1, mthreads.com/sgpu-memory: 2}}}]"),
			made(number0, "containers: [{name: main, resources: {limits: {mthreads.com/vgpu: 1, mthreads.com/sgpu-memory: 2}}, env: ["+reads("MTHREADS_VISIBLE_DEVICES", "visible-devices-0")+void+"]}]"),
		},
		"what the author wrote of it goes, and the rest stays behind ours": {
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: [{name: A, value: a, future: 1}, {name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: CUDA_VISIBLE_DEVICES, value: '0'}, {name: NVIDIA_VISIBLE_DEVICES, value: '0'}, {name: ASCEND_VISIBLE_DEVICES, value: '0'}, {name: HYGON_VISIBLE_DEVICES, value: '0'}]}]"),
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+", {name: A, value: a, future: 1}, {name: CUDA_VISIBLE_DEVICES, value: '0'}]}]"),
		},
		"ours and then the author's own once more": {
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+", {name: NVIDIA_VISIBLE_DEVICES, value: all}]}]"),
			made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+"]}]"),
		},
		"what another webhook put before ours may stay there": {
			pod: made(number0, "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}, env: [{name: MESH, value: x}, "+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-0")+"]}]"),
		},
		"a container that asks for none sees none": {
			made(numbers, "initContainers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}], containers: [{name: b, resources: {limits: {nvidia.com/gpu: 1}}}]"),
			made(numbers, "initContainers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}], containers: [{name: b, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+
				reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-1")+"]}]"),
		},
		"where no word for none is known, the author's goes all the same": {
			made(numbers, "containers: [{name: a, env: [{name: ASCEND_VISIBLE_DEVICES, value: '0'}]}, {name: b, resources: {limits: {nvidia.com/gpu: 1}}}]"),
			made(numbers, "containers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}, {name: b, resources: {limits: {nvidia.com/gpu: 1}}, env: ["+reads("NVIDIA_VISIBLE_DEVICES", "visible-devices-1")+"]}]"),
		},
		"NVIDIA's cards are hidden from a pod of another vendor's": {
			made(numbers, "containers: [{name: a, env: [{name: ASCEND_VISIBLE_DEVICES, value: '0'}]}, {name: b, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], resources: {limits: {huawei.com/Ascend910B2: 1}}}]"),
			made(numbers, "containers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}, {name: b, resources: {limits: {huawei.com/Ascend910B2: 1}}, env: ["+reads("ASCEND_VISIBLE_DEVICES", "visible-devices-1")+void+"]}]"),
		},
		"each container by its own vendor": {
			made(numbers, "containers: [{name: a, resources: {limits: {metax-tech.com/gpu: 1}}}, {name: b, resources: {limits: {kunlunxin.com/xpu: 1}}}]"),
			made(numbers, "containers: [{name: a, resources: {limits: {metax-tech.com/gpu: 1}}, env: ["+reads("CUDA_VISIBLE_DEVICES", "visible-devices-0")+void+"]}, {name: b, resources: {limits: {kunlunxin.com/xpu: 1}}, env: ["+
				reads("XPU_VISIBLE_DEVICES", "visible-devices-1")+void+"]}]"),
		},
		"a pod without cards is not ours to change": {
			pod: "{metadata: {annotations: {heteroflow.io/priority: '1'}}, spec: {containers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}",
		},
		"nor is one of another scheduler": {
			pod: "{spec: {schedulerName: volcano, containers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], resources: {limits: {nvidia.com/gpu: 1}}}]}}",
		},
		"a request that is invalid is left to be refused": {
			pod: made(number0, "containers: [{name: main, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], resources: {limits: {nvidia.com/gpu: 65}}}]"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { checkMutation(t, rules(downward), tc.pod, tc.want) })
	}
}

// The record may be made by the same answer.
func TestInjectByTheNumbersOfTheSameAnswer(t *testing.T) {
	checkMutation(t, rules(downward),
		made("", "containers: [{name: a}, {name: b, resources: {limits: {iluvatar.ai/BI-V100-vgpu: 1}}}]"),
		made(numbers, "containers: [{name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}, {name: b, resources: {limits: {iluvatar.ai/BI-V100-vgpu: 1}}, env: ["+reads("IX_VISIBLE_DEVICES", "visible-devices-1")+void+"]}]"))
}

// Without the policy no variable is touched.
func TestNoInjectionByDefault(t *testing.T) {
	checkMutation(t, rules(func(s *policy.Settings) { s.Injection = policy.InjectionNone }),
		made(number0, "containers: [{name: main, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], resources: {limits: {nvidia.com/gpu: 1}}}]"), "")
}
