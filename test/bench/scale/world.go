package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/test/simnode"
)

// world says what there is: any node or pod can be made anew at any time, always
// the same.
type world struct{ nodes, pods int }

const (
	cardsPerNode = 8
	tenants      = 20 // namespaces; the pods of one node are of one
	podMemory    = 20000
	podCores     = 20
	perCard      = 2 // pods, at least: they are packed so that whole cards stay free
)

func (w world) nodeName(i int) string { return fmt.Sprintf("gpu-%05d", i) }

func (w world) namespace(node int) string { return fmt.Sprintf("tenant-%02d", node%tenants) }

func (w world) cards(node int) []simnode.Card {
	return simnode.Cards(w.nodeName(node), cardsPerNode, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)
}

// node is as its kubelet registers it: with labels and annotations of other
// components, and the images that it has.
func (w world) node(i int, heartbeat time.Time) (*corev1.Node, error) {
	inventory, err := json.Marshal(map[string]any{"version": 1, "cards": w.cards(i)})
	if err != nil {
		return nil, err
	}
	name := w.nodeName(i)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("1024Gi"),
		corev1.ResourcePods: resource.MustParse("250"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "zone-" + strconv.Itoa(i%3)},
			Annotations: map[string]string{codec.AnnotationDevices: string(inventory), "csi.volume.kubernetes.io/nodeid": `{"csi.example":"` + name + `"}`, "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.1", i/256, i%256)}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64", BootID: "boot-" + name, MachineID: "machine-" + name, KernelVersion: "6.8.0", OSImage: "Linux"},
		},
	}
	for j := range 40 { // feature discovery
		node.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.FEATURE%02d", j)] = "true"
	}
	for j := range 30 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example/team/image-%d@sha256:%064d", j, j)}, SizeBytes: 1 << 30})
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "Kubelet", Message: "kubelet is posting status", LastHeartbeatTime: metav1.NewTime(heartbeat)}
		if kind == corev1.NodeReady {
			c.Status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, c)
	}
	return node, nil
}

// where is the place of a pod: its node, and its card there.
func (w world) where(pod int) (node, card int) {
	node, nth := pod%w.nodes, pod/w.nodes
	return node, nth / perCard % cardsPerNode
}

// placement is what the pod's Binding has given it.
func (w world) placement(pod int) gpu.Placement {
	node, card := w.where(pod)
	c := w.cards(node)[card]
	return gpu.Placement{
		Namespace: w.namespace(node), Name: w.podName(pod), Node: gpu.NodeID(w.nodeName(node)), Tenant: gpu.TenantID(w.namespace(node)),
		Grants: []gpu.Grant{{Container: "main", Shares: []gpu.Share{{
			Card: gpu.CardID(c.UUID), Vendor: gpu.Nvidia, Index: c.Index, Memory: podMemory, Cores: podCores, Isolation: gpu.IsolationSoft,
		}}}},
	}
}

func (w world) podName(i int) string { return fmt.Sprintf("train-%d-%05d", i%7, i) }

// asks are the resources of a pod.
func asks() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		codec.ResourceMemory: resource.MustParse(strconv.Itoa(podMemory)), codec.ResourceCores: resource.MustParse(strconv.Itoa(podCores)),
	}
}

// pod is as it is once it is bound and runs. Its creation leaves the status out.
func (w world) pod(i int, changed time.Time) (*corev1.Pod, error) {
	p := w.placement(i)
	annotations, err := codec.Annotations(p, time.Unix(1700000000, 0), 1)
	if err != nil {
		return nil, err
	}
	maps.Copy(annotations, map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9400", "cni.example/network-status": `[{"name":"default","interface":"eth0","ips":["10.0.0.1"],"mac":"0a:58:0a:00:00:01","default":true,"dns":{}}]`})
	pod := w.pending(p.Namespace, p.Name)
	pod.Annotations = annotations
	pod.Labels[codec.BoundByLabel] = codec.BoundByValue
	pod.Spec.NodeName = string(p.Node)
	at := metav1.NewTime(changed)
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	running := asks()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &at
	pod.Status.PodIP, pod.Status.HostIP = "10.0.0.1", "10.1.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, Image: "registry.example/team/train:1", ImageID: fmt.Sprintf("registry.example/team/train@sha256:%064d", i), ContainerID: fmt.Sprintf("containerd://%064d", i),
		State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		AllocatedResources: running, Resources: &corev1.ResourceRequirements{Limits: running, Requests: running},
	}}
	return pod, nil
}

// pending is such a pod before it is bound.
func (w world) pending(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "train", "team": namespace, "version": "1", "controller-revision": "5c689d88bb"}},
		Spec: corev1.PodSpec{
			SchedulerName: "heteroflow-scheduler",
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/team/train:1", Command: []string{"python", "-m", "train"},
				Resources: corev1.ResourceRequirements{Limits: asks(), Requests: asks()},
			}},
		},
	}
	for i := range 12 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("value of setting %d", i)})
	}
	return pod
}
