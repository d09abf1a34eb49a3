package wire

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/price"
)

// Responses is OpenAI's Responses protocol.
var Responses Protocol = responses{}

type responses struct{}

var responsesInfo = Info{
	Name:          "responses",
	Vendor:        "openai",
	URL:           "https://api.openai.com/v1",
	Version:       "/v1",
	KeyVariable:   "OPENAI_API_KEY",
	URLVariable:   "OPENAI_BASE_URL",
	VersionInURL:  true,
	Models:        lazyregexp.New(`^(?:gpt-\d|o\d|codex|chatgpt)`),
	DefaultModel:  "gpt-5.5",
	InputName:     "input_tokens",
	OutputName:    "output_tokens",
	CachedIsInput: true,
	TextForm:      textForm,
}

func (responses) Info() *Info              { return &responsesInfo }
func (responses) Path(string, bool) string { return "/responses" }

// Route accepts a turn, the counting of tokens, compaction, which a model does, and the end of a
// reply.
func (responses) Route(path string) (Route, bool) {
	if path == "/v1/responses" {
		return Route{Turn: true, Paid: true}, true
	}
	switch rest, _ := strings.CutPrefix(path, "/v1/responses/"); rest {
	case "compact":
		return Route{Paid: true}, true
	case "input_tokens":
		return Route{}, true
	default:
		id, cancels := strings.CutSuffix(rest, "/cancel")
		return Route{}, cancels && id != "" && rest != path && !strings.Contains(id, "/")
	}
}

func (responses) ErrorBody(status int, e APIError) []byte { return openAIErrorBody(status, e) }

func (responses) ErrorEvent(_ int, model string, e APIError) Event {
	return ResponsesErrorEvent(Response{Model: model}, e)
}

func (responses) Usage(report []byte) (price.TokenUsage, error) {
	var u ResponsesUsage
	err := json.Unmarshal(report, &u)
	return u.tokens(), err
}

// tokens returns what the report says.
func (u ResponsesUsage) tokens() price.TokenUsage {
	return openAITokens(u.InputTokens, u.OutputTokens, u.InputTokensDetails, u.OutputTokensDetails)
}

func openAITokens(input, output int64, in ResponsesInputDetail, out ResponsesOutputDetail) price.TokenUsage {
	return price.TokenUsage{
		InputTokens:      input,
		OutputTokens:     output,
		CacheReadTokens:  in.CachedTokens,
		CacheWriteTokens: in.CacheWriteTokens,
		ReasoningTokens:  out.ReasoningTokens,
	}
}

func (responses) Look(data []byte) Glance { return Glance{Reports: reports(data, usageKey)} }

// ResponsesRequest is the body of POST /v1/responses.
type ResponsesRequest struct {
	Model           string              `json:"model"`
	Instructions    string              `json:"instructions,omitempty"`
	Input           ResponsesInput      `json:"input"`
	Tools           []ResponsesTool     `json:"tools,omitempty"`
	Reasoning       *ResponsesReasoning `json:"reasoning,omitempty"`
	Include         []string            `json:"include,omitempty"`
	MaxOutputTokens int                 `json:"max_output_tokens,omitempty"`
	Temperature     *float64            `json:"temperature,omitempty"`
	// Store must be false for a conversation that the client keeps itself.
	Store  *bool `json:"store,omitempty"`
	Stream bool  `json:"stream,omitempty"`
}

// ResponsesReasoning asks for more or less reasoning, and for a summary of it.
type ResponsesReasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// ResponsesTool is a tool the client offers: a function, a freeform tool ("custom"), a namespace of
// tools, or one of the vendor's.
type ResponsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
	Tools       []ResponsesTool `json:"tools,omitempty"`
}

// ResponsesInput is a list of items; on the wire it may also be a plain string, which is a user
// message.
type ResponsesInput []ResponsesItem

// UnmarshalJSON accepts a string or a list of items.
func (in *ResponsesInput) UnmarshalJSON(data []byte) error {
	*in = nil
	if text, ok := jsonString(data); ok {
		*in = ResponsesInput{{Type: "message", Role: "user", Content: OpenAIContent{{Type: "input_text", Text: text}}}}
		return nil
	}
	return json.Unmarshal(data, (*[]ResponsesItem)(in))
}

