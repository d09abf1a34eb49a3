package vendortest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
)

// The vendors' own clients are the judges of our wire formats.

const sdkScript = `{"turns": [
	{"thinking": "Hm.", "text": "Looking at it, with a text long enough to need several pieces.", "calls": [{"bash": "go test ./..."}],
	 "usage": {"input": 70, "output": 20, "cache_read": 30, "cache_write": 5, "reasoning": 4}},
	{"text": "All good."}
]}`

func anthropicClient(url string) *anthropic.Client {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("dummy"),
		anthropicoption.WithMaxRetries(0))
	return &client
}

func openaiClient(url string) *openai.Client {
	client := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("dummy"),
		openaioption.WithMaxRetries(0))
	return &client
}

func messagesParams(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-test", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "Bash", InputSchema: anthropic.ToolInputSchemaParam{
				Properties: map[string]any{"command": map[string]any{"type": "string"}},
			},
		}}},
	}
}

func streamMessages(t *testing.T, client *anthropic.Client, params anthropic.MessageNewParams) (anthropic.Message,
	error,
) {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), params)
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	return message, stream.Err()
}

func TestAnthropicSDK(t *testing.T) {
	client := anthropicClient(scriptedtest.ServeAll(t, map[string]string{"": sdkScript}, scripted.Options{}))
	params := messagesParams("Fix Add")
	whole, err := client.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := streamMessages(t, client, params)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*anthropic.Message{"whole": whole, "streamed": &streamed} {
		t.Run(name, func(t *testing.T) {
			if m.StopReason != anthropic.StopReasonToolUse || len(m.Content) != 3 || m.Model != "claude-test" {
				t.Fatalf("%s: %s", name, m.RawJSON())
			}
			if m.Content[0].Thinking != "Hm." || m.Content[0].Signature == "" ||
				!strings.HasSuffix(m.Content[1].Text, "several pieces.") {
				t.Errorf("%s: %+v", name, m.Content)
			}
			if call := m.Content[2]; call.Name != "Bash" || string(call.Input) != `{"command":"go test ./..."}` ||
				call.ID != whole.Content[2].ID {
				t.Errorf("%s: call %+v", name, call)
			}
			u := m.Usage
			if u.InputTokens != 70 || u.OutputTokens != 20 || u.CacheReadInputTokens != 30 ||
				u.CacheCreationInputTokens != 5 {
				t.Errorf("%s: usage %+v", name, u)
			}
		})
	}
	params.Messages = append(params.Messages, whole.ToParam(),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock(whole.Content[2].ID, "ok", false)))
	last, err := client.Messages.New(t.Context(), params)
	if err != nil || last.Content[0].Text != "All good." || last.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("%+v, %v", last, err)
	}
	count, err := client.Messages.CountTokens(t.Context(),
		anthropic.MessageCountTokensParams{Model: "m", Messages: params.Messages})
	if err != nil || count.InputTokens < 10 {
		t.Errorf("count_tokens: %+v, %v", count, err)
	}
	models, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) == 0 {
		t.Errorf("models: %+v, %v", models, err)
	}
}

func TestAnthropicSDKSeesErrors(t *testing.T) {
	client := anthropicClient(scriptedtest.ServeAll(t, map[string]string{
		"":      `{"turns": [{"fault": {"status": 529, "message": "too busy"}}]}`,
		"inner": `{"turns": [{"text": "half a text, cut in the middle of it", "fault": {"stream": "error", "type": "overloaded_error", "message": "too busy"}}]}`,
	}, scripted.Options{}))
	var apiError *anthropic.Error
	if _, err := client.Messages.New(t.Context(), messagesParams("x")); !errors.As(err, &apiError) ||
		apiError.StatusCode != 529 || !strings.Contains(err.Error(), "overloaded_error") {
		t.Errorf("got %v", err)
	}
}

