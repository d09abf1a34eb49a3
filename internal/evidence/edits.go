package evidence

import (
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/session"
)

// editLog keeps track of edits.
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

// testLog keeps track of test and build runs.
type testLog struct {
	runs int // of tests
	// after the first edit
	passed  bool // one passed
	unknown bool // one ended, and it is not known how
	// the last run that ended after the last edit: 0 if none, else one of the constants below
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

// edited notes an edit: what was tested before it does not count any more.
func (l *testLog) edited() {
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
	output = output[max(0, len(output)-maxCommand):]
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
