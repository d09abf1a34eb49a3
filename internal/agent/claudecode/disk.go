package claudecode

import (
	"cmp"
	"strings"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/messages"
	"github.com/fit-eval/fit/session"
)

// diskDialectName is the name of the files that the program keeps below projects/ in its
// configuration.
const diskDialectName = "claude-projects"

// diskDialect returns the format of the program's own session files. Their messages are those of
// the stream, but every line is linked to the one before it, has a time, and carries the final
// token counts; there is no final event.
func diskDialect() session.Dialect {
	return session.Dialect{
		Name:       diskDialectName,
		Agent:      agentID,
		Recognise:  recogniseDisk,
		Companions: subagentFiles,
		New:        func() session.Decoder { return &diskDecoder{} },
	}
}

func recogniseDisk(event []byte) bool {
	var parser jsontape.Parser
	v, ok := parser.Parse(event)
	if !ok || v.Get("sessionId").Kind() != jsontape.String {
		return false
	}
	switch v.TextOf("type") {
	case "user", "assistant":
		return v.Get("parentUuid").Exists() && v.Get("message").Kind() == jsontape.Object
	case "queue-operation", "last-prompt", "file-history-snapshot":
		return true
	}
	return v.Get("parentUuid").Exists() && v.Get("isSidechain").Exists()
}

// subagentFiles returns the files of the sub-agents of a session, which are in a directory beside
// it.
func subagentFiles(path string) []string {
	return glob.Below(strings.TrimSuffix(path, ".jsonl"), "subagents/agent-*.jsonl")
}

// diskDecoder holds the state of one file.
type diskDecoder struct {
	parser jsontape.Parser
	main   bool                   // a line of the conversation itself was seen
	alone  bool                   // the file is a sub-agent's own
	calls  session.Recent[string] // the call that started each sub-agent
}

// Decode implements session.Decoder.
func (d *diskDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at, NativeMs: session.ParseTime(v.TextOf("timestamp")), Parent: d.parent(v)}
	switch v.TextOf("type") {
	case "assistant":
		d.assistant(v, o, to)
	case "user":
		d.user(v, o, to)
	case "system":
		d.system(v, o, to)
	case "attachment":
		d.attachment(v, o, to)
	case "queue-operation", "last-prompt", "file-history-snapshot", "summary", "ai-title", "custom-title", "agent-name",
		"agent-color", "agent-setting",
		"mode", "permission-mode", "progress", "pr-link", "tag", "worktree-state", "content-replacement",
		"attribution-snapshot":
		to.Identify(session.Identity{SessionID: v.TextOf("sessionId")})
	default:
		if v.Get("attachment").Exists() {
			d.attachment(v, o, to)
			return
		}
		to.Unknown()
	}
}

// parent finds the call that a sub-agent's line belongs to. A file that begins with a sub-agent's
// line is the record of that sub-agent alone.
func (d *diskDecoder) parent(v jsontape.Value) string {
	if !v.Get("isSidechain").Bool() {
		d.main = d.main || v.Get("parentUuid").Exists()
		return ""
	}
	if !d.main {
		d.alone = true
	}
	if d.alone {
		return ""
	}
	id := v.TextOf("agentId")
	return cmp.Or(d.calls.Get(id), id, "sidechain")
}

func (d *diskDecoder) identify(v jsontape.Value, model string, to *session.Fold) {
	to.Identify(session.Identity{
		SessionID: v.TextOf("sessionId"),
		Version:   v.TextOf("version"),
		Cwd:       v.TextOf("cwd"),
		Model:     model,
	})
}

func (d *diskDecoder) assistant(v jsontape.Value, o session.Origin, to *session.Fold) {
	message, content := v.Get("message"), v.Path("message", "content")
	if !content.Exists() {
		to.ParseError()
		return
	}
	model := message.TextOf("model")
	if v.Get("isApiErrorMessage").Bool() || model == "<synthetic>" {
		to.Error(o, session.ClassifyFailure(v.Get("apiErrorStatus").Int(), messages.Text(content)))
		return
	}
	identified := model
	if o.Parent != "" {
		identified = ""
	}
	d.identify(v, identified, to)
	o.MessageID = message.TextOf("id")
	if usage := message.Get("usage"); usage.Exists() && o.MessageID != "" {
		report := session.UsageReport{Rule: session.UsagePerMessage, Key: o.MessageID, Model: model}
		t := &report.Tokens
		t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens = messages.Usage(usage)
		to.Usage(o, report)
	}
	messages.ReadAssistant(content, session.AssistantMessage{Origin: o, Fold: to})
	if message.TextOf("stop_reason") == "end_turn" && o.Parent == "" {
		// the nearest thing to a final event that the file has
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess})
	}
}

func (d *diskDecoder) user(v jsontape.Value, o session.Origin, to *session.Fold) {
	content := v.Path("message", "content")
	if !content.Exists() {
		to.ParseError()
		return
	}
	d.identify(v, "", to)
	if agent := v.Path("toolUseResult", "agentId").Text(); agent != "" {
		for block := range content.Elements() {
			if id := block.TextOf("tool_use_id"); id != "" {
				d.calls.Set(agent, strings.Clone(id))
			}
		}
	}
	switch {
	case v.Get("isCompactSummary").Bool():
		to.SystemPrompt(o, "disk", "compaction", messages.Text(content))
	case v.Get("isMeta").Bool():
		messages.ReadUser(content, session.UserMessage{Origin: o, Fold: to, Label: "synthetic"})
	default:
		messages.ReadUser(content, session.UserMessage{Origin: o, Fold: to})
	}
}

func (d *diskDecoder) system(v jsontape.Value, o session.Origin, to *session.Fold) {
	switch v.TextOf("subtype") {
	case "compact_boundary":
		to.SystemPrompt(o, "disk", "compaction", v.TextOf("content"))
	case "api_error":
		to.Error(o, session.ErrorInfo{
			Kind:    session.ErrorRetry,
			Status:  v.Path("error", "status").Int(),
			Attempt: v.Get("retryAttempt").Int(),
			Message: v.Path("error", "message").Text(),
		})
	case "turn_duration", "local_command", "stop_hook_summary", "informational", "microcompact_boundary",
		"away_summary":
	default:
		to.Unknown()
	}
}

// attachment decodes what the program adds to the conversation itself: lists of skills and agents,
// reminders, files.
func (d *diskDecoder) attachment(v jsontape.Value, o session.Origin, to *session.Fold) {
	attached := v.Get("attachment")
	if !attached.Exists() {
		to.ParseError()
		return
	}
	content := cmp.Or(messages.Text(attached.Get("content")), string(attached.Raw()))
	to.SystemPrompt(o, "disk", attached.TextOf("type"), content)
}
