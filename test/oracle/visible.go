package oracle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

const (
	visiblePrefix = prefix + "visible-devices-"
	memoryPrefix  = prefix + "mem-limit-"
	coresPrefix   = prefix + "core-limit-"
)

// visibleSuffix ends the name of every variable that tells a runtime or a
// framework which cards to use.
const visibleSuffix = "_VISIBLE_DEVICES"

// variableVendor says whose runtime or framework reads a variable of that first
// word. Others, as CUDA, are read by those of several vendors.
var variableVendor = map[string]string{
	"MTHREADS": "musa", "MUSA": "musa",
	"HYGON": "hygon", "DCU": "hygon", "HIP": "hygon",
	"CAMBRICON": "cambricon", "MLU": "cambricon",
	"BIREN": "biren", "SUPA": "biren",
	"ASCEND": "ascend", "ASCEND_RT": "ascend", "NPU": "ascend",
	"XPU": "kunlun",
	"IX":  "iluvatar", "ILUVATAR": "iluvatar",
	"NVIDIA":  "nvidia",
	"MACA":    "metax",
	"ENFLAME": "enflame", "TOPS": "enflame",
}

// noCards are the values of such a variable that show none.
var noCards = []string{"", "void", "none"}

// sight is what one container is to see.
type sight struct {
	asks    bool
	number  int // of its own annotations
	cards   []share
	plugged bool // the device plugin picks and shows its cards
}

// judgeVisible checks that each container is shown exactly its own cards, by its
// own annotations and by its variables, and nothing of another's.
func (b *books) judgeVisible(pod *corev1.Pod, n *node, wanted []ask, a allocation) {
	numbers, err := numbers(pod, wanted)
	if err != nil {
		b.say("pod %s: %v", name(pod), err)
		return
	}
	sights := n.sights(wanted, numbers, grants(a))
	b.judgeAnnotations(pod, sights)
	owners := map[int]string{}
	for container, number := range numbers {
		owners[number] = container
	}
	for _, c := range containersOf(pod) {
		b.judgeReads(pod, &c, sights[c.Name], owners)
		b.judgeVariables(pod, &c, sights[c.Name])
	}
}

// sights returns what each asking container is to see, by its name.
func (n *node) sights(wanted []ask, numbers map[string]int, given map[string]grant) map[string]sight {
	all := map[string]sight{}
	for _, w := range wanted {
		cards := given[w.container].Cards
		plugged := slices.ContainsFunc(cards, func(s share) bool { return n.cards[s.UUID] != nil && n.cards[s.UUID].plain })
		all[w.container] = sight{true, numbers[w.container], cards, plugged}
	}
	return all
}

// containersOf lists all containers of a pod that have an environment.
func containersOf(pod *corev1.Pod) []corev1.Container {
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

// judgeAnnotations checks each container's own annotations, and that none of
// them has a value for a number that is nobody's.
func (b *books) judgeAnnotations(pod *corev1.Pod, sights map[string]sight) {
	left := map[string]bool{}
	for key, value := range pod.Annotations {
		left[key] = value != "" && numberOf(key) >= 0
	}
	for _, container := range slices.Sorted(maps.Keys(sights)) {
		s := sights[container]
		if s.plugged {
			continue
		}
		want := s.annotations()
		for _, key := range slices.Sorted(maps.Keys(want)) {
			delete(left, key)
			if value := pod.Annotations[key]; value != want[key] {
				b.say("pod %s: container %s: %s is %q, want %q", name(pod), container, key, value, want[key])
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if left[key] {
			b.say("pod %s: %s belongs to no container", name(pod), key)
		}
	}
}

// annotations are the container's own, with what they have to hold; "" is the
// same as absent.
func (s sight) annotations() map[string]string {
	memory, cores := "", ""
	if !s.exclusive() {
		memory = s.limit(func(c share) int64 { return c.MemoryMiB })
	}
	if !s.exclusive() && slices.ContainsFunc(s.cards, func(c share) bool { return c.Cores > 0 }) {
		cores = s.limit(func(c share) int64 { return c.Cores })
	}
	n := strconv.Itoa(s.number)
	return map[string]string{visiblePrefix + n: s.shown(), memoryPrefix + n: memory, coresPrefix + n: cores}
}

func (s sight) exclusive() bool {
	return slices.ContainsFunc(s.cards, func(c share) bool { return c.Exclusive })
}

// shown lists the container's cards as their vendor's runtime wants them named.
func (s sight) shown() string {
	var names []string
	for _, c := range s.cards {
		if c.Vendor == "nvidia" || c.Vendor == "iluvatar" {
			names = append(names, c.UUID)
		} else {
			names = append(names, strconv.Itoa(c.Index))
		}
	}
	return strings.Join(names, ",")
}

// limit is the one amount of all cards, or that of each.
func (s sight) limit(of func(share) int64) string {
	var amounts []string
	for _, c := range s.cards {
		amounts = append(amounts, strconv.FormatInt(of(c), 10))
	}
	if len(slices.Compact(slices.Clone(amounts))) == 1 {
		return amounts[0]
	}
	return strings.Join(amounts, ",")
}

// numberOf returns the n of a container's annotation: -1 for all other keys, and
// what no container can have where n is no number.
func numberOf(key string) int {
	for _, ours := range []string{visiblePrefix, memoryPrefix, coresPrefix} {
		if rest, found := strings.CutPrefix(key, ours); found {
			if n, err := strconv.Atoi(rest); err == nil && n >= 0 {
				return n
			}
			return math.MaxInt
		}
	}
	return -1
}

// judgeReads checks that what the container's variables read is its own.
func (b *books) judgeReads(pod *corev1.Pod, c *corev1.Container, s sight, owners map[int]string) {
	for _, v := range c.Env {
		if v.ValueFrom == nil || v.ValueFrom.FieldRef == nil {
			continue
		}
		path, _ := strings.CutPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['")
		key, _ := strings.CutSuffix(path, "']")
		n := numberOf(key)
		owner, owned := owners[n]
		if n >= 0 && (s.asks && n != s.number || owned && owner != c.Name) {
			b.say("pod %s: container %s: variable %s reads %s, which is not its own", name(pod), c.Name, v.Name, key)
		}
	}
}

// judgeVariables checks that what the container is started with shows it its
// cards and no others.
func (b *books) judgeVariables(pod *corev1.Pod, c *corev1.Container, s sight) {
	if s.plugged {
		return
	}
	env, err := simnode.Environment(pod, c)
	if err != nil {
		b.say("pod %s: %v", name(pod), err)
		return
	}
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		word, found := strings.CutSuffix(variable, visibleSuffix)
		if fault := s.fault(word, env[variable]); found && fault != "" {
			b.say("pod %s: container %s: %s is %q, %s", name(pod), c.Name, variable, env[variable], fault)
		}
	}
}

// fault says what is wrong with the value of a variable of that first word.
func (s sight) fault(word, value string) string {
	vendor := variableVendor[word]
	switch {
	case len(s.cards) > 0 && (vendor == "" || vendor == s.cards[0].Vendor):
		if value != s.shown() {
			return fmt.Sprintf("its cards are %q", s.shown())
		}
	case !slices.Contains(noCards, value):
		return "it has none of these cards"
	}
	return ""
}
