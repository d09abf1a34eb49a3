package pi

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/messages"
	"github.com/fit-eval/fit/session"
)

// decoder reads both streams of the program. It holds the state of one run, which may span several
// processes.
type decoder struct {
	parser jsontape.Parser
	log    callLog
	key    []byte // of the usage of the last answer

	failed  *failure // the last answer of the model was none; whether it was given up is not known yet
	last    ending   // the last answer of the model
	partial bool     // the beginning of an answer was shown, and the answer is asked for again
	retries bool     // the final event was taken back because the program tries again
}

// ending holds what decides how a prompt ended.
type ending struct {
	stopReason string
	failure    session.ErrorInfo
}

// failure is an answer that failed, with its position: it is reported as a retry or as the end,
// depending on what the program does next.
type failure struct {
	at   session.Origin
	info session.ErrorInfo
}

// Decode implements session.Decoder.
func (d *decoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at}
	switch v.TextOf("type") {
	case "message_end":
		d.message(v.Get("message"), o, to)
	case "tool_execution_start":
		d.call(v.TextOf("toolCallId"), v.TextOf("toolName"), v.Get("args"), false, o, to)
	case "tool_execution_end":
		d.result(v.TextOf("toolCallId"), v.Path("result", "content"), v.Get("isError").Bool(), o, to)
	case "agent_end":
		d.ended(v, o, to)
	case "session":
		d.giveUp(to)
		to.Identify(session.Identity{SessionID: v.TextOf("id"), Cwd: v.TextOf("cwd")})
	case "agent_start":
		d.giveUp(to)
		d.last, d.retries = ending{}, false
	case "auto_retry_start", "auto_retry_end":
		d.retry(v, o, to)
	case "compaction_start", "auto_compaction_start":
		d.giveUp(to)
	case "compaction_end", "auto_compaction_end":
		d.compacted(v, o, to)
	case "response":
		d.response(v, o, to)
	case "extension_error":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorWarning, Message: v.TextOf("error")})
	// other events carry the same
	case "turn_start", "turn_end", "message_start", "message_update", "tool_execution_update", "queue_update",
		"extension_ui_request", "thinking_level_changed", "session_info_changed":
	default:
		to.Unknown()
	}
}

// Finish implements session.Finisher.
func (d *decoder) Finish(to *session.Fold) { d.giveUp(to) }

// giveUp reports a failed answer that was not retried.
func (d *decoder) giveUp(to *session.Fold) {
	if d.failed != nil {
		to.Error(d.failed.at, d.failed.info)
		d.failed = nil
	}
}

// message reports a complete message.
func (d *decoder) message(message jsontape.Value, o session.Origin, to *session.Fold) {
	if message.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o.NativeMs = message.Get("timestamp").Int64()
	switch message.TextOf("role") {
	case "assistant":
		d.assistant(message, o, to)
	case "toolResult":
		d.result(message.TextOf("toolCallId"), message.Get("content"), message.Get("isError").Bool(), o, to)
	case "user":
		d.giveUp(to)
		if o.Lane == "" { // in a trace the harness has reported the prompt already
			to.Message(o, "user", seen(message.Get("content"), to), "")
		}
	case "bashExecution":
		d.bash(message, o, to)
	case "custom":
		to.SystemPrompt(o, "stream", message.TextOf("customType"), seen(message.Get("content"), to))
	case "compactionSummary", "branchSummary":
		to.SystemPrompt(o, "stream", "compaction", message.TextOf("summary"))
	default:
		to.Unknown()
	}
}

// seen returns the text of a content, if the events are watched.
func seen(content jsontape.Value, to *session.Fold) string {
	if !to.Watched() {
		return ""
	}
	return messages.Text(content)
}

func (d *decoder) assistant(message jsontape.Value, o session.Origin, to *session.Fold) {
	content := message.Get("content")
	if !content.Exists() {
		to.ParseError()
		return
	}
	d.giveUp(to)
	model := message.TextOf("model")
	to.Identify(session.Identity{Model: model})
	if usage := message.Get("usage"); usage.Exists() {
		d.key = append(append(d.key[:0], message.TextOf("responseId")...), '@')
		d.key = strconv.AppendInt(d.key, o.NativeMs, 10)
		d.usage(usage, model, unsafe.String(unsafe.SliceData(d.key), len(d.key)), o, to)
	}
	d.last = ending{stopReason: stopReason(message.TextOf("stopReason"))}
	if d.last.stopReason == "error" {
		d.last.failure = classify(message.TextOf("errorMessage"))
		d.failed = &failure{at: o, info: d.last.failure}
		d.fragment(content, o, to)
		return
	}
	if d.last.stopReason == "aborted" && content.Empty() {
		return // the model had not begun to answer
	}
	if !d.partial {
		to.Turn()
	}
	d.partial = false
	o.MessageID = message.TextOf("responseId")
	d.content(content, o, to)
}

// stopReason returns a kept copy of the reason why an answer ended; there are few.
func stopReason(reason string) string {
	for _, known := range [...]string{"stop", "toolUse", "error", "aborted", "length"} {
		if reason == known {
			return known
		}
	}
	return strings.Clone(reason)
}

func (d *decoder) content(content jsontape.Value, o session.Origin, to *session.Fold) {
	if content.Kind() == jsontape.String {
		to.Message(o, "assistant", messages.Text(content), "")
		return
	}
	for block := range content.Elements() {
		switch block.TextOf("type") {
		case "text":
			to.Message(o, "assistant", block.TextOf("text"), "")
		case "thinking":
			to.Thinking(o, block.TextOf("thinking"))
		case "toolCall":
			d.call(block.TextOf("id"), block.TextOf("name"), block.Get("arguments"), true, o, to)
		default:
			to.Unknown()
		}
	}
}

