package topology

import (
	"strings"
	"unicode/utf8"
)

// header is the line that names the columns.
type header struct {
	line    int
	columns []column
	places  map[string]int // name -> place in columns
	tail    []tailColumn   // the columns after those
	cards   int            // of columns
}

// column is a card or something else on the bus, such as a network card.
type column struct {
	name  string
	card  int // which of the matrix's rows it is, -1 for what is no card
	under int
}

// tailColumn is one of those whose names have spaces in them.
type tailColumn struct {
	numa  bool // has the card's NUMA node
	under int
}

// parseHeader reads the line that begins with the name of a card. What has the
// same kind of name are cards, what else precedes the affinities is not.
func parseHeader(l line) (*header, error) {
	h := &header{line: l.number, places: map[string]int{}}
	names := line{l.number, h.parseTail(l)}.words()
	kind, _, _ := cardName(names[0].text)
	for _, w := range names {
		_, again := h.places[w.text]
		switch {
		case strings.EqualFold(w.text, "X"):
			return nil, fault(l.number, w.at, "a row without a header above it")
		case again:
			return nil, fault(l.number, w.at, "a second column %s", quoted(w.text))
		case len(h.columns) == mostColumns:
			return nil, fault(l.number, w.at, "more than %d columns", mostColumns)
		}
		h.places[w.text] = len(h.columns)
		c := column{w.text, -1, w.under}
		if k, _, ok := cardName(w.text); ok && k == kind {
			c.card = h.cards
			h.cards++
		}
		h.columns = append(h.columns, c)
	}
	if h.cards > MostCards {
		return nil, fault(l.number, 1, "%d cards: more than the %d that a node may have", h.cards, MostCards)
	}
	return h, nil
}

// parseTail finds the columns after the links and returns what precedes them. The
// names are looked for as they are, since they can touch each other.
func (h *header) parseTail(l line) (before string) {
	before = l.text
	under := 0
	for i, r := range l.text {
		for _, name := range [...]string{"CPU Affinity", "NUMA Affinity", "Node Affinity", "GPU NUMA ID"} {
			if !strings.HasPrefix(l.text[i:], name) {
				continue
			}
			if len(h.tail) == 0 {
				before = l.text[:i]
			}
			h.tail = append(h.tail, tailColumn{name == "NUMA Affinity" || name == "Node Affinity", under})
		}
		under = advance(under, r)
	}
	return before
}

// cut splits the row of card c into one cell for each column and those that follow.
func (h *header) cut(l line, c column) (cells, tail []word, err error) {
	if n := len(h.columns); strings.Count(l.text, "\t") >= n {
		all := l.cells()
		return all[1 : 1+n], all[1+n:], nil
	}
	words := l.words()[1:]
	cells, rest, ok := h.aligned(words, c)
	// A row with tabs, but too few, was cut off: what is missing is not blank.
	if !ok || strings.Contains(l.text, "\t") {
		if len(words) < len(h.columns) {
			return nil, nil, fault(l.number, utf8.RuneCountInString(l.text)+1, "%d cells in the row of %s, and %d columns", len(words), c.name, len(h.columns))
		}
		cells, rest = words[:len(h.columns)], words[len(h.columns):]
	}
	return cells, h.alignedTail(rest), nil
}

// aligned puts each word under its column, the X of a card and itself perhaps one
// to the right. It is false when the words do not stand like that.
func (h *header) aligned(words []word, c column) (cells, rest []word, ok bool) {
	cells = make([]word, len(h.columns))
	for i, col := range h.columns {
		cells[i].at = 1
		if len(words) > 0 && (words[0].under == col.under || words[0].under == col.under+1) {
			cells[i], words = words[0], words[1:]
		}
	}
	if len(words) > 0 && (len(h.tail) == 0 || words[0].under < h.tail[0].under) {
		return nil, nil, false
	}
	for i, col := range h.columns {
		if col.card == c.card && !strings.EqualFold(cells[i].text, "X") {
			return nil, nil, false
		}
	}
	return cells, words, true
}

// alignedTail takes the words in order when there are as many as columns. Else it
// puts each under its column, up to the first of which nobody can tell what it is.
func (h *header) alignedTail(words []word) []word {
	if len(words) == len(h.tail) {
		return words
	}
	cells := make([]word, len(h.tail))
	for i, col := range h.tail {
		if len(words) > 0 && words[0].under == col.under {
			cells[i], words = words[0], words[1:]
		}
	}
	return cells
}
