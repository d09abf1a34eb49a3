package session

import "strings"

// recoveryTurns is how long after an error a success still counts as recovering from it.
const recoveryTurns = 5

// maxFailures bounds the memory for errors that nobody recovered from.
const maxFailures = 64

// failure is a tool call that went wrong.
type failure struct {
	canonical, path, head string
	turn                  int
}

// milestone marks the first time that something happened.
func (f *Fold) milestone(o Origin, kind string) {
	if f.reached[kind] {
		return
	}
	f.reached[kind] = true
	m := Milestone{Kind: kind}
	o.Parent, o.MessageID = "", ""
	m.TimestampMs, _ = f.time(o)
	m.ElapsedMs = max(0, m.TimestampMs-f.session.StartMs)
	m.TurnIndex = f.turns.index
	f.session.Milestones = append(f.session.Milestones, m)
	if at := f.place(o); f.watched {
		f.emit(o, at, &EnrichedEvent{Kind: KindMilestone, Label: kind, Milestone: &m})
	}
}

// noteCall marks what a call reaches by being made.
func (f *Fold) noteCall(o Origin, tool *ToolCall) {
	if tool.Canonical == ToolBash {
		f.milestone(o, FirstBashCommand)
	}
	switch tool.Effective() {
	case ToolSearch:
		f.milestone(o, FirstSearch)
	case ToolTest:
		f.milestone(o, FirstTestRun)
	case ToolRead:
		if f.readsWorkspace(tool) {
			f.milestone(o, FirstFileRead)
		}
	}
}

func (f *Fold) readsWorkspace(tool *ToolCall) bool {
	dir := f.opts.Workspace
	if dir == "" {
		dir = f.session.Cwd
	}
	for _, path := range tool.Paths {
		if inside(path, dir) {
			return true
		}
	}
	return false
}

// noteResult marks what a call reaches only by having succeeded.
func (f *Fold) noteResult(o Origin, call openCall, failed bool) {
	if failed {
		if len(f.failures) >= maxFailures {
			f.failures = f.failures[1:]
		}
		f.failures = append(f.failures, failure{canonical: call.canonical, path: call.path, head: strings.Clone(call.head), turn: call.turn})
		return
	}
	if call.effective == ToolEdit || call.effective == ToolWrite {
		f.milestone(o, FirstFileEdit)
	}
	if !f.reached[FirstErrorRecovery] && f.recovers(call) {
		f.milestone(o, FirstErrorRecovery)
	}
}

// recovers reports whether a success answers an earlier failure: the same tool on the same file, or with the same command.
func (f *Fold) recovers(call openCall) bool {
	for _, failed := range f.failures {
		samePlace := (failed.path != "" && failed.path == call.path) || (failed.head != "" && failed.head == call.head)
		if failed.canonical == call.canonical && samePlace && call.turn-failed.turn <= recoveryTurns {
			return true
		}
	}
	return false
}
