package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/price"
)

// overTheWire writes events to a stream and reads them back.
func overTheWire(t *rapid.T, events []wire.Event) []wire.Event {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		if _, err := e.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
	}
	var got []wire.Event
	for r := wire.NewEventReader(strings.NewReader(b.String())); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), rapid.String(),
		rapid.SampledFrom([]string{"line\nline\r\n\ndata: x", strings.Repeat("é", 100), "\u2028</script>"}))
}

func object() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		data, err := json.Marshal(rapid.MapOfN(rapid.StringN(1, 5, -1), text(), 0, 3).Draw(t, "fields"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	})
}

// The texts of the deltas must add up to the reply's, so that whoever shows a stream shows the
// whole reply.
func joined(deltas []wire.Delta, kind wire.DeltaKind) string {
	var b strings.Builder
	for _, d := range deltas {
		if d.Kind == kind {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func TestAnthropicReplySurvivesStreaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stop := rapid.SampledFrom([]string{"end_turn", "tool_use", "max_tokens", "refusal"}).Draw(t, "stop")
		want := wire.AnthropicMessage{
			ID: "msg_1", Type: "message", Role: "assistant", Model: "m", StopReason: &stop,
			Content: wire.AnthropicContent{},
			Usage: wire.AnthropicUsage{
				InputTokens: 7, OutputTokens: rapid.Int64Range(0, 1e9).Draw(t, "out"),
				CacheReadInputTokens: 3, CacheCreationInputTokens: 2,
			},
		}
		thought, said := "", ""
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			switch rapid.SampledFrom([]string{"text", "thinking", "tool_use"}).Draw(t, "type") {
			case "text":
				b := wire.AnthropicBlock{Type: "text", Text: text().Draw(t, "text")}
				said += b.Text
				want.Content = append(want.Content, b)
			case "thinking":
				b := wire.AnthropicBlock{Type: "thinking", Thinking: text().Draw(t, "thinking"), Signature: "c2ln"}
				thought += b.Thinking
				want.Content = append(want.Content, b)
			case "tool_use":
				want.Content = append(want.Content,
					wire.AnthropicBlock{
						Type: "tool_use", ID: "toolu_1", Name: "Bash",
						Input: json.RawMessage(object().Draw(t, "input")),
					})
			}
		}
		var acc wire.AnthropicAccumulator
		var deltas []wire.Delta
		for _, e := range overTheWire(t, wire.AnthropicEvents(want)) {
			added, err := acc.Add(e)
			if err != nil {
				t.Fatal(err)
			}
			deltas = append(deltas, added...)
		}
		if !acc.Done {
			t.Fatal("the stream does not end the reply")
		}
		if diff := cmp.Diff(want, acc.Message()); diff != "" {
			t.Fatal(diff)
		}
		if joined(deltas, wire.DeltaText) != said || joined(deltas, wire.DeltaThinking) != thought {
			t.Fatal("the deltas do not add up")
		}
	})
}

func TestResponsesReplySurvivesStreaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := wire.Response{
			ID: "resp_1", Object: "response",
			Status: rapid.SampledFrom([]string{"completed", "incomplete"}).Draw(t, "status"), Model: "m",
			Output: []wire.ResponsesItem{}, Tools: []wire.ResponsesTool{},
			Usage: &wire.ResponsesUsage{InputTokens: 9, OutputTokens: 4, TotalTokens: 13},
		}
		said := ""
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			item := wire.ResponsesItem{Type: rapid.SampledFrom([]string{
				"message", "reasoning", "function_call",
				"custom_tool_call",
			}).Draw(t, "type"), ID: "id_1"}
			switch item.Type {
			case "message":
				item.Role, item.Status = "assistant", "completed"
				item.Content = wire.OpenAIContent{{Type: "output_text", Text: text().Draw(t, "text")}}
				said += item.Content[0].Text
			case "reasoning":
				item.Summary = wire.OpenAIContent{{Type: "summary_text", Text: text().Draw(t, "summary")}}
			case "function_call":
				item.CallID, item.Name, item.Status, item.Arguments = "call_1", "f", "completed", object().Draw(t,
					"arguments")
			case "custom_tool_call":
				item.CallID, item.Name, item.Status, item.Input = "call_1", "apply_patch", "completed", text().Draw(t,
					"input")
			}
			want.Output = append(want.Output, item)
		}
		var acc wire.ResponsesAccumulator
		var deltas []wire.Delta
		for _, e := range overTheWire(t, wire.ResponsesEvents(want)) {
			added, err := acc.Add(e)
			if err != nil {
				t.Fatal(err)
			}
			deltas = append(deltas, added...)
		}
		if diff := cmp.Diff(want, acc.Response, cmpopts.IgnoreUnexported(wire.ResponsesAccumulator{}),
			cmpopts.EquateEmpty()); diff != "" || !acc.Done {
			t.Fatalf("done %v: %s", acc.Done, diff)
		}
		if joined(deltas, wire.DeltaText) != said {
			t.Fatal("the deltas do not add up")
		}
	})
}

func TestChatReplySurvivesStreaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message := wire.ChatMessage{Role: "assistant", ReasoningContent: text().Draw(t, "reasoning")}
		if said := text().Draw(t, "text"); said != "" {
			message.Content = wire.OpenAIContent{{Type: "text", Text: said}}
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			message.ToolCalls = append(message.ToolCalls,
				wire.ChatToolCall{
					ID: "call_1", Type: "function",
					Function: wire.ChatFunction{Name: "f", Arguments: object().Draw(t, "arguments")},
				})
		}
		want := wire.ChatCompletion{
			ID: "chat_1", Object: "chat.completion", Created: 1, Model: "m",
			Choices: []wire.ChatChoice{{Message: message, FinishReason: "stop"}},
			Usage:   &wire.ChatUsage{PromptTokens: 5, CompletionTokens: 6, TotalTokens: 11},
		}
		var acc wire.ChatAccumulator
		for _, e := range overTheWire(t, wire.ChatEvents(want, true)) {
			if _, err := acc.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, acc.Completion()); diff != "" || !acc.Done || !acc.Finished {
			t.Fatalf("done %v, finished %v: %s", acc.Done, acc.Finished, diff)
		}
	})
}

func TestEventReaderFollowsTheStandard(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		want   []wire.Event
	}{
		"LF, CRLF and CR end lines": {
			"data: a\n\ndata: b\r\n\r\ndata: c\r\r",
			[]wire.Event{{Data: []byte("a")}, {Data: []byte("b")}, {Data: []byte("c")}},
		},
		"several data lines are one text": {
			"event: e\ndata: a\ndata:b\n\n",
			[]wire.Event{{Name: "e", Data: []byte("a\nb")}},
		},
		"comments and other fields are skipped": {
			": hello\nid: 1\nretry: 5\ndata: a\n\n",
			[]wire.Event{{Data: []byte("a")}},
		},
		"an event without data is none": {"event: ghost\n\ndata: a\n\n", []wire.Event{{Data: []byte("a")}}},
		"a cut event is dropped":        {"data: a\n\ndata: half", []wire.Event{{Data: []byte("a")}}},
		"CRLF after a name": {
			"event: e\r\ndata: a\r\n\r\n",
			[]wire.Event{{Name: "e", Data: []byte("a")}},
		},
		"a byte order mark is skipped": {"\xef\xbb\xbfdata: a\n\n", []wire.Event{{Data: []byte("a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, reader := range map[string]io.Reader{
				"at once":      strings.NewReader(tt.stream),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				if diff := cmp.Diff(tt.want, readAll(t, reader)); diff != "" {
					t.Errorf("%s: %s", way, diff)
				}
			}
		})
	}
}

