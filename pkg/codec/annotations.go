package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// wish is one annotation that a pod's author may write.
type wish struct {
	key     string
	aliases []string // other names of the same, read alike
	// spelled is a value under another name as it is written under ours; nil:
	// as it stands.
	spelled func(value string) string
	// read judges the value and keeps in r what is acted on.
	read func(r *gpu.Request, value string) error

	// For people:
	value  string // what may be written
	absent string // what holds without it
	yet    string // what this version does not do about it
}

const notYet = "not acted on yet"

// wishes is read only. Its order is that of the documents.
var wishes = [...]wish{
	{
		key: AnnotationGPUType, read: readVendor,
		value: "vendor: " + code(gpu.Vendors()) + ", in any case", absent: "any",
	}, {
		key: AnnotationModel, aliases: slices.Concat([]string{"hami.io/gpu-type"}, modelAliases("use")), spelled: withoutEmpty,
		read:  list(func(r *gpu.Request) *[]string { return &r.Models }),
		value: "comma list; a part of the card's model, in any case", absent: "any",
	}, {
		key: AnnotationNotModel, aliases: modelAliases("nouse"), spelled: withoutEmpty,
		read:  list(func(r *gpu.Request) *[]string { return &r.NotModels }),
		value: "the same", absent: "none",
	}, {
		key: AnnotationUUIDInclude, aliases: uuidAliases("hami.io/gpu-uuid-include", "use-gpuuuid", "use"), spelled: withoutEmpty,
		read:  list(func(r *gpu.Request) *[]gpu.CardID { return &r.Cards }),
		value: "comma list of card UUIDs, exact: only these", absent: "all",
	}, {
		key: AnnotationUUIDExclude, aliases: uuidAliases("hami.io/gpu-uuid-exclude", "nouse-gpuuuid", "no-use"), spelled: withoutEmpty,
		read:  list(func(r *gpu.Request) *[]gpu.CardID { return &r.NotCards }),
		value: "the same: none of these", absent: "none",
	}, {
		key: AnnotationNUMA, aliases: []string{"hami.io/numa-hint"}, read: readNUMA,
		value: fmt.Sprintf("number of a NUMA node that all cards must be on, 0..%d", mostNUMA), absent: "any",
	}, {
		key: AnnotationNUMABind, aliases: []string{"nvidia.com/numa-bind"}, spelled: asYesOrNo,
		read:  yesOrNo(func(r *gpu.Request) *bool { return &r.NUMABind }),
		value: "`true`: all cards on one NUMA node, whichever; cards that report none are not taken. `false`", absent: "`false`",
	}, {
		key: AnnotationPriority, read: judge(judgePriority),
		value: "0..100, higher first; lowered, with a warning, to what the namespace's Tenant allows (`spec.maxPriority`)", absent: "that of the pod's priorityClassName, else 50",
	}, {
		key: AnnotationTaskType, read: word(func(r *gpu.Request) *gpu.TaskType { return &r.Type }, gpu.Training, gpu.Inference, gpu.Batch),
		value: "`training`, `inference`, `batch`: [who may be ended for whom](preemption.md), and the choice among nodes with and without RDMA, go by it", absent: "`batch`",
	}, {
		key: AnnotationPreemptible, read: judge(among(yes, no)),
		value: "`true`: it [may be ended](preemption.md) so that a pod of higher priority can run, unless it is inference. `false`; `true` does not go with `training`", absent: "`false`",
	}, {
		key: AnnotationNVLink, read: readNVLink,
		value: "`required`: the cards of each container are of one NVLink domain (`NVLinkUnsatisfied`); nodes that do not tell how their cards are joined pass. `preferred`", absent: "`preferred`",
	}, {
		key: AnnotationRDMA, read: word(func(r *gpu.Request) *gpu.Wish { return &r.RDMA }, gpu.Required, gpu.Preferred),
		value: "`required`: no node that says it has none; `preferred`", absent: "neutral",
	}, {
		key: AnnotationRegion, read: labelValue(func(r *gpu.Request) *string { return &r.Region }),
		value: "preferred location, a label value", absent: "none",
	}, {
		key: AnnotationZone, read: labelValue(func(r *gpu.Request) *string { return &r.Zone }),
		value: "the same", absent: "none",
	}, {
		key: AnnotationRack, read: labelValue(func(r *gpu.Request) *string { return &r.Rack }),
		value: "the same", absent: "none",
	}, {
		key: AnnotationNodePolicy, aliases: []string{"hami.io/node-scheduler-policy"},
		read:  layout(func(r *gpu.Request) *gpu.Policy { return &r.NodePolicy }),
		value: "`binpack`, `spread`, `topology-aware`, for the choice of the node", absent: "the SchedulerPolicy's",
	}, {
		key: AnnotationCardPolicy, aliases: []string{"hami.io/gpu-scheduler-policy"},
		read:  layout(func(r *gpu.Request) *gpu.Policy { return &r.CardPolicy }),
		value: "the same, for the choice of cards on the node", absent: "`binpack`",
	}, {
		key: AnnotationTaskGroup, read: readGroup,
		value: "name of a TaskGroup in the pod's namespace: members of one of type inference are placed one by one, and so is whoever says `task-type: inference`; others wait for one that is not there (`GangIncomplete`)", absent: "none",
	}, {
		key: AnnotationMaxRuntime, read: readRuntime,
		value: "duration above 0, as in Go: `90m`, `2h30m`: when it has run for so long its Job is suspended, and a pod without one stopped gracefully; what is kept for a service is given to who has ended by then. Inference, by its `task-type` or as a member of such a TaskGroup, is exempt", absent: "`defaultTaskTimeout` of the [policy](operations.md#the-policy), at which it is told, and ended only with `enforceTaskTimeout`",
	}, {
		key: AnnotationBorrow, read: judge(among(yes, no)),
		value: "`true`: a training pod may use lent cards. `false`", absent: "`false`",
		yet: notYet,
	}, {
		key: AnnotationPreemptSignal, read: judge(judgeSignal),
		value: code(signals), absent: "what the image says, else `SIGTERM`",
		yet: "acted on only for pods with `spec.os.name: linux`, where the API server has its feature ContainerStopSignals on",
	}, {
		key: AnnotationPreemptMode, read: judge(among("evict", modeSuspend)),
		value: "`evict`; `suspend`: the Job that owns the pod is suspended, and resumed later", absent: "`evict`",
	}, {
		key: AnnotationPorts, read: readPorts,
		value: fmt.Sprintf("number of host ports wanted, 0..%d", mostPorts), absent: "0",
		yet: "above 0 is refused on every node (`InsufficientPorts`): ports are not given out",
	}, {
		key: AnnotationServedModel, read: judge(judgeModelName),
		value: fmt.Sprintf("name of the model that is served, 1 to %d printable characters", mostName), absent: "none",
		yet: notYet,
	},
}

