package kube

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// podRead is all that is read of a pod, in words.
type podRead struct {
	Placement                 gpu.Placement
	Active, Ended, Ours, Over bool
	Epoch                     int64
	Doubt                     string
	Deleted                   bool
	Grace                     time.Duration
	Request                   gpu.Request
	Invalid, Fits             string
	Version                   string
	Affinity                  *corev1.Affinity
	Selector                  map[string]string
	Tolerations               []corev1.Toleration
	Nominated                 string
	Bound                     preempt.Pod
	Asker                     preempt.Asker
	Asks                      bool
	Owner                     *metav1.OwnerReference
	Refused                   metav1.Time // when kube-scheduler has begun to find no node for it
	Member                    string
	Inference                 bool
	Runtime                   time.Duration
	Began                     *metav1.Time // of one that is bound
}

func readPod(pod *corev1.Pod) podRead {
	r := podRead{
		Placement: codec.Placement(pod), Active: codec.Active(pod), Ended: codec.Ended(pod), Ours: codec.Ours(pod),
		Over: codec.Terminal(pod), Deleted: pod.DeletionTimestamp != nil, Grace: codec.Grace(pod), Version: pod.ResourceVersion,
	}
	r.Epoch, _ = codec.BoundIn(pod)
	r.Member, r.Inference = codec.TaskGroup(pod), codec.Inference(pod)
	r.Runtime, _ = codec.MaxRuntime(pod)
	r.Doubt = fmt.Sprint(codec.Doubt(pod))
	if codec.Victim(pod) || pod.Spec.NodeName == "" {
		if r.Owner = metav1.GetControllerOf(pod); r.Owner != nil {
			r.Owner.BlockOwnerDeletion = nil
		}
	}
	if pod.Spec.NodeName != "" {
		r.Bound, r.Began = codec.Bound(pod), pod.Status.StartTime
		return r // what it wished for is not read any more
	}
	r.Asker, r.Asks = codec.Asking(pod, policy.Default(), nowhere)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			r.Refused = c.LastTransitionTime
		}
	}
	var invalid error
	if r.Request, invalid = codec.Request(pod, policy.Default()); invalid != nil {
		r.Invalid = invalid.Error()
	}
	added := map[string]string{codec.AnnotationAllocation: "record"}
	r.Fits = fmt.Sprint(onto(pod, added), added)
	r.Affinity, r.Selector, r.Tolerations = pod.Spec.Affinity, pod.Spec.NodeSelector, pod.Spec.Tolerations
	r.Nominated = pod.Status.NominatedNodeName
	return r
}

// nodeRead is all that is read of a node.
type nodeRead struct {
	Facts         any
	Fault         string
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
	Failed        metav1.Time // since when it is not ready
}

func readNode(node *corev1.Node) nodeRead {
	facts, err := codec.Facts(node, policy.Default())
	r := nodeRead{facts, fmt.Sprint(err), node.Labels, node.Spec.Taints, node.Spec.Unschedulable, metav1.Time{}}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			r.Failed = c.LastTransitionTime
		}
	}
	return r
}

// oneOf picks one.
func oneOf[T any](c randfill.Continue, all ...T) T { return all[c.Intn(len(all))] }

