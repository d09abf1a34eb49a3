package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// errNotATIF is returned for a document that is not a trajectory.
var errNotATIF = errors.New("not an ATIF document")

// atifVersion distinguishes a trajectory, or a list of them, from other documents.
var atifVersion = lazyregexp.New(`^[\[{][\s\S]*"schema_version"\s*:\s*"ATIF-`)

// looksLikeATIF reports whether a document, from its beginning, is a trajectory or a list of them.
func looksLikeATIF(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head[:min(len(head), 64<<10)], []byte("\xef\xbb\xbf")))
	return bytes.Contains(head, []byte(`"ATIF-`)) && atifVersion.Get().Match(head)
}

// ImportATIF reads a trajectory. A document written by ExportATIF gives the session it was written
// from. Any other is decoded; if it says more than a session can hold, Origin keeps all of it, so
// that nothing is lost when it is exported again.
func ImportATIF(data []byte, opts Options) (*EnrichedSession, error) {
	var document atifTrajectory
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotATIF, err)
	}
	if !strings.HasPrefix(document.SchemaVersion, "ATIF-") {
		return nil, fmt.Errorf("%w: its schema_version is %q", errNotATIF, document.SchemaVersion)
	}
	if document.Extra != nil && document.Extra.Fit != nil {
		if s := restore(document); s != nil && describes(s, data) {
			return s, nil
		}
	}
	s := decodeATIF(document, opts)
	if !describes(s, data) {
		s.Origin = slices.Clone(data)
	}
	return s, nil
}

// describes reports whether a session says all that a document says.
func describes(s *EnrichedSession, data []byte) bool {
	again, err := encodeATIF(exportATIF(s))
	if err != nil {
		return false
	}
	want, errWant := anyValue(data)
	got, errGot := anyValue(again)
	return errWant == nil && errGot == nil && reflect.DeepEqual(want, got)
}

func anyValue(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// restore puts the payloads of a document that we have written back into the events; nil if the
// document does not match them any more.
func restore(document atifTrajectory) *EnrichedSession {
	s := *document.Extra.Fit
	l := layoutOf(s.Events)
	trajectories := map[string][]atifStep{"": document.Steps}
	for _, sub := range document.Subagents {
		trajectories[sub.TrajectoryID] = sub.Steps
	}
	for i := range s.Events {
		if !putBack(&s.Events[i], l, i, trajectories) {
			return nil
		}
	}
	if s.Messages == nil {
		s.Messages = messagesOf(s.Events)
	}
	at := 0
	for _, e := range s.Events {
		if e.Kind == KindSystemPrompt && at < len(s.SystemPrompts) && s.SystemPrompts[at].Content == "" {
			s.SystemPrompts[at].Content = e.Text
			at++
		}
	}
	return &s
}

func putBack(e *EnrichedEvent, l layout, i int, trajectories map[string][]atifStep) bool {
	at := l.slots[i]
	if at.part == slotNone {
		return true
	}
	steps := trajectories[at.trajectory]
	if at.step >= len(steps) {
		return false
	}
	step := steps[at.step]
	switch at.part {
	case slotMessage:
		switch {
		case at.index < len(step.Message):
			e.Text = step.Message[at.index]
		case len(step.Message) > 0:
			return false
		}
	case slotReasoning:
		if e.Text == "" && l.steps[at.trajectory][at.step].thoughts == 1 {
			e.Text = step.Reasoning
		}
	case slotCall:
		if at.index >= len(step.ToolCalls) {
			return false
		}
		if isNull(e.Tool.Args) {
			e.Tool.Args = compact(step.ToolCalls[at.index].Arguments)
		}
	case slotResult:
		if step.Observation == nil || at.index >= len(step.Observation.Results) {
			return false
		}
		e.Result.Preview = strings.Join(step.Observation.Results[at.index].Content, "\n")
	case slotNone:
	}
	return true
}

func isNull(data json.RawMessage) bool { return len(data) == 0 || bytes.Equal(data, []byte("null")) }

func compact(data json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return data
	}
	return buf.Bytes()
}

