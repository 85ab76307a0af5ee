package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const prefix = "heteroflow.io/"

// role says when a container runs.
type role int

const (
	app      role = iota
	ordinary      // init container that ends before the app starts
	sidecar       // init container that runs beside the app
)

// ask is what one container wants of each of its cards.
type ask struct {
	container string
	place     int // among all containers of the pod, init containers first
	role      role
	vendor    string // "" for any
	model     string // part of the card's model; "" for any
	count     int64
	whole     bool
	memory    int64 // MiB of a slice; the least a whole card must have
	percent   int64 // of the usable memory, instead of memory
	cores     int64
	propCores bool // compute in proportion to memory where none is named
}

// bounds of a request: outside, it is invalid.
const (
	mostCards  = 64
	mostMemory = 1 << 20
	mostShare  = 100
)

// names are the resource names of one form, what 1 of memory stands for in MiB,
// and the part of a card's model that they are for.
type names struct {
	vendor, count, memory, percent, cores, coresAlias, model string
	unit                                                     int64
}

// The forms; read only.
var (
	neutralNames = names{count: prefix + "gpu", memory: prefix + "gpu-memory", unit: 1, cores: prefix + "gpu-cores"}
	vendorNames  = []names{
		{
			vendor: "nvidia", count: "nvidia.com/gpu", memory: "nvidia.com/gpumem", unit: 1,
			percent: "nvidia.com/gpumem-percentage", cores: "nvidia.com/gpucores", coresAlias: "nvidia.com/cores",
		},
		{
			vendor: "ascend", model: "910B3", count: "huawei.com/Ascend910B3",
			memory: "huawei.com/Ascend910B3-memory", unit: 1, cores: "huawei.com/Ascend910B3-core",
		},
		{
			vendor: "cambricon", count: "cambricon.com/vmlu",
			memory: "cambricon.com/mlu.smlu.vmemory", unit: 256, cores: "cambricon.com/mlu.smlu.vcore",
		},
	}
)

// asks reads what all containers of a pod want; an error means that the request
// is invalid, no asks that it is for no card.
func asks(pod *corev1.Pod) ([]ask, error) {
	var all []ask
	place := 0
	for _, list := range []struct {
		init       bool
		containers []corev1.Container
	}{{true, pod.Spec.InitContainers}, {false, pod.Spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			a, err := askOf(c)
			if err != nil {
				return nil, fmt.Errorf("container %s: %w", c.Name, err)
			}
			a.container, a.place, a.role = c.Name, place, roleOf(c, list.init)
			if place++; a.count > 0 {
				all = append(all, a)
			}
		}
	}
	return all, nil
}

func roleOf(c *corev1.Container, init bool) role {
	switch {
	case !init:
		return app
	case c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways:
		return sidecar
	}
	return ordinary
}

// askOf reads one container's limits. The ask of a container that wants no card
// has count 0.
func askOf(c *corev1.Container) (ask, error) {
	neutral, err := neutralAsk(c)
	if err != nil {
		return ask{}, err
	}
	found := neutral
	for _, n := range vendorNames {
		a, err := vendorAsk(c, n)
		if err != nil {
			return ask{}, err
		}
		if a.count > 0 && found.count > 0 {
			return ask{}, fmt.Errorf("%s: two forms in one container", n.count)
		}
		if a.count > 0 {
			found = a
		}
	}
	return found, nil
}

func neutralAsk(c *corev1.Container) (ask, error) {
	count, memory, cores, err := amounts(c, neutralNames)
	switch {
	case err != nil:
		return ask{}, err
	case count > 0 && cores > 0:
		return ask{}, fmt.Errorf("%s with %s", neutralNames.cores, neutralNames.count)
	case count > 0:
		return ask{count: count, whole: true, memory: memory}, nil
	case memory > 0 || cores > 0:
		return ask{count: 1, memory: memory, cores: cores, propCores: true}, nil
	}
	return ask{}, nil
}

