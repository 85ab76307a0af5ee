package server

import "bytes"

// mostExponent is how many digits of a negative exponent are let through. The
// time to read a quantity as small as 1e-99999999 is nearly a minute, and grows
// with the exponent (measured with apimachinery 0.37); a millisecond at five
// digits. The API server has the same weakness, so no pod that exists has one.
const mostExponent = 5

// tinyNumber returns a number in body whose exponent passes that; nil if there
// is none. It looks at whole values only: the end of a UUID may look like one.
func tinyNumber(body []byte) []byte {
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte("-"))
		if i < 0 {
			return nil
		}
		at += i + 1 // behind the sign
		if at < 3 || body[at-2]|0x20 != 'e' {
			continue
		}
		start, end := at-2, at
		for start > 0 && (digit(body[start-1]) || body[start-1] == '.') {
			start--
		}
		for end < len(body) && digit(body[end]) {
			end++
		}
		if start < at-2 && end-at > mostExponent && apart(body, start, end) {
			return body[start:end]
		}
	}
}

// apart reports whether body[start:end], and a sign before it, is a JSON value
// or the whole of a string.
func apart(body []byte, start, end int) bool {
	if start > 0 && bytes.IndexByte([]byte("+-"), body[start-1]) >= 0 {
		start--
	}
	return (start == 0 || bytes.IndexByte([]byte("\":,[ \t\r\n"), body[start-1]) >= 0) &&
		(end == len(body) || bytes.IndexByte([]byte("\",]} \t\r\n"), body[end]) >= 0)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
