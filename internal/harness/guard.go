package harness

import (
	"fmt"
	"runtime/debug"

	"github.com/fit-eval/fit/internal/display"
)

// brokenAgent is the error for an agent whose code panicked or left its goroutine.
type brokenAgent struct {
	text, stack string
	exited      bool // by runtime.Goexit
}

func (b *brokenAgent) Error() string { return b.text }

// brokenBy returns the error for agent code that did not return: a panic with the recovered value,
// or runtime.Goexit if there is none.
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
// caller's program. If it panics, it must not end the process; if it calls runtime.Goexit, as Fatal
// in a test does, it must not end the caller's goroutine. So it runs in its own.
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