func vendorAsk(c *corev1.Container, n names) (ask, error) {
	count, memory, cores, err := amounts(c, n)
	if err != nil {
		return ask{}, err
	}
	percent, err := amount(c, n.percent, mostShare)
	if err != nil {
		return ask{}, err
	}
	if cores == 0 {
		if cores, err = amount(c, n.coresAlias, mostShare); err != nil {
			return ask{}, err
		}
	}
	if count == 0 && memory == 0 && percent == 0 && cores == 0 {
		return ask{}, nil
	}
	a := ask{vendor: n.vendor, model: n.model, count: max(1, count), memory: memory, percent: percent, cores: cores}
	a.whole = cores == 100 || cores == 0 && memory == 0 && percent == 0
	if !a.whole && memory == 0 && percent == 0 {
		a.percent = 100 // memory absent: all of it
	}
	return a, nil
}

func amounts(c *corev1.Container, n names) (count, memory, cores int64, err error) {
	if count, err = amount(c, n.count, mostCards); err != nil {
		return
	}
	if memory, err = amount(c, n.memory, mostMemory/n.unit); err != nil {
		return
	}
	memory *= n.unit
	cores, err = amount(c, n.cores, mostShare)
	return
}

// amount reads a whole number from 0 to most; absent is 0.
func amount(c *corev1.Container, name string, most int64) (int64, error) {
	q, found := c.Resources.Limits[corev1.ResourceName(name)]
	if !found {
		return 0, nil
	}
	v, exact := q.AsInt64()
	if !exact || v < 0 || v > most {
		return 0, fmt.Errorf("%s: %s is outside 0..%d", name, q.String(), most)
	}
	return v, nil
}

// use is what one holder takes of one card.
type use struct {
	memory, cores int64
	slots         int
	exclusive     bool
}

func (u use) plus(v use) use {
	return use{u.memory + v.memory, u.cores + v.cores, u.slots + v.slots, u.exclusive || v.exclusive}
}

func (u use) larger(v use) use {
	return use{max(u.memory, v.memory), max(u.cores, v.cores), max(u.slots, v.slots), u.exclusive || v.exclusive}
}

// on is what one device of the ask takes of card c, to be placed or judged. What is computed is rounded
// down, and is at least 1.
func (a *ask) on(c *card) use {
	if a.whole {
		return use{c.MemoryMiB, 100, 1, true}
	}
	u := use{memory: a.memory, cores: a.cores, slots: 1}
	if a.percent > 0 && u.memory == 0 {
		u.memory = max(1, c.usable*a.percent/100)
	}
	if u.memory == 0 {
		u.memory = max(1, c.usable*a.cores/100)
	}
	if u.cores == 0 && a.propCores {
		u.cores = min(100, max(1, u.memory*100/max(1, c.usable)))
	}
	return u
}

// suits says why a card is not one that the pod may have; "" if it is.
func suits(pod *corev1.Pod, a *ask, c *card) string {
	model := strings.ToLower(c.Model)
	contained := func(word string) bool { return strings.Contains(model, strings.ToLower(word)) }
	same := func(uuid string) bool { return uuid == c.UUID }
	switch vendor := pod.Annotations[prefix+"gpu-type"]; {
	case a.vendor != "" && a.vendor != c.Vendor:
		return fmt.Sprintf("is of %s, asked was %s", c.Vendor, a.vendor)
	case !contained(a.model):
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
		words := list(pod.Annotations[prefix+rule.key])
		if len(words) > 0 && slices.ContainsFunc(words, rule.matches) != rule.want {
			return fmt.Sprintf("(%s) breaks %s %v", c.Model, rule.key, words)
		}
	}
	return suitsNUMA(pod, c)
}

func suitsNUMA(pod *corev1.Pod, c *card) string {
	want := pod.Annotations[prefix+"numa"]
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
