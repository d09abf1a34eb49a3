package wire

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// APIError is an error a model endpoint reported, in an HTTP reply or inside a stream.
type APIError struct {
	Type      string
	Code      string
	Message   string
	RequestID string
	// Foreign says that the reply is no error of a model's protocol: a proxy's page, or nothing.
	Foreign bool
}

func (e *APIError) Error() string {
	label := cmp.Or(e.Type, e.Code)
	switch {
	case label == "":
		return e.Message
	case e.Message == "":
		return label
	default:
		return label + ": " + e.Message
	}
}

// errorDetail is the inner error object of all protocols; a code may be a string, a number or null.
type errorDetail struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // what Google calls the type
	Code    any    `json:"code"`
	Message string `json:"message"`
}

func (d errorDetail) apiError() *APIError {
	e := &APIError{Type: cmp.Or(d.Type, d.Status), Message: d.Message}
	if code, ok := d.Code.(string); ok {
		e.Code = code
	}
	return e
}

// DecodeError reads the error in a reply of any of the protocols, and of the many servers that
// imitate them. A body that holds none becomes the message, shortened.
func DecodeError(body []byte) *APIError {
	var outer struct {
		Message   string          `json:"message"`
		Detail    json.RawMessage `json:"detail"`
		Error     json.RawMessage `json:"error"`
		RequestID string          `json:"request_id"`
		Exception string          `json:"__type"` // Amazon's
	}
	if json.Unmarshal(body, &outer) != nil {
		return &APIError{Message: display.CutBytes(display.Line(string(body)), shownBody), Foreign: true}
	}
	e := &APIError{Type: outer.Exception, Message: outer.Message}
	var detail errorDetail
	var text string
	switch {
	case len(outer.Error) > 0 && outer.Error[0] == '{' && json.Unmarshal(outer.Error, &detail) == nil:
		e = detail.apiError()
	case json.Unmarshal(outer.Error, &text) == nil, json.Unmarshal(outer.Detail, &text) == nil:
		e.Message = text
	}
	if e.Message == "" && e.Type == "" && e.Code == "" {
		e.Message, e.Foreign = display.CutBytes(display.Line(string(body)), shownBody), true
	}
	e.RequestID = outer.RequestID
	return e
}

// Fault is what caused an error reply.
type Fault int

// The faults.
const (
	// FaultRequest is the request's own.
	FaultRequest Fault = iota
	// FaultAccount is the account's or the model's, according to the service's words, which may
	// repeat what the request said.
	FaultAccount
	// FaultService is the service's, or that of something on the way to it.
	FaultService
)

// serviceStatuses are those below 500 that no request of a model's client brings about.
var serviceStatuses = []int{
	http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusMethodNotAllowed,
	http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTeapot, http.StatusMisdirectedRequest,
	http.StatusTooEarly, http.StatusTooManyRequests, http.StatusUnavailableForLegalReasons,
}

// serviceTypes are the types of errors that are the service's whatever the status.
var serviceTypes = []string{
	"server_error", "overloaded_error", "rate_limit_error", "billing_error", "insufficient_quota",
}

// requestTypes are the types, or codes if there is no type, of errors that are about the request.
// Services have many others for what is not, but a request may still bring one about.
var requestTypes = []string{
	"", "invalid_request_error", "invalid_request", "request_too_large", "INVALID_ARGUMENT", "OUT_OF_RANGE",
	"BadRequestError", "BadRequest", "bad_request", "bad_request_error", "validation_error", "ValidationException",
	"context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "content_filter",
	"content_policy_violation", "invalid_prompt", "invalid_value", "unsupported_parameter", "unsupported_value",
	"tool_use_failed", "image_generation_user_error",
}

var (
	accountWords = lazyregexp.New(`(?i)usage limit|credit balance|quota|billing|subscription|too many requests|` +
		`api[ _-]?key|(?:token|credentials?|login) (?:has |have |is |are )?(?:been )?(?:expired|revoked|invalid|not valid)|` +
		`organi[sz]ation must be verified|access to (?:this|the) model|operation not allowed|` +
		`(?:organi[sz]ation|account) (?:has been|is|was) (?:disabled|deactivated|suspended|restricted|not active)|` +
		`location is not supported|(?:country|region|territory)[^.]* not supported|` +
		`not (?:available|supported) in your (?:country|region|location)`)
	modelWords = lazyregexp.New(`(?i)\bmodel\b.*(?:not found|does not exist|deprecated|retired|not available|` +
		`no longer)|(?:unknown|deprecated|unsupported) model`)
)

// Fault says what caused a reply with a status of 400 or more.
func (e *APIError) Fault(status int) Fault {
	switch {
	case status >= http.StatusInternalServerError, e.Foreign, slices.Contains(serviceStatuses, status),
		slices.Contains(serviceTypes, e.Type), slices.Contains(serviceTypes, e.Code):
		return FaultService
	case accountWords.MatchString(e.Message), e.NoModel(status),
		status != http.StatusRequestEntityTooLarge && !slices.Contains(requestTypes, cmp.Or(e.Type, e.Code)):
		return FaultAccount
	}
	return FaultRequest
}

// NoModel reports whether a reply says that the service does not have the model.
func (e *APIError) NoModel(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || modelWords.MatchString(e.Message)
}

// shownBody is how much is kept of a body that is not an error object: enough to recognise a
// proxy's page, short enough for one line.
const shownBody = 300

// AnthropicErrorBody renders an error reply of the Messages protocol. An empty type is filled in
// from the status.
func AnthropicErrorBody(status int, e APIError) []byte {
	e.Type = cmp.Or(e.Type, anthropicErrorTypes[status], "api_error")
	return mustMarshal(map[string]any{
		"type":       "error",
		"error":      map[string]any{"type": e.Type, "message": e.Message},
		"request_id": e.RequestID,
	})
}

var anthropicErrorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

// openAIErrorBody renders an error reply of the two OpenAI protocols. Empty type and code are
// filled in from the status.
func openAIErrorBody(status int, e APIError) []byte {
	return mustMarshal(map[string]any{"error": openAIErrorObject(status, e)})
}

func openAIErrorObject(status int, e APIError) map[string]any {
	if e.Type == "" {
		switch {
		case status == 429:
			e.Type = "rate_limit_exceeded"
		case status >= 500:
			e.Type = "server_error"
		default:
			e.Type = "invalid_request_error"
		}
	}
	e.Code = cmp.Or(e.Code, openAIErrorCodes[status])
	object := map[string]any{"message": e.Message, "type": e.Type, "code": nil, "param": nil}
	if e.Code != "" {
		object["code"] = e.Code
	}
	return object
}

var openAIErrorCodes = map[int]string{
	401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error",
	503: "server_is_overloaded",
}

// mustMarshal encodes maps of strings and numbers, which cannot fail.
func mustMarshal(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return []byte("{}")
	}
	return data
}
