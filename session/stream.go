package session

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"
)

// StreamDialectName is the name of the stream of system, assistant, user and result objects.
const StreamDialectName = "stream-json"

// StreamDialect is the stream of system, assistant, user and result objects that several agents speak; agent is the one to assume when nothing else
// tells: the trace, or the field "runtime" of the stream's init event.
func StreamDialect(agent AgentID) Dialect {
	return Dialect{
		Name:      StreamDialectName,
		Agent:     agent,
		Recognise: recogniseStream,
		New:       func() Decoder { return &streamDecoder{} },
	}
}

// recogniseStream says yes to the four types with the fields that belong to them. Files that agents keep on disk look alike but link their lines to each
// other, and are another dialect.
func recogniseStream(event []byte) bool {
	parser := argParsers.Get()
	defer argParsers.Put(parser)
	v, err := parser.ParseBytes(event)
	if err != nil || v.Type() != fastjson.TypeObject || v.Exists("parentUuid") || v.Exists("sessionId") {
		return false
	}
	switch text(v, "type") {
	case "system", "result":
		return text(v, "subtype") != ""
	case "assistant", "user":
		return v.GetObject("message") != nil
	case "control_request", "control_response":
		return v.Exists("request_id") || v.Exists("response")
	}
	return false
}

// streamDecoder holds the state of one run.
type streamDecoder struct {
	parser fastjson.Parser
	usage  streamUsage

	init     string     // what the last init event said
	apiError *ErrorInfo // the failure of the model's service that the stream told of since the last result
	times    timeParser
}

// streamFields are the fields of an event that tell what to do with it.
type streamFields struct {
	kind, subtype      string
	timestamp, parent  string
	message            *streamMessage // nil if the event has none
	failure            string
	status             int
	apiFailure         bool
	synthetic, refused bool
	replay             bool
}

func (f *streamFields) set(key, value []byte) {
	switch string(key) {
	case "type":
		f.kind = spanText(value)
	case "subtype":
		f.subtype = spanText(value)
	case "timestamp":
		f.timestamp = spanText(value)
	case "parent_tool_use_id":
		f.parent = spanText(value)
	case "error":
		f.failure = spanText(value)
	case "api_error_status":
		f.status = int(spanInt(value))
	case "is_api_error_message":
		f.apiFailure = spanTrue(value)
	case "isSynthetic", "isMeta":
		f.synthetic = f.synthetic || spanTrue(value)
	case "isReplay":
		f.replay = spanTrue(value)
	case "refused_message_id":
		f.refused = true
	}
}

// streamMessage is a message of the model or the user, cut into its fields.
type streamMessage struct {
	id, model, stop string
	content, usage  []byte
}

func (m *streamMessage) set(key, value []byte) {
	switch string(key) {
	case "id":
		m.id = spanText(value)
	case "model":
		m.model = spanText(value)
	case "stop_reason":
		m.stop = spanText(value)
	case "content":
		m.content = value
	case "usage":
		m.usage = value
	}
}

// cutStream cuts an event into its fields, and its message too, in one pass.
func cutStream(event []byte, fields *streamFields, message *streamMessage) bool {
	end := walkFields(event, 0, func(key []byte, at int) int {
		if string(key) == "message" && at < len(event) && event[at] == '{' {
			fields.message = message
			return walkFields(event, at, func(key []byte, at int) int {
				end := skipValue(event, at)
				if end >= 0 {
					message.set(key, event[at:end])
				}
				return end
			})
		}
		end := skipValue(event, at)
		if end >= 0 {
			fields.set(key, event[at:end])
		}
		return end
	})
	return end >= 0 && skipSpace(event, end) == len(event)
}

// Decode implements Decoder.
func (d *streamDecoder) Decode(event []byte, at Stamp, to *Fold) {
	var fields streamFields
	var message streamMessage
	if !cutStream(event, &fields, &message) {
		to.ParseError()
		return
	}
	o := Origin{Stamp: at, NativeMs: d.times.parse(fields.timestamp), Parent: fields.parent}
	switch fields.kind {
	case "assistant", "user":
		d.message(event, &fields, o, to)
	case "system":
		d.system(event, fields.subtype, o, to)
	case "result":
		if v, err := d.parser.ParseBytes(event); err != nil {
			to.ParseError()
		} else {
			d.result(v, o, to)
		}
	case "stream_event", "control_request", "control_response", "control_cancel_request", "keep_alive", "tool_progress", "tool_use_summary", "auth_status",
		"rate_limit_event":
	default:
		to.Unknown()
	}
}

