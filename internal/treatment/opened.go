package treatment

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/ledger"
)

// opener finds out what was loaded in a conversation.
type opener struct {
	*reader
	watched []*watched
	lines   map[uint64][]*watched // who has a line that only it has
	calls   map[string][]*watched // by the id of the tool call
	failed  map[string]bool       // ids of tool calls that failed
	missing bool                  // a request cannot be read
}

// watched is a piece that is loaded on demand.
type watched struct {
	piece  *Piece
	lines  int  // that only this version has
	shared bool // others have all of its lines
	found  map[uint64]bool
	called bool
}

// newOpener prepares the search. Lines that the first request or a known text holds, or another
// piece, prove nothing.
func newOpener(r *reader, pieces []Piece, clean []string, first *request, known []string) *opener {
	o := &opener{
		reader: r,
		lines:  map[uint64][]*watched{},
		calls:  map[string][]*watched{},
		failed: map[string]bool{},
	}
	for _, t := range first.texts {
		if given(t.part) {
			known = append(known, t.text)
		}
	}
	common := map[uint64]bool{}
	for _, text := range known {
		for line := range foldedLines(text) {
			common[maphash.Bytes(r.seed, line)] = true
		}
	}
	owners := map[uint64]string{}
	var all [][]uint64
	for i := range pieces {
		p := &pieces[i]
		if !onDemand(p) {
			continue
		}
		o.watched = append(o.watched, &watched{piece: p, found: map[uint64]bool{}})
		sums := o.sums(clean[i])
		all = append(all, sums)
		owner := p.Kind + " " + p.Name
		for _, sum := range sums {
			common[sum] = common[sum] || owners[sum] != "" && owners[sum] != owner
			owners[sum] = owner
		}
	}
	for i, w := range o.watched {
		sums := slices.DeleteFunc(slices.Clone(all[i]), func(sum uint64) bool { return common[sum] })
		w.shared = len(sums) == 0 && len(all[i]) > 0
		o.watch(w, sums)
	}
	return o
}

// watch looks for the lines that only this version of a piece has. If the others have them all, any
// line will do: of all versions only this one is in the agent's directory.
func (o *opener) watch(w *watched, sums []uint64) {
	other := map[uint64]bool{}
	for _, text := range w.piece.Others {
		for _, sum := range o.sums(text) {
			other[sum] = true
		}
	}
	own := slices.DeleteFunc(slices.Clone(sums), func(sum uint64) bool { return other[sum] })
	if len(own) == 0 {
		own = sums
	}
	w.lines = len(own)
	for _, sum := range own {
		o.lines[sum] = append(o.lines[sum], w)
	}
}

// onDemand reports whether a piece is loaded when it is used.
func onDemand(p *Piece) bool {
	if p.Given == ledger.GivenUnknown && p.Body == "" {
		return false
	}
	switch p.Kind {
	case ledger.PieceSkill, ledger.PieceAgent, ledger.PieceCommand, ledger.PieceServer, ledger.PieceFile:
		return true
	}
	return false
}

// leastLine is the length of a line that does not occur in other texts by accident.
const leastLine = 8

// sums returns the sums of the distinct lines of a text, without trivial ones.
func (o *opener) sums(text string) []uint64 {
	var sums []uint64
	seen := map[uint64]bool{}
	for line := range foldedLines(text) {
		sum := maphash.Bytes(o.seed, line)
		if len(line) >= leastLine && strings.ContainsFunc(string(line), isWordRune) && !seen[sum] {
			seen[sum] = true
			sums = append(sums, sum)
		}
	}
	return sums
}

// run reads all requests. A part that several requests have in common is read once.
func (o *opener) run() {
	seen := map[uint32]bool{}
	for _, call := range o.own {
		if call.Request == nil || len(call.Request.Chunks) == 0 {
			o.missing = o.missing || call.Messages > 0
			continue
		}
		for _, number := range call.Request.Chunks {
			if seen[number] {
				continue
			}
			seen[number] = true
			chunk, err := o.record.Chunk(number)
			if err != nil {
				o.missing = true
				continue
			}
			o.chunk(chunk)
		}
	}
}

// chunk reads a part of a request. Text between the messages is not JSON by itself.
func (o *opener) chunk(chunk []byte) {
	start := 0
	for start < len(chunk) && strings.IndexByte(", \t\r\n", chunk[start]) >= 0 {
		start++
	}
	if value, ok := o.parser.Parse(chunk[start:]); ok && isMessage(value) {
		o.read(value, false)
	}
}

