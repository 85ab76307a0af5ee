package topology

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// The keys of hy-smi, which is built on rocm-smi and words them as that does.
var (
	linkKey = regexp.MustCompile(`^\(Topology\) Link type between DRM devices (\d{1,4}) and (\d{1,4})$`)
	cardKey = regexp.MustCompile(`^card(\d{1,4})$`)
)

const numaKey = "(Topology) Numa Node"

// rows collects the cards of JSON documents by their number.
type rows struct {
	text  string
	numa  map[int]int // card -> NUMA node
	pairs map[[2]int]Link
}

// parseJSON reads one document, or several one after the other: a tool prints links
// and NUMA nodes separately.
func parseJSON(text string) (Matrix, error) {
	r := rows{text: text, numa: map[int]int{}, pairs: map[[2]int]Link{}}
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var doc map[string]map[string]any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return r.matrix()
		} else if err != nil {
			return Matrix{}, r.faultAt(offsetOf(err, dec), err.Error())
		}
		for name, fields := range doc {
			if err := r.read(name, fields); err != nil {
				return Matrix{}, err
			}
		}
	}
}

func (r *rows) read(name string, fields map[string]any) error {
	if m := cardKey.FindStringSubmatch(name); m != nil {
		card := number(m[1])
		r.card(card)
		if node, ok := fields[numaKey]; ok {
			r.numa[card] = parseNUMA(spelled(node))
		}
		return nil
	}
	if name != "system" {
		return nil
	}
	for key, value := range fields {
		m := linkKey.FindStringSubmatch(key)
		if m == nil {
			continue // weights and hops
		}
		a, b := number(m[1]), number(m[2])
		if a == b {
			return r.faultAt(strings.Index(r.text, key), "a link between a card and itself")
		}
		r.card(a)
		r.card(b)
		pair := [2]int{min(a, b), max(a, b)}
		r.pairs[pair] = weaker(r.pairs[pair], ParseLink(spelled(value)))
	}
	return nil
}

// card makes sure that the card has a row.
func (r *rows) card(index int) {
	if _, ok := r.numa[index]; !ok {
		r.numa[index] = gpu.NoNUMA
	}
}

func (r *rows) matrix() (Matrix, error) {
	n := len(r.numa)
	if n == 0 || n > MostCards {
		return Matrix{}, fault(1, 1, "%d cards: a matrix has 1 to %d", n, MostCards)
	}
	var m Matrix
	for index, numa := range r.numa {
		m.Rows = append(m.Rows, Row{"card" + strconv.Itoa(index), index, numa, make([]Link, n)})
	}
	slices.SortFunc(m.Rows, func(a, b Row) int { return cmp.Compare(a.Index, b.Index) })
	for i := range m.Rows {
		for j := range m.Rows {
			a, b := m.Rows[i].Index, m.Rows[j].Index
			m.Rows[i].Links[j] = r.pairs[[2]int{min(a, b), max(a, b)}]
		}
	}
	return m, nil
}

// spelled returns a value that is text or, in some versions, a bare number.
func spelled(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// number reads digits of which there are few.
func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern has let only digits through
	return n
}

// offsetOf returns where in the text the decoder found fault.
func offsetOf(err error, dec *json.Decoder) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return int(syntax.Offset)
	case errors.As(err, &kind):
		return int(kind.Offset)
	}
	return int(dec.InputOffset())
}

// faultAt is an error about the place so many bytes into the text.
func (r *rows) faultAt(offset int, problem string) error {
	before := r.text[:min(max(offset-1, 0), len(r.text))]
	lastLine := before[strings.LastIndexByte(before, '\n')+1:]
	return fault(strings.Count(before, "\n")+1, utf8.RuneCountInString(lastLine)+1, "%s", problem)
}