// message decodes what the model or the user said.
func (d *streamDecoder) message(event []byte, fields *streamFields, o Origin, to *Fold) {
	message := fields.message
	if message == nil { // some writers leave the wrapping out
		message = &streamMessage{}
		eachField(event, message.set)
	}
	if message.content == nil {
		to.ParseError()
		return
	}
	content, err := d.parser.ParseBytes(message.content)
	if err != nil {
		to.ParseError()
		return
	}
	if fields.kind == "assistant" {
		d.assistant(fields, message, content, o, to)
	} else {
		d.user(fields, content, o, to)
	}
}

func (d *streamDecoder) assistant(fields *streamFields, message *streamMessage, content *fastjson.Value, o Origin, to *Fold) {
	o.MessageID = message.id
	if fields.failure != "" || fields.apiFailure || message.model == syntheticModel {
		d.failed(fields, ContentText(content), o, to)
		return
	}
	if o.Parent == "" && to.Identity().Model == "" {
		to.Identify(Identity{Model: message.model})
	}
	if message.usage != nil && o.MessageID != "" {
		to.Usage(o, UsageReport{Rule: UsageProvisional, Key: o.MessageID, Model: message.model, Tokens: spanTokens(message.usage)})
	}
	AssistantContent(content, o, to)
	if message.stop == "refusal" {
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: "the model declined to answer"})
	}
}

// syntheticModel marks messages that the agent wrote itself, in the model's place.
const syntheticModel = "<synthetic>"

// AssistantContent reports what the content of a model's message means: text, or blocks of text, reasoning and tool calls as the Messages API has them.
func AssistantContent(content *fastjson.Value, o Origin, to *Fold) {
	if content.Type() == fastjson.TypeString {
		to.Message(o, "assistant", view(content), "")
		return
	}
	for _, block := range content.GetArray() {
		assistantBlock(block, o, to)
	}
}

func assistantBlock(block *fastjson.Value, o Origin, to *Fold) {
	switch text(block, "type") {
	case "text":
		to.Message(o, "assistant", text(block, "text"), "")
	case "thinking":
		to.Thinking(o, text(block, "thinking"))
	case "redacted_thinking":
		to.Thinking(o, "")
	case "tool_use", "server_tool_use":
		var args []byte
		if input := block.Get("input"); input != nil {
			args = input.MarshalTo(nil)
		}
		to.ToolCall(o, Call{ID: text(block, "id"), Name: text(block, "name"), Args: args})
	default:
		if id := text(block, "tool_use_id"); id != "" { // the result of a tool that the model's service ran
			to.ToolResult(o, Returned{CallID: id, Content: ContentText(block.Get("content"))})
			return
		}
		to.Unknown()
	}
}

// failed records a message that stands for a failure of the model's service.
func (d *streamDecoder) failed(fields *streamFields, message string, o Origin, to *Fold) {
	if message == "No response requested." {
		return // said when there is nothing to say; not a failure
	}
	info := classifyFailure(fields.failure, fields.status, message)
	d.apiError = &info
	to.Error(o, info)
}

func (d *streamDecoder) user(fields *streamFields, content *fastjson.Value, o Origin, to *Fold) {
	label := ""
	switch {
	case fields.refused:
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: "the model's answer was withheld"})
		label = "synthetic"
	case fields.synthetic:
		label = "synthetic"
	case fields.replay:
		label = "replay"
	}
	UserContent(content, label, o, to)
}

// UserContent reports what the content of a user's message means: text, or blocks of text and tool results.
func UserContent(content *fastjson.Value, label string, o Origin, to *Fold) {
	if content.Type() == fastjson.TypeString {
		userText(view(content), label, o, to)
		return
	}
	for _, block := range content.GetArray() {
		switch text(block, "type") {
		case "tool_result":
			to.ToolResult(o, toolResult(block))
		case "text":
			userText(text(block, "text"), label, o, to)
		case "image", "document":
			to.Message(o, "user", "["+text(block, "type")+"]", label)
		default:
			to.Unknown()
		}
	}
}

