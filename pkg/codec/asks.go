package codec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// container is one of a pod's containers and where a person finds it.
type container struct {
	*corev1.Container
	field string // "initContainers[fetch]"
	role  gpu.Role
}

// containers lists those of a pod that can ask for cards: init containers
// first, then containers, in spec order.
func containers(pod *corev1.Pod) []container {
	all := make([]container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		role := gpu.Init
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = gpu.Sidecar
		}
		all = append(all, container{c, fmt.Sprintf("initContainers[%s]", c.Name), role})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		all = append(all, container{c, fmt.Sprintf("containers[%s]", c.Name), gpu.App})
	}
	return all
}

// asks reads what each container of the pod wants, with every fault at once. An
// ask's number is its container's place in the spec; see number.
func asks(pod *corev1.Pod, cores policy.SliceCores) ([]gpu.Ask, error) {
	var (
		found []gpu.Ask
		errs  []error
	)
	all := containers(pod)
	for i, c := range all {
		a, faults := c.ask(cores)
		for _, err := range faults {
			errs = append(errs, fmt.Errorf("%s: %w", c.field, err))
		}
		if a.Count > 0 {
			a.Container, a.Role, a.Number = c.Name, c.role, i
			found = append(found, a)
		}
	}
	if len(found) > 0 {
		for _, c := range all {
			for _, err := range c.plainFaults() {
				errs = append(errs, fmt.Errorf("%s: %w", c.field, err))
			}
		}
	}
	return found, errors.Join(errs...)
}

// ask reads the container's resources. An ask without a count, and no faults:
// it wants no card.
func (c container) ask(cores policy.SliceCores) (gpu.Ask, []error) {
	faults := c.names()
	var used []*form
	var ask gpu.Ask
	for _, f := range formsIn(c.Resources.Limits) {
		a, errs := f.read(c.Resources.Limits)
		if len(errs) == 0 && a == (amounts{}) {
			continue
		}
		used = append(used, f)
		if len(errs) == 0 {
			var err error
			ask, err = f.ask(a, cores)
			errs = append(errs, err)
		}
		faults = append(faults, errs...)
	}
	if len(used) > 1 {
		faults = append(faults, fmt.Errorf("asks by %s; use the names of one form only", usedNames(used, c.Resources.Limits)))
	}
	return ask, slices.DeleteFunc(faults, func(err error) bool { return err == nil })
}

// usedNames lists the resources of these forms that are in limits.
func usedNames(used []*form, limits corev1.ResourceList) string {
	var names []string
	for _, f := range used {
		for _, n := range f.names() {
			if q, ok := limits[n]; ok && !q.IsZero() {
				names = append(names, string(n))
			}
		}
	}
	return strings.Join(names, " and ")
}

// names judges the names of the container's resources, and that requests does
// not differ from limits, which is what counts.
func (c container) names() (faults []error) {
	limits, requests := c.Resources.Limits, c.Resources.Requests
	for _, name := range slices.Sorted(maps.Keys(c.all())) {
		meant, wrong := misplaced(name)
		switch {
		case wrong:
			faults = append(faults, fmt.Errorf("%s: is not a resource; write %s under resources.limits", name, meant))
		case formOf(name) == nil && strings.HasPrefix(string(name), own):
			faults = append(faults, fmt.Errorf("unknown resource %s", name))
		case formOf(name) != nil:
			faults = append(faults, equal(name, limits, requests))
		}
	}
	return faults
}

// all is what stands in limits, in requests or in both.
func (c container) all() corev1.ResourceList {
	all := maps.Clone(c.Resources.Requests)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, c.Resources.Limits)
	return all
}

func equal(name corev1.ResourceName, limits, requests corev1.ResourceList) error {
	request, asked := requests[name]
	limit, limited := limits[name]
	switch {
	case !asked:
		return nil
	case !limited:
		return fmt.Errorf("%s: stands in requests but not in limits", name)
	case vast(limit):
		return nil // refused by its size
	case vast(request) || request.Cmp(limit) != 0:
		return fmt.Errorf("%s: requests has %s but limits has %s; they have to be equal", name, short(request.String()), short(limit.String()))
	}
	return nil
}

// amounts is what a container asks for in one form; 0 is absent.
type amounts struct {
	count   int
	memory  gpu.MiB
	percent int
	cores   gpu.Cores
}

// whole reports whether a vendor's form means whole cards by the amounts. Where
// devices are counted and no compute is named, HAMi takes all of the memory for
// the whole card too (hami-protocol.md A.7).
func (a amounts) whole() bool {
	all := a.memory == 0 && (a.percent == 0 || a.percent == 100 && a.count > 0)
	return a.cores == gpu.MostCores || a.cores == 0 && all
}