// filler fills objects with what means something here, and with anything
// elsewhere.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2).MaxDepth(8).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(oneOf(c, "0", "1", "2", "100m", "1.5", "10000", "40Gi", "1e3"))
		},
		func(n *corev1.ResourceName, c randfill.Continue) {
			*n = oneOf[corev1.ResourceName](c, corev1.ResourceCPU, corev1.ResourceMemory, codec.ResourceGPU, codec.ResourceMemory, codec.ResourceCores,
				"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/mig-1g.5gb", "hygon.com/dcunum", "heteroflow.io/gpus", "example.com/nic")
		},
		func(t *metav1.Time, c randfill.Continue) {
			*t = metav1.NewTime(start().Add(time.Duration(c.Intn(1000)) * time.Second))
		},
		func(p *corev1.ContainerRestartPolicy, c randfill.Continue) { *p = corev1.ContainerRestartPolicyAlways },
		func(p *corev1.PodPhase, c randfill.Continue) {
			*p = oneOf(c, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
		},
		func(t *corev1.PodConditionType, c randfill.Continue) {
			*t = oneOf(c, corev1.PodReady, corev1.PodResizePending, corev1.PodScheduled)
		},
		func(t *corev1.NodeConditionType, c randfill.Continue) {
			*t = oneOf(c, corev1.NodeReady, corev1.NodeDiskPressure)
		},
		func(s *corev1.ConditionStatus, c randfill.Continue) {
			*s = oneOf(c, corev1.ConditionTrue, corev1.ConditionFalse)
		},
		func(s *corev1.Container, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Name = oneOf(c, "main", "side", "fetch")
		},
		func(s *corev1.ContainerStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Name = oneOf(c, "main", "side", "fetch")
		},
		func(s *corev1.PodCondition, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Reason = oneOf(c, "Infeasible", "Deferred", corev1.PodReasonUnschedulable)
		},
	)
}

// somePod is anything that a pod may be: half of them bound, most of those with a
// record, which is now and then another's.
func somePod(t testing.TB, seed int64) *corev1.Pod {
	t.Helper()
	pod, template := &corev1.Pod{}, boundPod(t, "p")
	f := filler(seed)
	f.Fill(pod)
	choose := func(n int) bool { return seed%int64(n) == 0 }
	pod.Name, pod.Namespace, pod.UID = "p", "ns", "uid-p"
	if !choose(2) {
		pod.Spec.NodeName = ""
	} else {
		pod.Spec.NodeName = "n1"
	}
	if !choose(3) {
		pod.Spec.Containers, pod.Spec.InitContainers = template.Spec.Containers, nil
		pod.Spec.Containers[0].Image = "image"
	}
	if !choose(5) {
		pod.Labels = map[string]string{codec.BoundByLabel: codec.BoundByValue, "app": "train", "heteroflow.io/typo": "x"}
	}
	if choose(4) {
		put(&pod.Labels, codec.LabelJobID, "job")
	}
	if choose(2) {
		rules := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "train", UID: "uid-train", Controller: &rules}}
	}
	if !choose(7) {
		pod.Annotations = template.Annotations
		pod.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	}
	if choose(3) {
		pod.Spec.SchedulerName = codec.SchedulerName
		pod.Spec.SchedulingGates, pod.DeletionTimestamp, pod.Status.Phase = nil, nil, corev1.PodPending
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
	}
	if choose(5) {
		put(&pod.Annotations, codec.AnnotationPreemptible, []string{"true", "false"}[seed%2])
		put(&pod.Annotations, codec.AnnotationTaskType, []string{"training", "inference", "?"}[seed%3])
		put(&pod.Annotations, codec.AnnotationPreemptMode, "suspend")
	}
	if choose(3) {
		put(&pod.Annotations, codec.AnnotationMaxRuntime, "90m")
		put(&pod.Annotations, codec.AnnotationTaskGroup, "chat")
		put(&pod.Annotations, codec.AnnotationTaskType, []string{"training", "inference"}[seed%2])
	}
	if choose(13) {
		put(&pod.Annotations, codec.AnnotationPreemptCount, "1")
		put(&pod.Annotations, codec.AnnotationPreemptedFrom, "first")
	}
	if choose(11) {
		pod.Annotations = map[string]string{codec.AnnotationNUMA: "1", codec.AnnotationModel: "A100", "hami.io/numa-hnt": "1"}
	}
	return pod
}

func someNode(seed int64) *corev1.Node {
	node := &corev1.Node{}
	filler(seed).Fill(node)
	node.Name = "n1"
	switch seed % 4 {
	case 0:
		node.Annotations = map[string]string{codec.AnnotationDevices: devices, codec.AnnotationCordon: "GPU-a", "other": "x", codec.AnnotationTopology: `{"links":[["GPU-a","GPU-b","NV4"]]}`}
	case 1:
		node.Annotations = map[string]string{nvidiaRegister: "GPU-a,10,40960,100,NVIDIA-A100,0,true,0,hami-core:", codec.AnnotationHAMiCordon: "GPU-a", codec.AnnotationHAMiScore: `[{"uuid":"GPU-a","score":{"GPU-b":400}}]`}
	case 2:
		node.Labels = map[string]string{"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.replicas": "1"}
	}
	return node
}

