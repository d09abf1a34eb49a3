package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// union joins overlapping finds, so that none leaves a remainder of another.
// The joined find is named after the longest of its parts, a variable before a shape, and the first
// named if they are equal.
func (x *index) union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.label, b.label))
	})
	var joined []span
	var best span // the part that the last joined find is named after
	for _, s := range spans {
		last := len(joined) - 1
		if last < 0 || s.start >= joined[last].end {
			joined = append(joined, s)
			best = s
			continue
		}
		joined[last].end = max(joined[last].end, s.end)
		if x.betterName(s, best) {
			best = s
			joined[last].label = s.label
		}
	}
	return joined
}

func (x *index) betterName(a, b span) bool {
	aEnv, bEnv := a.label < x.envLabels, b.label < x.envLabels
	if aEnv != bEnv {
		return aEnv
	}
	return cmp.Or(cmp.Compare(b.end-b.start, a.end-a.start), cmp.Compare(a.label, b.label)) < 0
}

const placeholderMark = "[REDACTED:"

// keepPlaceholders takes finds out of placeholders that are already in the text. If the name in a
// placeholder is not ours, only the fixed part is protected; otherwise anything could hide in a
// forged placeholder.
func (x *index) keepPlaceholders(text []byte, spans []span) []span {
	held := x.placeholders(text)
	if len(held) == 0 {
		return spans
	}
	kept := spans[:0]
	for _, s := range spans {
		first, _ := slices.BinarySearchFunc(held, s.start, func(h span, at int) int { return cmp.Compare(h.end, at+1) })
		if first < len(held) && held[first].start <= s.start {
			s.start = min(s.end, held[first].end)
		}
		last, _ := slices.BinarySearchFunc(held, s.end, func(h span, at int) int { return cmp.Compare(h.start, at) })
		if last > 0 && held[last-1].end >= s.end {
			s.end = max(s.start, held[last-1].start)
		}
		if s.start < s.end {
			kept = append(kept, s)
		}
	}
	return kept
}

// placeholders lists the protected parts of the text, in order.
func (x *index) placeholders(text []byte) []span {
	var held []span
	for at := 0; ; {
		next := bytes.Index(text[at:], []byte(placeholderMark))
		if next < 0 {
			return held
		}
		start := at + next
		at = start + len(placeholderMark)
		if end := x.placeholderEnd(text, at); end >= 0 {
			held = append(held, span{start: start, end: end})
		}
	}
}

// placeholderEnd returns the end of the protected part of the placeholder whose mark ends at i, or
// -1.
func (x *index) placeholderEnd(text []byte, i int) int {
	for _, layer := range []string{"env:", "pattern:"} {
		if !bytes.HasPrefix(text[i:], []byte(layer)) {
			continue
		}
		name := i + len(layer)
		end := nameChar.run(text, name, endless)
		if end == name || end >= len(text) || text[end] != ']' {
			return -1
		}
		if x.names[string(text[i:end])] {
			return end + 1
		}
		return name
	}
	return -1
}

// editPlain turns finds into edits of plain text. A backslash before a find is removed with it;
// otherwise it would escape the placeholder if the text is part of JSON.
func (x *index) editPlain(text []byte, spans []span) []edit {
	edits := make([]edit, 0, len(spans))
	for _, s := range spans {
		edits = appendEdit(edits, edit{backslashesBefore(text, s.start), s.end, x.labels[s.label]})
	}
	return edits
}

func backslashesBefore(text []byte, i int) int {
	for i > 0 && text[i-1] == '\\' {
		i--
	}
	return i
}

// appendEdit keeps edits apart after their ends were moved.
func appendEdit(edits []edit, e edit) []edit {
	if n := len(edits); n > 0 && e.start < edits[n-1].end {
		e.start = edits[n-1].end
	}
	if e.start >= e.end {
		return edits
	}
	return append(edits, e)
}

// editJSON turns finds into edits of valid JSON that leave it valid: inside
// strings along their escape sequences, and whole numbers.
func (x *index) editJSON(text []byte, spans []span) []edit {
	var edits []edit
	next := 0
	walk(text, func(found scalar) {
		start, end := found.start, found.end
		if found.isStructure(text) {
			return
		}
		for next < len(spans) && spans[next].end <= start {
			next++
		}
		for _, s := range spans[next:] {
			if s.start >= end {
				break
			}
			if s.end <= start {
				continue
			}
			if text[start] == '"' {
				edits = x.appendStringEdit(edits, text, s, start+1, end-1)
			} else if c := text[start]; c == '-' || c >= '0' && c <= '9' {
				if min(s.end, end)-max(s.start, start) >= encodedFloor {
					edits = appendEdit(edits, edit{start, end, `"` + x.labels[s.label] + `"`})
				}
			}
		}
	})
	return edits
}

// appendStringEdit replaces the part of a find that is in the string content text[from:to], rounded
// out to whole escape sequences.
func (x *index) appendStringEdit(edits []edit, text []byte, s span, from, to int) []edit {
	start, end := max(s.start, from), min(s.end, to)
	if start >= end {
		return edits
	}
	at := from
	if n := len(edits); n > 0 {
		at = max(at, edits[n-1].end)
	}
	for at < end {
		next := bytes.IndexByte(text[at:to], '\\')
		if next < 0 {
			break
		}
		escape := at + next
		at = escape + 2
		if text[escape+1] == 'u' {
			at = escape + 6
		}
		if escape < start && start < at {
			start = escape
		}
		if escape < end && end < at {
			end = at
		}
	}
	start = max(backslashesBefore(text, start), from)
	return appendEdit(edits, edit{start, end, x.labels[s.label]})
}
