package topology

import (
	"strings"
	"unicode/utf8"
)

// line is one line of a tool's output, without escape sequences.
type line struct {
	number int // from 1
	text   string
}

// word is a piece of a line. at is the character it begins with, from 1; under is
// its place on the screen, from 0, where a tab goes on to the next multiple of 8.
type word struct {
	text  string
	at    int
	under int
}

// cleaned splits a text into lines and takes out the escape sequences with which
// the tools underline the header.
func cleaned(text string) ([]line, error) {
	if len(text) > MostText {
		return nil, fault(1, 1, "%d bytes of text: more than the %d that are read", len(text), MostText)
	}
	var lines []line
	for raw := range strings.SplitSeq(text, "\n") {
		number := len(lines) + 1
		l, err := unescaped(strings.TrimSuffix(raw, "\r"), number)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line{number, l})
	}
	return lines, nil
}

// unescaped returns the line without ESC [ ... sequences. Bytes that are no text
// are an error.
func unescaped(s string, number int) (string, error) {
	var out strings.Builder
	for column := 1; s != ""; {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r > '?' })
			if end < 0 || rest[end] < '@' || rest[end] > '~' {
				return "", fault(number, column, "an escape sequence that does not end")
			}
			s = rest[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\t' || r == 0x7f {
			return "", fault(number, column, "the byte %#02x is no text", s[0])
		}
		out.WriteString(s[:size])
		s = s[size:]
		column++
	}
	return out.String(), nil
}

// words returns what lies between white space.
func (l line) words() []word { return l.split(func(r rune) bool { return r == ' ' || r == '\t' }) }

// cells returns what lies between tabs, without the spaces around it.
func (l line) cells() []word {
	var cells []word
	at := 1
	for c := range strings.SplitSeq(l.text, "\t") {
		cells = append(cells, word{text: strings.Trim(c, " "), at: at})
		at += utf8.RuneCountInString(c) + 1
	}
	return cells
}

func (l line) split(blank func(rune) bool) []word {
	var words []word
	at, under, inside := 0, 0, false
	for i, r := range l.text {
		at++
		switch {
		case blank(r):
			inside = false
		case !inside:
			end := strings.IndexFunc(l.text[i:], blank)
			if end < 0 {
				end = len(l.text) - i
			}
			words = append(words, word{l.text[i : i+end], at, under})
			inside = true
		}
		under = advance(under, r)
	}
	return words
}

// advance returns the place on the screen after r.
func advance(under int, r rune) int {
	if r == '\t' {
		return under/8*8 + 8
	}
	return under + 1
}