// fragment reports the part of an answer that arrived before it failed. Its calls were not made.
func (d *decoder) fragment(content jsontape.Value, o session.Origin, to *session.Fold) {
	for block := range content.Elements() {
		if text := block.TextOf("text"); block.TextOf("type") == "text" && text != "" {
			if !d.partial {
				to.Turn()
			}
			d.partial = true
			to.Message(o, "assistant", text, "partial")
		}
	}
}

// usage reads the tokens of a message. A cost of 0 is ignored: the program reports it for models
// whose price it does not know.
func (d *decoder) usage(u jsontape.Value, model, key string, o session.Origin, to *session.Fold) {
	number := func(name string) int64 { return max(0, u.Get(name).Int64()) }
	report := session.UsageReport{
		Rule:  session.UsagePerMessage,
		Key:   key,
		Model: model,
		Tokens: session.TokenUsage{
			InputTokens:      number("input"),
			OutputTokens:     number("output"),
			CacheReadTokens:  number("cacheRead"),
			CacheWriteTokens: number("cacheWrite"),
		},
	}
	if cost := u.Get("cost").Get("total").Float64(); cost > 0 {
		report.CostUSD = new(cost)
	}
	to.Usage(o, report)
}

// call reports a tool call once, whichever of its two events comes first. A model that uses an id
// again after its result means a new call.
func (d *decoder) call(id, name string, args jsontape.Value, inAnswer bool, o session.Origin, to *session.Fold) {
	if !d.log.call(id, inAnswer) {
		return
	}
	to.ToolCall(o, session.ToolUse{ID: id, Name: name, Args: args.Raw()})
}

// result reports the result of a tool call once.
func (d *decoder) result(id string, content jsontape.Value, failed bool, o session.Origin, to *session.Fold) {
	if !d.log.result(id) {
		return
	}
	var text string
	if failed || to.Watched() {
		text = messages.Text(content)
	}
	to.ToolResult(o, session.Returned{
		CallID:   id,
		IsError:  failed,
		ExitCode: exitCode(text, failed),
		Content:  text,
	})
}

// bash reports a command that the user ran beside the conversation.
func (d *decoder) bash(message jsontape.Value, o session.Origin, to *session.Fold) {
	to.SystemPrompt(o, "stream", "command", "$ "+message.TextOf("command")+"\n"+message.TextOf("output"))
}

// ended reads the end of an attempt. It is the end of the prompt, unless the program says
// afterwards that it tries again.
func (d *decoder) ended(v jsontape.Value, o session.Origin, to *session.Fold) {
	end := d.last
	if end.stopReason == "" { // the message itself was not seen
		for message := range v.Get("messages").Elements() {
			if message.TextOf("role") == "assistant" {
				end = ending{
					stopReason: message.TextOf("stopReason"),
					failure:    classify(message.TextOf("errorMessage")),
				}
			}
		}
	}
	switch end.stopReason {
	case "stop", "toolUse":
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess})
	case "error":
		to.Final(o, session.Final{Outcome: session.OutcomeOf(end.failure.Kind), Text: end.failure.Message})
	case "aborted":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorAborted, Message: "aborted"})
		to.Final(o, session.Final{Outcome: session.OutcomeAborted})
	case "length":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorOther, Message: cutOff})
		to.Final(o, session.Final{Outcome: session.OutcomeError, Text: cutOff})
	default:
		to.Final(o, session.Final{
			Outcome: session.OutcomeError,
			Text:    "the agent ended without an answer of the model",
		})
	}
	d.last = ending{}
}

const cutOff = "the model's answer was cut off at its maximum length"

// retry reports that a failed answer is retried, or will not be any more.
func (d *decoder) retry(v jsontape.Value, o session.Origin, to *session.Fold) {
	if v.TextOf("type") == "auto_retry_start" {
		info := classify(v.TextOf("errorMessage"))
		if d.failed != nil {
			o = d.failed.at
			d.failed = nil
		}
		info.Kind, info.Attempt = session.ErrorRetry, v.Get("attempt").Int()
		to.Error(o, info)
		to.Reopen()
		d.retries = true
		return
	}
	d.giveUp(to)
	if !v.Get("success").Bool() && d.retries { // it was waiting for the next attempt when it was asked to stop
		to.Error(o, session.ErrorInfo{Kind: session.ErrorAborted, Message: v.TextOf("finalError")})
		to.Final(o, session.Final{Outcome: session.OutcomeAborted})
	}
	d.retries = false
}

// compacted reports that the conversation was shortened, after which an answer that did not fit may
// be retried.
func (d *decoder) compacted(v jsontape.Value, o session.Origin, to *session.Fold) {
	d.giveUp(to)
	if message := v.TextOf("errorMessage"); message != "" {
		to.Error(o, session.ErrorInfo{Kind: session.ErrorWarning, Message: message})
	}
	if summary := v.Get("result").TextOf("summary"); summary != "" {
		to.SystemPrompt(o, "stream", "compaction", summary)
	}
	if v.Get("willRetry").Bool() {
		to.Reopen()
	}
}

// response reads the answer to one of our commands.
func (d *decoder) response(v jsontape.Value, o session.Origin, to *session.Fold) {
	d.giveUp(to)
	command := v.TextOf("command")
	if !v.Get("success").Bool() {
		info := classify(v.TextOf("error"))
		to.Error(o, info)
		if command == "prompt" { // nothing else will be said about it
			to.Final(o, session.Final{Outcome: session.OutcomeOf(info.Kind), Text: info.Message})
		}
		return
	}
	if data := v.Get("data"); command == "get_state" && data.Exists() {
		to.Identify(session.Identity{SessionID: data.TextOf("sessionId"), Model: data.Get("model").TextOf("id")})
	}
}
