package codex

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// rolloutDecoder reads the files that the program keeps of its conversations. They hold what went
// to and from the model, item by item, so they show the calls that the streams omit. They also hold
// the program's own events, of which only those with something new are read.
type rolloutDecoder struct {
	parser   jsontape.Parser
	log      callLog
	failures failureReader
	calls    callReader
	failed   session.Recent[bool] // calls that the program says have failed
	thread   string
}

// Decode implements session.Decoder.
func (d *rolloutDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	payload := v.Get("payload")
	if payload.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at, NativeMs: session.ParseTime(v.TextOf("timestamp"))}
	switch v.TextOf("type") {
	case "session_meta":
		d.meta(payload, o, to)
	case "turn_context":
		to.Identify(session.Identity{Model: payload.TextOf("model"), Cwd: payload.TextOf("cwd")})
	case "response_item":
		d.responseItem(payload, o, to)
	case "event_msg":
		d.event(payload, o, to)
	case "token_usage_record":
		d.usage(payload.Get("thread_token_usage"), o, to)
	case "compacted":
		to.SystemPrompt(o, "disk", "compaction", payload.TextOf("message"))
	case "world_state", "inter_agent_communication", "inter_agent_communication_metadata":
	default:
		to.Unknown()
	}
}

// meta reads the head of the file. The file of a fork also holds that of its origin, further down.
func (d *rolloutDecoder) meta(payload jsontape.Value, o session.Origin, to *session.Fold) {
	if d.thread != "" {
		return
	}
	d.thread = strings.Clone(payload.TextOf("id"))
	to.Identify(session.Identity{
		SessionID: d.thread, Version: payload.TextOf("cli_version"),
		Cwd: payload.TextOf("cwd"),
	})
	for _, key := range []string{"base_instructions", "instructions"} {
		if text := cmp.Or(payload.TextOf(key), payload.Get(key).TextOf("text")); text != "" {
			to.SystemPrompt(o, "disk", "init", text)
			return
		}
	}
}

func (d *rolloutDecoder) responseItem(item jsontape.Value, o session.Origin, to *session.Fold) {
	id := item.TextOf("call_id")
	switch item.TextOf("type") {
	case "message":
		d.message(item, o, to)
	case "reasoning":
		to.Thinking(o, textOf(item))
	case "function_call":
		name := item.TextOf("name")
		if namespace := item.TextOf("namespace"); namespace != "" {
			name = namespace + "__" + name
		}
		d.call(o, to, session.ToolUse{ID: id, Name: name, Args: []byte(item.TextOf("arguments"))})
	case "custom_tool_call":
		d.call(o, to, d.calls.customCall(id, item))
	case "local_shell_call":
		call := session.ToolUse{ID: id, Name: "local_shell"}
		if action := item.Get("action"); action.Get("command").Exists() {
			call.Args, call.Command = marshalled(action), commandText(action.Get("command"))
		}
		d.call(o, to, call)
	case "web_search_call":
		d.call(o, to, session.ToolUse{
			Name: "web_search", Canonical: session.ToolWeb,
			Args: marshalled(item.Get("action")),
		})
	case "tool_search_call":
		d.call(o, to, session.ToolUse{
			ID:        id,
			Name:      "tool_search",
			Canonical: session.ToolOther,
			Args:      marshalled(item.Get("arguments")),
		})
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		d.result(id, item.Get("output"), o, to)
	case "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "image_generation_call",
		"additional_tools":
	default:
		to.Unknown()
	}
}

// message distinguishes the messages of people, of the model, and of the program.
func (d *rolloutDecoder) message(item jsontape.Value, o session.Origin, to *session.Fold) {
	text := partsText(item.Get("content"))
	switch role := item.TextOf("role"); role {
	case "assistant":
		to.Message(o, "assistant", text, "")
	case "developer", "system":
		to.SystemPrompt(o, "disk", role, text)
	case "user":
		if injected(text) {
			to.SystemPrompt(o, "disk", "reminder", text)
			return
		}
		to.Message(o, "user", text, "")
	default:
		to.Unknown()
	}
}

// injected recognises the messages that the program writes in the user's name.
func injected(text string) bool {
	for _, prefix := range []string{
		"<environment_context>", "<user_instructions>", "<turn_aborted>", "<user_shell_command>", "<skill>",
		"<permissions", "<subagent_notification>",
		"# AGENTS.md instructions",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func (d *rolloutDecoder) call(o session.Origin, to *session.Fold, call session.ToolUse) {
	if d.log.begin(call.ID) {
		to.ToolCall(o, call)
	}
}

// customCall returns a call whose input is free text: a patch, or the script of a model that calls
// its tools from code.
func (r *callReader) customCall(id string, item jsontape.Value) session.ToolUse {
	call := session.ToolUse{ID: id, Name: item.TextOf("name")}
	if input := item.Get("input"); input.Exists() {
		call.Args = r.wrapped("input", input)
	}
	if call.Name == "apply_patch" {
		var kinds []string
		call.Paths, kinds = patchedFiles(item.TextOf("input"))
		if allAdded(kinds) {
			call.Canonical = session.ToolWrite
		}
	}
	return call
}

func allAdded(kinds []string) bool {
	return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return kind != "add" })
}

// patchedFiles lists the files that a patch names in its headers, and what it does to each.
func patchedFiles(patch string) (paths, kinds []string) {
	for line := range strings.SplitSeq(patch, "\n") {
		header, found := strings.CutPrefix(line, "*** ")
		if !found {
			continue
		}
		kind, path, found := strings.Cut(header, " File: ")
		if found && path != "" && (kind == "Add" || kind == "Update" || kind == "Delete") {
			kinds, paths = append(kinds, strings.ToLower(kind)), append(paths, strings.TrimSpace(path))
		}
	}
	return paths, kinds
}

