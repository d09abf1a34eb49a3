package harness

import (
	"fmt"
	"runtime/debug"

	"github.com/fit-eval/fit/internal/display"
)

// brokenAgent is the end of an agent whose code panicked or left its goroutine.
type brokenAgent struct {
	text, stack string
	exited      bool // by runtime.Goexit
}

func (b *brokenAgent) Error() string { return b.text }

// brokenBy is how an agent's code broke that did not return: by a panic with the recovered value,
// or by runtime.Goexit where there is none.
func brokenBy(recovered any) *brokenAgent {
	broken := &brokenAgent{
		text:   "the agent ended its goroutine (runtime.Goexit)",
		stack:  string(debug.Stack()),
		exited: recovered == nil,
	}
	if recovered != nil {
		broken.text = "the agent panicked: " + display.Line(fmt.Sprint(recovered))
	}
	return broken
}

// guard calls an agent and returns how its code broke, if it did. An agent can be any code of the
// caller's program: one that panics must not end the process, and one that calls runtime.Goexit, as
// the Fatal of a test does, must not end the caller's goroutine, so it has one of its own.
func guard(call func()) (broken *brokenAgent) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if !returned {
				broken = brokenBy(recover())
			}
		}()
		call()
		returned = true
	}()
	<-done
	return broken
}