// read returns the amounts in a list.
func (f *form) read(list corev1.ResourceList) (a amounts, errs []error) {
	read := func(m measure) int64 {
		v, err := m.read(list)
		if err != nil {
			errs = append(errs, err)
		}
		return v
	}
	a.count = int(read(measure{name: f.count, most: gpu.MostCards}))
	if f.memory != "" {
		units := read(measure{name: f.memory, most: gpu.MostMemory / int64(f.unit), unit: f.unit})
		if units > 0 && f.legal != nil && !slices.Contains(f.legal, units) {
			errs = append(errs, fmt.Errorf("%s: %d is not one of %s (in units of %d MiB)", f.memory, units, numbers(f.legal), f.unit))
		}
		a.memory = f.unit * gpu.MiB(units)
	}
	a.percent = int(read(measure{name: f.percent, most: 100}))
	full := cmp.Or(f.full, gpu.MostCores)
	for _, name := range f.cores {
		v := gpu.Cores((read(measure{name: name, most: full})*gpu.MostCores + full - 1) / full) // rounded up
		if v != 0 && a.cores != 0 && v != a.cores {
			errs = append(errs, fmt.Errorf("%s: %d differs from %s, which is %d; write one of them", name, v, f.cores[0], a.cores))
		}
		a.cores = max(a.cores, v)
	}
	return a, errs
}

// ask puts the amounts together.
func (f *form) ask(a amounts, cores policy.SliceCores) (gpu.Ask, error) {
	if f.vendor == "" {
		return f.neutral(a, cores)
	}
	if a.memory > 0 && a.percent > 0 {
		return gpu.Ask{}, fmt.Errorf("%s and %s exclude each other", f.memory, f.percent)
	}
	for _, r := range f.rules {
		if r.broken(a) {
			return gpu.Ask{}, fmt.Errorf("%s: %s", f.count, r.says)
		}
	}
	ask := gpu.Ask{Vendor: f.vendor, Model: f.model, Count: max(1, a.count), Plugin: f.plugin(a), Memory: a.memory}
	if a.whole() {
		ask.Whole = true // a percentage of the whole card is no bound
		return ask, nil
	}
	ask.Cores, ask.MemoryPercent = a.cores, a.percent
	if a.memory == 0 && a.percent == 0 {
		ask.MemoryPercent = 100
	}
	ask.ProportionalCores = cores == policy.SliceCoresProportional
	return ask, nil
}

// plugin is the count by which the device plugin gives the container its cards,
// "" when it gives it none: kubelet goes by what the container names.
func (f *form) plugin(a amounts) string {
	if a.count == 0 && !f.bare {
		return ""
	}
	return string(f.count)
}

func (f *form) neutral(a amounts, cores policy.SliceCores) (gpu.Ask, error) {
	switch {
	case a.count > 0 && a.cores > 0:
		return gpu.Ask{}, fmt.Errorf("%s: does not go with %s, which takes whole cards", f.cores[0], f.count)
	case a.count > 0:
		return gpu.Ask{Count: a.count, Whole: true, Memory: a.memory}, nil
	}
	return gpu.Ask{
		Count:             1,
		Memory:            a.memory,
		Cores:             a.cores,
		ProportionalCores: cores != policy.SliceCoresNone,
	}, nil
}

// numbers writes a list for people.
func numbers(list []int64) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ", ")
}

// number gives each ask the number under which its container's own annotations
// stand: that of the record, where admission has left one. Without a record it
// stays the container's place in the spec. It matters to who writes those
// annotations: what a bound pod holds is the same under any number, or whoever
// may write to the record could make it unknown.
func number(asks []gpu.Ask, record string) error {
	if record == "" || len(asks) == 0 {
		return nil
	}
	numbers, errs := readNumbers(record)
	for i := range asks {
		n, ok := numbers[asks[i].Container]
		if !ok && len(errs) == 0 {
			errs = append(errs, fmt.Errorf("container %s asks for cards and is not named", asks[i].Container))
		}
		asks[i].Number = n
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("annotation %s: %w", AnnotationContainers, err)
	}
	return errors.Join(errs...)
}

// readNumbers reads the record: container -> number.
func readNumbers(record string) (numbers map[string]int, errs []error) {
	if err := strictJSON(record, &numbers); err != nil {
		return nil, []error{fmt.Errorf("%s is not an object of container names and numbers: %s", quoted(record), short(err.Error()))}
	}
	taken := map[int]string{} // number -> container
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		n := numbers[name]
		if n < 0 || n > mostNumber {
			errs = append(errs, fmt.Errorf("%s: %d is outside 0..%d", short(name), n, mostNumber))
		}
		if other, ok := taken[n]; ok {
			errs = append(errs, fmt.Errorf("%s and %s both have number %d", short(other), short(name), n))
		}
		taken[n] = name
	}
	return numbers, errs
}

// mostNumber keeps the keys of a container's annotations within their 63
// characters; no pod has nearly as many containers.
const mostNumber = 9999
