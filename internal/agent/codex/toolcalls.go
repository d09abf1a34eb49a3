package codex

import (
	"strconv"
	"strings"

	"github.com/fit-eval/fit/session"
)

// callLog remembers what was reported about calls, so that each is reported once.
type callLog struct {
	prefix   []byte      // what the ids of the running process of `exec` begin with
	numbered []callState // of its items, which are item_0, item_1 and so on
	others   session.Recent[callState]
}

// callState is what has been reported about a call.
type callState uint8

const (
	callBegan callState = 1 << iota
	callEnded
)

// restart begins the log of another process, whose ids have their own prefix: the ids of the one
// before do not come again.
func (l *callLog) restart(process int) {
	l.prefix = append(strconv.AppendInt(l.prefix[:0], int64(process+1), 10), '/')
	l.numbered = l.numbered[:0]
}

// maxNumbered bounds the memory for the items of one process.
const maxNumbered = 100_000

// state returns the state of a numbered item of the running process, or nil for any other id.
func (l *callLog) state(id string) *callState {
	digits, ok := strings.CutPrefix(id, view(l.prefix))
	if !ok {
		return nil
	}
	if digits, ok = strings.CutPrefix(digits, "item_"); !ok || (digits[:min(1, len(digits))] == "0" && digits != "0") {
		return nil
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || number >= maxNumbered {
		return nil
	}
	for uint64(len(l.numbered)) <= number {
		l.numbered = append(l.numbered, 0)
	}
	return &l.numbered[number]
}

func (l *callLog) mark(id string, state callState) (fresh bool) {
	if id == "" {
		return true
	}
	if known := l.state(id); known != nil {
		fresh = *known&state == 0
		*known |= state
		return fresh
	}
	before := l.others.Get(id)
	if fresh = before&state == 0; fresh {
		l.others.Set(id, before|state)
	}
	return fresh
}

func (l *callLog) began(id string) bool {
	if known := l.state(id); known != nil {
		return *known&callBegan != 0
	}
	return l.others.Get(id)&callBegan != 0
}

func (l *callLog) begin(id string) bool { return l.mark(id, callBegan) }
func (l *callLog) end(id string) bool   { return l.mark(id, callEnded) }