func readAll(t *testing.T, stream io.Reader) []wire.Event {
	t.Helper()
	var events []wire.Event
	for r := wire.NewEventReader(stream); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

func TestEventReaderRefusesToGrowWithoutEnd(t *testing.T) {
	r := wire.NewEventReader(io.MultiReader(strings.NewReader("data: "), endless{}))
	if _, err := r.Next(); !errors.Is(err, wire.ErrEventTooLarge) {
		t.Errorf("got %v, want ErrEventTooLarge", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestErrorsOfManyServersAreUnderstood(t *testing.T) {
	for body, want := range map[string]wire.APIError{
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`: {Type: "overloaded_error", Message: "Overloaded", RequestID: "req_1"},
		`{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}`:       {Type: "invalid_request_error", Code: "context_length_exceeded", Message: "no"},
		`{"error":{"message":"no","type":"x","code":400}}`: {
			Type:    "x",
			Message: "no",
		},
		`{"error":"model not found"}`: {Message: "model not found"},
		`{"detail":"Unauthorized"}`:   {Message: "Unauthorized"},
		`<html><body>502  Bad
Gateway</body></html>`: {Message: "<html><body>502  Bad Gateway</body></html>", Foreign: true},
	} {
		if diff := cmp.Diff(&want, wire.DecodeError([]byte(body))); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

func TestAStreamThatBreaksTheRulesIsRefused(t *testing.T) {
	var anthropic wire.AnthropicAccumulator
	for _, data := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"text"}}`,
		`{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}`,
		`not json`,
	} {
		if _, err := anthropic.Add(wire.Event{Data: []byte(data)}); err == nil {
			t.Errorf("accepted %s", data)
		}
	}
	var chat wire.ChatAccumulator
	if _, err := chat.Add(wire.Event{Data: []byte(
		`{"choices":[{"delta":{"tool_calls":[{"index":1000000000,"function":{}}]}}]}`)}); err == nil {
		t.Error("accepted a tool call far out of order")
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("event: a\ndata: b\r\n\r\ndata:c\rdata:d\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := wire.NewEventReader(strings.NewReader(string(stream)))
		for events := 0; ; events++ {
			e, err := r.Next()
			if err != nil {
				return
			}
			if events > len(stream) {
				t.Fatal("more events than bytes")
			}
			var b strings.Builder
			if _, err := e.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			again, err := wire.NewEventReader(strings.NewReader(b.String())).Next()
			if err != nil || string(again.Data) != string(e.Data) {
				t.Fatalf("%q came back as %q, %v", e.Data, again.Data, err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]}`))
	f.Add([]byte(`{"model":"m","input":[{"type":"message","role":"user","content":"x"},{"type":"function_call_output","output":[{"text":"y"}]}]}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}],"stop":"x"}`))
	f.Add([]byte(`{"type":"response.completed","response":{"status":"completed","output":[]}}`))
	f.Add([]byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, request := range []any{new(wire.AnthropicRequest), new(wire.ResponsesRequest), new(wire.ChatRequest)} {
			if json.Unmarshal(data, request) != nil {
				continue
			}
			if _, err := json.Marshal(request); err != nil {
				t.Errorf("%T was read and cannot be written: %v", request, err)
			}
		}
		for _, add := range []func(wire.Event) ([]wire.Delta, error){
			new(wire.AnthropicAccumulator).Add, new(wire.ResponsesAccumulator).Add, new(wire.ChatAccumulator).Add,
		} {
			for range 2 {
				_, _ = add(wire.Event{Data: data})
			}
		}
		_ = wire.DecodeError(data).Error()
	})
}

func TestGeminiReplySurvivesStreaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := wire.GeminiResponse{
			ResponseID: "r", ModelVersion: "m",
			UsageMetadata: &wire.GeminiUsage{PromptTokenCount: 7, CandidatesTokenCount: 3, TotalTokenCount: 10},
		}
		candidate := wire.GeminiCandidate{
			Content:      wire.GeminiContent{Role: "model", Parts: []wire.GeminiPart{}},
			FinishReason: rapid.SampledFrom([]string{"STOP", "MAX_TOKENS", "SAFETY"}).Draw(t, "finish"),
		}
		thought, said, inputs := "", "", ""
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			part := wire.GeminiPart{ThoughtSignature: "c2ln"} // which ends a text, so that two do not become one
			switch rapid.SampledFrom([]string{"text", "thought", "call"}).Draw(t, "kind") {
			case "text":
				part.Text = "t" + text().Draw(t, "text")
				said += part.Text
			case "thought":
				part.Text, part.Thought = "h"+text().Draw(t, "thought"), true
				thought += part.Text
			case "call":
				args := json.RawMessage(object().Draw(t, "args"))
				part.FunctionCall = &wire.GeminiFunctionCall{ID: "c", Name: "f", Args: args}
				inputs += string(args)
			}
			candidate.Content.Parts = append(candidate.Content.Parts, part)
		}
		want.Candidates = []wire.GeminiCandidate{candidate}
		var acc wire.GeminiAccumulator
		var deltas []wire.Delta
		for _, e := range overTheWire(t, wire.GeminiEvents(want)) {
			added, err := acc.Add(e)
			if err != nil {
				t.Fatal(err)
			}
			deltas = append(deltas, added...)
		}
		if !acc.Finished {
			t.Fatal("the stream does not end the reply")
		}
		if diff := cmp.Diff(want, acc.Response()); diff != "" {
			t.Fatal(diff)
		}
		if joined(deltas, wire.DeltaText) != said || joined(deltas, wire.DeltaThinking) != thought ||
			joined(deltas, wire.DeltaToolInput) != inputs {
			t.Fatal("the deltas do not add up")
		}
	})
}

// TestDefaultModelsHavePrices: a budget in dollars is possible without naming a model.
func TestDefaultModelsHavePrices(t *testing.T) {
	t.Parallel()
	for _, protocol := range []wire.Protocol{wire.Anthropic, wire.Responses, wire.Chat, wire.Gemini} {
		info := protocol.Info()
		if info.DefaultModel != "" && !price.Default().Priced(info.DefaultModel, time.Now().UnixMilli()) {
			t.Errorf("%s asks for %q, which has no price", info.Name, info.DefaultModel)
		}
	}
}