func TestAnthropicSDKSeesBrokenStreams(t *testing.T) {
	for _, kind := range []string{"cut", "error"} {
		url := scriptedtest.ServeAll(t,
			map[string]string{"": `{"turns": [{"text": "half a text, cut in the middle of it", "fault": {"stream": "` +
				kind + `", "message": "too busy"}}]}`}, scripted.Options{})
		if m, err := streamMessages(t, anthropicClient(url), messagesParams("x")); err == nil {
			t.Errorf("%s: no error, but %+v", kind, m)
		}
	}
}

func responsesParams(prompt string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "gpt-test", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "exec_command", Parameters: map[string]any{
				"type":       "object",
				"properties": map[string]any{"cmd": map[string]any{"type": "string"}},
			},
		}}},
	}
}

func TestOpenAISDKResponses(t *testing.T) {
	client := openaiClient(scriptedtest.ServeAll(t, map[string]string{"": sdkScript}, scripted.Options{}))
	whole, err := client.Responses.New(t.Context(), responsesParams("Fix Add"))
	if err != nil {
		t.Fatal(err)
	}
	stream := client.Responses.NewStreaming(t.Context(), responsesParams("Fix Add"))
	var text, arguments strings.Builder
	var streamed responses.Response
	sequence := int64(0)
	for stream.Next() {
		event := stream.Current()
		if event.SequenceNumber != sequence {
			t.Errorf("event %s has number %d, want %d", event.Type, event.SequenceNumber, sequence)
		}
		sequence++
		switch e := event.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text.WriteString(e.Delta)
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			arguments.WriteString(e.Delta)
		case responses.ResponseCompletedEvent:
			streamed = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*responses.Response{"whole": whole, "streamed": &streamed} {
		t.Run(name, func(t *testing.T) {
			if r.Status != responses.ResponseStatusCompleted || len(r.Output) != 3 ||
				!strings.HasSuffix(r.OutputText(), "several pieces.") {
				t.Fatalf("%s: %s", name, r.RawJSON())
			}
			if call := r.Output[2].AsFunctionCall(); call.Name != "exec_command" ||
				call.Arguments != `{"cmd":"go test ./..."}` {
				t.Errorf("%s: call %+v", name, call)
			}
			u := r.Usage
			if u.InputTokens != 105 || u.InputTokensDetails.CachedTokens != 30 || u.OutputTokens != 20 ||
				u.OutputTokensDetails.ReasoningTokens != 4 || u.TotalTokens != 125 {
				t.Errorf("%s: usage %+v", name, u)
			}
		})
	}
	if text.String() != whole.OutputText() || arguments.String() != `{"cmd":"go test ./..."}` {
		t.Errorf("streamed %q and %q", text.String(), arguments.String())
	}
	result := responses.ResponseInputItemParamOfFunctionCallOutput("ok")
	result.OfFunctionCallOutput.CallID = openai.String(whole.Output[2].AsFunctionCall().CallID)
	second := responsesParams("")
	second.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("Fix Add", responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(`{"cmd":"go test ./..."}`,
			whole.Output[2].AsFunctionCall().CallID, "exec_command"),
		result,
	}}
	last, err := client.Responses.New(t.Context(), second)
	if err != nil || last.OutputText() != "All good." {
		t.Errorf("%+v, %v", last, err)
	}
}

func chatParams(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "gpt-test", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "bash", Parameters: map[string]any{
				"type":       "object",
				"properties": map[string]any{"command": map[string]any{"type": "string"}},
			},
		})},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
}

