package scripted

import (
	"fmt"
	"strconv"
	"strings"
)

// Path returns the path under which a script answers for one cell of an experiment:
// /s/NAME/c/KEY/seed/N. Append it to the server's URL; a part that is empty is left out.
//
// Characters that have a meaning in addresses are written ~XX. They are not percent-encoded because
// clients decode and re-encode the addresses they are given, and not all of them in the same way.
func Path(name, key, seed string) string {
	var b strings.Builder
	for _, part := range []struct{ marker, value string }{{"/s/", name}, {"/c/", key}, {"/seed/", seed}} {
		if part.value != "" {
			b.WriteString(part.marker + escapeSegment(part.value))
		}
	}
	return b.String()
}

// splitPath takes the cell off the front of a path.
func splitPath(path string) (at cell, rest string) {
	rest = path
	for _, part := range []struct {
		marker string
		value  *string
	}{{"/s/", &at.script}, {"/c/", &at.key}, {"/seed/", &at.seed}} {
		after, ok := strings.CutPrefix(rest, part.marker)
		if !ok {
			continue
		}
		segment, remainder, _ := strings.Cut(after, "/")
		*part.value = unescapeSegment(segment)
		rest = "/" + remainder
	}
	return at, rest
}

func escapeSegment(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "~%02X", c)
		}
	}
	return b.String()
}

// unescapeSegment reads ~XX; any other tilde stands for itself, so that plain names can be typed by
// hand.
func unescapeSegment(segment string) string {
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		if segment[i] == '~' && i+2 < len(segment) {
			if c, err := strconv.ParseUint(segment[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(segment[i])
	}
	return b.String()
}
