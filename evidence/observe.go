package evidence

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
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
	task    *Task
	changed map[string]bool // the files of the diff

	events    int // that the agent's stream had
	calls     map[string]int
	total     int
	open      map[string]*openCall
	openOrder []string
	free      *openCall // the last one that was answered: its memory serves the next
	edits     editLog
	tests     testLog
	trouble   troubleLog
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
	line                 int64
}

type recentCall struct {
	hash uint64
	turn int
}

func newObserver(task *Task, changed map[string]bool) *observer {
	return &observer{
		task:    task,
		changed: changed,
		calls:   map[string]int{},
		open:    map[string]*openCall{},
		edits:   editLog{seen: map[string]bool{}},
		audit:   newTraceAudit(task),
		read:    map[string]bool{},
		trouble: troubleLog{required: task.RequiredTools},
		seed:    maphash.MakeSeed(),
	}
}

// see takes in one event.
func (o *observer) see(event *session.EnrichedEvent) {
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
		o.trouble.active()
	case session.KindError:
		o.events++
		o.trouble.failed(event)
		o.steps.add(event, stepError, "", event.Text)
	case session.KindSystemPrompt:
		o.prompts.add(event.Label, event.Text, event.TurnIndex)
	}
}

func (o *observer) message(event *session.EnrichedEvent) {
	if event.Label == "compaction" {
		o.trouble.compactions++
	}
	if event.Role == "assistant" {
		o.events++
		o.trouble.active()
		o.trouble.turn(event.TurnIndex)
	}
	if event.Label == "reminder" {
		o.trouble.reminded()
	}
	o.steps.message(event)
}

func (o *observer) call(event *session.EnrichedEvent) {
	tool := event.Tool
	effective := tool.Effective()
	o.calls[effective]++
	o.total++
	o.trouble.active()
	o.trouble.turn(event.TurnIndex)
	o.trouble.repeated(o.countRepeats(tool, event.TurnIndex), event)
	call := o.await(tool.CallID)
	call.effective, call.canonical = effective, tool.Canonical
	call.seq, call.line = event.Seq, event.RawLine
	if tool.Canonical == session.ToolBash {
		call.command = strings.Clone(cut(tool.Command, maxCommand))
	}
	for _, path := range tool.Paths {
		call.paths = append(call.paths, strings.Clone(path))
	}
	commands := o.audit.call(event)
	switch {
	case effective == session.ToolEdit || effective == session.ToolWrite:
		call.isEdit = true
		o.edits.attempted++
	case effective == session.ToolBash && len(o.changed) > 0:
		if written := o.writes(commands); len(written) > 0 {
			call.isEdit, call.paths = true, written
		}
	case effective == session.ToolTest:
		o.tests.ran(event)
	}
	call.git = containsGit(commands) && !o.audit.mined
	o.steps.call(event, effective)
}

// maxCommand is how much of a shell command is kept until its result is there.
const maxCommand = 2 << 10

// await returns the place of a new call. The oldest one is forgotten when there are many.
func (o *observer) await(id string) *openCall {
	call := o.free
	if o.free = nil; call == nil {
		call = &openCall{}
	}
	*call = openCall{paths: call.paths[:0]}
	if id == "" {
		return call
	}
	if o.open[id] == nil {
		id = strings.Clone(id)
		o.openOrder = append(o.openOrder, id)
	}
	o.open[id] = call
	if len(o.openOrder) > maxOpen { // those that were answered among them, behind one that was not
		delete(o.open, o.openOrder[0])
		o.openOrder = o.openOrder[:copy(o.openOrder, o.openOrder[1:])]
	}
	return call
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
	o.openOrder = o.openOrder[:copy(o.openOrder, o.openOrder[answered:])]
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
		o.trouble.progress(event.TurnIndex)
	}
	if call.canonical == session.ToolBash && failed {
		o.trouble.missing(r.Content, call.command)
	}
	o.audit.result(call, r)
	o.steps.result(event, call.effective, failed, call.isEdit)
	o.free = call
}

