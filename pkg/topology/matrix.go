package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Matrix is what a vendor's tool says of the cards of its node. Its rows are as
// many as its columns, and what joins two cards is the same both ways.
type Matrix struct {
	Rows []Row
}

// Row is one card.
type Row struct {
	Name  string // as the tool prints it, such as GPU0 or Phy-ID2
	Index int    // its number; numbers may start anywhere and have gaps
	NUMA  int    // gpu.NoNUMA if the tool does not say
	Links []Link // to the cards of Rows; to itself, and where it is not known, the zero Link
}

// MostText is how long a text ParseMatrix reads, in bytes: 64 cards and as many
// network cards in columns eight wide take less.
const MostText = 128 << 10

// mostColumns bounds a header: cards, and what else has columns.
const mostColumns = 512

// ParseMatrix reads what these print, with whatever is above and below:
//
//	nvidia-smi topo -m      npu-smi info -t topo      mx-smi topo -m
//	mthreads-gmi topo -m    xpu-smi topo -m           cnmon topo -m
//	ixsmi topo -m           hy-smi --showtopotype --json, --showtoponuma --json
//
// Columns are cut by tabs or, where a text was pasted and they became spaces, by
// their places under the header. The columns and rows of network cards are passed
// over. Of a card's NUMA nodes the first counts: "0,2-17" on Grace is the
// processor's node 0 and those of memory. GPU NUMA ID is the node of a card's own
// memory, which no processor is on, and is not read. Where the two halves of the
// matrix differ, the weaker link counts.
//
// An error names line and column, the column in characters, without escape
// sequences.
func ParseMatrix(text string) (Matrix, error) {
	lines, err := cleaned(text)
	if err != nil {
		return Matrix{}, err
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return parseJSON(text)
	}
	for i, l := range lines {
		words := l.words()
		if len(words) == 0 {
			continue
		}
		if _, _, ok := cardName(words[0].text); ok {
			h, err := parseHeader(l)
			if err != nil {
				return Matrix{}, err
			}
			return h.parse(lines[i+1:])
		}
	}
	return Matrix{}, fault(1, 1, "no matrix: no line begins with the name of a card, such as GPU0")
}

// cardName splits the name of a card into what the tool calls cards and its number.
func cardName(s string) (kind string, index int, ok bool) {
	for _, kind := range [...]string{"GPU", "NPU", "Phy-ID", "MLU", "XPU", "HCU", "DCU", "GCU"} {
		if digits, ok := strings.CutPrefix(s, kind); ok {
			n, err := strconv.ParseUint(digits, 10, 16)
			return kind, int(n), err == nil
		}
	}
	return "", 0, false
}

// parse reads the rows below the header, in whatever order they come.
func (h *header) parse(lines []line) (Matrix, error) {
	m := Matrix{Rows: make([]Row, h.cards)}
	missing := h.cards
	last := h.line
	for _, l := range lines {
		if missing == 0 {
			break
		}
		words := l.words()
		if len(words) == 0 {
			continue
		}
		last = l.number
		c, ok := h.places[words[0].text]
		switch {
		case !ok:
			return Matrix{}, fault(l.number, words[0].at, "%s is no row of the matrix, and %d are missing", quoted(words[0].text), missing)
		case h.columns[c].card < 0:
			continue
		case m.Rows[h.columns[c].card].Links != nil:
			return Matrix{}, fault(l.number, words[0].at, "a second row %s", words[0].text)
		}
		row, err := h.row(l, h.columns[c])
		if err != nil {
			return Matrix{}, err
		}
		m.Rows[h.columns[c].card] = row
		missing--
	}
	if missing > 0 {
		return Matrix{}, fault(last, 1, "the text ends with %d of %d rows missing", missing, h.cards)
	}
	m.level()
	return m, nil
}

// level makes both halves of the matrix say the same.
func (m *Matrix) level() {
	for i := range m.Rows {
		for j := range i {
			link := weaker(m.Rows[i].Links[j], m.Rows[j].Links[i])
			m.Rows[i].Links[j], m.Rows[j].Links[i] = link, link
		}
	}
}

// row reads the row of a card.
func (h *header) row(l line, c column) (Row, error) {
	cells, tail, err := h.cut(l, c)
	if err != nil {
		return Row{}, err
	}
	row := Row{Name: c.name, NUMA: h.numa(tail), Links: make([]Link, h.cards)}
	_, row.Index, _ = cardName(c.name)
	for i, cell := range cells {
		other := h.columns[i].card
		if other < 0 {
			continue
		}
		if self := strings.EqualFold(cell.text, "X"); self != (other == c.card) {
			return Row{}, fault(l.number, cell.at, "%s between %s and %s: X is for a card and itself", quoted(cell.text), c.name, h.columns[i].name)
		}
		switch cell.text {
		case "OK", "CNS", "GNS", "TNS", "NS", "DR":
			return Row{}, fault(l.number, cell.at, "%s says who may read whose memory (topo -p2p), not what joins the cards (topo -m)", cell.text)
		}
		row.Links[other] = ParseLink(cell.text)
	}
	return row, nil
}

// numa reads the NUMA node from the cells that follow the links.
func (h *header) numa(tail []word) int {
	i := slices.IndexFunc(h.tail, func(t tailColumn) bool { return t.numa })
	if i < 0 || i >= len(tail) {
		return gpu.NoNUMA
	}
	return parseNUMA(tail[i].text)
}

// parseNUMA reads the first of "3", "0-1" or "0,2-17"; gpu.NoNUMA for anything else,
// N/A among it.
func parseNUMA(s string) int {
	const most = 1 << 12 // more than Linux can be built for (MAX_NUMNODES is 1,024)
	s, _, _ = strings.Cut(s, ",")
	s, _, _ = strings.Cut(s, "-")
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > most {
		return gpu.NoNUMA
	}
	return int(n)
}

// fault is an error about a place in the text.
func fault(line, column int, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

// quoted returns the text for an error, shortened.
func quoted(s string) string {
	const most = 24
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
