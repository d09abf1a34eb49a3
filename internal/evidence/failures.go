package evidence

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/session"
)

const (
	// loopTurns is the span in which loopCalls equal calls are a loop, and how many turns without
	// anything that succeeded are one.
	loopTurns = 10
	loopCalls = 5
	// remindersInARow is how many reminders without a call in between count as a loop.
	remindersInARow = 3
)

// traceLine is the event that a failure is attributed to.
type traceLine struct {
	line int64
	text string
}

func (p traceLine) String() string { return fmt.Sprintf("trace:%d %s", p.line, p.text) }

// failureLog holds what went wrong in a trace and may explain why an attempt failed.
type failureLog struct {
	provider        *traceLine // the model provider failed, and no turn has succeeded since
	overflow        *traceLine // the conversation became too long, and no turn has succeeded since
	limit           *traceLine // turns or money ran out
	loop            *traceLine
	compactions     int
	editWithoutRead bool
	unknownCommand  bool
	reminders       int // in a row
	reminderLoop    bool
	progressTurn    int // the last one in which a call succeeded
	lastTurn        int
}

// active notes that the model did something: what failed before has been overcome.
func (l *failureLog) active() {
	l.provider, l.overflow = nil, nil
}

// turn notes the turn of what the model does.
func (l *failureLog) turn(index int) { l.lastTurn = max(l.lastTurn, index) }

// progress notes that a call succeeded.
func (l *failureLog) progress(turn int) {
	l.progressTurn = max(l.progressTurn, turn)
	l.reminders = 0
}

func (l *failureLog) reminded() {
	if l.reminders++; l.reminders >= remindersInARow {
		l.reminderLoop = true
	}
}

func (l *failureLog) failed(event *session.EnrichedEvent) {
	at := &traceLine{event.RawLine, strings.Clone(cut(event.Text, maxExcerpt))}
	switch event.Error.Kind {
	case session.ErrorRateLimit, session.ErrorOverloaded, session.ErrorAuth, session.ErrorAPI:
		l.provider = at
	case session.ErrorContextOverflow:
		l.overflow = at
	case session.ErrorMaxTurns, session.ErrorBudget:
		l.limit = at
	default:
	}
}

// repeated notes how often a call was made within a few turns.
func (l *failureLog) repeated(times int, event *session.EnrichedEvent) {
	if times >= loopCalls && l.loop == nil {
		what := cmp.Or(event.Tool.Command, event.Tool.Canonical)
		l.loop = &traceLine{event.RawLine, fmt.Sprintf("%d equal calls: %s", times, cut(what, maxExcerpt))}
	}
}

// stalled reports whether many turns achieved nothing.
func (l *failureLog) stalled() bool { return l.lastTurn-l.progressTurn >= loopTurns }

// missing looks for a program that is not there in what a failed shell call printed. What an
// agent's own commands print describes its work, never the environment.
func (l *failureLog) missing(output string) {
	output = cut(output, maxCommand)
	if !strings.Contains(output, "not found") {
		return
	}
	for line := range strings.Lines(output) {
		before, _, found := strings.Cut(line, "not found")
		if !found || strings.Contains(line, "No such file") {
			continue
		}
		l.unknownCommand = l.unknownCommand || strings.Contains(line, "command not found") ||
			strings.HasSuffix(strings.TrimSpace(before), ":")
	}
}
