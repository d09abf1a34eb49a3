package jsondoc

import (
	"bufio"
	"encoding/json"
	"os"
)

// maxName bounds the names that are looked at, in bytes.
const maxName = 200

// Has reports whether a file begins with a JSON object whose members satisfy a condition. It sees
// their names with the first byte of each value, in whatever order they stand, and reads no further
// than it must. Of what is no regular file it reads nothing.
func Has(path string, satisfied func(members map[string]byte) bool) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 256<<10)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it was there
	}
	n := names{members: map[string]byte{}}
	for {
		b, err := in.ReadByte()
		if err != nil || !n.see(b) {
			return false
		}
		if n.added && satisfied(n.members) {
			return true
		}
	}
}

// names collects the names of the members of an object, byte by byte.
type names struct {
	members  map[string]byte
	added    bool // the last byte has added a member
	depth    int
	quoted   bool
	escaping bool
	text     []byte // the last string of the object itself, in quotes
	name     string // that of the member whose value follows
	valued   bool   // its value begins with the next byte that is not blank
}

// see looks at the next byte. It returns false after the object, and where there is none.
func (n *names) see(b byte) bool {
	n.added = false
	if n.quoted {
		if n.depth == 1 && len(n.text) < maxName {
			n.text = append(n.text, b)
		}
		n.quoted, n.escaping = b != '"' || n.escaping, b == '\\' && !n.escaping
		return true
	}
	switch b {
	case ' ', '\t', '\n', '\r':
		return true
	}
	if n.depth == 0 && b != '{' {
		return false
	}
	if n.valued {
		n.members[n.name], n.added, n.valued = b, true, false
	}
	switch b {
	case '"':
		n.quoted, n.text = true, append(n.text[:0], b)
	case '{', '[':
		n.depth++
	case '}', ']':
		n.depth--
	case ':':
		n.valued = n.depth == 1 && json.Unmarshal(n.text, &n.name) == nil
	}
	return n.depth > 0
}
