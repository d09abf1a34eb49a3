package redact

import "bytes"

// scalar is a string, a number or a literal of a JSON text, with its quotes.
type scalar struct {
	start, end int
	isKey      bool   // it is the name of a member
	key        []byte // of the member it is the value of, as it is written
	inArray    bool   // at any depth
	inDelta    bool   // in an object that is the value of a member "delta"
}

// level is an object or an array that walk is inside.
type level struct {
	object, wantsKey bool
	inArray, inDelta bool
	key              []byte
}

// walk calls visit for every scalar of valid JSON, in order. The package has its own walker because
// of its guarantees: internal/jsontape limits the depth, and text that it refuses would be treated
// as plain text, which may break valid JSON; and it reports the positions of values, but not of
// member names, which can be secrets too.
func walk(text []byte, visit func(scalar)) {
	var shallow [16]level // most texts need no more
	levels := shallow[:1]
	for i := 0; i < len(text); {
		in := &levels[len(levels)-1]
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n', ':':
			i++
		case ',':
			in.wantsKey = in.object
			i++
		case '{', '[':
			levels = append(levels, level{
				object:   c == '{',
				wantsKey: c == '{',
				inArray:  in.inArray || c == '[',
				inDelta:  in.inDelta || c == '{' && string(in.key) == "delta",
			})
			i++
		case '}', ']':
			levels = levels[:len(levels)-1]
			i++
		default:
			end := scalarEnd(text, i)
			found := scalar{
				start:   i,
				end:     end,
				isKey:   in.wantsKey,
				inArray: in.inArray,
				inDelta: in.inDelta,
			}
			if in.wantsKey {
				in.key, in.wantsKey = text[i+1:end-1], false
			} else if in.object {
				found.key = in.key
			}
			visit(found)
			i = end
		}
	}
}

func scalarEnd(text []byte, i int) int {
	if text[i] == '"' {
		return stringEnd(text, i)
	}
	for i < len(text) && bytes.IndexByte([]byte(" \t\r\n,:{}[]\""), text[i]) < 0 {
		i++
	}
	return i
}

// stringEnd returns the end of the JSON string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			break
		}
		i += quote + 1
		if backslashes := i - 1 - backslashesBefore(text, i-1); backslashes%2 == 0 {
			return i
		}
	}
	return len(text)
}
