package session_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/session"
)

// foreign is a trajectory as somebody else writes it, with fields that we do not know.
const foreign = `{
  "schema_version": "ATIF-v1.7", "session_id": "run-7", "notes": "kept",
  "agent": {"name": "other", "version": "2", "model_name": "m-1", "tool_definitions": [{"name": "sh"}]},
  "steps": [
    {"step_id": 1, "source": "user", "message": "Fix it", "timestamp": "2026-01-02T03:04:05Z"},
    {"step_id": 2, "source": "agent", "message": [{"type": "text", "text": "Looking."}, {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}],
     "reasoning_content": "Hm.", "reasoning_effort": "high", "llm_call_count": 1,
     "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "go test ./..."}}],
     "observation": {"results": [{"source_call_id": "c1", "content": "ok"}]},
     "metrics": {"prompt_tokens": 100, "cached_tokens": 40, "completion_tokens": 7, "cost_usd": 0.5, "logprobs": [0.1]},
     "timestamp": "2026-01-02T03:04:07Z", "extra": {"vendor": true}}
  ],
  "final_metrics": {"total_prompt_tokens": 100, "total_completion_tokens": 7, "total_cached_tokens": 40, "total_cost_usd": 0.5}
}`

func TestForeignTrajectoriesAreUnderstood(t *testing.T) {
	s, err := session.ImportATIF([]byte(foreign), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.SessionID != "run-7" || s.Agent != "other" || s.Model != "m-1" || s.Turns != 1 || s.WallClockMs != 2000 {
		t.Errorf("session: %+v", s)
	}
	want := session.TokenUsage{
		InputTokens: 60, OutputTokens: 7, CacheReadTokens: 40, TotalTokens: 107,
		CostUSD: usd(0.5), CostSource: session.CostReported,
	}
	if diff := cmp.Diff(want, s.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	var kinds []session.Kind
	for _, event := range s.Events {
		kinds = append(kinds, event.Kind)
	}
	if diff := cmp.Diff([]session.Kind{
		session.KindMessage, session.KindThinking, session.KindMessage, session.KindToolCall, session.KindMilestone,
		session.KindMilestone, session.KindCost,
		session.KindToolResult,
	}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestForeignTrajectoriesAreExportedAsTheyCame(t *testing.T) {
	s, err := session.ImportATIF([]byte(foreign), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(s) // also after having been stored
	if err != nil {
		t.Fatal(err)
	}
	var again session.EnrichedSession
	if err := json.Unmarshal(stored, &again); err != nil {
		t.Fatal(err)
	}
	out, err := session.ExportATIF(&again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(value(t, []byte(foreign)), value(t, out)); diff != "" {
		t.Errorf("the document changed (-before +after):\n%s", diff)
	}
}

// TestAnEditedExportIsReadAsItStands: what somebody changed in a document of ours counts, not what
// we remember of it.
func TestAnEditedExportIsReadAsItStands(t *testing.T) {
	s := read(t, initLine, said("1", "before"), result("success", false, 10, 10, ""))
	out, err := session.ExportATIF(s)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(out, []byte(`"message": "before"`), []byte(`"message": "after", "comment": "mine"`), 1)
	if bytes.Equal(out, edited) {
		t.Fatalf("nothing to edit in %s", out)
	}
	back, err := session.ImportATIF(edited, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if back.FinalText != "after" || len(back.Origin) == 0 {
		t.Errorf("final text %q, %d bytes kept", back.FinalText, len(back.Origin))
	}
}

func TestSubAgentsAreTrajectoriesOfTheirOwn(t *testing.T) {
	s := read(t, initLine,
		`{"type":"assistant","message":{"id":"1","model":"m","content":[{"type":"tool_use","id":"call-1","name":"Task","input":{"prompt":"look"}}]}}`,
		`{"type":"assistant","parent_tool_use_id":"call-1","message":{"id":"2","model":"m","content":[{"type":"text","text":"looking"}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"call-1","content":"seen"}]}}`,
		said("3", "done"), result("success", false, 10, 10, ""))
	out, err := session.ExportATIF(s)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Steps []struct {
			StepID int `json:"step_id"`
		} `json:"steps"`
		Subagents []struct {
			ID string `json:"trajectory_id"`
		} `json:"subagent_trajectories"`
	}
	if err := json.Unmarshal(out, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Subagents) != 1 || document.Subagents[0].ID != "call-1" ||
		!bytes.Contains(out, []byte(`"subagent_trajectory_ref"`)) {
		t.Errorf("no trajectory of the sub-agent:\n%s", out)
	}
	for i, step := range document.Steps {
		if step.StepID != i+1 {
			t.Errorf("step %d has the id %d", i, step.StepID)
		}
	}
}

func TestOtherDocumentsAreNoTrajectories(t *testing.T) {
	for _, content := range []string{`{}`, `{"schema_version":"1.0"}`, `[]`, `nonsense`} {
		_, err := session.ImportATIF([]byte(content), session.Options{})
		if err == nil || !strings.Contains(err.Error(), "not an ATIF document") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func FuzzImportATIF(f *testing.F) {
	f.Add([]byte(foreign))
	f.Add([]byte(`{"schema_version":"ATIF-v1.7","agent":{},"steps":[],"extra":{"fit":{"events":[{"kind":"tool_call","tool":{"callId":"x"}}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := session.ImportATIF(data, session.Options{})
		if err != nil {
			return
		}
		out, err := session.ExportATIF(s)
		if err != nil {
			t.Fatalf("what was imported cannot be exported: %v", err)
		}
		if diff := cmp.Diff(value(t, data), value(t, out)); diff != "" {
			t.Errorf("import and export changed the document:\n%s", diff)
		}
	})
}

func value(t *testing.T, data []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
