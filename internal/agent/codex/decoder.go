package codex

import (
	"strings"
	"unsafe"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// decoder reads both streams of the program. It holds the state of one run, which may span several
// processes.
type decoder struct {
	parser   jsontape.Parser
	log      callLog
	failures failureReader
	calls    callReader
	server   serverState

	process int    // processes seen, for streams whose item ids start over with each
	items   bool   // the current process has shown an item
	thread  string // the conversation, as a view of name
	name    []byte
	failed  string // the failure reported since the last prompt
	said    []byte // the last message since the last prompt
	id      []byte // of the item, made different from those of other processes
}

// Decode implements session.Decoder.
func (d *decoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	if string(event) == turnStarted {
		d.begun()
		return
	}
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at}
	switch v.TextOf("type") { // which the messages of the app server have none of
	case "thread.started":
		d.threadStarted(v, to)
	case "turn.started":
		d.begun()
	case "item.started", "item.updated":
		d.execItem(v.Get("item"), false, o, to)
	case "item.completed":
		d.execItem(v.Get("item"), true, o, to)
	case "error":
		d.trouble(v, o, to)
	case "turn.completed":
		if usage := v.Get("usage"); usage.Exists() {
			to.Usage(o, session.UsageReport{Rule: session.UsageCumulative, Key: d.thread, Tokens: tokens(usage)})
			if !d.server.counted.Get(d.thread) {
				d.server.counted.Set(d.thread, true)
			}
		}
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess, Text: view(d.said)})
	case "turn.failed":
		d.fail(v.Get("error"), o, to)
	default:
		if v.Get("method").Exists() || v.Get("result").Exists() || (v.Get("id").Exists() && v.Get("error").Exists()) {
			d.message(v, at, to)
			return
		}
		to.Unknown()
	}
}

// turnStarted is the line that begins a prompt, and says only that.
const turnStarted = `{"type":"turn.started"}`

func (d *decoder) begun() { d.failed, d.said = "", d.said[:0] }

func (d *decoder) threadStarted(v jsontape.Value, to *session.Fold) {
	if d.items {
		d.process++
		d.items = false
		d.log.restart(d.process)
	}
	d.enter(v.TextOf("thread_id"))
	to.Identify(session.Identity{SessionID: d.thread})
}

// enter makes a conversation the current one.
func (d *decoder) enter(thread string) {
	if thread != d.thread {
		d.name = append(d.name[:0], thread...)
		d.thread = view(d.name)
	}
}

// execItem reads an item of `exec --json`.
func (d *decoder) execItem(item jsontape.Value, completed bool, o session.Origin, to *session.Fold) {
	if item.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	d.items = true
	id := item.TextOf("id")
	if d.process > 0 && id != "" { // ids are counted from zero in every process
		d.id = append(append(d.id[:0], d.log.prefix...), id...)
		id = view(d.id)
	}
	d.item(item, id, completed, o, to)
}

// item reports what an item means. Messages and reasoning are reported when they are complete,
// tools when they begin and when they end.
func (d *decoder) item(item jsontape.Value, id string, completed bool, o session.Origin, to *session.Fold) {
	name := item.TextOf("type")
	kind := kindOf(name)
	switch {
	case kind == itemUnknown:
		to.Unknown()
	case kind.isTool():
		d.tool(kind, item, id, completed, o, to)
	case kind == itemTodo:
		if !completed || !d.log.began(id) {
			d.log.begin(id)
			to.ToolCall(o, session.ToolUse{
				Name:      name,
				Canonical: session.ToolPlan,
				Args:      marshalled(item.Get("items")),
			})
		}
	case completed:
		d.statement(kind, item, o, to)
	}
}

func (d *decoder) statement(kind itemKind, item jsontape.Value, o session.Origin, to *session.Fold) {
	switch kind {
	case itemMessage:
		text := textOf(item)
		if o.Parent == "" {
			d.said = append(d.said[:0], text...)
		}
		to.Message(o, "assistant", text, "")
	case itemReasoning:
		to.Thinking(o, textOf(item))
	case itemPlan:
		to.Message(o, "assistant", textOf(item), "plan")
	case itemUser:
		if o.Lane == "" { // in a trace the harness has reported the prompt already
			to.Message(o, "user", textOf(item), "")
		}
	case itemCompact:
		to.SystemPrompt(o, "stream", "compaction", "the conversation was compacted")
	case itemHook:
		to.SystemPrompt(o, "stream", "hook", textOf(item))
	case itemWarning:
		to.Error(o, session.ErrorInfo{Kind: session.ErrorWarning, Message: item.TextOf("message")})
	}
}

// tool reports a call when its item begins and its result when it ends, whichever line comes first.
func (d *decoder) tool(kind itemKind, item jsontape.Value, id string, completed bool, o session.Origin,
	to *session.Fold,
) {
	if d.log.begin(id) {
		to.ToolCall(o, d.calls.callOf(kind, id, item, to.Watched()))
	}
	if completed && d.log.end(id) {
		to.ToolResult(o, d.calls.resultOf(kind, id, item, to.Watched()))
	}
}

// trouble reports an error event: a retry, or an error that the failure of the turn repeats.
func (d *decoder) trouble(v jsontape.Value, o session.Origin, to *session.Fold) {
	info, name := d.failures.statement(v)
	if info.Kind != session.ErrorRetry {
		if to.Watched() {
			info = classified(info, name)
		}
		d.failed = strings.Clone(info.Message)
	}
	to.Error(o, info)
}

// fail reports the end of a prompt that failed.
func (d *decoder) fail(v jsontape.Value, o session.Origin, to *session.Fold) {
	info := d.failures.read(v)
	if info.Kind == session.ErrorRetry { // the last attempt's wording, but there will be none after it
		info.Kind = session.ErrorAPI
	}
	if info.Message == "" {
		info.Kind = session.ErrorOther
	}
	if d.failed == "" || d.failed != info.Message {
		to.Error(o, info)
	}
	d.failed = ""
	to.Final(o, session.Final{Outcome: session.OutcomeOf(info.Kind), Text: info.Message})
}

// view returns a text that is valid until the bytes change: with the next event, as all views are.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// tokens reads a usage object of any of the formats. Tokens read from the cache are part of the
// input there, but not here.
func tokens(u jsontape.Value) session.TokenUsage {
	number := func(snake, camel string) int64 { return max(0, either(u, snake, camel).Int64()) }
	cached := number("cached_input_tokens", "cachedInputTokens")
	written := number("cache_write_input_tokens", "cacheWriteInputTokens")
	return session.TokenUsage{
		InputTokens:      max(0, number("input_tokens", "inputTokens")-cached-written),
		CacheReadTokens:  cached,
		CacheWriteTokens: written,
		OutputTokens:     number("output_tokens", "outputTokens"),
	}
}
