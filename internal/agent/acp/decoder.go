package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// decoder reads the lines of a conversation, which may span several processes. It holds the state
// of one run.
type decoder struct {
	parser jsontape.Parser
	inputs jsontape.Parser
	rules  rules

	open        map[int64]string // the methods of our requests without an answer
	hasRequests bool             // the stream has our side, too
	session     string           // the conversation's id
	replay      bool             // the lines are the history of a session that is being loaded
	reason      string           // why we have cancelled the prompt, if the caller did not

	text    text
	said    []byte // the model's last message of the prompt
	failure string // the agent's last message, where it says that the model failed
	failed  session.Origin

	calls calls

	process   int
	processID string // counts the processes, each of which counts tokens from 0

	answer      int    // the number of the model's current answer
	answerID    string // its id
	afterResult bool   // something came back to the model since it last spoke
}

// text is a message that is coming in pieces.
type text struct {
	reasoning bool
	at        session.Origin
	content   []byte
	id        []byte // the agent's id of the message
	pieces    int
}

// maxText bounds the memory for a message that does not end.
const maxText = 8 << 20

// maxOpen bounds the memory for requests that are never answered.
const maxOpen = 1024

func newDecoder(known rules) *decoder {
	return &decoder{rules: known, open: map[int64]string{}, calls: newCalls()}
}

// Decode implements session.Decoder.
func (d *decoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at}
	if dir := v.Get("dir"); dir.Exists() {
		msg := v.Get("msg")
		if msg.Kind() != jsontape.Object {
			to.ParseError()
			return
		}
		if at.Ts == 0 { // of a recording; it counts from the first line
			if o.NativeMs = v.Get("t").Int64(); o.NativeMs == 0 {
				o.NativeMs = v.Get("ms").Int64()
			}
		}
		if dir.Text() == "out" {
			d.sent(v, msg, o, to)
			return
		}
		v = msg
	}
	d.received(v, o, to)
}

// Finish implements session.Finisher.
func (d *decoder) Finish(to *session.Fold) {
	d.flush(to)
	if d.reason != "" { // it was killed, because it did not stop when asked to
		d.end(session.ErrorInfo{Kind: session.ErrorAPI, Message: d.reason}, session.Origin{}, to)
	}
}

// sent reads one of our messages.
func (d *decoder) sent(v, msg jsontape.Value, o session.Origin, to *session.Fold) {
	d.hasRequests = true
	method, params := msg.TextOf("method"), msg.Get("params")
	if id := msg.Get("id"); method != "" && id.Kind() == jsontape.Number {
		if method == "initialize" || len(d.open) >= maxOpen {
			clear(d.open) // another process, which counts from 0
		}
		d.open[id.Int64()] = strings.Clone(method)
	}
	switch method {
	case "initialize":
		d.process++
		d.processID = "p" + strconv.Itoa(d.process)
		if given := v.Get("rules"); given.Kind() == jsontape.Object {
			d.rules = rules{}
			if json.Unmarshal(given.Raw(), &d.rules) != nil {
				to.ParseError()
			}
		}
	case "session/new":
		to.Identify(session.Identity{Cwd: params.TextOf("cwd")})
	case "session/load", "session/resume":
		d.replay = method == "session/load"
		d.enter(params.TextOf("sessionId"), to)
		to.Identify(session.Identity{Cwd: params.TextOf("cwd")})
	case "session/prompt":
		d.prompted(params, o, to)
	case "session/cancel":
		d.reason = strings.Clone(v.TextOf("reason"))
	case "":
		if decided := v.Get("permission"); decided.Exists() {
			d.decided(decided, o, to)
		}
	}
}

// prompted begins a prompt.
func (d *decoder) prompted(params jsontape.Value, o session.Origin, to *session.Fold) {
	d.flush(to)
	d.calls.reset()
	d.said, d.failure, d.reason = d.said[:0], "", ""
	d.replay, d.afterResult = false, true
	if o.Lane != "" { // in a trace the harness has reported the prompt already
		return
	}
	for part := range params.Get("prompt").Elements() {
		if part.TextOf("type") == "text" {
			to.Message(o, "user", part.TextOf("text"), "")
		}
	}
}

