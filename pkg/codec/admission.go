package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Concerns reports whether a pod asks for cards or carries a key of ours. It is
// asked about every pod that is created, and allocates nothing.
func Concerns(pod *corev1.Pod) bool {
	for key := range pod.Annotations {
		if isOurs(key) || schedulerKey(key) {
			return true
		}
	}
	for key := range pod.Labels {
		if isOurs(key) {
			return true
		}
	}
	return AsksForCards(pod)
}

// AsksForCards reports whether a container of the pod means to ask for cards,
// rightly or wrongly: Request of such a pod has asks or an error.
func AsksForCards(pod *corev1.Pod) bool {
	for _, list := range [...][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if r := &list[i].Resources; meansCards(r.Limits) || meansCards(r.Requests) {
				return true
			}
		}
	}
	return false
}

// meansCards: an amount of 0 is none, but a name that nobody has is a mistake
// whatever its amount.
func meansCards(list corev1.ResourceList) bool {
	for name, q := range list {
		if _, wrong := misplaced(name); wrong {
			return true
		}
		if formOf(name) == nil {
			if strings.HasPrefix(string(name), own) {
				return true
			}
		} else if !q.IsZero() {
			return true
		}
	}
	return false
}

// Carried returns the keys that no author writes and that a new pod carries,
// sorted: it is a copy of a bound one then. The record of numbers is not among
// them, for it holds for a copy too.
func Carried(pod *corev1.Pod) (annotations, labels []string) {
	for key := range pod.Annotations {
		if key != AnnotationContainers && owned(key) {
			annotations = append(annotations, key)
		}
	}
	if _, ok := pod.Labels[BoundByLabel]; ok {
		labels = append(labels, BoundByLabel)
	}
	slices.Sort(annotations)
	return annotations, labels
}

// Wishes returns the annotations of ours by which authors wish something that
// are new, another or gone, sorted. HAMi's names are not among them: on pods that
// are none of ours its scheduler may read them.
func Wishes(before, after *corev1.Pod) []string {
	return differing(before.Annotations, after.Annotations, func(key string) bool {
		return isOurs(key) && wishNames[key]
	})
}

// Places reports whether a wish is about where the pod runs: one that comes
// after it was placed is not met.
func Places(key string) bool {
	switch key {
	case AnnotationGPUType, AnnotationModel, AnnotationNotModel, AnnotationUUIDInclude, AnnotationUUIDExclude,
		AnnotationNUMA, AnnotationNUMABind, AnnotationNVLink, AnnotationRDMA, AnnotationRegion, AnnotationZone, AnnotationRack,
		AnnotationNodePolicy, AnnotationCardPolicy, AnnotationTaskGroup, AnnotationPorts:
		return true
	}
	return false
}

// Numbers returns the record of the numbers under which the containers' own
// annotations stand, "" for a pod that asks for no card. Who has a number keeps
// it; the others get the lowest free ones in spec order. So a new pod's are the
// places of its containers, and a container that is put before them later does
// not shift them.
func Numbers(pod *corev1.Pod) string {
	if !AsksForCards(pod) {
		return ""
	}
	before, errs := readNumbers(pod.Annotations[AnnotationContainers])
	if len(errs) > 0 {
		before = nil
	}
	all := containers(pod)
	numbers := make(map[string]int, len(all))
	taken := make(map[int]bool, len(all))
	for _, c := range all {
		if n, ok := before[c.Name]; ok {
			numbers[c.Name], taken[n] = n, true
		}
	}
	next := 0
	for _, c := range all {
		if _, ok := numbers[c.Name]; ok {
			continue
		}
		for taken[next] {
			next++
		}
		numbers[c.Name], taken[next] = next, true
	}
	record, _ := json.Marshal(numbers) // names and numbers can be encoded
	return string(record)
}

// DefaultPriority is that of pods which say nothing about it.
const DefaultPriority = 50

// PriorityClass names the class whose value is n: kube-scheduler's queue knows
// nothing but classes.
func PriorityClass(n int) string { return priorityClass + strconv.Itoa(n) }

const priorityClass = "heteroflow-" // <n>

// ClassPriority returns the value of a class that PriorityClass names, false of any
// other.
func ClassPriority(class string) (n int, ok bool) {
	n, err := wholeUpTo(strings.TrimPrefix(class, priorityClass), mostPriority)
	if err != nil || class != PriorityClass(n) {
		return 0, false
	}
	return n, true
}

// visibility is the variable by which a vendor's cards are shown to a container.
type visibility struct {
	vendor   gpu.Vendor
	variable string
	// runtime says that the vendor's container runtime reads it before the
	// container starts. Other variables are read by libraries in the container.
	runtime bool
	none    string // the runtime's word for no card; "" if it is not known
}