const someObjects = 600

// What is read of a slim object is what is read of the whole, whatever is in it.
func TestSlimReadsLikeTheWhole(t *testing.T) {
	s := newSlimmer()
	for seed := range int64(someObjects) {
		pod := somePod(t, seed)
		want := readPod(pod)
		slimmed := pod.DeepCopy()
		for range 2 { // informers may do it twice
			if _, err := s.slim(slimmed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readPod(slimmed)); diff != "" {
				t.Fatalf("pod %d (-whole +slim):\n%s", seed, diff)
			}
		}
		node := someNode(seed)
		whole := readNode(node)
		for range 2 {
			if _, err := s.slim(node); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, readNode(node), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("node %d (-whole +slim):\n%s", seed, diff)
			}
		}
	}
}

// The objects above are worth something only if they differ in what is read.
func TestSomeObjectsAreOfAllKinds(t *testing.T) {
	seen := map[string]int{}
	count := func(name string, is bool) {
		if is {
			seen[name]++
		}
	}
	for seed := range int64(someObjects) {
		r := readPod(somePod(t, seed))
		count("active", r.Active)
		count("ended", r.Ended)
		count("ours", r.Ours)
		count("foreign", len(r.Placement.Foreign) > 0)
		count("by label", strings.HasSuffix(string(r.Placement.Group), "=job"))
		count("by owner", strings.HasSuffix(string(r.Placement.Group), "uid-train"))
		count("invalid", r.Invalid != "")
		count("asks", len(r.Request.Asks) > 0)
		count("cpu", r.Placement.CPU > 0)
		count("terminal and not ended", r.Over && !r.Ended)
		count("lets itself be ended", r.Bound.Preemptible)
		count("ended before", r.Bound.Count > 0)
		count("not started", r.Bound.Phase == preempt.Scheduled && codec.Victim(somePod(t, seed)))
		count("since", !r.Bound.Since.IsZero())
		count("asks for somebody's end", r.Asks)
		count("nobody is ended for it", r.Asker.Never != "")
		n := readNode(someNode(seed))
		count("no fault", n.Fault == "<nil>")
		count("taints", len(n.Taints) > 0)
		count("started", r.Began != nil)
		count("limited", r.Runtime > 0 && r.Inference)
		count("not ready", !n.Failed.IsZero())
	}
	for _, name := range []string{"active", "ended", "ours", "foreign", "by label", "by owner", "invalid", "asks", "cpu", "terminal and not ended", "no fault", "taints",
		"lets itself be ended", "ended before", "since", "asks for somebody's end", "nobody is ended for it", "started", "limited", "not ready"} {
		if seen[name] < someObjects/100 {
			t.Errorf("%s: %d of %d", name, seen[name], someObjects)
		}
	}
}

// A pod of which something is read anew is never taken for the same.
func TestNothingThatIsReadIsPassedOver(t *testing.T) {
	s := newSlimmer()
	same := 0
	for seed := range int64(someObjects) {
		before, after := somePod(t, seed&^1), somePod(t, seed&^1)
		change(after, somePod(t, seed+someObjects), int(seed))
		before.ResourceVersion, after.ResourceVersion = "1", "2" // which says nothing
		want := cmp.Equal(readPod(before), readPod(after), cmpopts.IgnoreFields(podRead{}, "Version"))
		_, _ = s.slim(before)
		_, _ = s.slim(after)
		got := samePod(before, after)
		if got && !want {
			t.Fatalf("pod %d: the change of field %d is passed over", seed, seed)
		}
		if got {
			same++
		}
	}
	if same < someObjects/10 {
		t.Errorf("%d of %d changes are passed over, most say nothing", same, someObjects)
	}
}

