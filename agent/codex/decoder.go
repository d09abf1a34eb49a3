package codex

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// decoder reads both streams of the program. It holds the state of one run, which may span several processes.
type decoder struct {
	parser jsontape.Parser
	told   callLog
	calls  callReader
	server serverState

	process int    // processes seen, for streams whose item ids begin anew with each
	items   bool   // the current process has shown an item
	thread  string // the conversation
	failed  string // the failure that was told of since the last prompt
	said    []byte // the last message since the last prompt
	id      []byte // of the item, made different from those of other processes
}

func newDecoder() *decoder {
	return &decoder{told: newCallLog(), server: newServerState()}
}

// Decode implements session.Decoder.
func (d *decoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	if v.Get("method").Exists() || v.Get("result").Exists() || (v.Get("id").Exists() && v.Get("error").Exists()) {
		d.message(v, at, to)
		return
	}
	o := session.Origin{Stamp: at}
	switch v.TextOf("type") {
	case "thread.started":
		d.threadStarted(v, to)
	case "turn.started":
		d.failed, d.said = "", d.said[:0]
	case "item.started", "item.updated":
		d.execItem(v, false, o, to)
	case "item.completed":
		d.execItem(v, true, o, to)
	case "error":
		d.trouble(v, o, to)
	case "turn.completed":
		if usage := v.Get("usage"); usage.Exists() {
			to.Usage(o, session.UsageReport{Rule: session.UsageCumulative, Key: d.thread, Tokens: tokens(usage)})
			remember(d.server.counted, d.thread, true)
		}
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess, Text: string(d.said)})
	case "turn.failed":
		d.fail(v.Get("error"), o, to)
	default:
		to.Unknown()
	}
}

func (d *decoder) threadStarted(v jsontape.Value, to *session.Fold) {
	if d.items {
		d.process++
		d.items = false
	}
	d.thread = strings.Clone(v.TextOf("thread_id"))
	to.Identify(session.Identity{SessionID: d.thread})
}

// execItem takes in an item of `exec --json`.
func (d *decoder) execItem(v jsontape.Value, completed bool, o session.Origin, to *session.Fold) {
	item := v.Get("item")
	if item.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	d.items = true
	id := item.TextOf("id")
	if d.process > 0 && id != "" { // ids are counted from zero in every process
		d.id = append(append(strconv.AppendInt(d.id[:0], int64(d.process+1), 10), '/'), id...)
		id = unsafe.String(unsafe.SliceData(d.id), len(d.id)) // valid until the next event, as all views are
	}
	d.item(item, id, completed, o, to)
}

// item reports what an item means. Messages and reasoning are told when they are complete, tools when they begin and when they end.
func (d *decoder) item(item jsontape.Value, id string, completed bool, o session.Origin, to *session.Fold) {
	kind, known := itemKinds[item.TextOf("type")]
	switch {
	case !known:
		to.Unknown()
	case isTool(kind):
		d.tool(kind, item, id, completed, o, to)
	case kind == itemTodo:
		if !completed || !d.told.began(id) {
			d.told.begin(id)
			to.ToolCall(o, session.Call{Name: item.TextOf("type"), Canonical: session.ToolPlan, Args: marshalled(item.Get("items"))})
		}
	case completed:
		d.statement(kind, item, o, to)
	}
}

func (d *decoder) statement(kind string, item jsontape.Value, o session.Origin, to *session.Fold) {
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
		if o.Lane == "" { // in a trace the harness has told the prompt already
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
func (d *decoder) tool(kind string, item jsontape.Value, id string, completed bool, o session.Origin, to *session.Fold) {
	if d.told.begin(id) {
		to.ToolCall(o, d.calls.callOf(kind, id, item))
	}
	if completed && d.told.end(id) {
		to.ToolResult(o, d.calls.resultOf(kind, id, item))
	}
}

// trouble reports an error event: a retry, or what the failure of the turn will say again.
func (d *decoder) trouble(v jsontape.Value, o session.Origin, to *session.Fold) {
	info := failure(v)
	if info.Kind != session.ErrorRetry {
		d.failed = info.Message
	}
	to.Error(o, info)
}

// fail reports the end of a prompt that failed.
func (d *decoder) fail(v jsontape.Value, o session.Origin, to *session.Fold) {
	info := failure(v)
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

// tokens reads a usage object of any of the formats. What was read from the cache is part of the input there, and not here.
func tokens(u jsontape.Value) session.TokenUsage {
	number := func(snake, camel string) int64 { return max(0, either(u, snake, camel).Int64()) }
	cached := number("cached_input_tokens", "cachedInputTokens")
	written := number("cache_write_input_tokens", "cacheWriteInputTokens")
	return session.TokenUsage{
		InputTokens: max(0, number("input_tokens", "inputTokens")-cached-written), CacheReadTokens: cached, CacheWriteTokens: written,
		OutputTokens: number("output_tokens", "outputTokens"),
	}
}

// callLog remembers how far calls were told of, so that each is told once. It forgets the oldest half when there are many.
type callLog struct{ recent, older map[string]callState }

// callState is what was told of a call.
type callState uint8

const (
	callBegan callState = 1 << iota
	callEnded
)

const callLogSize = 4096

func newCallLog() callLog {
	return callLog{recent: map[string]callState{}, older: map[string]callState{}}
}

func (l *callLog) mark(id string, state callState) (fresh bool) {
	if id == "" {
		return true
	}
	before, isRecent := l.recent[id]
	if len(l.older) > 0 {
		before |= l.older[id]
	}
	if before&state != 0 {
		return false
	}
	if !isRecent && len(l.recent) >= callLogSize {
		l.older, l.recent = l.recent, l.older
		clear(l.recent)
	}
	l.recent[strings.Clone(id)] = before | state // also where it is known: an assignment replaces the key, too, and this one is a view
	return true
}

func (l *callLog) began(id string) bool { return (l.recent[id]|l.older[id])&callBegan != 0 }
func (l *callLog) begin(id string) bool { return l.mark(id, callBegan) }
func (l *callLog) end(id string) bool   { return l.mark(id, callEnded) }
