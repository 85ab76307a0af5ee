package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// otherKeys are what HAMi's users write instead of a key of ours; read only.
var otherKeys = map[string][]string{
	"gpu-model": {"hami.io/gpu-type", "nvidia.com/use-gputype", "hygon.com/use-dcutype", "cambricon.com/use-mlutype", "birentech.com/use-biren"},
	"gpu-model-exclude": {
		"nvidia.com/nouse-gputype", "hygon.com/nouse-dcutype", "cambricon.com/nouse-mlutype", "birentech.com/nouse-biren",
	},
	"gpu-uuid-include": uuidKeys("hami.io/gpu-uuid-include", "use-gpuuuid", "hami.io/use-"),
	"gpu-uuid-exclude": uuidKeys("hami.io/gpu-uuid-exclude", "nouse-gpuuuid", "hami.io/no-use-"),
	"numa":             {"hami.io/numa-hint"},
	"numa-bind":        {"nvidia.com/numa-bind"},
}

func uuidKeys(hami, ofDomain, ofModel string) []string {
	all := []string{hami}
	for _, domain := range []string{
		"nvidia.com", "hygon.com", "cambricon.com", "mthreads.ai", "metax-tech.com", "enflame.com", "baidu.com", "birentech.com",
	} {
		all = append(all, domain+"/"+ofDomain)
	}
	for _, word := range []string{
		"Ascend910A", "Ascend910B2", "Ascend910B3", "Ascend910B4", "Ascend910B4-1", "Ascend910C", "Ascend310P",
		"MR-V100", "MR-V50", "BI-V150", "BI-V100", "xpu",
	} {
		all = append(all, ofModel+word+"-uuid")
	}
	return all
}

// wish is what a pod says by a key of ours or by another that means the same.
func wish(pod *corev1.Pod, key string) string {
	value := pod.Annotations[prefix+key]
	for _, other := range otherKeys[key] {
		if value == "" {
			value = pod.Annotations[other]
		}
	}
	return strings.TrimSpace(value)
}

// suits says why a card is not one that the pod may have; "" if it is.
func suits(pod *corev1.Pod, a *ask, c *card) string {
	model := strings.ToLower(c.Model)
	contained := func(word string) bool { return strings.Contains(model, strings.ToLower(word)) }
	same := func(uuid string) bool { return uuid == c.UUID }
	switch vendor := wish(pod, "gpu-type"); {
	case a.vendor != "" && a.vendor != c.Vendor:
		return fmt.Sprintf("is of %s, asked was %s", c.Vendor, a.vendor)
	case !c.gives(a):
		return fmt.Sprintf("is given out by %s, asked was by %q", c.plugin, a.plugin)
	case c.plugin == "" && !ofModel(c.Model, a.model): // a plugin of one model's names has no others
		return fmt.Sprintf("is a %s, asked was a %s", c.Model, a.model)
	case vendor != "" && !strings.EqualFold(vendor, c.Vendor):
		return fmt.Sprintf("is of %s, gpu-type is %s", c.Vendor, vendor)
	case a.whole && a.memory > c.MemoryMiB:
		return fmt.Sprintf("has %d MiB, asked were %d", c.MemoryMiB, a.memory)
	}
	for _, rule := range []struct {
		key     string
		matches func(string) bool
		want    bool
	}{
		{"gpu-model", contained, true}, {"gpu-model-exclude", contained, false},
		{"gpu-uuid-include", same, true}, {"gpu-uuid-exclude", same, false},
	} {
		words := list(wish(pod, rule.key))
		// Of a counted card nobody knows the UUID, and of some not the model.
		unknown := strings.HasPrefix(rule.key, "gpu-uuid") && c.plain || strings.HasPrefix(rule.key, "gpu-model") && c.Model == ""
		if len(words) > 0 && (unknown || slices.ContainsFunc(words, rule.matches) != rule.want) {
			return fmt.Sprintf("(%s) breaks %s %v", c.Model, rule.key, words)
		}
	}
	return suitsNUMA(pod, c)
}

func suitsNUMA(pod *corev1.Pod, c *card) string {
	want := wish(pod, "numa")
	if want == "" || c.NUMA != nil && strconv.Itoa(*c.NUMA) == want {
		return ""
	}
	return "is not on NUMA node " + want
}

func list(s string) []string {
	var words []string
	for word := range strings.SplitSeq(s, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}