// userText tells apart what a person said and what the agent put into the conversation on its own.
func userText(said, label string, o Origin, to *Fold) {
	switch {
	case strings.HasPrefix(said, "<system-reminder>"):
		to.SystemPrompt(o, "stream", "reminder", said)
	case strings.HasPrefix(said, "[Request interrupted"):
		to.Message(o, "user", said, "interrupted")
	default:
		to.Message(o, "user", said, label)
	}
}

func toolResult(block *fastjson.Value) Returned {
	r := Returned{CallID: text(block, "tool_use_id"), IsError: block.GetBool("is_error"), Content: ContentText(block.Get("content"))}
	if r.IsError {
		r.ExitCode = exitCode(r.Content)
	}
	return r
}

// exitCode reads the exit code that a failed command's result begins with.
func exitCode(content string) *int {
	rest, ok := strings.CutPrefix(content, "Exit code ")
	if !ok {
		return nil
	}
	digits, _, _ := strings.Cut(rest, "\n")
	code, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return nil
	}
	return &code
}

func (d *streamDecoder) result(v *fastjson.Value, o Origin, to *Fold) {
	to.Identify(Identity{SessionID: text(v, "session_id")})
	d.usage.report(v, o, to)
	subtype, reason := text(v, "subtype"), text(v, "terminal_reason")
	message := text(v, "result")
	if message == "" {
		message = joined(v.GetArray("errors"))
	}
	final := Final{Outcome: OutcomeSuccess, Text: message}
	switch {
	case subtype == "success" && !v.GetBool("is_error"):
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

// failure decides what a result that is an error was about; the stream may have told already.
func (d *streamDecoder) failure(v *fastjson.Value, message string, o Origin, to *Fold) Outcome {
	info := d.apiError
	if info == nil {
		kind := ""
		if text(v, "stop_reason") == "refusal" {
			kind = "refusal"
		}
		told := classifyFailure(kind, v.GetInt("api_error_status"), message)
		if told.Kind == ErrorAPI && told.Status == 0 && text(v, "subtype") != "success" {
			told.Kind = ErrorOther
		}
		info = &told
		to.Error(o, told)
	}
	return OutcomeOf(info.Kind)
}

// OutcomeOf is the outcome of a run that an error ended: it tells apart what the agent did and what its model's service did to it.
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

// text returns a string field as a view into the parser's buffer.
func text(v *fastjson.Value, key string) string { return bytesView(v.GetStringBytes(key)) }

func view(v *fastjson.Value) string {
	b, _ := v.StringBytes()
	return bytesView(b)
}

func joined(values []*fastjson.Value) string {
	parts := make([]string, 0, len(values))
	for _, value := range values {
		parts = append(parts, view(value))
	}
	return strings.Join(parts, "; ")
}

// ContentText returns the text of a content that is a string or a list of blocks.
func ContentText(content *fastjson.Value) string {
	if content == nil {
		return ""
	}
	if content.Type() == fastjson.TypeString {
		return view(content)
	}
	blocks := content.GetArray()
	if len(blocks) == 1 && text(blocks[0], "type") == "text" {
		return text(blocks[0], "text")
	}
	var all strings.Builder
	for i, block := range blocks {
		if i > 0 {
			all.WriteByte('\n')
		}
		if kind := text(block, "type"); kind == "text" {
			all.WriteString(text(block, "text"))
		} else {
			all.WriteString("[" + kind + "]")
		}
	}
	return all.String()
}

// timeParser reads ISO timestamps; neighbouring lines often carry the same one.
type timeParser struct {
	last   string
	lastMs int64
}

func (p *timeParser) parse(stamp string) int64 {
	if stamp == "" {
		return 0
	}
	if stamp == p.last {
		return p.lastMs
	}
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return 0
	}
	p.last, p.lastMs = strings.Clone(stamp), t.UnixMilli()
	return p.lastMs
}

// ParseTime reads an ISO 8601 timestamp as epoch milliseconds; 0 if it is none.
func ParseTime(stamp string) int64 { return new(timeParser).parse(stamp) }