// decodeATIF reads a document that ExportATIF did not write.
func decodeATIF(document atifTrajectory, opts Options) *EnrichedSession {
	fold := NewFold(opts)
	foldATIF(document, Stamp{}, fold)
	s := fold.Session()
	s.Agent, s.Dialect = AgentID(document.Agent.Name), atifName
	return s
}

// foldATIF reports a document to a fold, at the place where it is; steps count as lines where it
// has none.
func foldATIF(document atifTrajectory, at Stamp, fold *Fold) {
	fold.Identify(Identity{
		SessionID: document.SessionID, Version: document.Agent.Version,
		Model: document.Agent.ModelName,
	})
	decodeSteps(document, "", at, fold)
	for _, sub := range document.Subagents {
		decodeSteps(sub, cmp.Or(sub.TrajectoryID, "subagent"), at, fold)
	}
	reportFinal(document, at, fold)
}

const atifName = "atif"

// ATIF is the dialect of trajectories: a document is one event.
func ATIF() Dialect {
	return Dialect{
		Name:      atifName,
		Recognise: looksLikeATIF,
		New:       func() Decoder { return atifDecoder{} },
	}
}

type atifDecoder struct{}

// Decode reports the steps of a document.
func (atifDecoder) Decode(event []byte, at Stamp, to *Fold) {
	var document atifTrajectory
	if json.Unmarshal(event, &document) != nil {
		to.ParseError()
		return
	}
	foldATIF(document, at, to)
}

func decodeSteps(t atifTrajectory, parent string, at Stamp, to *Fold) {
	for i, step := range t.Steps {
		o := Origin{Stamp: at, NativeMs: ParseTime(step.Timestamp), Parent: parent}
		o.Line = cmp.Or(o.Line, int64(i+1))
		said := strings.Join(step.Message, "\n")
		switch step.Source {
		case "agent":
			o.MessageID = fmt.Sprintf("step-%s%d", parent, step.StepID)
			decodeAgentStep(step, said, o, to)
		case "user":
			to.Message(o, "user", said, "")
		default:
			if said != "" {
				to.SystemPrompt(o, "atif", "system", said)
			}
		}
		if step.Observation != nil {
			o.MessageID = ""
			for _, result := range step.Observation.Results {
				to.ToolResult(o, Returned{CallID: result.CallID, Content: strings.Join(result.Content, "\n")})
			}
		}
	}
}

func decodeAgentStep(step atifStep, said string, o Origin, to *Fold) {
	if step.Reasoning != "" {
		to.Thinking(o, step.Reasoning)
	}
	if said != "" {
		to.Message(o, "assistant", said, "")
	}
	for _, call := range step.ToolCalls {
		to.ToolCall(o, ToolUse{ID: call.ID, Name: call.Function, Args: compact(call.Arguments)})
	}
	if m := step.Metrics; m != nil {
		to.Usage(o, UsageReport{
			Rule:    UsagePerMessage,
			Key:     o.MessageID,
			Model:   step.ModelName,
			CostUSD: m.CostUSD,
			Tokens: TokenUsage{
				InputTokens: max(0, m.Prompt-m.Cached), OutputTokens: m.Completion,
				CacheReadTokens: m.Cached,
			},
		})
	}
}

// reportFinal takes the document's totals if its steps have none.
func reportFinal(document atifTrajectory, at Stamp, to *Fold) {
	if m := document.FinalMetrics; m != nil && to.UsageReports() == 0 {
		to.Usage(Origin{Stamp: at}, UsageReport{
			CostUSD: m.CostUSD, Tokens: TokenUsage{
				InputTokens: max(0, m.Prompt-m.Cached), OutputTokens: m.Completion,
				CacheReadTokens: m.Cached,
			},
		})
	}
}