// isMessage reports whether a part of a request is one of the conversation: not a tool, and not a
// part of the system prompt.
func isMessage(value jsontape.Value) bool {
	if value.Get("role").Exists() || value.Get("parts").Exists() {
		return true
	}
	part := partOf("", value.TextOf("type"))
	return part == inResults || part == inReplies
}

// read looks for tool calls in a value, and for lines in everything that the model did not say
// itself, whichever protocol it has.
func (o *opener) read(value jsontape.Value, said bool) {
	switch value.Kind() {
	case jsontape.Array:
		for element := range value.Elements() {
			o.read(element, said)
		}
	case jsontape.String:
		if !said {
			o.text(value)
		}
	case jsontape.Object:
		if o.call(value) {
			return
		}
		if id := value.TextOf("tool_use_id"); id != "" && value.Get("is_error").Bool() {
			o.failed[strings.Clone(id)] = true
		}
		said = said || partOf(value.TextOf("role"), value.TextOf("type")) == inReplies
		for name, member := range value.Members() {
			if !isLabel(name) {
				o.read(member, said)
			}
		}
	}
}

// text looks for lines that only one piece has. Some tools answer with JSON in a text.
func (o *opener) text(value jsontape.Value) {
	text := value.Text()
	if begin := strings.TrimLeft(text, " \n"); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
		if inner, ok := jsontape.Parse([]byte(begin)); ok && inner.Kind() != jsontape.String {
			o.read(inner, false)
			return
		}
	}
	for line := range foldedLines(text) {
		if len(line) < leastLine {
			continue
		}
		sum := maphash.Bytes(o.seed, line)
		for _, w := range o.lines[sum] {
			w.found[sum] = true
		}
	}
}

// call reads a tool call, which has a name and arguments; it reports false for anything else.
func (o *opener) call(value jsontape.Value) bool {
	name := value.TextOf("name")
	if name == "" {
		return false
	}
	for _, key := range []string{"input", "arguments", "args"} {
		if arguments := value.Get(key); arguments.Exists() {
			tool, id := strings.Clone(name), strings.Clone(value.TextOf("id"))
			for _, w := range o.watched {
				if w.opensWith(tool, arguments) {
					w.called = w.called || id == ""
					o.calls[id] = append(o.calls[id], w)
				}
			}
			return true
		}
	}
	return false
}

// opensWith reports whether a tool call opens the piece.
func (w *watched) opensWith(tool string, arguments jsontape.Value) bool {
	lower := strings.ToLower(tool)
	switch w.piece.Kind {
	case ledger.PieceSkill, ledger.PieceCommand: // Skill, skill, skills, activate_skill, SlashCommand
		return (strings.Contains(lower, "skill") || lower == "slashcommand") && w.isNamed(arguments)
	case ledger.PieceAgent: // Agent, Task, task, spawn_agent
		return (strings.Contains(lower, "agent") || strings.Contains(lower, "task")) && w.isNamed(arguments)
	case ledger.PieceServer:
		return isToolOf(tool, w.piece.Name) ||
			arguments.Kind() == jsontape.String && strings.Contains(arguments.Text(), deferredName(w.piece.Name))
	}
	return false
}

// isNamed reports whether one of the arguments is the piece's name, as in "csv-tools", "/ship" and
// "project:csv-tools". Arguments may be JSON in a text.
func (w *watched) isNamed(arguments jsontape.Value) bool {
	switch arguments.Kind() {
	case jsontape.String:
		text := strings.TrimPrefix(strings.TrimSpace(arguments.Text()), "/")
		if inner, ok := jsontape.Parse([]byte(text)); ok && inner.Kind() == jsontape.Object {
			return w.isNamed(inner)
		}
		first, _, _ := strings.Cut(text, " ")
		return text == w.piece.Name || first == w.piece.Name || strings.HasSuffix(text, ":"+w.piece.Name)
	case jsontape.Object:
		for _, member := range arguments.Members() {
			if member.Kind() == jsontape.String && w.isNamed(member) {
				return true
			}
		}
	}
	return false
}

// conclude fills in what was opened.
func (o *opener) conclude() {
	for id, called := range o.calls {
		for _, w := range called {
			w.called = w.called || !o.failed[id]
		}
	}
	for _, w := range o.watched {
		opened := w.called || w.lines > 0 && 2*len(w.found) >= w.lines
		searchable := w.lines > 0 || w.piece.Kind != ledger.PieceFile && !w.shared
		if opened || searchable && !o.missing {
			w.piece.Opened = new(opened)
		}
	}
}
