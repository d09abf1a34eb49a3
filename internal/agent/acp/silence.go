package acp

import (
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/jsontape"
)

// silence limits how long an agent may be silent while a prompt runs. Agents that retry a failing
// model forever do it silently, and none gives up on a silent stream. While a tool runs the agent
// may be silent for as long as the tool takes.
type silence struct {
	bound time.Duration

	mu    sync.Mutex
	timer *time.Timer     // nil while no prompt runs
	calls map[string]bool // whether they run; an ended call does not begin again
	busy  int             // calls that run
}

func newSilence(bound time.Duration) *silence {
	return &silence{bound: bound, calls: map[string]bool{}}
}

// start starts the timer; tooLong is called at most once.
func (s *silence) start(tooLong func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.timer = time.AfterFunc(s.bound, tooLong)
}

func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// maxFollowed bounds the memory for calls.
const maxFollowed = 4096

func (s *silence) forget() {
	clear(s.calls)
	s.busy = 0
}

// note notes a message of the agent.
func (s *silence) note(method string, params jsontape.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "session/update":
		s.follow(params.Get("update"))
	case "session/request_permission": // some agents announce a call only this way
		s.begin(params.Get("toolCall").TextOf("toolCallId"))
	}
	switch {
	case s.timer == nil:
	case s.busy > 0:
		s.timer.Stop()
	default:
		s.timer.Reset(s.bound)
	}
}

func (s *silence) follow(update jsontape.Value) {
	switch update.TextOf("sessionUpdate") {
	case "tool_call", "tool_call_update":
		switch id := update.TextOf("toolCallId"); update.TextOf("status") {
		case statusCompleted, statusFailed:
			s.end(id)
		case statusPending, statusRunning:
			s.begin(id)
		}
	case "agent_message_chunk":
		if update.Get("content").TextOf("text") != "" {
			s.forget() // the model speaks, so it has all results
		}
	}
}

func (s *silence) begin(id string) {
	if _, known := s.calls[id]; !known && id != "" && len(s.calls) < maxFollowed {
		s.calls[strings.Clone(id)] = true
		s.busy++
	}
}

func (s *silence) end(id string) {
	if s.calls[id] {
		s.busy--
	}
	if _, known := s.calls[id]; known || len(s.calls) < maxFollowed {
		s.calls[strings.Clone(id)] = false
	}
}
