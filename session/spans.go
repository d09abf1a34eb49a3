package session

import (
	"bytes"
	"encoding/json"
)

// Most of an event is of no interest to its decoder: what a tool returned is there twice, every message repeats its bookkeeping. So events are cut into their
// fields without decoding them, which is several times faster than parsing, and only the fields that matter are parsed.

// eachField calls visit with the raw key and the raw value of every field of a JSON object, up to where the object is broken. Values are not
// validated beyond what is needed to find their ends.
func eachField(object []byte, visit func(key, value []byte)) {
	walkFields(object, skipSpace(object, 0), func(key []byte, at int) int {
		end := skipValue(object, at)
		if end >= 0 {
			visit(key, object[at:end])
		}
		return end
	})
}

// walkFields goes through the fields of the object that begins at i and returns the position after it, or -1. For each field visit is told the key and where
// the value begins, and returns the position after the value: it may descend into the value instead of passing over it.
func walkFields(b []byte, i int, visit func(key []byte, at int) (end int)) int {
	if i >= len(b) || b[i] != '{' {
		return -1
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		end := skipString(b, i)
		if end < 0 {
			return -1
		}
		key := b[i+1 : end-1]
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return -1
		}
		if end = visit(key, skipSpace(b, i+1)); end < 0 {
			return -1
		}
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return -1
		case b[i] == '}':
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after the string that begins at i, or -1.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	start := i + 1
	for i = start; ; {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return -1
		}
		i += quote + 1
		slashes := 0
		for at := i - 2; at >= start && b[at] == '\\'; at-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the position after the value that begins at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// spanText is the text of a raw string; empty for any other value. Without escapes it shares the event's bytes.
func spanText(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return bytesView(inner)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// spanInt is the value of a raw number; 0 for any other value.
func spanInt(raw []byte) int64 {
	var n int64
	for i, c := range raw {
		if c < '0' || c > '9' || i >= 18 {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func spanTrue(raw []byte) bool { return string(raw) == "true" }
