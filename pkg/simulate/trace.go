package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
)

const (
	// wholeCard is what a card has, in thousandths.
	wholeCard = 1000
	// mostCards is as many as a node of a trace may have.
	mostCards = 8
)

// Node is a node of a trace.
type Node struct {
	Name   string
	CPU    gpu.MilliCPU
	Memory gpu.MiB // main memory
	Cards  int
	Model  string
}

// Shape is what a pod of a trace asks for.
type Shape struct {
	CPU    gpu.MilliCPU
	Memory gpu.MiB // main memory
	Cards  int     // 0 for none
	Milli  int     // of each card, in thousandths; 1000 where there are several
	Models string  // "A|B"; "" for any
}

// Demand is what the shape takes of all cards together, in thousandths of one.
func (s Shape) Demand() int { return s.Cards * s.Milli }

// Kinds of shapes: no card, a part of one, or that many whole ones.
const (
	KindCPU   = "cpu"
	KindSlice = "slice"
	Kind8     = "8"
)

// Kinds lists the kinds that Kind returns in the published traces.
func Kinds() []string { return []string{KindCPU, KindSlice, "1", "2", "4", Kind8} }

// Kind is "cpu" for a shape without cards, "slice" for part of a card, and else how
// many cards it needs.
func (s Shape) Kind() string {
	switch {
	case s.Cards == 0:
		return KindCPU
	case s.Milli < wholeCard:
		return KindSlice
	}
	return strconv.Itoa(s.Cards)
}

// models returns the models one of which the shape needs; none for any.
func (s Shape) models() []string {
	if s.Models == "" {
		return nil
	}
	return strings.Split(s.Models, "|")
}

// String reads as "8 x 1000 of V100M16|V100M32, 16000m CPU".
func (s Shape) String() string {
	of := ""
	if s.Models != "" {
		of = " of " + s.Models
	}
	return fmt.Sprintf("%d x %d%s, %dm CPU", s.Cards, s.Milli, of, s.CPU)
}

// Pod is a pod of a trace.
type Pod struct {
	Name string
	Shape
}

// Trace is a cluster and the pods that came to it. It is never edited.
type Trace struct {
	Name  string
	Nodes []Node // in the order of the file
	Pods  []Pod  // ordered by name
}

// ErrNoTrace means that there is no folder of that name, or no trace in it.
var ErrNoTrace = errors.New("there is no such trace")

// The files of a folder of traces.
const (
	nodeFile  = "openb_node_list_gpu_node.csv"
	podPrefix = "openb_pod_list_"
	podSuffix = ".csv"
)

// Names returns the traces in the folder, in order.
func Names(folder fs.FS) ([]string, error) {
	files, err := fs.Glob(folder, podPrefix+"*"+podSuffix)
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(folder, nodeFile); err != nil || len(files) == 0 {
		return nil, ErrNoTrace
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, podPrefix), podSuffix)
	}
	return files, nil
}

// Read reads the trace of that name.
func Read(folder fs.FS, name string) (*Trace, error) {
	t := &Trace{Name: name}
	var err error
	if t.Nodes, err = readTable(folder, nodeFile, readNode); err != nil {
		return nil, err
	}
	file := podPrefix + name + podSuffix
	if _, err := fs.Stat(folder, file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", file, ErrNoTrace)
	}
	if t.Pods, err = readTable(folder, file, readPod); err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	if err := t.distinct(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// distinct says which names cannot be told apart: requests name models by a part of
// their name.
func (t *Trace) distinct() error {
	var models []string
	for i := range t.Nodes {
		models = append(models, t.Nodes[i].Model)
	}
	for i := range t.Pods {
		models = append(models, t.Pods[i].models()...)
	}
	slices.Sort(models)
	models = slices.Compact(models)
	for _, a := range models {
		for _, b := range models {
			if a != b && strings.Contains(strings.ToLower(b), strings.ToLower(a)) {
				return fmt.Errorf("model %s would also mean %s", a, b)
			}
		}
	}
	for i := range t.Pods[:max(0, len(t.Pods)-1)] {
		if t.Pods[i].Name == t.Pods[i+1].Name {
			return fmt.Errorf("pod %s is there twice", t.Pods[i].Name)
		}
	}
	return nil
}

// Capacity is what all cards together have, in thousandths of one.
func (t *Trace) Capacity() int {
	cards := 0
	for i := range t.Nodes {
		cards += t.Nodes[i].Cards
	}
	return cards * wholeCard
}