// visibilities is read only.
//
// vendors.md 5.3, whose sources are the vendors' device plugins. The one of
// Hygon is that of its container toolkit (dcu-container-toolkit; FlagOS documents
// its images with it). MetaX and Kunlunxin have no runtime that reads one. "void"
// is what nvidia-container-toolkit documents for a container without cards.
var visibilities = [...]visibility{
	{gpu.Musa, "MTHREADS_VISIBLE_DEVICES", true, ""},
	{gpu.Hygon, "DCU_VISIBLE_DEVICES", true, ""},
	{gpu.Cambricon, "CAMBRICON_VISIBLE_DEVICES", true, ""},
	{gpu.Biren, "BIREN_VISIBLE_DEVICES", true, ""},
	{gpu.Ascend, "ASCEND_VISIBLE_DEVICES", true, ""},
	{gpu.Kunlun, "XPU_VISIBLE_DEVICES", false, ""},
	{gpu.Iluvatar, "IX_VISIBLE_DEVICES", true, ""},
	{gpu.Nvidia, "NVIDIA_VISIBLE_DEVICES", true, "void"},
	{gpu.Metax, "CUDA_VISIBLE_DEVICES", false, ""},
	{gpu.Enflame, "ENFLAME_VISIBLE_DEVICES", true, ""},
}

func visibilityOf(v gpu.Vendor) visibility {
	return visibilities[slices.IndexFunc(visibilities[:], func(row visibility) bool { return row.vendor == v })]
}

// hygonOther is another tool's variable for Hygon's cards: vendors.md 5.3.
const hygonOther = "HYGON_VISIBLE_DEVICES"

// ShowsCards reports whether a container runtime would show a container the
// cards that the variable lists.
func ShowsCards(variable string) bool {
	return variable == hygonOther || slices.ContainsFunc(visibilities[:], func(row visibility) bool { return row.runtime && row.variable == variable })
}

// The limits of a client of NVIDIA's MPS, and the variable that the first is
// made from. MPS wants "<card>=<n>M" for each card that the client sees, which
// are numbered from 0, and one percentage for all of them.
const (
	mpsMemory    = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	mpsThreads   = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	memoryHelper = "HETEROFLOW_MEMORY_MIB"
)

// Variables returns what shows a container the cards of its ask and nothing
// else. The kubelet fills them in from our annotations, which the Binding
// writes. The error says what the pod lacks for that.
func Variables(ask gpu.Ask, vendor gpu.Vendor) ([]corev1.EnvVar, error) {
	if vendor == "" {
		return nil, fmt.Errorf("container %s: may get cards of any vendor, whose variable is not known before; write annotation %s", ask.Container, AnnotationGPUType)
	}
	n := strconv.Itoa(ask.Number)
	all := []corev1.EnvVar{fromAnnotation(visibilityOf(vendor).variable, visibleDevices+n)}
	if ask.Whole || vendor != gpu.Nvidia {
		return all, nil
	}
	if err := oneSize(&ask); err != nil {
		return nil, fmt.Errorf("container %s: %w", ask.Container, err)
	}
	limits := make([]string, ask.Count)
	for i := range limits {
		limits[i] = fmt.Sprintf("%d=$(%s)M", i, memoryHelper)
	}
	all = append(all,
		fromAnnotation(memoryHelper, memoryLimit+n),
		corev1.EnvVar{Name: mpsMemory, Value: strings.Join(limits, ",")})
	if ask.Cores > 0 || ask.ProportionalCores {
		all = append(all, fromAnnotation(mpsThreads, coreLimit+n))
	}
	return all, nil
}

// oneSize reports why the slices of an ask may differ in size. One variable
// tells the container all of them.
func oneSize(ask *gpu.Ask) error {
	switch {
	case ask.Count == 1:
	case ask.Memory == 0:
		return errors.New("its slices may differ in memory, which one variable cannot say; write their memory in MiB")
	case ask.Cores == 0 && ask.ProportionalCores:
		return errors.New("its slices may differ in compute, which one variable cannot say; write their compute")
	}
	return nil
}

// Hidden returns what keeps the cards of all other vendors from a container that
// asks for those of one, "" for none: images often set such a variable
// themselves, and a node may have cards of several vendors.
func Hidden(asked gpu.Vendor) (all []corev1.EnvVar) {
	for _, row := range visibilities {
		if row.none != "" && row.vendor != asked {
			all = append(all, corev1.EnvVar{Name: row.variable, Value: row.none})
		}
	}
	return all
}

// fromAnnotation names the version as the API server would: who compares finds
// no difference.
func fromAnnotation(variable, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", key)},
	}}
}