// rejections are the beginnings of results of calls that were not carried out.
var rejections = []string{
	"apply_patch verification failed", "failed to parse function arguments", "unsupported call",
	"unsupported custom tool call", "exec_command failed",
	"execution error", "aborted", "user rejected", "tool call error", "patch rejected",
}

func rejected(head string) bool {
	return slices.ContainsFunc(rejections, func(words string) bool { return strings.HasPrefix(head, words) })
}

// exitIn finds the exit code of a command in a line of a result's head.
func exitIn(head string) *int {
	for line := range strings.SplitSeq(head, "\n") {
		for _, words := range [...]string{"Process exited with code ", "Exit code: "} {
			digits, found := strings.CutPrefix(line, words)
			if !found || digits == "" || strings.Trim(digits, "0123456789") != "" {
				continue
			}
			code, _ := strconv.Atoi(digits)
			return &code
		}
	}
	return nil
}

// outputHead is the part of a result in which the program says how a command ended; the command's
// own output comes after it.
const outputHead = 512

func (d *rolloutDecoder) result(id string, output jsontape.Value, o session.Origin, to *session.Fold) {
	if !output.Exists() {
		to.ParseError()
		return
	}
	if !d.log.end(id) {
		return
	}
	result := session.Returned{CallID: id, Content: partsText(output), IsError: d.failed.Get(id)}
	head := result.Content[:min(len(result.Content), outputHead)]
	if before, _, found := strings.Cut(head, "\nOutput:\n"); found {
		head = before
	}
	if result.ExitCode = exitIn(head); result.ExitCode == nil {
		olderResult(&result)
	}
	result.IsError = result.IsError || rejected(head) || (result.ExitCode != nil && *result.ExitCode != 0)
	to.ToolResult(o, result)
}

// olderResult reads the results of older versions, which were JSON in a string.
func olderResult(result *session.Returned) {
	if !strings.HasPrefix(result.Content, `{"output":`) {
		return
	}
	var parser jsontape.Parser
	v, ok := parser.Parse([]byte(result.Content))
	if !ok {
		return
	}
	if code := v.Path("metadata", "exit_code"); code.Exists() {
		result.ExitCode = new(code.Int())
	}
	result.Content = v.TextOf("output")
}

// event reads one of the program's own events.
func (d *rolloutDecoder) event(payload jsontape.Value, o session.Origin, to *session.Fold) {
	switch payload.TextOf("type") {
	case "token_count":
		d.usage(payload.Path("info", "total_token_usage"), o, to)
	case "task_complete", "turn_complete":
		d.complete(payload, o, to)
	case "turn_aborted":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorAborted, Message: payload.TextOf("reason")})
		to.Final(o, session.Final{Outcome: session.OutcomeAborted})
	case "error", "stream_error":
		to.Error(o, d.failures.read(payload))
	case "warning":
		to.Error(o, session.ErrorInfo{Kind: session.ErrorWarning, Message: payload.TextOf("message")})
	case "item_completed":
		d.item(payload.Get("item"), o, to)
	case "task_started", "turn_started", "thread_settings_applied", "thread_rolled_back", "thread_name_updated",
		"thread_goal_updated",
		"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "context_compacted",
		"entered_review_mode", "exited_review_mode",
		"exec_command_begin", "exec_command_end", "patch_apply_begin", "patch_apply_end", "mcp_tool_call_begin",
		"mcp_tool_call_end", "web_search_begin",
		"web_search_end", "view_image_tool_call", "image_generation_end", "item_started", "collab_agent_spawn_end",
		"collab_waiting_end",
		"collab_close_end", "collab_agent_interaction_end", "collab_resume_end", "plan_update", "guardian_assessment":
	default:
		to.Unknown()
	}
}

// usage reads the thread's counters.
func (d *rolloutDecoder) usage(total jsontape.Value, o session.Origin, to *session.Fold) {
	if total.Kind() != jsontape.Object {
		return // written before the first answer, with nothing in it
	}
	to.Usage(o, session.UsageReport{Rule: session.UsageCumulative, Key: d.thread, Tokens: tokens(total)})
}

func (d *rolloutDecoder) complete(payload jsontape.Value, o session.Origin, to *session.Fold) {
	if wrong := payload.Get("error"); wrong.Kind() == jsontape.Object {
		info := d.failures.read(wrong)
		to.Error(o, info)
		to.Final(o, session.Final{Outcome: session.OutcomeOf(info.Kind), Text: info.Message})
		return
	}
	to.Final(o, session.Final{Outcome: session.OutcomeSuccess, Text: payload.TextOf("last_agent_message")})
}

// item reads a completed item: the outcome of a known call, or a call of the model's script that is
// recorded nowhere else.
func (d *rolloutDecoder) item(item jsontape.Value, o session.Origin, to *session.Fold) {
	kind := kindOf(item.TextOf("type"))
	switch {
	case kind == itemUnknown:
		to.Unknown()
	case !kind.isTool() || kind == itemWeb:
	case d.log.began(item.TextOf("id")):
		if d.calls.resultOf(kind, "", item, false).IsError {
			d.failed.Set(item.TextOf("id"), true)
		}
	default:
		id := item.TextOf("id")
		d.call(o, to, d.calls.callOf(kind, id, item, to.Watched()))
		if d.log.end(id) {
			to.ToolResult(o, d.calls.resultOf(kind, id, item, to.Watched()))
		}
	}
}
