package session

import (
	"slices"
)

// milestoneKind is the number of a milestone.
type milestoneKind uint8

const (
	firstFileRead milestoneKind = iota
	firstFileEdit
	firstTestRun
	firstBashCommand
	firstSearch
	firstErrorRecovery
	taskCompletion
	verificationPass
	verificationFail
	milestoneKinds
)

var milestoneNames = [milestoneKinds]string{
	FirstFileRead, FirstFileEdit, FirstTestRun, FirstBashCommand, FirstSearch, FirstErrorRecovery, TaskCompletion,
	VerificationPass, VerificationFail,
}

// recoveryTurns is the number of turns after an error in which a success counts as a recovery.
const recoveryTurns = 5

// maxFailures limits the memory for errors without a recovery.
const maxFailures = 64

// failure is a tool call that went wrong.
type failure struct {
	canonical, path, head string
	turn                  int
}

// milestone marks the first time that something happened.
func (f *Fold) milestone(o Origin, kind milestoneKind) {
	if !f.reached[kind] {
		f.reach(o, kind)
	}
}

func (f *Fold) reach(o Origin, kind milestoneKind) {
	f.reached[kind] = true
	m := Milestone{Kind: milestoneNames[kind]}
	o.Parent, o.MessageID = "", ""
	m.TimestampMs, _ = f.time(o)
	m.ElapsedMs = max(0, m.TimestampMs-f.session.StartMs)
	m.TurnIndex = f.turns.index
	f.session.Milestones = append(f.session.Milestones, m)
	if at := f.position(o); f.watched {
		f.emit(o, at, EnrichedEvent{Kind: KindMilestone, Label: m.Kind, Milestone: &m})
	}
}

// detailed reports whether the details of a call matter: the call is seen or kept, or it may reach
// a milestone.
func (f *Fold) detailed(tool *ToolCall) bool {
	if f.watched || !f.reached[firstFileRead] || !f.reached[firstErrorRecovery] {
		return true
	}
	return tool.Canonical == ToolBash && (!f.reached[firstSearch] || !f.reached[firstTestRun])
}

// noteCall marks milestones that a call reaches when it is made.
func (f *Fold) noteCall(o Origin, tool *ToolCall) {
	if tool.Canonical == ToolBash {
		f.milestone(o, firstBashCommand)
	}
	switch tool.Effective() {
	case ToolSearch:
		f.milestone(o, firstSearch)
	case ToolTest:
		f.milestone(o, firstTestRun)
	case ToolRead:
		if f.readsWorkspace(tool) {
			f.milestone(o, firstFileRead)
		}
	}
}

func (f *Fold) readsWorkspace(tool *ToolCall) bool {
	return slices.ContainsFunc(tool.Paths, func(path string) bool { return inside(path, f.session.Cwd) })
}

// noteResult marks milestones that a call reaches only when it succeeds.
func (f *Fold) noteResult(o Origin, call *openCall, failed bool) {
	if failed {
		f.noteFailure(call)
		return
	}
	if call.effective == ToolEdit || call.effective == ToolWrite {
		f.milestone(o, firstFileEdit)
	}
	if !f.reached[firstErrorRecovery] && f.recovers(call) {
		f.milestone(o, firstErrorRecovery)
	}
}

// noteFailure remembers a failure, as long as a success may be the first to answer one.
func (f *Fold) noteFailure(call *openCall) {
	if f.reached[firstErrorRecovery] {
		f.failures = nil
		return
	}
	if len(f.failures) >= maxFailures {
		f.failures = f.failures[:copy(f.failures, f.failures[1:])]
	}
	f.failures = append(f.failures, failure{
		canonical: call.canonical,
		path:      string(call.path),
		head:      string(call.head),
		turn:      call.turn,
	})
}

// recovers reports whether a success answers an earlier failure: the same tool on the same file, or
// with the same command.
func (f *Fold) recovers(call *openCall) bool {
	return slices.ContainsFunc(f.failures, func(failed failure) bool {
		samePlace := (failed.path != "" && failed.path == string(call.path)) ||
			(failed.head != "" && failed.head == string(call.head))
		return failed.canonical == call.canonical && samePlace && call.turn-failed.turn <= recoveryTurns
	})
}
