package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/price"
)

// Gemini is the generateContent protocol.
var Gemini Protocol = gemini{}

type gemini struct{}

var geminiInfo = Info{
	Name:          "gemini",
	Vendor:        "google",
	URL:           "https://generativelanguage.googleapis.com/v1beta",
	Version:       "/v1beta",
	KeyVariable:   "GEMINI_API_KEY",
	URLVariable:   "GOOGLE_GEMINI_BASE_URL",
	KeyHeader:     "X-Goog-Api-Key",
	Models:        lazyregexp.New(`^gemini`),
	DefaultModel:  "gemini-3-pro-preview",
	InputName:     "promptTokenCount",
	OutputName:    "totalTokenCount", // it leaves out what is zero
	CachedIsInput: true,
	SnakeCase:     true,
	OwnTools:      "functionDeclarations",
	FileMembers:   []string{"fileData", "file_data"},
	TextForm:      `{"text":%q}`,
}

func (gemini) Info() *Info { return &geminiInfo }

func (gemini) Path(model string, stream bool) string {
	path := "/models/" + url.PathEscape(model) + ":"
	if stream {
		return path + geminiStream + "?alt=sse"
	}
	return path + geminiGenerate
}

// Route reads the model and the method out of a path such as
// /v1beta/models/gemini-3-pro:streamGenerateContent.
func (gemini) Route(path string) (Route, bool) {
	if path == "/v1beta/models" {
		return Route{Method: http.MethodGet}, true
	}
	for _, version := range []string{"/v1beta/models/", "/v1alpha/models/", "/v1/models/"} {
		rest, found := strings.CutPrefix(path, version)
		at := strings.LastIndexByte(rest, ':')
		if !found || at <= 0 || strings.Contains(rest, "/") {
			continue
		}
		to := Route{Model: rest[:at]}
		switch rest[at+1:] {
		case geminiGenerate:
			to.Turn, to.Paid = true, true
		case geminiStream:
			to.Turn, to.Paid, to.Stream = true, true, true
		case "countTokens":
			to.Counts = true
		default:
			to.Unknown = true
		}
		return to, true
	}
	return Route{}, false
}

// The methods of a model that answer.
const (
	geminiGenerate = "generateContent"
	geminiStream   = "streamGenerateContent"
)

func (gemini) ErrorBody(status int, e APIError) []byte {
	e.Type = cmp.Or(e.Type, geminiStatuses[status], "UNKNOWN")
	return mustMarshal(map[string]any{
		"error": map[string]any{"code": status, "message": e.Message, "status": e.Type},
	})
}

var geminiStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (g gemini) ErrorEvent(status int, _ string, e APIError) Event {
	return Event{Data: g.ErrorBody(cmp.Or(status, 503), e)}
}

func (gemini) Usage(report []byte) (price.TokenUsage, error) {
	var u GeminiUsage
	err := json.Unmarshal(report, &u)
	return u.tokens(), err
}

// tokens returns what the report says.
func (u GeminiUsage) tokens() price.TokenUsage {
	return price.TokenUsage{
		InputTokens:     u.PromptTokenCount,
		OutputTokens:    u.CandidatesTokenCount + u.ThoughtsTokenCount,
		CacheReadTokens: u.CachedContentTokenCount,
		ReasoningTokens: u.ThoughtsTokenCount,
	}
}

var (
	geminiUsage  = []byte(`"usageMetadata"`)
	geminiFinish = []byte(`"finishReason"`)
	geminiBlock  = []byte(`"blockReason"`)
)

func (gemini) Look(data []byte) Glance {
	return Glance{
		Ends:    bytes.Contains(data, geminiFinish) || bytes.Contains(data, geminiBlock),
		Reports: reports(data, geminiUsage),
	}
}

// GeminiRequest is the body of POST /v1beta/models/NAME:generateContent and of
// :streamGenerateContent. The model and whether the reply is streamed are in the path.
type GeminiRequest struct {
	Contents          []GeminiContent         `json:"contents"`
	SystemInstruction *GeminiContent          `json:"systemInstruction,omitempty"`
	Tools             []GeminiTool            `json:"tools,omitempty"`
	GenerationConfig  *GeminiGenerationConfig `json:"generationConfig,omitempty"`
}

