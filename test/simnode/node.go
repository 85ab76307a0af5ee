package simnode

import (
	"cmp"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spec describes a node.
type Spec struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	Taints      []corev1.Taint
	Cordoned    bool
	NotReady    bool
	CPU         string // allocatable; 64 if empty
	Memory      string // allocatable; 512Gi if empty
	Cards       []Card // published by annotation, as the node agent does
	Plain       *Plain // published by the stock device plugin instead
	// Resources are allocatable besides: what other device plugins advertise.
	Resources map[corev1.ResourceName]int64
	BootID    string // changes when a machine reboots; "boot-1" if empty
}

// Plain is an inventory that only counts: the allocatable resource of NVIDIA's
// device plugin and the labels of feature discovery.
type Plain struct {
	Count     int
	Product   string
	MemoryMiB int
}

const (
	plainResource = corev1.ResourceName("nvidia.com/gpu")
	labelHost     = "kubernetes.io/hostname"
)

// object is the Node as a kubelet registers it: a status sent with a creation
// is kept, so one request is enough.
func (s Spec) object() *corev1.Node {
	room := s.room()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.labels(), Annotations: s.annotations()},
		Spec:       corev1.NodeSpec{Taints: s.Taints, Unschedulable: s.Cordoned},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Conditions:  []corev1.NodeCondition{readyCondition(!s.NotReady)},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
				BootID: cmp.Or(s.BootID, "boot-1"),
			},
		},
	}
}

func (s Spec) labels() map[string]string {
	labels := map[string]string{labelHost: s.Name}
	if s.Plain != nil {
		labels["nvidia.com/gpu.product"] = s.Plain.Product
		labels["nvidia.com/gpu.memory"] = strconv.Itoa(s.Plain.MemoryMiB)
		labels["nvidia.com/gpu.count"] = strconv.Itoa(s.Plain.Count)
	}
	maps.Copy(labels, s.Labels)
	return labels
}

func (s Spec) annotations() map[string]string {
	annotations := map[string]string{}
	if s.Cards != nil {
		annotations[DevicesAnnotation] = encodeDevices(s.Cards)
	}
	maps.Copy(annotations, s.Annotations)
	return annotations
}

func (s Spec) room() corev1.ResourceList {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cmp.Or(s.CPU, "64")),
		corev1.ResourceMemory: resource.MustParse(cmp.Or(s.Memory, "512Gi")),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	if s.Plain != nil {
		room[plainResource] = *resource.NewQuantity(int64(s.Plain.Count), resource.DecimalSI)
	}
	for name, n := range s.Resources {
		room[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return room
}

func readyCondition(ready bool) corev1.NodeCondition {
	now := metav1.Now()
	c := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if !ready {
		c.Status, c.Reason = corev1.ConditionFalse, "KubeletNotReady"
	}
	return c
}
