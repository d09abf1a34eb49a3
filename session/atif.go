package session

import (
	"encoding/json"
	"fmt"
	"time"
)

// atifWritten is the version of the Agent Trajectory Interchange Format that is written.
const atifWritten = "ATIF-v1.7"

// The objects of the format. Unlisted fields survive because the whole document is kept; see
// ImportATIF.
type (
	atifTrajectory struct {
		SchemaVersion string           `json:"schema_version"`
		SessionID     string           `json:"session_id,omitempty"`
		TrajectoryID  string           `json:"trajectory_id,omitempty"`
		Agent         atifAgent        `json:"agent"`
		Steps         []atifStep       `json:"steps"`
		FinalMetrics  *atifFinal       `json:"final_metrics,omitempty"`
		Subagents     []atifTrajectory `json:"subagent_trajectories,omitempty"`
		Extra         *atifExtra       `json:"extra,omitempty"`
	}
	atifAgent struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		ModelName string `json:"model_name,omitempty"`
	}
	atifStep struct {
		StepID      int              `json:"step_id"`
		Timestamp   string           `json:"timestamp,omitempty"`
		Source      string           `json:"source"`
		Message     atifContent      `json:"message"`
		ModelName   string           `json:"model_name,omitempty"`
		Reasoning   string           `json:"reasoning_content,omitempty"`
		ToolCalls   []atifCall       `json:"tool_calls,omitempty"`
		Observation *atifObservation `json:"observation,omitempty"`
		Metrics     *atifMetrics     `json:"metrics,omitempty"`
	}
	atifCall struct {
		ID        string          `json:"tool_call_id"`
		Function  string          `json:"function_name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	atifObservation struct {
		Results []atifResult `json:"results"`
	}
	atifResult struct {
		CallID       string       `json:"source_call_id,omitempty"`
		Content      atifContent  `json:"content"`
		Trajectories []atifSubRef `json:"subagent_trajectory_ref,omitempty"`
	}
	atifSubRef struct {
		TrajectoryID string `json:"trajectory_id,omitempty"`
	}
	atifMetrics struct {
		Prompt     int64    `json:"prompt_tokens"`
		Completion int64    `json:"completion_tokens"`
		Cached     int64    `json:"cached_tokens,omitempty"`
		CostUSD    *float64 `json:"cost_usd,omitempty"`
	}
	atifFinal struct {
		Prompt     int64    `json:"total_prompt_tokens"`
		Completion int64    `json:"total_completion_tokens"`
		Cached     int64    `json:"total_cached_tokens"`
		CostUSD    *float64 `json:"total_cost_usd,omitempty"`
		Steps      int      `json:"total_steps"`
	}
	// atifExtra carries data that the format has no field for.
	atifExtra struct {
		Fit *EnrichedSession `json:"fit,omitempty"`
	}
)

// atifContent is a string, or several texts.
type atifContent []string

// MarshalJSON writes one text as a string and several as parts.
func (c atifContent) MarshalJSON() ([]byte, error) {
	switch len(c) {
	case 0:
		return []byte(`""`), nil
	case 1:
		return json.Marshal(c[0])
	}
	parts := make([]map[string]string, len(c))
	for i, text := range c {
		parts[i] = map[string]string{"type": "text", "text": text}
	}
	return json.Marshal(parts)
}

// UnmarshalJSON reads a string or parts; parts that are not text are named.
func (c *atifContent) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = nil
		if text != "" {
			*c = atifContent{text}
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content is neither a text nor a list of parts: %w", err)
	}
	*c = make(atifContent, 0, len(parts))
	for _, part := range parts {
		if part.Type != "text" {
			part.Text = "[" + part.Type + "]"
		}
		*c = append(*c, part.Text)
	}
	return nil
}

// slot is the position in a document that holds an event's payload.
type slot struct {
	trajectory string // the parent's call id; empty for the main one
	step       int
	part       slotPart
	index      int
}

type slotPart int

const (
	slotNone slotPart = iota
	slotMessage
	slotReasoning
	slotCall
	slotResult
)

// layout finds the place of every event in a document. It looks only at what stays with an event
// when its payload has been moved into the document, so that the same layout is found when the
// document is read again.
type layout struct {
	slots []slot
	steps map[string][]layoutStep
	order []string // trajectories in order of appearance
}

type layoutStep struct {
	source    string
	firstMs   int64
	messageID string
	texts     int
	thoughts  int
	calls     int
	results   int
}

func layoutOf(events []EnrichedEvent) layout {
	l := layout{steps: map[string][]layoutStep{}, slots: make([]slot, len(events))}
	l.trajectory("")
	open := map[string]int{} // the open agent step in each trajectory, and the turn it belongs to
	turn := map[string]int{}
	calls := map[string]slot{}
	agentStep := func(e EnrichedEvent) int {
		if step, ok := open[e.Parent]; ok && turn[e.Parent] == e.TurnIndex {
			return step
		}
		step := l.add(e, "agent")
		open[e.Parent], turn[e.Parent] = step, e.TurnIndex
		return step
	}
	for i, e := range events {
		at := slot{trajectory: e.Parent}
		switch {
		case e.Kind == KindMessage && e.Role == "assistant":
			at.step, at.part = agentStep(e), slotMessage
		case e.Kind == KindThinking:
			at.step, at.part = agentStep(e), slotReasoning
		case e.Kind == KindToolCall && e.Tool != nil:
			at.step, at.part = agentStep(e), slotCall
			calls[e.Parent+"\x00"+e.Tool.CallID] = at
		case e.Kind == KindToolResult && e.Result != nil:
			call, known := calls[e.Parent+"\x00"+e.Result.CallID]
			if at.part, at.step = slotResult, call.step; !known {
				at.step = l.add(e, "system")
			}
		case e.Kind == KindMessage || e.Kind == KindSystemPrompt:
			source := "system"
			if e.Role == "user" {
				source = "user"
			}
			delete(open, e.Parent)
			at.step, at.part = l.add(e, source), slotMessage
		default:
			continue
		}
		at.index = l.steps[e.Parent][at.step].take(at.part, e)
		l.slots[i] = at
	}
	return l
}

func (l *layout) trajectory(name string) {
	if _, known := l.steps[name]; !known {
		l.steps[name] = nil
		l.order = append(l.order, name)
	}
}

func (l *layout) add(e EnrichedEvent, source string) int {
	l.trajectory(e.Parent)
	l.steps[e.Parent] = append(l.steps[e.Parent], layoutStep{source: source, firstMs: e.TimestampMs})
	return len(l.steps[e.Parent]) - 1
}

// take counts one more payload of a step and returns its index.
func (s *layoutStep) take(part slotPart, e EnrichedEvent) int {
	counter := map[slotPart]*int{
		slotMessage:   &s.texts,
		slotReasoning: &s.thoughts,
		slotCall:      &s.calls,
		slotResult:    &s.results,
	}[part]
	if e.MessageID != "" && s.source == "agent" {
		s.messageID = e.MessageID
	}
	*counter++
	return *counter - 1
}

func isoTime(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
