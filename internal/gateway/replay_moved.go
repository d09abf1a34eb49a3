package gateway

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
)

// moved replaces the participant's recorded directories in a reply with its current ones: what the
// model asks for must happen here.
func moved(body []byte, stream bool, from, to map[string]string) []byte {
	var changes []calls.Directory // the path now, under the path then
	for _, was := range calls.Directories(from) {
		if now := strings.TrimSuffix(to[was.Name], "/"); now != "" && now != was.Path {
			changes = append(changes, calls.Directory{Name: was.Path, Path: now})
		}
	}
	if len(changes) == 0 {
		return body
	}
	change := func(text []byte) []byte {
		for i, c := range changes { // in two steps, so that what was put in is not replaced again
			text = calls.ReplacePath(text, c.Name, mark(i))
		}
		for i, c := range changes {
			text = bytes.ReplaceAll(text, []byte(mark(i)), []byte(c.Path))
		}
		return text
	}
	if !stream {
		return change(body)
	}
	return (&streamEditor{change: change, pieces: map[string][]textPiece{}}).edit(body)
}

// mark represents a directory while others are replaced. It is not valid UTF-8, so no text has it.
func mark(i int) string { return "\xff" + strconv.Itoa(i) + "\xff" }

// streamEditor changes texts of a stream of events. A match may be cut over several events, so the
// pieces of a text are joined first; if it changes, the first piece becomes the whole text and the
// others empty.
type streamEditor struct {
	change func([]byte) []byte
	lines  []streamLine
	pieces map[string][]textPiece
	order  []string
}

type streamLine struct {
	text  []byte
	edits []textEdit // in order
}

// textPiece is a string in a line that is a part of a longer text.
type textPiece struct {
	line       int
	start, end int
	text       string
}

type textEdit struct {
	start, end int
	with       string
}

func (e *streamEditor) edit(body []byte) []byte {
	for line := range bytes.Lines(body) {
		e.lines = append(e.lines, streamLine{text: line})
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		if event, ok := jsontape.Parse(bytes.TrimSpace(data)); ok {
			offset := len(line) - len(bytes.TrimLeft(data, " \t"))
			e.visit(event, identity(event), false, offset)
		}
	}
	e.join()
	var out []byte
	for _, line := range e.lines {
		at := 0
		for _, edit := range line.edits {
			out = append(append(out, line.text[at:edit.start]...), edit.with...)
			at = edit.end
		}
		out = append(out, line.text[at:]...)
	}
	return out
}

// identity distinguishes the texts of one stream.
func identity(event jsontape.Value) string {
	id := ""
	for _, key := range []string{"type", "index", "item_id", "output_index", "content_index", "summary_index"} {
		id += string(event.Get(key).Raw()) + "|"
	}
	return id
}

// visit finds the strings of an event. Those in a member called delta are pieces.
func (e *streamEditor) visit(v jsontape.Value, path string, piece bool, offset int) {
	switch v.Kind() {
	case jsontape.String:
		start, end := v.Span()
		found := textPiece{
			line:  len(e.lines) - 1,
			start: start + offset,
			end:   end + offset,
			text:  strings.Clone(v.Text()),
		}
		if !piece {
			path += "\x00" + strconv.Itoa(found.line) + ":" + strconv.Itoa(start)
		}
		if e.pieces[path] == nil {
			e.order = append(e.order, path)
		}
		e.pieces[path] = append(e.pieces[path], found)
	case jsontape.Object:
		for name, member := range v.Members() {
			e.visit(member, path+"."+strings.Clone(name), piece || name == "delta", offset)
		}
	case jsontape.Array:
		i := 0
		for element := range v.Elements() {
			at := strconv.Itoa(i)
			if index := element.Get("index"); index.Exists() { // of the calls in a chat completion
				at = string(index.Raw())
			}
			e.visit(element, path+"["+at+"]", piece, offset)
			i++
		}
	case jsontape.Missing, jsontape.Null, jsontape.True, jsontape.False, jsontape.Number:
	}
}

// join changes the texts.
func (e *streamEditor) join() {
	for _, key := range e.order {
		pieces := e.pieces[key]
		var whole []byte
		for _, p := range pieces {
			whole = append(whole, p.text...)
		}
		changed := e.change(whole)
		if bytes.Equal(changed, whole) {
			continue
		}
		with := string(changed)
		for _, p := range pieces {
			line := &e.lines[p.line]
			line.edits = append(line.edits, textEdit{p.start, p.end, jsonenc.String(with)})
			with = ""
		}
	}
	for i := range e.lines {
		slices.SortFunc(e.lines[i].edits, func(a, b textEdit) int { return cmp.Compare(a.start, b.start) })
	}
}