// decided reads our decision about a tool call.
func (d *decoder) decided(decision jsontape.Value, o session.Origin, to *session.Fold) {
	if decision.TextOf("decision") == decisionAllow {
		return
	}
	to.Error(o, session.ErrorInfo{
		Kind: session.ErrorWarning,
		Message: "permission " + decision.TextOf("decision") + ": " + decision.TextOf("tool") + " " +
			decision.TextOf("title") + ": " + decision.TextOf("reason"),
	})
	if known := d.calls.known(decision.TextOf("toolCallId")); known != nil { // some agents send nothing more about it
		o.MessageID = known.answerID
		d.give(known, session.Returned{IsError: true, Content: "permission denied"}, o, to)
	}
}

// received reads a message of the agent.
func (d *decoder) received(msg jsontape.Value, o session.Origin, to *session.Fold) {
	switch method := msg.TextOf("method"); method {
	case "session/update":
		d.update(msg.Get("params"), o, to)
	case "session/request_permission":
		if !d.replay {
			d.asked(msg.Path("params", "toolCall"), o, to)
		}
	case "":
		d.reply(msg, o, to)
	case "$/cancel_request", "_auth/status_update":
	default:
		if !msg.Get("id").Exists() { // its requests to the client carry no events
			to.Unknown()
		}
	}
}

// enter makes a conversation the current one.
func (d *decoder) enter(id string, to *session.Fold) {
	if id != "" && id != d.session {
		d.session = strings.Clone(id)
		to.Identify(session.Identity{SessionID: id})
	}
}

// reply reads an answer. Answers without a request are counted and ignored. In a stream without our
// side, the content shows what it answers.
func (d *decoder) reply(msg jsontape.Value, o session.Origin, to *session.Fold) {
	result := msg.Get("result")
	var method string
	if d.hasRequests {
		id := msg.Get("id")
		if id.Kind() == jsontape.Number {
			method = d.open[id.Int64()]
			delete(d.open, id.Int64())
		}
	} else {
		method = methodOf(msg)
	}
	switch method {
	case "initialize":
		d.greeted(result, to)
	case "session/new":
		d.enter(result.TextOf("sessionId"), to)
		if o.Lane == "" { // in a trace the harness reports it
			to.Identify(session.Identity{Model: result.Get("models").TextOf("currentModelId")})
		}
	case "session/load":
		d.replay = false
	case "session/prompt":
		d.ended(msg, o, to)
	case "":
		to.Unknown()
	}
}

// methodOf returns the method that an answer belongs to, by its content.
func methodOf(msg jsontape.Value) string {
	result := msg.Get("result")
	switch {
	case result.Get("agentCapabilities").Exists():
		return "initialize"
	case result.TextOf("stopReason") != "":
		return "session/prompt"
	case result.TextOf("sessionId") != "":
		return "session/new"
	}
	if msg.Get("error").Exists() {
		return "session/prompt" // what came before it would have ended the run
	}
	return "session/load" // or another whose answer says nothing
}

// greeted reads an agent's description of itself.
func (d *decoder) greeted(result jsontape.Value, to *session.Fold) {
	info := result.Get("agentInfo")
	d.rules.learn(info.TextOf("name"))
	if d.rules.Agent == "" { // of a recording that fit did not make
		d.rules.Agent = "acp:" + info.TextOf("name")
	}
	to.Identify(session.Identity{
		Agent:   session.AgentID(d.rules.Agent),
		Version: info.TextOf("version"),
	})
}

