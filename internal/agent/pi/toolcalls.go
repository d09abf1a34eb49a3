package pi

import (
	"strconv"
	"strings"

	"github.com/fit-eval/fit/session"
)

// callState is what has been reported about a tool call.
type callState uint8

const (
	called callState = iota + 1
	returned
)

// callLog remembers which calls were reported.
type callLog struct{ session.Recent[callState] }

// call reports whether a call is new. An answer of the model that names an id whose result has come
// means a new call; an event about its execution does not.
func (l *callLog) call(id string, inAnswer bool) (fresh bool) {
	state := l.Get(id)
	fresh = id == "" || state == 0 || (state == returned && inAnswer)
	if fresh {
		l.Set(id, called)
	}
	return fresh
}

// result reports whether a result is new.
func (l *callLog) result(id string) (fresh bool) {
	fresh = id == "" || l.Get(id) != returned
	if fresh {
		l.Set(id, returned)
	}
	return fresh
}

// exitCode reads the exit code that a failed command's result ends with.
func exitCode(content string, failed bool) *int {
	if !failed {
		return nil
	}
	line := strings.TrimRight(content, "\t\n\f\r ")
	line = line[strings.LastIndexByte(line, '\n')+1:]
	digits, found := strings.CutPrefix(line, "Command exited with code ")
	if !found || len(digits) < 1 || len(digits) > 3 {
		return nil
	}
	code, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil
	}
	return new(int(code))
}

// noAccess is the program's message when it has no model to ask.
var noAccess = []string{
	"no api key", "authentication failed", "no model available", "no models available",
	"no model selected", "no models selected",
}

// classify returns the kind of failure in an error message, which begins with the HTTP status if
// there was one.
func classify(message string) session.ErrorInfo {
	status := session.LeadingStatus(message)
	info := session.ClassifyFailure(status, message)
	if status == 0 && session.Mentions(message, noAccess...) {
		info.Kind = session.ErrorAuth
	}
	if status == 0 && strings.Contains(message, "overloaded") {
		info.Kind = session.ErrorOverloaded
	}
	return info
}
