package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/price"
)

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
		t.Run(body, func(t *testing.T) {
			if diff := cmp.Diff(&want, wire.DecodeError([]byte(body))); diff != "" {
				t.Errorf("%s: %s", body, diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]}`))
	f.Add([]byte(`{"model":"m","input":[{"type":"message","role":"user","content":"x"},{"type":"function_call_output","output":[{"text":"y"}]}]}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}],"stop":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, request := range []any{new(wire.AnthropicRequest), new(wire.ResponsesRequest), new(wire.ChatRequest)} {
			if json.Unmarshal(data, request) != nil {
				continue
			}
			if _, err := json.Marshal(request); err != nil {
				t.Errorf("%T was read and cannot be written: %v", request, err)
			}
		}
		_ = wire.DecodeError(data).Error()
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