// GeminiGenerationConfig bounds and shapes the reply.
type GeminiGenerationConfig struct {
	MaxOutputTokens int      `json:"maxOutputTokens,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
}

// GeminiContent is one message: of the user, whose parts may be results of functions, or of the
// model.
type GeminiContent struct {
	Role  string       `json:"role,omitempty"` // user or model
	Parts []GeminiPart `json:"parts"`
}

// UnmarshalJSON accepts a plain string too, as the service does for system instructions.
func (c *GeminiContent) UnmarshalJSON(data []byte) error {
	if text, ok := jsonString(data); ok {
		*c = GeminiContent{Parts: []GeminiPart{{Text: text}}}
		return nil
	}
	type plain GeminiContent
	return json.Unmarshal(data, (*plain)(c))
}

// GeminiPart is a piece of a message; one of its fields is set. A thought is a text of the model's
// reasoning.
type GeminiPart struct {
	Text             string                  `json:"text,omitempty"`
	Thought          bool                    `json:"thought,omitempty"`
	ThoughtSignature string                  `json:"thoughtSignature,omitempty"`
	FunctionCall     *GeminiFunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *GeminiFunctionResponse `json:"functionResponse,omitempty"`
}

// GeminiFunctionCall is the model's request to call a function. Older services give it no id.
type GeminiFunctionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// GeminiFunctionResponse answers a call.
type GeminiFunctionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// Text returns the response as text: the value of the key that clients use for it, or all of it.
func (r GeminiFunctionResponse) Text() string {
	var object map[string]json.RawMessage
	if json.Unmarshal(r.Response, &object) == nil {
		for _, key := range []string{"output", "result", "content", "error"} {
			if text, ok := jsonString(object[key]); ok {
				return text
			}
		}
	}
	return string(r.Response)
}

// GeminiTool is a set of functions the client offers.
type GeminiTool struct {
	FunctionDeclarations []GeminiFunction `json:"functionDeclarations,omitempty"`
}

// GeminiFunction describes a function. Its schema is in the service's own form, with types in
// capitals, or a JSON Schema.
type GeminiFunction struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	Parameters           json.RawMessage `json:"parameters,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// Schema returns the schema of the function's input, whichever it has.
func (f GeminiFunction) Schema() json.RawMessage {
	if len(f.ParametersJSONSchema) > 0 {
		return f.ParametersJSONSchema
	}
	return f.Parameters
}

// GeminiResponse is a whole reply, or a piece of a streamed one.
type GeminiResponse struct {
	Candidates     []GeminiCandidate     `json:"candidates,omitempty"`
	PromptFeedback *GeminiPromptFeedback `json:"promptFeedback,omitempty"`
	UsageMetadata  *GeminiUsage          `json:"usageMetadata,omitempty"`
	ModelVersion   string                `json:"modelVersion,omitempty"`
	ResponseID     string                `json:"responseId,omitempty"`
}

// GeminiCandidate is one of the alternatives of a reply; there is only ever one.
type GeminiCandidate struct {
	Content      GeminiContent `json:"content"`
	FinishReason string        `json:"finishReason,omitempty"`
	Index        int           `json:"index"`
}

// GeminiPromptFeedback says why a prompt got no reply.
type GeminiPromptFeedback struct {
	BlockReason string `json:"blockReason,omitempty"`
}

// GeminiUsage is the token accounting of a reply. PromptTokenCount includes the cached ones;
// CandidatesTokenCount does not include the thoughts.
type GeminiUsage struct {
	PromptTokenCount        int64 `json:"promptTokenCount"`
	CandidatesTokenCount    int64 `json:"candidatesTokenCount"`
	ThoughtsTokenCount      int64 `json:"thoughtsTokenCount,omitempty"`
	CachedContentTokenCount int64 `json:"cachedContentTokenCount,omitempty"`
	TotalTokenCount         int64 `json:"totalTokenCount"`
}

// GeminiEvents cuts a whole reply into the events of a stream: texts come in pieces, calls whole.
// The last event has the reason to stop and the usage.
func GeminiEvents(r GeminiResponse) []Event {
	var events []Event
	chunk := func(delta bool, parts []GeminiPart, finish string, usage *GeminiUsage) {
		content := GeminiContent{Role: "model", Parts: parts}
		events = append(events, jsonEvent("", delta, GeminiResponse{
			Candidates:    []GeminiCandidate{{Content: content, FinishReason: finish}},
			UsageMetadata: usage,
			ModelVersion:  r.ModelVersion,
			ResponseID:    r.ResponseID,
		}))
	}
	finish := ""
	for _, candidate := range r.Candidates {
		finish = candidate.FinishReason
		for _, part := range candidate.Content.Parts {
			if part.Text == "" {
				chunk(true, []GeminiPart{part}, "", nil)
				continue
			}
			texts := pieces(part.Text)
			for i, text := range texts {
				piece := GeminiPart{Text: text, Thought: part.Thought}
				if i == len(texts)-1 {
					piece.ThoughtSignature = part.ThoughtSignature
				}
				chunk(true, []GeminiPart{piece}, "", nil)
			}
		}
	}
	chunk(false, []GeminiPart{}, finish, r.UsageMetadata)
	return events
}
