package session

import (
	"strconv"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestOpenCallsAreThoseThatWereAddedAndNotTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var calls openCalls
		model := map[string]int{}
		view := make([]byte, 0, 8) // ids are views of memory that changes
		id := func() (string, string) {
			view = strconv.AppendInt(append(view[:0], 'c'), int64(rapid.IntRange(0, 40).Draw(t, "id")), 10)
			return unsafe.String(unsafe.SliceData(view), len(view)), string(view)
		}
		for turn := range rapid.IntRange(0, 120).Draw(t, "steps") {
			seen, own := id()
			if rapid.Bool().Draw(t, "add") {
				calls.add(seen).turn = turn
				model[own] = turn
			} else {
				want, known := model[own]
				delete(model, own)
				switch call := calls.take(seen); {
				case (call != nil) != known:
					t.Fatalf("%s: found %v, want %v", own, call != nil, known)
				case known && (call.turn != want || string(call.id) != own):
					t.Fatalf("%s: %s of turn %d, want turn %d", own, call.id, call.turn, want)
				}
			}
			if calls.len() != len(model) {
				t.Fatalf("%d calls are open, want %d", calls.len(), len(model))
			}
		}
	})
}

func TestCallsThatAreNeverAnsweredAreForgottenInTheEnd(t *testing.T) {
	var calls openCalls
	for i := range 3 * maxOpenCalls {
		calls.add(strconv.Itoa(i))
	}
	if calls.len() > maxOpenCalls+recentCalls || len(calls.order) > maxOpenCalls {
		t.Errorf("%d calls are open, %d in order", calls.len(), len(calls.order))
	}
	if calls.take("0") != nil || calls.take(strconv.Itoa(3*maxOpenCalls-1)) == nil {
		t.Error("the oldest is known, or the youngest is not")
	}
}
