package codec

import (
	"regexp"
	"slices"
	"strings"
)

// schedulerKeys, numbered and hamiKeys are read only: the annotations of pods
// that no author writes, by name. One that is added here is refused by the API
// server too: the chart's policy is generated from OwnedPattern.
var (
	schedulerKeys = [...]string{
		AnnotationAllocation, AnnotationContainers, AnnotationEpoch, AnnotationPort,
		AnnotationPreemptCount, AnnotationPreemptedBy, AnnotationPreemptedFrom,
	}
	numbered = [...]string{visibleDevices, memoryLimit, coreLimit} // and a number

	// For these HAMi's device plugins look, and start containers with the cards
	// that they name (hami-protocol.md A.1, A.5, A.6).
	hamiKeys = [...]string{
		hami + "vgpu-node", hami + "vgpu-time", hami + "bind-phase", hami + "bind-time",
		hami + "vgpu-mig-allocations", hami + "kunlun-allocated", hami + "amd-cu-allocated",
	}
	hamiLists = [...]string{"-devices-to-allocate", "-devices-allocated"} // after hami.io/ and a word for the cards
)

// ownedByScheduler reports whether an annotation of a pod is the scheduler's.
// A new pod may carry such keys, when it is a copy of a bound one; they mean
// nothing there. The Binding overwrites them: see Supersede.
func ownedByScheduler(key string) bool {
	return slices.Contains(schedulerKeys[:], key) || slices.ContainsFunc(numbered[:], func(prefix string) bool {
		n, ok := strings.CutPrefix(key, prefix)
		return ok && digits(n)
	})
}

// OfSuccessor reports whether an annotation is one that the scheduler writes on a new
// pod, which comes in the place of one that was ended for another.
func OfSuccessor(key string) bool {
	return key == AnnotationPreemptCount || key == AnnotationPreemptedFrom || key == AnnotationPreemptedBy
}

// schedulerKey also takes HAMi's names for what the scheduler writes.
func schedulerKey(key string) bool {
	return ownedByScheduler(key) || key == AnnotationHAMiNode || key == AnnotationHAMiAllocated
}

// owned also takes what HAMi's own scheduler and its device plugins write. Who
// they are only the API server's policy knows.
func owned(key string) bool {
	if schedulerKey(key) || slices.Contains(hamiKeys[:], key) {
		return true
	}
	list, ok := strings.CutPrefix(key, hami)
	return ok && slices.ContainsFunc(hamiLists[:], func(suffix string) bool {
		return len(list) > len(suffix) && strings.HasSuffix(list, suffix)
	})
}

// OwnedPattern matches the annotations of pods that no author writes, whole, in
// the syntax that Go and the API server's expressions share.
func OwnedPattern() string {
	exact := slices.Concat(schedulerKeys[:], []string{AnnotationHAMiNode, AnnotationHAMiAllocated}, hamiKeys[:])
	return "^(" + anyOf(exact) + "|" + anyOf(numbered[:]) + "[0-9]+|" + regexp.QuoteMeta(hami) + ".+" + anyOf(hamiLists[:]) + ")$"
}

// anyOf matches these texts.
func anyOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return "(" + strings.Join(quoted, "|") + ")"
}