// ResponsesItem is one item of the input or output; Type says which of the fields count.
type ResponsesItem struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Status string `json:"status"`

	Role    string        `json:"role"`    // message; an item with a role and no type is one
	Content OpenAIContent `json:"content"` // message

	Summary          OpenAIContent `json:"summary"`           // reasoning
	EncryptedContent string        `json:"encrypted_content"` // reasoning

	CallID    string `json:"call_id"`   // every call and its output
	Name      string `json:"name"`      // calls
	Namespace string `json:"namespace"` // calls
	Arguments string `json:"arguments"` // function_call
	Input     string `json:"input"`     // custom_tool_call

	Output OpenAIContent `json:"output"` // outputs of calls

	Tools []ResponsesTool `json:"tools"` // additional_tools
}

// UnmarshalJSON reads the fields one by one, because items of kinds we do not know give the same
// names to values of other types.
func (it *ResponsesItem) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*it = ResponsesItem{}
	for name, target := range map[string]any{
		"type": &it.Type, "id": &it.ID, "status": &it.Status, "role": &it.Role, "content": &it.Content,
		"summary":           &it.Summary,
		"encrypted_content": &it.EncryptedContent, "call_id": &it.CallID, "name": &it.Name, "namespace": &it.Namespace,
		"arguments": &it.Arguments, "input": &it.Input, "output": &it.Output, "tools": &it.Tools,
	} {
		if raw, ok := fields[name]; ok {
			_ = json.Unmarshal(raw, target) // a field of another type is another kind's
		}
	}
	return nil
}

// MarshalJSON writes the fields that belong to the item's type, empty or not where clients insist
// on them.
func (it ResponsesItem) MarshalJSON() ([]byte, error) {
	m := map[string]any{"type": it.Type}
	put := func(name, value string) {
		if value != "" {
			m[name] = value
		}
	}
	put("id", it.ID)
	put("status", it.Status)
	switch it.Type {
	case "message":
		m["role"], m["content"] = it.Role, it.Content.orEmpty()
	case "reasoning":
		m["summary"] = it.Summary.orEmpty()
		put("encrypted_content", it.EncryptedContent)
	case "function_call":
		m["call_id"], m["name"], m["arguments"] = it.CallID, it.Name, it.Arguments
		put("namespace", it.Namespace)
	case "custom_tool_call":
		m["call_id"], m["name"], m["input"] = it.CallID, it.Name, it.Input
		put("namespace", it.Namespace)
	case "function_call_output", "custom_tool_call_output":
		m["call_id"], m["output"] = it.CallID, it.Output.Text()
	case "additional_tools":
		m["tools"] = it.Tools
	}
	return json.Marshal(m)
}

// IsAssistant reports whether the item was produced by the model.
func (it ResponsesItem) IsAssistant() bool {
	return it.Role == "assistant" || it.Type == "reasoning" || strings.HasSuffix(it.Type, "_call")
}

// Response is a whole reply of the Responses protocol.
type Response struct {
	ID                string               `json:"id"`
	Object            string               `json:"object"`
	CreatedAt         int64                `json:"created_at"`
	Status            string               `json:"status"`
	Model             string               `json:"model"`
	Output            []ResponsesItem      `json:"output"`
	Error             *ResponsesError      `json:"error"`
	IncompleteDetails *ResponsesIncomplete `json:"incomplete_details"`
	ParallelToolCalls bool                 `json:"parallel_tool_calls"`
	ToolChoice        any                  `json:"tool_choice,omitempty"`
	Tools             []ResponsesTool      `json:"tools"`
	Usage             *ResponsesUsage      `json:"usage"`
}

// ResponsesError says why a reply failed.
type ResponsesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ResponsesIncomplete says why a reply ended early: "max_output_tokens" or "content_filter".
type ResponsesIncomplete struct {
	Reason string `json:"reason"`
}

// ResponsesUsage is the token accounting of a reply. InputTokens includes the cached ones.
type ResponsesUsage struct {
	InputTokens         int64                 `json:"input_tokens"`
	InputTokensDetails  ResponsesInputDetail  `json:"input_tokens_details"`
	OutputTokens        int64                 `json:"output_tokens"`
	OutputTokensDetails ResponsesOutputDetail `json:"output_tokens_details"`
	TotalTokens         int64                 `json:"total_tokens"`
}