func (o *observer) edited(event *session.EnrichedEvent, call *openCall, failed bool) {
	byTool := call.effective != session.ToolBash
	if !failed {
		o.edits.done(event, call.paths, o.changed)
		o.tests.edited(event.Seq)
		o.remember(call.paths)
		return
	}
	if !byTool {
		return
	}
	o.edits.failed++
	for _, path := range call.paths {
		if !o.read[path] {
			o.trouble.editWithoutRead = true
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
	o.recent[o.nextCall%recentCalls] = recentCall{hash, turn}
	o.nextCall++
	count := 0
	for i := range min(o.nextCall, recentCalls) {
		if o.recent[i].hash == hash && turn-o.recent[i].turn < loopTurns {
			count++
		}
	}
	return count
}

// writes returns the changed files that a shell command writes to, as far as its words show it.
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
	for i, word := range words {
		if i > 0 && strings.HasPrefix(word, ">") && !strings.HasPrefix(word, ">&") {
			return true
		}
	}
	call := session.SimpleCommand{Words: words}
	switch call.Name() {
	case "tee", "mv", "cp", "rm", "patch", "apply_patch", "ed", "truncate", "touch", "chmod", "dd", "perl", "python",
		"python3", "node", "gofmt", "goimports", "prettier", "black":
		return true
	case "sed":
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "-i") || word == "--in-place" {
				return true
			}
		}
	case "git":
		return len(words) > 1 && (words[1] == "apply" || words[1] == "rm" || words[1] == "mv" ||
			words[1] == "checkout" ||
			words[1] == "restore")
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

// editLog is what is known about edits.
type editLog struct {
	attempted, failed int
	seq               int // of the last successful one; 0: none
	firstMs           *int64
	seen              map[string]bool // changed files that were edited, by their path in the diff
}

func (l *editLog) done(event *session.EnrichedEvent, paths []string, changed map[string]bool) {
	l.seq = event.Seq
	if l.firstMs == nil {
		ms := event.ElapsedMs
		l.firstMs = &ms
	}
	for _, path := range paths {
		if found := changedPath(path, changed); found != "" {
			l.seen[found] = true
		}
	}
}

// testLog is what is known about test and build runs.
type testLog struct {
	runs int // of tests
	// after the first edit
	passed  bool // one passed
	unknown bool // one ended, and it is not known how
	// the last run that ended after the last edit: 0 none, else one of the constants below
	last         runEnd
	lastPostEdit runEnd // of the last run after any edit
	firstEdit    bool
	greenMs      *int64
}

type runEnd int

const (
	endedUnknown runEnd = iota + 1
	endedPassed
	endedFailed
)

func (l *testLog) ran(*session.EnrichedEvent) { l.runs++ }

// edited notes an edit: what was tested before it does not count any more.
func (l *testLog) edited(int) {
	l.firstEdit = true
	l.last = 0
}

// finished notes how a run ended. A run that was started before the last edit says nothing about
// it.
func (l *testLog) finished(event *session.EnrichedEvent, call *openCall, failed bool, lastEdit int) {
	if !l.firstEdit || call.seq < lastEdit {
		return
	}
	end := endedPassed
	switch {
	case failed:
		end = endedFailed
	case masked(call.command) || piped(call.command):
		end = endOf(event.Result.Content)
	}
	l.last, l.lastPostEdit = end, end
	switch end {
	case endedPassed:
		l.passed = true
		if l.greenMs == nil && call.effective == session.ToolTest {
			ms := event.ElapsedMs
			l.greenMs = &ms
		}
	case endedUnknown:
		l.unknown = true
	case endedFailed:
	}
}

// endOf reads how a test run ended from what it printed, where its exit status is not its own.
func endOf(output string) runEnd {
	if len(output) > maxCommand {
		output = output[len(output)-maxCommand:]
	}
	switch {
	case failedRun.MatchString(output):
		return endedFailed
	case passedRun.MatchString(output):
		return endedPassed
	}
	return endedUnknown
}

var (
	failedRun = lazyregexp.New(`(?m)^(?:---\s)?FAIL\b|\b[1-9]\d* (?:failed|failing|errors?)\b|\bFAILED\b|^not ok\b|^# fail [1-9]|\bpanic: `)
	passedRun = lazyregexp.New(`(?m)^ok\s|^PASS\b|\b[1-9]\d* (?:passed|passing)\b|^# pass [1-9]|^OK\b|test result: ok`)
)

// cut returns the beginning of a text.
func cut(text string, n int) string {
	if len(text) > n {
		return text[:n]
	}
	return text
}
