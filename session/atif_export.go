package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// ExportATIF returns a session as a document of the Agent Trajectory Interchange Format. What the
// format cannot carry (milestones, lanes, errors, positions) is written to extra.fit, so that
// ImportATIF returns the same session. A session that was imported from such a document is exported
// as that document.
func ExportATIF(s *EnrichedSession) ([]byte, error) {
	if len(s.Origin) > 0 {
		return slices.Clone(s.Origin), nil
	}
	return encodeATIF(exportATIF(s))
}

func encodeATIF(document atifTrajectory) ([]byte, error) {
	var buf bytes.Buffer
	err := jsonenc.WriteIndented(&buf, document)
	return buf.Bytes(), err
}

func exportATIF(s *EnrichedSession) atifTrajectory {
	l := layoutOf(s.Events)
	agent := atifAgent{
		Name: cmp.Or(string(s.Agent), "unknown"), Version: cmp.Or(s.AgentVersion, "unknown"),
		ModelName: s.Model,
	}
	trajectories := map[string][]atifStep{}
	for _, name := range l.order {
		trajectories[name] = emptySteps(l.steps[name])
	}
	residue := *s
	residue.Events = slices.Clone(s.Events)
	residue.Messages, residue.SystemPrompts = nil, nil
	if !slices.Equal(s.Messages, messagesOf(s.Events)) {
		residue.Messages = s.Messages
	}
	residue.SystemPrompts = slices.Clone(s.SystemPrompts)
	movePrompts(residue.SystemPrompts, s.Events)
	for i := range residue.Events {
		move(&residue.Events[i], l, i, trajectories)
	}
	measure(s.Events, l, trajectories)
	for name := range trajectories {
		if name != "" {
			refer(trajectories, l, s.Events, name)
		}
	}
	document := atifTrajectory{
		SchemaVersion: atifWritten,
		SessionID:     s.SessionID,
		Agent:         agent,
		Steps:         trajectories[""],
		Extra:         &atifExtra{Fit: &residue},
		FinalMetrics: &atifFinal{
			Prompt:     s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens,
			Completion: s.Usage.OutputTokens,
			Cached:     s.Usage.CacheReadTokens,
			CostUSD:    s.Usage.CostUSD,
			Steps:      len(trajectories[""]),
		},
	}
	for _, name := range l.order[1:] {
		document.Subagents = append(document.Subagents, atifTrajectory{
			SchemaVersion: atifWritten,
			TrajectoryID:  name,
			Agent:         agent,
			Steps:         trajectories[name],
		})
	}
	return document
}

func emptySteps(steps []layoutStep) []atifStep {
	made := make([]atifStep, len(steps))
	for i, step := range steps {
		made[i] = atifStep{StepID: i + 1, Timestamp: isoTime(step.firstMs), Source: step.source}
	}
	return made
}

// move puts an event's payload into its step and takes it out of the event.
func move(e *EnrichedEvent, l layout, i int, trajectories map[string][]atifStep) {
	at := l.slots[i]
	if at.part == slotNone {
		return
	}
	step := &trajectories[at.trajectory][at.step]
	switch at.part {
	case slotMessage:
		step.Message = append(step.Message, e.Text)
		e.Text = ""
	case slotReasoning:
		if step.Reasoning != "" {
			step.Reasoning += "\n\n"
		}
		step.Reasoning += e.Text
		if l.steps[at.trajectory][at.step].thoughts == 1 { // several are joined, and keep their own copies
			e.Text = ""
		}
	case slotCall:
		tool := *e.Tool
		arguments := tool.Args
		if !isObject(arguments) {
			arguments = json.RawMessage("{}")
		} else {
			tool.Args = nil
		}
		step.ToolCalls = append(step.ToolCalls,
			atifCall{ID: tool.CallID, Function: tool.NativeName, Arguments: arguments})
		e.Tool = &tool
	case slotResult:
		result := *e.Result
		if step.Observation == nil {
			step.Observation = &atifObservation{}
		}
		step.Observation.Results = append(step.Observation.Results,
			atifResult{CallID: result.CallID, Content: atifContent{result.Preview}})
		result.Preview = ""
		e.Result = &result
	case slotNone:
	}
}

func isObject(data json.RawMessage) bool {
	trimmed := bytes.TrimSpace(data)
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// messagesOf returns the messages that follow from a session's events.
func messagesOf(events []EnrichedEvent) []Message {
	messages := []Message{}
	for _, e := range events {
		if e.Kind == KindMessage && e.Parent == "" {
			messages = append(messages, Message{
				Role:        e.Role,
				Text:        e.Text,
				TimestampMs: e.TimestampMs,
				TurnIndex:   e.TurnIndex,
			})
		}
	}
	return messages
}

// movePrompts empties the system prompts whose content is in an event.
func movePrompts(prompts []SystemPromptInjection, events []EnrichedEvent) {
	at := 0
	for _, e := range events {
		if e.Kind == KindSystemPrompt && at < len(prompts) && prompts[at].Content == e.Text {
			prompts[at].Content = ""
			at++
		}
	}
}

// measure gives a step the tokens of its message, if the stream reported them by message.
func measure(events []EnrichedEvent, l layout, trajectories map[string][]atifStep) {
	for _, e := range events {
		if e.Usage == nil || e.MessageID == "" {
			continue
		}
		for i, step := range l.steps[e.Parent] {
			if step.messageID == e.MessageID {
				u := e.Usage
				trajectories[e.Parent][i].Metrics = &atifMetrics{
					Prompt:     u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens,
					Completion: u.OutputTokens,
					Cached:     u.CacheReadTokens,
					CostUSD:    u.CostUSD,
				}
				break
			}
		}
	}
}

// refer links the result of the call that started a sub-agent to the sub-agent's trajectory.
func refer(trajectories map[string][]atifStep, l layout, events []EnrichedEvent, name string) {
	for i, e := range events {
		if e.Result == nil || e.Result.CallID != name || l.slots[i].part != slotResult {
			continue
		}
		at := l.slots[i]
		result := &trajectories[at.trajectory][at.step].Observation.Results[at.index]
		result.Trajectories = []atifSubRef{{TrajectoryID: name}}
		return
	}
}