// ResponsesInputDetail splits the input tokens.
type ResponsesInputDetail struct {
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
}

// ResponsesOutputDetail splits the output tokens.
type ResponsesOutputDetail struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// responsesStream builds the numbered events of one stream.
type responsesStream struct{ events []Event }

func (s *responsesStream) emit(name string, delta bool, fields map[string]any) {
	fields["type"], fields["sequence_number"] = name, len(s.events)
	s.events = append(s.events, jsonEvent(name, delta, fields))
}

// ResponsesEvents cuts a whole reply into the events of a stream.
func ResponsesEvents(r Response) []Event {
	begun := r
	begun.Status, begun.Output, begun.Usage, begun.IncompleteDetails = "in_progress", []ResponsesItem{}, nil, nil
	var s responsesStream
	s.emit("response.created", false, map[string]any{"response": begun})
	s.emit("response.in_progress", false, map[string]any{"response": begun})
	for i, item := range r.Output {
		s.item(i, item)
	}
	s.emit("response."+r.Status, false, map[string]any{"response": r}) // completed, incomplete or failed
	return s.events
}

func (s *responsesStream) item(index int, item ResponsesItem) {
	empty := item
	empty.Status, empty.Content, empty.Summary = "in_progress", nil, nil
	empty.Arguments, empty.Input, empty.EncryptedContent = "", "", ""
	if item.Type == "reasoning" {
		empty.Status = ""
	}
	s.emit("response.output_item.added", false, map[string]any{"output_index": index, "item": empty})
	at := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"] = item.ID, index
		return fields
	}
	switch item.Type {
	case "message":
		for i, part := range item.Content {
			s.part("content_part", partName(part), "content_index", i, part, at)
		}
	case "reasoning":
		for i, part := range item.Summary {
			s.part("reasoning_summary_part", "reasoning_summary_text", "summary_index", i, part, at)
		}
	case "function_call":
		s.callInput("response.function_call_arguments", "arguments", item.Arguments, at)
	case "custom_tool_call":
		s.callInput("response.custom_tool_call_input", "input", item.Input, at)
	}
	s.emit("response.output_item.done", false, map[string]any{"output_index": index, "item": item})
}

func partName(part OpenAIPart) string {
	if part.Type == "refusal" {
		return "refusal"
	}
	return "output_text"
}

func (s *responsesStream) part(part, text, indexName string, index int, value OpenAIPart,
	at func(map[string]any) map[string]any,
) {
	at2 := func(fields map[string]any) map[string]any {
		fields[indexName] = index
		return at(fields)
	}
	whole, field := value.Text, "text"
	if value.Type == "refusal" {
		whole, field = value.Refusal, "refusal"
	}
	s.emit("response."+part+".added", false, at2(map[string]any{"part": OpenAIPart{Type: value.Type}}))
	for _, piece := range pieces(whole) {
		s.emit("response."+text+".delta", true, at2(map[string]any{"delta": piece}))
	}
	s.emit("response."+text+".done", false, at2(map[string]any{field: whole}))
	s.emit("response."+part+".done", false, at2(map[string]any{"part": value}))
}

func (s *responsesStream) callInput(name, field, text string, at func(map[string]any) map[string]any) {
	for _, piece := range pieces(text) {
		s.emit(name+".delta", true, at(map[string]any{"delta": piece}))
	}
	s.emit(name+".done", false, at(map[string]any{field: text}))
}

// ResponsesErrorEvent returns the event that reports an error inside a stream: the reply turns out
// to have failed.
func ResponsesErrorEvent(r Response, e APIError) Event {
	r.Status, r.Output, r.Usage = "failed", []ResponsesItem{}, nil
	r.Error = &ResponsesError{Code: cmp.Or(e.Code, e.Type), Message: e.Message}
	return jsonEvent("response.failed", false,
		map[string]any{"type": "response.failed", "sequence_number": 1 << 20, "response": r})
}

// Failure returns the error that a whole reply reports, or nil.
func (r *Response) Failure() error {
	switch {
	case r.Error != nil:
		return &APIError{Code: r.Error.Code, Message: r.Error.Message}
	case r.Status == "failed":
		return &APIError{Message: "the reply failed and the server does not say why"}
	}
	return nil
}
