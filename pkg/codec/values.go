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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Values of annotations.
const (
	yes      = "true"
	no       = "false"
	training = "training"
	required = "required"

	modeSuspend = "suspend"
)

const (
	mostNUMA     = 1023 // the largest number that Linux gives a NUMA node
	mostPriority = 100
	mostPorts    = 64
	mostName     = 253 // of a served model, in characters
	// Every item is compared with every card, and an annotation has room for
	// 100,000 of them.
	mostItems = 256
	mostItem  = mostText
)

// judge makes a reader of what is only checked.
func judge(check func(string) error) func(*gpu.Request, string) error {
	return func(_ *gpu.Request, value string) error { return check(value) }
}

func readVendor(r *gpu.Request, value string) error {
	v, ok := gpu.ParseVendor(value)
	if !ok {
		return fmt.Errorf("%s is not a vendor; the vendors are %s", quoted(value), join(gpu.Vendors()))
	}
	r.Vendor = v
	for i := range r.Asks {
		if a := &r.Asks[i]; a.Vendor != "" && a.Vendor != v {
			return fmt.Errorf("%s contradicts container %s, which asks for cards of %s", quoted(value), a.Container, a.Vendor)
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
			switch {
			case item == "":
				return fmt.Errorf("%s has an empty item; write a comma list, or leave the annotation out", quoted(value))
			case len(item) > mostItem:
				return fmt.Errorf("item %s is longer than %d bytes", quoted(item), mostItem)
			case len(*into) == mostItems:
				return fmt.Errorf("%s has more than %d items", quoted(value), mostItems)
			}
			*into = append(*into, T(item))
		}
		return nil
	}
}

// withoutEmpty drops the empty items of a list by HAMi's names, which HAMi
// passes over. A list of nothing else is left as it is, and refused.
func withoutEmpty(value string) string {
	items := slices.DeleteFunc(strings.Split(value, ","), func(item string) bool { return strings.TrimSpace(item) == "" })
	if len(items) == 0 {
		return value
	}
	return strings.Join(items, ",")
}

// asYesOrNo spells what HAMi takes for a yes or no as we do.
func asYesOrNo(value string) string {
	if b, err := strconv.ParseBool(value); err == nil {
		return strconv.FormatBool(b)
	}
	return value
}

func readNUMA(r *gpu.Request, value string) error {
	n, err := wholeUpTo(value, mostNUMA)
	if err != nil {
		return fmt.Errorf("%s is not the number of a NUMA node, 0..%d", quoted(value), mostNUMA)
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

func readNVLink(r *gpu.Request, value string) error {
	r.NVLink = gpu.Wish(value) == gpu.Required
	return among(gpu.Required, gpu.Preferred)(value)
}

// word reads one of these words.
func word[T ~string](field func(*gpu.Request) *T, words ...T) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		*field(r) = T(value)
		return among(words...)(value)
	}
}

// unmet notes a hard wish; the first one counts.
func unmet(r *gpu.Request, reason gpu.Reason) { r.Unmet = cmp.Or(r.Unmet, reason) }

// layout reads a placement policy.
func layout(field func(*gpu.Request) *gpu.Policy) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		switch p := gpu.Policy(value); p {
		case gpu.Binpack, gpu.Spread, gpu.TopologyAware:
			*field(r) = p
			return nil
		case "mutex": // HAMi's
			return fmt.Errorf("%s is not handled; for cards with nobody else on them ask for whole cards", quoted(value))
		case "numa": // HAMi's
			return fmt.Errorf("%s is not handled; for cards of one NUMA node write %s: true", quoted(value), AnnotationNUMABind)
		}
		return among(gpu.Binpack, gpu.Spread, gpu.TopologyAware)(value)
	}
}

func readGroup(r *gpu.Request, value string) error {
	r.Gang = true
	if len(content.IsDNS1123Subdomain(value)) > 0 {
		return fmt.Errorf("%s is not the name of a TaskGroup: up to 253 small letters, digits, '-' and '.', with a letter or digit at each end and beside each '.'", quoted(value))
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
			return fmt.Errorf("%s is not one of %s", quoted(value), join(words))
		}
		return nil
	}
}

// wholeUpTo reads a number of digits alone, from 0 on.
func wholeUpTo(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || !digits(value) || n > most {
		return 0, fmt.Errorf("%s is not a whole number, 0..%d", quoted(value), most)
	}
	return n, nil
}

func judgePriority(value string) error {
	_, err := wholeUpTo(value, mostPriority)
	return err
}

// labelValue reads the value that a label of a node is wished to have.
func labelValue(field func(*gpu.Request) *string) func(*gpu.Request, string) error {
	return func(r *gpu.Request, value string) error {
		if value == "" || len(content.IsLabelValue(value)) > 0 {
			return fmt.Errorf("%s is not a label value: 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at each end", quoted(value))
		}
		*field(r) = value
		return nil
	}
}

func readRuntime(r *gpu.Request, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return fmt.Errorf("%s is not a duration above 0; write it as 45s, 90m or 2h30m", quoted(value))
	}
	r.Runtime = d
	return nil
}

// signals are what a task can be told to end by, and save its state.
var signals = []string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}

// StopSignal returns the signal by which the pod's author wants its containers to end;
// false if there is none.
func StopSignal(pod *corev1.Pod) (string, bool) {
	name := strings.TrimSpace(pod.Annotations[AnnotationPreemptSignal])
	return name, slices.Contains(signals, name)
}

func judgeSignal(value string) error {
	if value == "SIGKILL" {
		return fmt.Errorf("%s leaves a task no time to save its state; write one of %s", quoted(value), join(signals))
	}
	return among(signals...)(value)
}

func judgeModelName(value string) error {
	printable := utf8.ValidString(value) && !strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) })
	if n := utf8.RuneCountInString(value); !printable || n < 1 || n > mostName {
		return fmt.Errorf("%s is not the name of a model: 1 to %d printable characters", quoted(value), mostName)
	}
	return nil
}

// mostQuoted is how much of what somebody has written stands in a refusal:
// an annotation may have 256 KiB, and an event 1 KiB.
const mostQuoted = 80

// quoted quotes a text for people; of a long one the beginning, and how long it is.
func quoted(text string) string { return shortened(text, strconv.Quote) }

// short is the same without the quotes, for what needs none.
func short(text string) string { return shortened(text, func(s string) string { return s }) }

func shortened(text string, write func(string) string) string {
	if len(text) <= mostQuoted {
		return write(text)
	}
	end := mostQuoted
	for end > mostQuoted-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes)", write(text[:end]), len(text))
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