// update reads a notification about the session.
func (d *decoder) update(params jsontape.Value, o session.Origin, to *session.Fold) {
	if d.replay {
		return // it was reported when it happened
	}
	switch id := params.TextOf("sessionId"); {
	case d.session == "":
		d.enter(id, to)
	case id != d.session:
		to.Unknown()
		return
	}
	update := params.Get("update")
	switch update.TextOf("sessionUpdate") {
	case "agent_message_chunk":
		if d.rules.Usage == usagePerCall {
			d.callUsage(update.Path("_meta", "usage"), o, to)
		}
		d.readText(update, false, o, to)
	case "agent_thought_chunk":
		d.readText(update, true, o, to)
	case "tool_call", "tool_call_update":
		d.tool(update, o, to)
	case "plan":
		d.flush(to)
		d.active(&o, to)
		to.ToolCall(o, session.ToolUse{Name: "plan", Canonical: session.ToolPlan, Args: update.Raw()})
	case "user_message_chunk", "usage_update", "available_commands_update", "config_option_update",
		"current_mode_update", "session_info_update":
	default:
		to.Unknown()
	}
}

// active marks an event as part of the model's current answer. What the model does after a result
// belongs to the next one.
func (d *decoder) active(o *session.Origin, to *session.Fold) {
	if d.failure != "" { // it did not stop the agent
		to.Error(d.failed, session.ErrorInfo{Kind: session.ErrorWarning, Message: d.failure})
		d.failure = ""
	}
	if d.afterResult || d.answer == 0 {
		d.answer++
		d.answerID = "a" + strconv.Itoa(d.answer)
		d.afterResult = false
	}
	o.MessageID = d.answerID
}

// readText reads a piece of a message.
func (d *decoder) readText(update jsontape.Value, reasoning bool, o session.Origin, to *session.Fold) {
	piece := update.Get("content").TextOf("text")
	if piece == "" || d.notice(piece, o, to) {
		return
	}
	t := &d.text
	id := update.TextOf("messageId")
	if t.pieces > 0 && (t.reasoning != reasoning || id != string(t.id) || len(t.content) > maxText) {
		d.flush(to)
	}
	if t.pieces == 0 {
		d.active(&o, to)
		t.reasoning, t.at, t.id = reasoning, o, append(t.id[:0], id...)
	}
	t.content = append(t.content, piece...)
	t.pieces++
}

// notice handles a message of the agent itself, and reports whether it was one.
func (d *decoder) notice(piece string, o session.Origin, to *session.Fold) bool {
	switch {
	case begins(piece, d.rules.Errors):
		d.flush(to)
		d.failure, d.failed = strings.Clone(piece), o
	case begins(piece, d.rules.Notices):
		d.flush(to)
		info := session.ErrorInfo{Kind: session.ErrorWarning, Message: piece}
		if session.Mentions(piece, "retry") {
			info.Kind = session.ErrorRetry
		}
		to.Error(o, info)
	default:
		return false
	}
	return true
}

func begins(text string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(beginning string) bool { return strings.HasPrefix(text, beginning) })
}

// flush reports the message that was being received. All its pieces but the first are counted as
// left out.
func (d *decoder) flush(to *session.Fold) {
	t := &d.text
	if t.pieces == 0 {
		return
	}
	if t.reasoning {
		to.Thinking(t.at, view(t.content))
	} else {
		to.Message(t.at, "assistant", view(t.content), "")
		d.said = append(d.said[:0], t.content...)
	}
	to.Dropped(t.pieces - 1)
	t.pieces = 0
	if cap(t.content) > 1<<20 {
		t.content = nil // do not keep the memory of one huge message
	}
	t.content = t.content[:0]
}

// view returns a text that is valid until the bytes change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// raw returns a copy of a value that is an object or list with something in it; nil otherwise.
func raw(memory []byte, v jsontape.Value) []byte {
	if (v.Kind() == jsontape.Object || v.Kind() == jsontape.Array) && !v.Empty() {
		return append(memory[:0], bytes.TrimSpace(v.Raw())...)
	}
	return memory
}
