package evidence

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/fit-eval/fit/session"
)

const (
	// maxOpen bounds the calls whose results are waited for, and maxSeen the files, commits and
	// other names that are remembered.
	maxOpen = 1024
	maxSeen = 4096
	// recentCalls is how many calls are looked back at for repetitions.
	recentCalls = 128
)

// observer follows the events of one lane and keeps what the evidence needs of them, in memory that
// does not grow with the trace. The strings of events are valid during the call only.
type observer struct {
	changed map[string]bool // the files of the diff

	events    int // that the agent's stream had
	calls     map[string]int
	total     int
	open      map[string]*openCall
	openOrder []string
	edits     editLog
	tests     testLog
	failures  failureLog
	audit     traceAudit
	steps     stepLog
	prompts   promptLog
	read      map[string]bool // files that were read or written
	seed      maphash.Seed
	recent    [recentCalls]recentCall
	nextCall  int
}

// openCall is a call that waits for its result.
type openCall struct {
	effective, canonical string
	command              string // of a shell call, cut
	paths                []string
	isEdit               bool // by a tool or by a shell command that writes to a changed file
	git                  bool
	seq                  int
}

type recentCall struct {
	hash   uint64
	turn   int
	isEdit bool
}

func newObserver(task *Task, changed map[string]bool) *observer {
	return &observer{
		changed: changed,
		calls:   map[string]int{},
		open:    map[string]*openCall{},
		edits:   editLog{seen: map[string]bool{}},
		audit:   newTraceAudit(task),
		read:    map[string]bool{},
		seed:    maphash.MakeSeed(),
	}
}

// observe reads one event.
func (o *observer) observe(event *session.EnrichedEvent) {
	switch event.Kind {
	case session.KindToolCall:
		o.events++
		o.call(event)
	case session.KindToolResult:
		o.events++
		o.result(event)
	case session.KindMessage:
		o.message(event)
	case session.KindThinking:
		o.events++
		o.failures.active()
	case session.KindError:
		o.events++
		o.failures.failed(event)
		o.steps.add(event, stepError, "", event.Text)
	case session.KindSystemPrompt:
		o.prompts.add(event.Label, event.Text, event.TurnIndex)
	}
}

func (o *observer) message(event *session.EnrichedEvent) {
	if event.Label == "compaction" {
		o.failures.compactions++
	}
	if event.Role == "assistant" {
		o.events++
		o.failures.active()
		o.failures.turn(event.TurnIndex)
	}
	if event.Label == "reminder" {
		o.failures.reminded()
	}
	o.steps.message(event)
}

func (o *observer) call(event *session.EnrichedEvent) {
	tool := event.Tool
	effective := tool.Effective()
	o.calls[effective]++
	o.total++
	o.failures.active()
	o.failures.turn(event.TurnIndex)
	o.failures.repeated(o.countRepeats(tool, event.TurnIndex), event)
	call := &openCall{effective: effective, canonical: tool.Canonical, seq: event.Seq}
	o.await(tool.CallID, call)
	if tool.Canonical == session.ToolBash {
		call.command = strings.Clone(cut(tool.Command, maxCommand))
	}
	for _, path := range tool.Paths {
		call.paths = append(call.paths, strings.Clone(path))
	}
	commands := o.audit.call(event)
	switch {
	case isEdit(effective):
		call.isEdit = true
		o.edits.attempted++
	case effective == session.ToolBash && len(o.changed) > 0:
		if written := o.writes(commands); len(written) > 0 {
			call.isEdit, call.paths = true, written
		}
	case effective == session.ToolTest:
		o.tests.runs++
	}
	call.git = !o.audit.mined &&
		slices.ContainsFunc(commands, func(c session.SimpleCommand) bool { return c.Name() == "git" })
	o.steps.call(event, effective)
}

// maxCommand is how much of a shell command is kept until its result is there.
const maxCommand = 2 << 10

// await waits for the result of a call. The oldest call is forgotten when there are many.
func (o *observer) await(id string, call *openCall) {
	if id == "" {
		return
	}
	if o.open[id] == nil {
		id = strings.Clone(id)
		o.openOrder = append(o.openOrder, id)
	}
	o.open[id] = call
	if len(o.openOrder) > maxOpen { // those that were answered among them, behind one that was not
		delete(o.open, o.openOrder[0])
		o.openOrder = slices.Delete(o.openOrder, 0, 1)
	}
}

