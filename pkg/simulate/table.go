package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// readTable reads a file of comma-separated values, a line at a time.
func readTable[T any](folder fs.FS, file string, row func(*line) T) (rows []T, err error) {
	f, err := folder.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := csv.NewReader(f)
	names, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: no line with the names of columns: %w", file, err)
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		l := &line{names: names, cells: cells}
		r := row(l)
		if l.err != nil {
			at, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s: line %d: %w", file, at, l.err)
		}
		rows = append(rows, r)
	}
}

// line is one line of a table. The first fault of it is kept.
type line struct {
	names, cells []string
	err          error
}

// text returns what stands in the column of that name.
func (l *line) text(column string) string {
	if i := slices.Index(l.names, column); i >= 0 {
		return l.cells[i]
	}
	l.fault(column, errors.New("there is no such column"))
	return ""
}

// whole returns the number in the column of that name.
func (l *line) whole(column string, least, most int) int {
	text := l.text(column)
	if l.err != nil {
		return least
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		l.fault(column, fmt.Errorf("%q is no whole number", text))
		return least
	}
	if n < least || n > most {
		l.fault(column, fmt.Errorf("%d is outside %d..%d", n, least, most))
		return least
	}
	return n
}

func (l *line) fault(column string, err error) {
	if l.err == nil {
		l.err = fmt.Errorf("column %s: %w", column, err)
	}
}

// More than any machine has, so that a slip of units is seen.
const (
	mostCPU    = 10_000_000 // thousandths of a processor
	mostMemory = 1 << 30    // MiB
)

func readNode(l *line) Node {
	n := Node{
		Name:   l.text("sn"),
		CPU:    gpu.MilliCPU(l.whole("cpu_milli", 1, mostCPU)),
		Memory: gpu.MiB(l.whole("memory_mib", 1, mostMemory)),
		Cards:  l.whole("gpu", 1, mostCards),
		Model:  l.text("model"),
	}
	if n.Model == "" {
		l.fault("model", errors.New("is empty"))
	}
	return n
}

// readPod reads a line of either form: with or without gpu_spec.
func readPod(l *line) Pod {
	p := Pod{Name: l.text("name"), Shape: Shape{
		CPU:    gpu.MilliCPU(l.whole("cpu_milli", 0, mostCPU)),
		Memory: gpu.MiB(l.whole("memory_mib", 0, mostMemory)),
		Cards:  l.whole("num_gpu", 0, mostCards),
	}}
	switch {
	case p.Cards == 1:
		p.Milli = l.whole("gpu_milli", 1, wholeCard)
	case p.Cards > 1:
		p.Milli = l.whole("gpu_milli", wholeCard, wholeCard)
	}
	if p.Cards > 0 && slices.Contains(l.names, "gpu_spec") {
		p.Models = l.text("gpu_spec")
	}
	if slices.Contains(p.models(), "") {
		l.fault("gpu_spec", fmt.Errorf("%q has an empty model", p.Models))
	}
	return p
}
