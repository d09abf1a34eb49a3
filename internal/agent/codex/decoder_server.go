package codex

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// serverState is what the app server's stream needs beside the rest: threads, their prompts, and
// where the model's answers begin and end. The stream has no id of an answer, but reports the
// tokens of each after the last of its calls.
type serverState struct {
	prompts session.Recent[string] // the running prompt of each thread
	parents session.Recent[string] // the call that started each sub-agent's thread
	counted session.Recent[bool]   // the threads whose tokens were reported before

	answer int  // the number of the model's current answer
	shown  bool // something of it was shown
	hidden bool // the one before was not shown at all: its calls were rejected
}

// message reads one line of the app server.
func (d *decoder) message(v jsontape.Value, at session.Stamp, to *session.Fold) {
	params := v.Get("params")
	o := session.Origin{Stamp: at, NativeMs: v.Get("emittedAtMs").Int64()}
	thread := params.TextOf("threadId")
	if thread != "" && d.thread == "" {
		d.enter(thread)
	}
	if thread != "" && thread != d.thread {
		if o.Parent = d.server.parents.Get(thread); o.Parent == "" {
			o.Parent = thread
		}
	}
	switch method := v.TextOf("method"); method {
	case "":
		d.reply(v, o, to)
	case "thread/started":
		d.identify(params.Get("thread"), to)
	case "turn/started":
		d.promptStarted(params, thread, o)
	case "item/started":
		d.serverItem(params, false, o, to)
	case "item/completed":
		d.serverItem(params, true, o, to)
	case "thread/tokenUsage/updated":
		d.tokenUsage(params, thread, o, to)
	case "turn/completed":
		if o.Parent == "" {
			d.promptEnded(params.Get("turn"), o, to)
		}
	case "turn/plan/updated":
		d.show(&o, to)
		to.ToolCall(o, session.ToolUse{Name: "update_plan", Canonical: session.ToolPlan, Args: marshalled(params)})
	case "error":
		d.trouble(params.Get("error"), o, to)
	case "warning", "configWarning", "deprecationNotice", "guardianWarning":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorWarning, Message: warningText(params)})
	case "model/rerouted":
		to.Identify(session.Identity{Model: params.TextOf("toModel")})
	default:
		if !quiet[method] && !v.Get("id").Exists() { // what the server asks of its client says nothing
			to.Unknown()
		}
	}
}

// quiet are the notifications that add nothing to a session.
var quiet = func() map[string]bool {
	methods := map[string]bool{}
	for _, method := range append([]string{
		"thread/status/changed", "thread/name/updated", "thread/settings/updated", "thread/goal/updated",
		"thread/goal/cleared", "thread/queue/changed",
		"thread/environment/connected", "thread/environment/disconnected", "thread/closed", "thread/compacted",
		"thread/readState/changed",
		"thread/attachment/updated", "thread/prediction/updated", "thread/project/updated", "project/changed",
		"skills/changed", "app/list/updated",
		"turn/diff/updated", "turn/moderationMetadata", "hook/started", "hook/completed", "item/mcpToolCall/progress",
		"item/commandExecution/terminalInteraction", "item/autoApprovalReview/started",
		"item/autoApprovalReview/completed", "command/exec/outputDelta",
		"process/outputDelta", "process/exited", "serverRequest/resolved", "mcpServer/startupStatus/updated",
		"mcpServer/oauthLogin/completed",
		"account/updated", "account/rateLimits/updated", "account/login/completed", "remoteControl/status/changed",
		"model/verification", "fs/changed",
		"rawResponseItem/completed", "rawResponse/completed",
	}, deltaMethods...) {
		methods[method] = true
	}
	return methods
}()

func warningText(params jsontape.Value) string {
	return cmp.Or(params.TextOf("message"), params.TextOf("summary"))
}

