package session

import (
	"cmp"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/messages"
)

// StreamDialectName is the name of the stream of system, assistant, user and result objects.
const StreamDialectName = "stream-json"

// StreamDialect returns the stream of system, assistant, user and result objects that several
// agents speak; agent is the default, unless the trace or the field "runtime" of the stream's init
// event names another.
func StreamDialect(agent AgentID) Dialect {
	return Dialect{
		Name:      StreamDialectName,
		Agent:     agent,
		Recognise: recogniseStream,
		New:       func() Decoder { return &streamDecoder{} },
	}
}

// recogniseStream reports whether an event has one of the four types with the fields that belong to
// it. Files that agents keep on disk look alike but link their lines to each other, and are another
// dialect.
func recogniseStream(event []byte) bool {
	var parser jsontape.Parser
	v, ok := parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object || v.Get("parentUuid").Exists() || v.Get("sessionId").Exists() {
		return false
	}
	switch v.TextOf("type") {
	case "system", "result":
		return v.TextOf("subtype") != ""
	case "assistant", "user":
		return v.Get("message").Kind() == jsontape.Object
	case "control_request", "control_response":
		return v.Get("request_id").Exists() || v.Get("response").Exists()
	}
	return false
}

// streamDecoder holds the state of one run.
type streamDecoder struct {
	parser jsontape.Parser
	usage  streamUsage

	init     string     // what the last init event said
	summary  []byte     // what the current one says
	apiError *ErrorInfo // the failure of the model's service in the stream since the last result
}

// Decode implements Decoder.
func (d *streamDecoder) Decode(event []byte, at Stamp, to *Fold) {
	if quietEvent(event) {
		return
	}
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := Origin{Stamp: at, NativeMs: ParseTime(v.TextOf("timestamp")), Parent: v.TextOf("parent_tool_use_id")}
	switch v.TextOf("type") {
	case "assistant":
		d.message(v, true, o, to)
	case "user":
		d.message(v, false, o, to)
	case "system":
		d.system(v, o, to)
	case "result":
		d.result(v, o, to)
	case "stream_event", "control_request", "control_response", "control_cancel_request", "keep_alive", "tool_progress",
		"tool_use_summary", "auth_status",
		"rate_limit_event":
	default:
		to.Unknown()
	}
}

// message decodes what the model or the user said.
func (d *streamDecoder) message(v jsontape.Value, byModel bool, o Origin, to *Fold) {
	message := v.Get("message")
	if message.Kind() != jsontape.Object { // some writers leave the wrapping out
		message = v
	}
	content := message.Get("content")
	if !content.Exists() {
		to.ParseError()
		return
	}
	if byModel {
		d.assistant(v, message, content, o, to)
	} else {
		d.user(v, content, o, to)
	}
}

func (d *streamDecoder) assistant(v, message, content jsontape.Value, o Origin, to *Fold) {
	o.MessageID = message.TextOf("id")
	model := message.TextOf("model")
	if v.TextOf("error") != "" || v.Get("is_api_error_message").Bool() || model == syntheticModel {
		d.failed(v, messages.Text(content), o, to)
		return
	}
	if o.Parent == "" && to.session.Model == "" {
		to.Identify(Identity{Model: model})
	}
	if usage := message.Get("usage"); usage.Exists() && o.MessageID != "" {
		to.Usage(o, UsageReport{
			Rule:   UsageProvisional,
			Key:    o.MessageID,
			Model:  model,
			Tokens: messageTokens(usage),
		})
	}
	messages.ReadAssistant(content, AssistantMessage{Origin: o, Fold: to})
	if message.TextOf("stop_reason") == "refusal" {
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: "the model declined to answer"})
	}
}

// syntheticModel marks messages that the agent wrote itself, in the model's place.
const syntheticModel = "<synthetic>"

// failed records a message that stands for a failure of the model's service.
func (d *streamDecoder) failed(v jsontape.Value, message string, o Origin, to *Fold) {
	if message == "No response requested." {
		return // said when there is nothing to say; not a failure
	}
	info := classifyFailure(v.TextOf("error"), max(0, v.Get("api_error_status").Int()), message)
	d.apiError = &info
	to.Error(o, info)
}

func (d *streamDecoder) user(v, content jsontape.Value, o Origin, to *Fold) {
	label := ""
	switch {
	case v.Get("refused_message_id").Exists():
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: "the model's answer was withheld"})
		label = "synthetic"
	case v.Get("isSynthetic").Bool() || v.Get("isMeta").Bool():
		label = "synthetic"
	case v.Get("isReplay").Bool():
		label = "replay"
	}
	messages.ReadUser(content, UserMessage{Origin: o, Fold: to, Label: label})
}

func (d *streamDecoder) result(v jsontape.Value, o Origin, to *Fold) {
	to.Identify(Identity{SessionID: v.TextOf("session_id")})
	d.usage.report(v, o, to)
	subtype, reason := v.TextOf("subtype"), v.TextOf("terminal_reason")
	message := cmp.Or(v.TextOf("result"), joined(v.Get("errors")))
	final := Final{Outcome: OutcomeSuccess, Text: message}
	switch {
	case subtype == "success" && !v.Get("is_error").Bool():
	case subtype == "error_max_turns" || reason == "max_turns":
		final.Outcome = OutcomeMaxTurns
		to.Error(o, ErrorInfo{Kind: ErrorMaxTurns, Message: message})
	case subtype == "error_max_budget_usd" || reason == "budget_exhausted":
		final.Outcome = OutcomeBudget
		to.Error(o, ErrorInfo{Kind: ErrorBudget, Message: message})
	case strings.HasPrefix(reason, "aborted"):
		final.Outcome = OutcomeAborted
		to.Error(o, ErrorInfo{Kind: ErrorAborted, Message: reason})
	default:
		final.Outcome = d.failure(v, message, o, to)
	}
	d.apiError = nil
	to.Final(o, final)
}

// failure classifies a result that is an error; the stream may have reported the cause already.
func (d *streamDecoder) failure(v jsontape.Value, message string, o Origin, to *Fold) Outcome {
	info := d.apiError
	if info == nil {
		kind := ""
		if v.TextOf("stop_reason") == "refusal" {
			kind = "refusal"
		}
		told := classifyFailure(kind, v.Get("api_error_status").Int(), message)
		if told.Kind == ErrorAPI && told.Status == 0 && v.TextOf("subtype") != "success" {
			told.Kind = ErrorOther
		}
		info = &told
		to.Error(o, told)
	}
	return OutcomeOf(info.Kind)
}

// OutcomeOf returns the outcome of a run that an error ended: it distinguishes failures of the
// agent from those of its model's service.
func OutcomeOf(kind ErrorKind) Outcome {
	switch kind {
	case ErrorAuth:
		return OutcomeAuth
	case ErrorRateLimit, ErrorOverloaded, ErrorAPI:
		return OutcomeProvider
	case ErrorMaxTurns:
		return OutcomeMaxTurns
	case ErrorBudget:
		return OutcomeBudget
	case ErrorAborted:
		return OutcomeAborted
	case ErrorRetry, ErrorRefusal, ErrorContextOverflow, ErrorWarning, ErrorOther:
	}
	return OutcomeError
}

func joined(values jsontape.Value) string {
	var parts []string
	for value := range values.Elements() {
		parts = append(parts, value.Text())
	}
	return strings.Join(parts, "; ")
}
