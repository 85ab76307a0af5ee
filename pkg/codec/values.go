package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Values of annotations.
const (
	yes      = "true"
	no       = "false"
	training = "training"
	required = "required"
)

const (
	mostNUMA     = 1023 // the largest number that Linux gives a NUMA node
	mostPriority = 100
	mostPorts    = 64
	mostName     = 253 // of a served model, in characters
)

// judge makes a reader of what is only checked.
func judge(check func(string) error) func(*gpu.Request, string) error {
	return func(_ *gpu.Request, value string) error { return check(value) }
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

func readNUMA(r *gpu.Request, value string) error {
	n, err := wholeUpTo(value, mostNUMA)
	if err != nil {
		return fmt.Errorf("%q is not the number of a NUMA node, 0..%d", value, mostNUMA)
	}
	r.NUMA = n
	return nil
}

// yesOrNo reads a yes or no.
func yesOrNo(field func(*gpu.Request) *bool) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		*field(r) = value == yes
		return among(yes, no)(value)
	}
}

// insisting reads how much something is wanted that no node can vouch for: it
// cannot be had by those who require it, if it matters to them at all.
func insisting(reason gpu.Reason, matters func(*gpu.Request) bool) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		if value == required && matters(r) {
			unmet(r, reason)
		}
		return among(required, "preferred")(value)
	}
}

// unmet notes a hard wish; the first one counts.
func unmet(r *gpu.Request, reason gpu.Reason) { r.Unmet = cmp.Or(r.Unmet, reason) }

func always(*gpu.Request) bool { return true }

// severalCards reports whether there is anything to link.
func severalCards(r *gpu.Request) bool {
	return slices.ContainsFunc(r.Asks, func(a gpu.Ask) bool { return a.Count > 1 })
}

// topologyAware is a policy for which there is no plugin; the cluster's own
// stands in for it.
const topologyAware gpu.Policy = "topology-aware"

// layout reads a placement policy.
func layout(field func(*gpu.Request) *gpu.Policy) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		switch p := gpu.Policy(value); p {
		case gpu.Binpack, gpu.Spread:
			*field(r) = p
			return nil
		case "mutex": // HAMi's
			return fmt.Errorf("%q is not handled; for cards with nobody else on them ask for whole cards", value)
		case "numa": // HAMi's
			return fmt.Errorf("%q is not handled; for cards of one NUMA node write %s: true", value, AnnotationNUMABind)
		}
		return among(gpu.Binpack, gpu.Spread, topologyAware)(value)
	}
}

func readGroup(r *gpu.Request, value string) error {
	unmet(r, gpu.GangIncomplete)
	if len(content.IsDNS1123Subdomain(value)) > 0 {
		return fmt.Errorf("%q is not the name of a TaskGroup: up to 253 small letters, digits, '-' and '.', with a letter or digit at each end and beside each '.'", value)
	}
	return nil
}

func readPorts(r *gpu.Request, value string) error {
	n, err := wholeUpTo(value, mostPorts)
	if n > 0 {
		unmet(r, gpu.InsufficientPorts)
	}
	return err
}

// among makes a judge of values that are words.
func among[T ~string](words ...T) func(string) error {
	return func(value string) error {
		if !slices.Contains(words, T(value)) {
			return fmt.Errorf("%q is not one of %s", value, join(words))
		}
		return nil
	}
}

// wholeUpTo reads a number of digits alone, from 0 on.
func wholeUpTo(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || !digits(value) || n > most {
		return 0, fmt.Errorf("%q is not a whole number, 0..%d", value, most)
	}
	return n, nil
}

func judgePriority(value string) error {
	_, err := wholeUpTo(value, mostPriority)
	return err
}

func judgeLabelValue(value string) error {
	if value == "" || len(content.IsLabelValue(value)) > 0 {
		return fmt.Errorf("%q is not a label value: 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at each end", value)
	}
	return nil
}

func judgeDuration(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration above 0; write it as 45s, 90m or 2h30m", value)
	}
	return nil
}

// signals are what a task can be told to end by, and save its state.
var signals = []string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}

func judgeSignal(value string) error {
	if value == "SIGKILL" {
		return fmt.Errorf("%q leaves a task no time to save its state; write one of %s", value, join(signals))
	}
	return among(signals...)(value)
}

func judgeModelName(value string) error {
	printable := utf8.ValidString(value) && !strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) })
	if n := utf8.RuneCountInString(value); !printable || n < 1 || n > mostName {
		return fmt.Errorf("%q is not the name of a model: 1 to %d printable characters", value, mostName)
	}
	return nil
}

func join[T ~string](items []T) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	return strings.Join(texts, ", ")
}

// code writes a list for documents.
func code[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "`" + string(name) + "`"
	}
	return strings.Join(texts, ", ")
}
