package pi

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/session"
)

// callState is how far a tool call has been told.
type callState int

const (
	called callState = iota + 1
	returned
)

// callLog remembers which calls were told of. It forgets the oldest half when there are many.
type callLog struct{ recent, older map[string]callState }

const callLogSize = 4096

func newCallLog() callLog {
	return callLog{recent: map[string]callState{}, older: map[string]callState{}}
}

func (l *callLog) state(id string) callState {
	if state := l.recent[id]; state != 0 {
		return state
	}
	return l.older[id]
}

func (l *callLog) set(id string, state callState) {
	if len(l.recent) >= callLogSize {
		l.older, l.recent = l.recent, map[string]callState{}
	}
	l.recent[strings.Clone(id)] = state
}

// call reports whether a call is new. An answer of the model that names an id whose result has come means a new call; an event about its execution does not.
func (l *callLog) call(id string, inAnswer bool) (fresh bool) {
	state := l.state(id)
	if id != "" && (state == called || (state == returned && !inAnswer)) {
		return false
	}
	l.set(id, called)
	return true
}

// result reports whether a result is new.
func (l *callLog) result(id string) (fresh bool) {
	if id != "" && l.state(id) == returned {
		return false
	}
	l.set(id, returned)
	return true
}

var exitLine = regexp.MustCompile(`(?:^|\n)Command exited with code (\d{1,3})\s*$`)

// exitCode reads the exit code that a failed command's result ends with.
func exitCode(content string, failed bool) *int {
	if !failed || !strings.Contains(content[max(0, len(content)-64):], "Command exited") {
		return nil
	}
	match := exitLine.FindStringSubmatch(content)
	if match == nil {
		return nil
	}
	code, err := strconv.Atoi(match[1])
	if err != nil {
		return nil
	}
	return &code
}

var (
	leadingStatus = regexp.MustCompile(`^([45]\d\d)\b`)
	missingKey    = regexp.MustCompile(`(?i)no api key|authentication failed|no models? (?:available|selected)`)
)

// classify tells what sort of failure an error message is about. It begins with the HTTP status, where there was one.
func classify(message string) session.ErrorInfo {
	status := 0
	if match := leadingStatus.FindStringSubmatch(message); match != nil {
		status, _ = strconv.Atoi(match[1])
	}
	info := session.ClassifyFailure(status, message)
	if status == 0 && missingKey.MatchString(message) {
		info.Kind = session.ErrorAuth
	}
	if status == 0 && strings.Contains(message, "overloaded") {
		info.Kind = session.ErrorOverloaded
	}
	return info
}
