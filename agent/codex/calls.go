package codex

import (
	"strconv"
	"strings"
)

// callLog remembers how far calls were reported, so that each is reported once. It forgets the
// oldest half when there are many.
type callLog struct {
	recent, older map[string]callState

	prefix   []byte      // what the ids of the running process of `exec` begin with
	numbered []callState // of its items, which are item_0, item_1 and so on
}

// callState is what has been reported about a call.
type callState uint8

const (
	callBegan callState = 1 << iota
	callEnded
)

const callLogSize = 4096

func newCallLog() callLog {
	return callLog{recent: map[string]callState{}, older: map[string]callState{}}
}

// restart begins the log of another process, whose ids begin with a prefix of their own: those of
// the one before do not come again.
func (l *callLog) restart(process int) {
	l.prefix = append(strconv.AppendInt(l.prefix[:0], int64(process+1), 10), '/')
	l.numbered = l.numbered[:0]
}

// numberOf is the number of an item of the running process. Ids of any other form, and very large
// numbers, have none.
func (l *callLog) numberOf(id string) (number int, ok bool) {
	digits, ok := strings.CutPrefix(id, view(l.prefix))
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutPrefix(digits, "item_"); !ok || digits == "" || len(digits) > 5 ||
		(digits[0] == '0' && digits != "0") {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		number = number*10 + int(digits[i]-'0')
	}
	return number, true
}

// numberedState is where the state of a numbered item stands.
func (l *callLog) numberedState(number int) *callState {
	for len(l.numbered) <= number {
		l.numbered = append(l.numbered, 0)
	}
	return &l.numbered[number]
}

func (l *callLog) mark(id string, state callState) (fresh bool) {
	if id == "" {
		return true
	}
	if number, ok := l.numberOf(id); ok {
		known := l.numberedState(number)
		fresh = *known&state == 0
		*known |= state
		return fresh
	}
	before, isRecent := l.recent[id]
	if len(l.older) > 0 {
		before |= l.older[id]
	}
	if before&state != 0 {
		return false
	}
	if !isRecent && len(l.recent) >= callLogSize {
		l.older, l.recent = l.recent, l.older
		clear(l.recent)
	}
	// also where it is known: an assignment replaces the key, too, and this one is a view
	l.recent[strings.Clone(id)] = before | state
	return true
}

func (l *callLog) began(id string) bool {
	if number, ok := l.numberOf(id); ok {
		return *l.numberedState(number)&callBegan != 0
	}
	return (l.recent[id]|l.older[id])&callBegan != 0
}

func (l *callLog) begin(id string) bool { return l.mark(id, callBegan) }
func (l *callLog) end(id string) bool   { return l.mark(id, callEnded) }
