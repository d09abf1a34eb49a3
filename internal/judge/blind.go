package judge

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
)

// Blind hides from a judge who did the work.
type Blind struct{ hide *hider }

// NewBlind takes what would reveal it: ids of agents and models, and directories, which begin with
// a slash.
func NewBlind(names []string) *Blind { return &Blind{newHider(names)} }

// Text returns a text without names.
func (b *Blind) Text(text string) string { return b.hide.text(text) }

// blindStep is one step of an agent, in words that all agents share: no native format, no names of
// tools, no tokens and no times.
type blindStep struct {
	Step     int    `json:"step"`
	Kind     string `json:"kind"` // message, call, result
	Tool     string `json:"tool,omitempty"`
	Text     string `json:"text"`
	IsError  bool   `json:"isError,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

// Steps writes what the agent of a trace did, one line of JSON for each step. A trace that nobody
// can read has no steps.
func (b *Blind) Steps(to io.Writer, path string, dialects session.Dialects) error {
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	number, tools := 0, map[string]string{}
	var failed error
	_, _ = session.ReadFile(path, dialects, session.Options{Flat: true, OnEvent: func(event *session.EnrichedEvent) {
		step, shown := stepOfEvent(event, tools)
		if !shown || failed != nil {
			return
		}
		number++
		step.Step, step.Text = number, b.hide.text(shapes().String(canonicalTools(step.Text)))
		failed = out.Encode(step)
	}})
	return failed
}

// stepOfEvent returns what a judge sees of an event. tools has the tools of the calls so far.
func stepOfEvent(event *session.EnrichedEvent, tools map[string]string) (step blindStep, shown bool) {
	switch {
	case event.Kind == session.KindMessage && event.Role == "assistant":
		return blindStep{Kind: evidence.StepMessage, Text: event.Text}, strings.TrimSpace(event.Text) != ""
	case event.Kind == session.KindToolCall && event.Tool != nil:
		step = blindStep{Kind: evidence.StepCall, Tool: event.Tool.Canonical, Text: event.Tool.Command}
		if step.Text == "" { // the arguments of a call reveal the agent, and the work has what was written
			step.Text = strings.Join(event.Tool.Paths, " ")
		}
		tools[event.Tool.CallID] = step.Tool
		return step, true
	case event.Kind == session.KindToolResult && event.Result != nil:
		return blindStep{
			Kind:     evidence.StepResult,
			Tool:     tools[event.Result.CallID],
			Text:     event.Result.Content,
			IsError:  event.Result.IsError,
			ExitCode: event.Result.ExitCode,
		}, true
	}
	return blindStep{}, false
}