// change takes one field of the pod from another: of its identity, its wishes or
// its status in turn.
func change(pod, other *corev1.Pod, nth int) {
	parts := []reflect.Value{reflect.ValueOf(&pod.ObjectMeta).Elem(), reflect.ValueOf(&pod.Spec).Elem(), reflect.ValueOf(&pod.Status).Elem()}
	others := []reflect.Value{reflect.ValueOf(&other.ObjectMeta).Elem(), reflect.ValueOf(&other.Spec).Elem(), reflect.ValueOf(&other.Status).Elem()}
	part := nth % len(parts)
	field := nth / len(parts) % parts[part].NumField()
	parts[part].Field(field).Set(others[part].Field(field))
}

// What is kept is what is read and no more.
func TestSlimDrops(t *testing.T) {
	s := newSlimmer()
	pod := richPod(t, "p", "GPU-a", 0)
	want := boundPod(t, "p", func(p *corev1.Pod) {
		delete(p.Annotations, codec.AnnotationHAMiAllocated) // a copy for other readers
		p.Status.ContainerStatuses = nil                     // which has what it asks for, and whose end is not near
	})
	if _, err := s.slim(pod); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	node := richNode("n1", devices)
	if _, err := s.slim(node); err != nil {
		t.Fatal(err)
	}
	kept := newNode("n1", devices)
	kept.Labels = map[string]string{"zone": "a"}
	kept.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	if diff := cmp.Diff(kept, node); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	if o, err := s.slim(gpu.PodID("anything")); err != nil || o != gpu.PodID("anything") {
		t.Errorf("another kind: %v, %v", o, err)
	}
}

// A bound pod in the cache is a few KiB, whatever it was, and one that may be ended for
// others somewhat more.
func TestBytesOfABoundPod(t *testing.T) {
	t.Run("left alone", func(t *testing.T) { bytesOfABoundPod(t, 2700, func(*corev1.Pod) {}) })
	t.Run("may be ended", func(t *testing.T) {
		bytesOfABoundPod(t, 3200, func(p *corev1.Pod) { p.Annotations[codec.AnnotationPreemptible] = "true" })
	})
}

func bytesOfABoundPod(t *testing.T, most uint64, change func(*corev1.Pod)) {
	const pods = 2000
	s := newSlimmer()
	kept := make([]*corev1.Pod, 0, pods)
	before := heap()
	for i := range pods {
		rich := richPod(t, fmt.Sprintf("p-%05d", i), "GPU-a", 0)
		change(rich)
		text, err := rich.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		_, _ = s.slim(pod)
		kept = append(kept, pod)
	}
	bytes := (heap() - before) / pods
	t.Logf("%d bytes", bytes)
	if bytes > most {
		t.Errorf("%d bytes a pod, more than %d", bytes, most)
	}
	runtime.KeepAlive(kept)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// richPod is a bound pod with all that real ones have beside what is read.
func richPod(t testing.TB, name string, card gpu.CardID, index int) *corev1.Pod {
	t.Helper()
	return boundPod(t, name, func(p *corev1.Pod) {
		annotations, err := codec.Annotations(whole(name, card, index), start(), 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Annotations = annotations
		p.Annotations["cni.example/status"] = "[{}]"
		p.Labels["app"] = "train"
		p.UID = types.UID("uid-" + name)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "train"}}
		c := &p.Spec.Containers[0]
		c.Image, c.Command = "registry.example/train:1", []string{"python", "-m", "train"}
		for i := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "value of the setting"})
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start())}}
		p.Status.PodIP = "10.0.0.1"
		status := &p.Status.ContainerStatuses[0]
		status.ImageID, status.State.Running.StartedAt = "sha256:1", metav1.NewTime(start())
		status.AllocatedResources = c.Resources.Limits
		status.Resources = &corev1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests}
	})
}

func richNode(name, inventory string) *corev1.Node {
	node := newNode(name, inventory)
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Labels = map[string]string{"zone": "a"}
	node.Annotations["hami.io/node-handshake"] = "Reported " + start().String()
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
	node.Status.NodeInfo.KernelVersion = "6.8"
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(start())
	node.Status.Conditions = slices.Insert(node.Status.Conditions, 0, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse})
	return node
}

// nowhere knows of no volume that any node can have.
func nowhere(string, string) bool { return false }