// modelAliases are HAMi's lists of models: hami-protocol.md A.6. It reads those
// of Cambricon and Biren nowhere, but tells people to write them.
func modelAliases(verb string) []string {
	return []string{
		"nvidia.com/" + verb + "-gputype",
		"hygon.com/" + verb + "-dcutype",
		"cambricon.com/" + verb + "-mlutype",
		"birentech.com/" + verb + "-biren",
	}
}

// uuidAliases are HAMi's lists of UUIDs: one by its own name, one a vendor by
// domain, and one for each set of names that are those of a model.
func uuidAliases(hami, byDomain, byWord string) []string {
	all := []string{hami}
	for _, domain := range []string{
		"nvidia.com", "mthreads.ai", "hygon.com", "cambricon.com", "birentech.com", "baidu.com", "metax-tech.com", "enflame.com",
	} {
		all = append(all, domain+"/"+byDomain)
	}
	for _, word := range append(words(), "xpu") {
		all = append(all, "hami.io/"+byWord+"-"+word+"-uuid")
	}
	return all
}

// words are what HAMi calls the cards of the forms that are of one model.
func words() (all []string) {
	for i := range forms {
		if forms[i].model != "" {
			_, name, _ := strings.Cut(string(forms[i].count), "/")
			all = append(all, strings.TrimSuffix(name, "-vgpu"))
		}
	}
	return all
}

// readAnnotations reads the wishes of a pod that asks for cards into r, and
// returns all their faults.
func readAnnotations(r *gpu.Request, annotations map[string]string) error {
	var errs []error
	for i := range wishes {
		key, value, err := wishes[i].find(annotations)
		if key != "" && err == nil {
			err = wishes[i].read(r, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// find returns the key that is present and its value; none: "". Several of them
// have to say the same. To HAMi an empty value is no wish.
func (w *wish) find(annotations map[string]string) (key, value string, err error) {
	if v, ok := annotations[w.key]; ok {
		key, value = w.key, strings.TrimSpace(v)
	}
	for _, alias := range w.aliases {
		v := strings.TrimSpace(annotations[alias])
		if v != "" && w.spelled != nil {
			v = w.spelled(v)
		}
		switch {
		case v == "":
		case key == "":
			key, value = alias, v
		case v != value:
			return key, value, fmt.Errorf("%s differs from %s, which means the same and is %s", quoted(value), alias, quoted(v))
		}
	}
	return key, value, nil
}

// Priority returns the priority that the pod's author has named.
func Priority(pod *corev1.Pod) (n int, named bool, err error) {
	value, named := pod.Annotations[AnnotationPriority]
	if !named {
		return 0, false, nil
	}
	n, err = wholeUpTo(strings.TrimSpace(value), mostPriority)
	if err != nil {
		err = fmt.Errorf("annotation %s: %w", AnnotationPriority, err)
	}
	return n, true, err
}
