package codec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// wish is one annotation that a pod's author may write.
type wish struct {
	key     string
	aliases []string // other names of the same, read alike
	read    func(r *gpu.Request, value string) error
}

// wishes is read only.
var wishes = [...]wish{
	{AnnotationGPUType, nil, readVendor},
	{AnnotationModel, []string{"hami.io/gpu-type", "nvidia.com/use-gputype"}, list(func(r *gpu.Request) *[]string { return &r.Models })},
	{AnnotationNotModel, []string{"nvidia.com/nouse-gputype"}, list(func(r *gpu.Request) *[]string { return &r.NotModels })},
	{AnnotationUUIDInclude, []string{"hami.io/gpu-uuid-include", "nvidia.com/use-gpuuuid"}, list(func(r *gpu.Request) *[]gpu.CardID { return &r.Cards })},
	{AnnotationUUIDExclude, []string{"hami.io/gpu-uuid-exclude", "nvidia.com/nouse-gpuuuid"}, list(func(r *gpu.Request) *[]gpu.CardID { return &r.NotCards })},
	{AnnotationNUMA, []string{"hami.io/numa-hint"}, readNUMA},
	{AnnotationNUMABind, []string{"nvidia.com/numa-bind"}, yesOrNo(func(r *gpu.Request) *bool { return &r.NUMABind })},
	{AnnotationNodePolicy, []string{"hami.io/node-scheduler-policy"}, layout(func(r *gpu.Request) *gpu.Policy { return &r.NodePolicy })},
	{AnnotationCardPolicy, []string{"hami.io/gpu-scheduler-policy"}, layout(func(r *gpu.Request) *gpu.Policy { return &r.CardPolicy })},
}

// readAnnotations reads the wishes of a pod that asks for cards into r, and
// returns all their faults.
func readAnnotations(r *gpu.Request, annotations map[string]string) error {
	errs := []error{unknown(annotations)}
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

// unknown names our keys that no pod's author can have meant. A key that is
// ignored would be a wish that is silently not met.
func unknown(annotations map[string]string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		known := slices.ContainsFunc(wishes[:], func(w wish) bool { return w.key == key })
		if strings.HasPrefix(key, own) && !known && !ownedByScheduler(key) {
			errs = append(errs, fmt.Errorf("unknown annotation %s", key))
		}
	}
	return errors.Join(errs...)
}

// find returns the key that is present and its value; none: "". Several of them
// have to say the same.
func (w *wish) find(annotations map[string]string) (key, value string, err error) {
	for _, k := range append([]string{w.key}, w.aliases...) {
		v, ok := annotations[k]
		v = strings.TrimSpace(v)
		switch {
		case !ok:
		case key == "":
			key, value = k, v
		case v != value:
			return key, value, fmt.Errorf("%q differs from %s, which means the same and is %q", value, k, v)
		}
	}
	return key, value, nil
}

func readVendor(r *gpu.Request, value string) error {
	v, ok := gpu.ParseVendor(value)
	if !ok {
		return fmt.Errorf("%q is not a vendor; the vendors are %s", value, join(gpu.Vendors()))
	}
	r.Vendor = v
	for i := range r.Asks {
		if a := &r.Asks[i]; a.Vendor != "" && a.Vendor != v {
			return fmt.Errorf("%q contradicts container %s, which asks for cards of %s", value, a.Container, a.Vendor)
		}
	}
	return nil
}

// list reads a comma list whose items are all named.
func list[T ~string](field func(*gpu.Request) *[]T) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		into := field(r)
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				return fmt.Errorf("%q has an empty item; write a comma list, or leave the annotation out", value)
			}
			*into = append(*into, T(item))
		}
		return nil
	}
}

// mostNUMA is the largest number that Linux gives a NUMA node.
const mostNUMA = 1023

func readNUMA(r *gpu.Request, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || !digits(value) || n > mostNUMA {
		return fmt.Errorf("%q is not the number of a NUMA node, 0..%d", value, mostNUMA)
	}
	r.NUMA = n
	return nil
}

// yesOrNo reads a yes or no.
func yesOrNo(field func(*gpu.Request) *bool) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is not true or false", value)
		}
		*field(r) = value == "true"
		return nil
	}
}

// layout reads a placement policy.
func layout(field func(*gpu.Request) *gpu.Policy) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		allowed := []gpu.Policy{gpu.Binpack, gpu.Spread}
		if !slices.Contains(allowed, gpu.Policy(value)) {
			return fmt.Errorf("%q is not one of %s", value, join(allowed))
		}
		*field(r) = gpu.Policy(value)
		return nil
	}
}

func join[T ~string](items []T) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	return strings.Join(texts, ", ")
}