// reply reads the answer to one of our requests.
func (d *decoder) reply(v jsontape.Value, o session.Origin, to *session.Fold) {
	if v.Get("error").Kind() == jsontape.Object {
		to.Error(o, session.ErrorInfo{Kind: session.ErrorOther, Message: v.Get("error").TextOf("message")})
		return
	}
	if thread := v.Path("result", "thread"); thread.Exists() {
		d.identify(thread, to)
		to.Identify(session.Identity{Model: v.Get("result").TextOf("model")})
	}
}

// identify reads what a thread says about itself. The threads of sub-agents have a parent.
func (d *decoder) identify(thread jsontape.Value, to *session.Fold) {
	id := thread.TextOf("id")
	if id == "" || thread.TextOf("parentThreadId") != "" {
		return
	}
	d.enter(id)
	to.Identify(session.Identity{
		SessionID: id,
		Version:   thread.TextOf("cliVersion"),
		Model:     thread.TextOf("model"),
		Cwd:       thread.TextOf("cwd"),
	})
}

func (d *decoder) promptStarted(params jsontape.Value, thread string, o session.Origin) {
	d.server.prompts.Set(thread, strings.Clone(params.Get("turn").TextOf("id")))
	if o.Parent == "" {
		d.begun()
		d.server.answer++
		d.server.shown, d.server.hidden = false, false
	}
}

func (d *decoder) serverItem(params jsontape.Value, completed bool, o session.Origin, to *session.Fold) {
	item := params.Get("item")
	if item.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	id, kind := item.TextOf("id"), kindOf(item.TextOf("type"))
	if kind == itemCollab {
		for receiver := range either(item, "receiverThreadIds", "receiver_thread_ids").Elements() {
			d.server.parents.Set(receiver.Text(), strings.Clone(id))
		}
	}
	spoken := completed && (kind == itemMessage || kind == itemReasoning || kind == itemPlan)
	if spoken || (kind.isTool() && !d.log.began(id)) {
		d.show(&o, to)
	}
	d.item(item, id, completed, o, to)
}

// show marks an event as part of the model's current answer.
func (d *decoder) show(o *session.Origin, to *session.Fold) {
	if o.Parent != "" {
		return
	}
	if !d.server.shown && d.server.hidden {
		to.Turn()
		d.server.hidden = false
	}
	d.server.shown = true
	o.MessageID = "a" + strconv.Itoa(d.server.answer)
}

// tokenUsage reads the counters of a thread, which continue over resumes. Reported before any
// prompt, they count what was consumed before this stream began.
func (d *decoder) tokenUsage(params jsontape.Value, thread string, o session.Origin, to *session.Fold) {
	usage := params.Get("tokenUsage")
	if !usage.Get("total").Exists() {
		to.ParseError()
		return
	}
	total := tokens(usage.Get("total"))
	prompt := d.server.prompts.Get(thread)
	running := prompt != "" && prompt == params.TextOf("turnId")
	if !d.server.counted.Get(thread) {
		d.server.counted.Set(thread, true)
		before := total
		if last := usage.Get("last"); running && last.Exists() {
			before = total.Since(tokens(last)).Max(session.TokenUsage{})
		}
		to.Baseline(thread, before)
	}
	to.Usage(o, session.UsageReport{Rule: session.UsageCumulative, Key: thread, Tokens: total})
	if !running || o.Parent != "" {
		return
	}
	if !d.server.shown { // the model was asked, and its calls were rejected silently
		to.Turn()
		d.server.hidden = true
	}
	d.server.shown = false
	d.server.answer++
}

func (d *decoder) promptEnded(turn jsontape.Value, o session.Origin, to *session.Fold) {
	switch status := turn.TextOf("status"); status {
	case "completed":
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess, Text: view(d.said)})
	case "interrupted":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorAborted, Message: status})
		to.Final(o, session.Final{Outcome: session.OutcomeAborted, Text: view(d.said)})
	case "failed":
		d.fail(turn.Get("error"), o, to)
	default:
		to.ParseError()
	}
}