func TestOpenAISDKChat(t *testing.T) {
	client := openaiClient(scriptedtest.ServeAll(t, map[string]string{"": sdkScript}, scripted.Options{}))
	params := chatParams("Fix Add")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var acc openai.ChatCompletionAccumulator
	stream := client.Chat.Completions.NewStreaming(t.Context(), chatParams("Fix Add"))
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("the vendor's accumulator refuses %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]openai.ChatCompletion{"whole": *whole, "streamed": acc.ChatCompletion} {
		t.Run(name, func(t *testing.T) {
			choice := c.Choices[0]
			if choice.FinishReason != "tool_calls" || !strings.HasSuffix(choice.Message.Content, "several pieces.") ||
				len(choice.Message.ToolCalls) != 1 {
				t.Fatalf("%s: %+v", name, choice)
			}
			if call := choice.Message.ToolCalls[0]; call.Function.Name != "bash" ||
				call.Function.Arguments != `{"command":"go test ./..."}` {
				t.Errorf("%s: %+v", name, call)
			}
			if c.Usage.PromptTokens != 105 || c.Usage.CompletionTokens != 20 || name == "whole" &&
				c.Usage.PromptTokensDetails.CachedTokens != 30 {
				t.Errorf("%s: usage %+v", name, c.Usage)
			}
		})
	}
	params.Messages = append(params.Messages, whole.Choices[0].Message.ToParam(),
		openai.ToolMessage("ok", whole.Choices[0].Message.ToolCalls[0].ID))
	last, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil || last.Choices[0].Message.Content != "All good." {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestOpenAISDKSeesErrors(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{
		"":     `{"turns": [{"fault": {"status": 429, "retry_after": "7", "message": "slow down"}}]}`,
		"cut":  `{"turns": [{"text": "a text that will be cut in the middle", "fault": {"stream": "cut"}}]}`,
		"fail": `{"turns": [{"text": "a text that will fail in the middle", "fault": {"stream": "error", "message": "gone wrong"}}]}`,
	}, scripted.Options{})
	var apiError *openai.Error
	_, err := openaiClient(url).Chat.Completions.New(t.Context(), chatParams("x"))
	if !errors.As(err, &apiError) || apiError.StatusCode != http.StatusTooManyRequests ||
		apiError.Message != "slow down" || apiError.Response.Header.Get("Retry-After") != "7" {
		t.Errorf("chat: %v", err)
	}
	if _, err = openaiClient(url).Responses.New(t.Context(), responsesParams("x")); !errors.As(err, &apiError) ||
		apiError.Code != "rate_limit_exceeded" {
		t.Errorf("responses: %v", err)
	}
	for _, name := range []string{"cut", "fail"} {
		stream := openaiClient(url+"/s/"+name).Chat.Completions.NewStreaming(t.Context(), chatParams("x"))
		for stream.Next() {
		}
		if stream.Err() == nil {
			t.Errorf("chat %s: the stream ends well", name)
		}
	}
	stream := openaiClient(url+"/s/fail").Responses.NewStreaming(t.Context(), responsesParams("x"))
	var failed responses.ResponseFailedEvent
	for stream.Next() {
		if e, ok := stream.Current().AsAny().(responses.ResponseFailedEvent); ok {
			failed = e
		}
	}
	if failed.Response.Error.Message != "gone wrong" {
		t.Errorf("responses: the failure is %+v", failed.Response.Error)
	}
}

func TestStopReasonsInEveryProtocol(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{
		"long":  `{"turns": [{"text": "and then", "stop": "max_tokens"}]}`,
		"never": `{"turns": [{"text": "I won't.", "stop": "refusal"}]}`,
	}, scripted.Options{})
	type outcome struct{ Long, Never string }
	got := map[string]outcome{}
	for _, name := range []string{"long", "never"} {
		at := url + "/s/" + name
		m, err := anthropicClient(at).Messages.New(t.Context(), messagesParams("x"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := openaiClient(at).Chat.Completions.New(t.Context(), chatParamsWhole())
		if err != nil {
			t.Fatal(err)
		}
		r, err := openaiClient(at).Responses.New(t.Context(), responsesParams("x"))
		if err != nil {
			t.Fatal(err)
		}
		for protocol, value := range map[string]string{
			"anthropic": string(m.StopReason), "chat": c.Choices[0].FinishReason + c.Choices[0].Message.Refusal,
			"responses": string(r.Status) + r.IncompleteDetails.Reason + r.Output[0].Content[0].Refusal,
		} {
			o := got[protocol]
			if name == "long" {
				o.Long = value
			} else {
				o.Never = value
			}
			got[protocol] = o
		}
	}
	want := map[string]outcome{
		"anthropic": {"max_tokens", "refusal"},
		"chat":      {"length", "content_filterI won't."},
		"responses": {"incompletemax_output_tokens", "completedI won't."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func chatParamsWhole() openai.ChatCompletionNewParams {
	params := chatParams("x")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	return params
}
