package claudecode

import (
	"path/filepath"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/fit-eval/fit/session"
)

// DiskDialectName is the name of the files that the program keeps below projects/ in its configuration.
const DiskDialectName = "claude-projects"

// DiskDialect is the format of the program's own session files. Their messages are those of the stream, but every line is linked to the one before it, has
// a time, and carries the final token counts; there is no final event.
func DiskDialect() session.Dialect {
	return session.Dialect{
		Name: DiskDialectName, Agent: ID, Recognise: recogniseDisk, Companions: subagentFiles,
		New: func() session.Decoder { return &diskDecoder{calls: map[string]string{}} },
	}
}

func recogniseDisk(event []byte) bool {
	v, err := fastjson.ParseBytes(event)
	if err != nil || v.GetStringBytes("sessionId") == nil {
		return false
	}
	switch string(v.GetStringBytes("type")) {
	case "user", "assistant":
		return v.Exists("parentUuid") && v.GetObject("message") != nil
	case "queue-operation", "last-prompt", "file-history-snapshot":
		return true
	}
	return v.Exists("parentUuid") && v.Exists("isSidechain")
}

// subagentFiles are the files of the sub-agents of a session, which lie in a directory beside it.
func subagentFiles(path string) []string {
	dir := strings.TrimSuffix(path, ".jsonl")
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "subagents", "agent-*.jsonl"))
	if err != nil {
		return nil
	}
	return files
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// diskDecoder holds the state of one file.
type diskDecoder struct {
	parser fastjson.Parser
	main   bool              // a line of the conversation itself was seen
	alone  bool              // the file is a sub-agent's own
	calls  map[string]string // the call that started each sub-agent
}

// Decode implements session.Decoder.
func (d *diskDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, err := d.parser.ParseBytes(event)
	if err != nil || v.Type() != fastjson.TypeObject {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at, NativeMs: session.ParseTime(field(v, "timestamp")), Parent: d.parent(v)}
	switch field(v, "type") {
	case "assistant":
		d.assistant(v, o, to)
	case "user":
		d.user(v, o, to)
	case "system":
		d.system(v, o, to)
	case "attachment":
		d.attachment(v, o, to)
	case "queue-operation", "last-prompt", "file-history-snapshot", "summary", "ai-title", "custom-title", "agent-name", "agent-color", "agent-setting",
		"mode", "permission-mode", "progress", "pr-link", "tag", "worktree-state", "content-replacement", "attribution-snapshot":
		to.Identify(session.Identity{SessionID: field(v, "sessionId")})
	default:
		if v.Get("attachment") != nil {
			d.attachment(v, o, to)
			return
		}
		to.Unknown()
	}
}

func field(v *fastjson.Value, key string) string { return string(v.GetStringBytes(key)) }

// parent finds the call that a sub-agent's line belongs to. A file that begins with a sub-agent's line is the record of that sub-agent alone.
func (d *diskDecoder) parent(v *fastjson.Value) string {
	if !v.GetBool("isSidechain") {
		d.main = d.main || v.Exists("parentUuid")
		return ""
	}
	if !d.main {
		d.alone = true
	}
	if d.alone {
		return ""
	}
	id := field(v, "agentId")
	if call := d.calls[id]; call != "" {
		return call
	}
	if id == "" {
		return "sidechain"
	}
	return id
}

func (d *diskDecoder) identify(v *fastjson.Value, model string, to *session.Fold) {
	to.Identify(session.Identity{SessionID: field(v, "sessionId"), Version: field(v, "version"), Cwd: field(v, "cwd"), Model: model})
}

func (d *diskDecoder) assistant(v *fastjson.Value, o session.Origin, to *session.Fold) {
	message, content := v.Get("message"), v.Get("message", "content")
	if content == nil {
		to.ParseError()
		return
	}
	model := field(message, "model")
	if v.GetBool("isApiErrorMessage") || model == "<synthetic>" {
		to.Error(o, session.ClassifyFailure(v.GetInt("apiErrorStatus"), session.ContentText(content)))
		return
	}
	identified := model
	if o.Parent != "" {
		identified = ""
	}
	d.identify(v, identified, to)
	o.MessageID = field(message, "id")
	if usage := message.Get("usage"); usage != nil && o.MessageID != "" {
		to.Usage(o, session.UsageReport{Rule: session.UsagePerMessage, Key: o.MessageID, Model: model, Tokens: session.MessageTokens(usage)})
	}
	session.AssistantContent(content, o, to)
	if field(message, "stop_reason") == "end_turn" && o.Parent == "" {
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess}) // the nearest thing to a final event that the file has
	}
}

func (d *diskDecoder) user(v *fastjson.Value, o session.Origin, to *session.Fold) {
	content := v.Get("message", "content")
	if content == nil {
		to.ParseError()
		return
	}
	d.identify(v, "", to)
	if agent := string(v.GetStringBytes("toolUseResult", "agentId")); agent != "" {
		for _, block := range content.GetArray() {
			if id := field(block, "tool_use_id"); id != "" {
				d.calls[agent] = id
			}
		}
	}
	switch {
	case v.GetBool("isCompactSummary"):
		to.SystemPrompt(o, "disk", "compaction", session.ContentText(content))
	case v.GetBool("isMeta"):
		session.UserContent(content, "synthetic", o, to)
	default:
		session.UserContent(content, "", o, to)
	}
}

func (d *diskDecoder) system(v *fastjson.Value, o session.Origin, to *session.Fold) {
	switch field(v, "subtype") {
	case "compact_boundary":
		to.SystemPrompt(o, "disk", "compaction", field(v, "content"))
	case "api_error":
		to.Error(o, session.ErrorInfo{
			Kind: session.ErrorRetry, Status: v.GetInt("error", "status"), Attempt: v.GetInt("retryAttempt"), Message: string(v.GetStringBytes("error", "message")),
		})
	case "turn_duration", "local_command", "stop_hook_summary", "informational", "microcompact_boundary", "away_summary":
	default:
		to.Unknown()
	}
}

// attachment is what the program puts beside the conversation on its own: lists of skills and agents, reminders, files.
func (d *diskDecoder) attachment(v *fastjson.Value, o session.Origin, to *session.Fold) {
	attached := v.Get("attachment")
	if attached == nil {
		to.ParseError()
		return
	}
	content := session.ContentText(attached.Get("content"))
	if content == "" {
		content = string(attached.MarshalTo(nil))
	}
	to.SystemPrompt(o, "disk", field(attached, "type"), content)
}