// taken removes a call that has its result.
func (o *observer) taken(id string) *openCall {
	call := o.open[id]
	if call == nil {
		return nil
	}
	delete(o.open, id)
	answered := 0
	for answered < len(o.openOrder) && o.open[o.openOrder[answered]] == nil {
		answered++
	}
	o.openOrder = slices.Delete(o.openOrder, 0, answered)
	return call
}

func (o *observer) result(event *session.EnrichedEvent) {
	r := event.Result
	call := o.taken(r.CallID)
	if call == nil {
		return
	}
	failed := r.IsError || r.ExitCode != nil && *r.ExitCode != 0
	switch {
	case call.effective == session.ToolTest || call.effective == session.ToolBuild:
		o.tests.finished(event, call, failed, o.edits.seq)
	case call.isEdit:
		o.edited(event, call, failed)
	case call.effective == session.ToolRead && !failed:
		o.remember(call.paths)
	}
	if !failed {
		o.failures.progress(event.TurnIndex)
	}
	if call.canonical == session.ToolBash && failed {
		o.failures.missing(r.Content)
	}
	o.audit.result(call, r, failed)
	o.steps.result(event, call.effective, failed, call.isEdit)
}

func (o *observer) edited(event *session.EnrichedEvent, call *openCall, failed bool) {
	if !failed {
		o.beginAgain()
		o.edits.done(event, call.paths, o.changed)
		o.tests.edited()
		o.remember(call.paths)
		return
	}
	if call.effective == session.ToolBash {
		return
	}
	o.edits.failed++
	for _, path := range call.paths {
		if !o.read[path] {
			o.failures.editWithoutRead = true
		}
	}
}

func (o *observer) remember(paths []string) {
	for _, path := range paths {
		if len(o.read) < maxSeen {
			o.read[path] = true
		}
	}
}

// countRepeats counts how often the same call was made within ten turns, this one included.
func (o *observer) countRepeats(tool *session.ToolCall, turn int) int {
	var h maphash.Hash
	h.SetSeed(o.seed)
	h.WriteString(tool.NativeName)
	h.WriteByte(0)
	h.Write(bytes.TrimSpace(tool.Args))
	h.WriteString(tool.Command)
	hash := h.Sum64()
	o.recent[o.nextCall%recentCalls] = recentCall{hash, turn, isEdit(tool.Effective())}
	o.nextCall++
	count := 0
	for i := range min(o.nextCall, recentCalls) {
		if o.recent[i].hash == hash && turn-o.recent[i].turn < loopTurns {
			count++
		}
	}
	return count
}

// beginAgain forgets the calls before an edit, because making them again is no repetition; but the
// edits themselves may go round in circles.
func (o *observer) beginAgain() {
	for i := range o.recent {
		if !o.recent[i].isEdit {
			o.recent[i] = recentCall{turn: -loopTurns}
		}
	}
}

func isEdit(effective string) bool {
	return effective == session.ToolEdit || effective == session.ToolWrite
}

// writes returns the changed files that a shell command writes to, according to its words.
func (o *observer) writes(commands []session.SimpleCommand) []string {
	var written []string
	for i := range commands {
		if !mayWrite(commands[i].Words) {
			continue
		}
		for _, word := range commands[i].Words[1:] {
			if path := changedPath(strings.TrimLeft(word, ">|"), o.changed); path != "" {
				written = append(written, path)
			}
		}
	}
	return written
}

// mayWrite reports whether a call is of the kind that changes files.
func mayWrite(words []string) bool {
	if slices.ContainsFunc(words[1:], func(word string) bool {
		return strings.HasPrefix(word, ">") && !strings.HasPrefix(word, ">&")
	}) {
		return true
	}
	call := session.SimpleCommand{Words: words}
	switch call.Name() {
	case "tee", "mv", "cp", "rm", "patch", "apply_patch", "ed", "truncate", "touch", "chmod", "dd", "perl", "python",
		"python3", "node", "gofmt", "goimports", "prettier", "black":
		return true
	case "sed":
		return slices.ContainsFunc(words[1:],
			func(word string) bool { return strings.HasPrefix(word, "-i") || word == "--in-place" })
	case "git":
		return len(words) > 1 && isOneOf(words[1], "apply", "rm", "mv", "checkout", "restore")
	}
	return false
}

// changedPath finds the changed file that a word names; empty if it names none.
func changedPath(word string, changed map[string]bool) string {
	word = strings.TrimPrefix(word, "./")
	if changed[word] {
		return word
	}
	for path := range changed {
		if strings.HasSuffix(word, "/"+path) {
			return path
		}
	}
	return ""
}

// cut returns the beginning of a text.
func cut(text string, n int) string { return text[:min(n, len(text))] }
