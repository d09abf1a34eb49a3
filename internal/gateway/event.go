package gateway

import (
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/trace"
)

// CallEvent is the line of a trace about a call, which the orchestrator writes.
type CallEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	calls.Call
}

// NewCallEvent makes the event of a call. Only the record says where its bodies are.
func NewCallEvent(call calls.Call) CallEvent {
	event := CallEvent{Type: trace.TypeModelCall, Agent: call.Participant, Call: call}
	event.Participant, event.Cell, event.Request, event.Response = "", "", nil, nil
	return event
}
