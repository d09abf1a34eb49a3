package codex

import (
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// The kinds of items. Each of the three formats has its own spelling of them.
const (
	itemMessage   = "message"
	itemUser      = "user"
	itemReasoning = "reasoning"
	itemCommand   = "command"
	itemChange    = "change"
	itemMCP       = "mcp"
	itemTool      = "tool"
	itemCollab    = "collab"
	itemWeb       = "web"
	itemImage     = "image"
	itemTodo      = "todo"
	itemPlan      = "plan"
	itemCompact   = "compaction"
	itemHook      = "hook"
	itemWarning   = "warning"
	itemSilent    = "silent" // known, and nothing to tell
)

var itemKinds = map[string]string{
	"agent_message": itemMessage, "agentMessage": itemMessage, "AgentMessage": itemMessage,
	"userMessage": itemUser, "UserMessage": itemUser,
	"reasoning": itemReasoning, "Reasoning": itemReasoning,
	"command_execution": itemCommand, "commandExecution": itemCommand, "CommandExecution": itemCommand,
	"file_change": itemChange, "fileChange": itemChange, "FileChange": itemChange,
	"mcp_tool_call": itemMCP, "mcpToolCall": itemMCP, "McpToolCall": itemMCP,
	"dynamicToolCall": itemTool, "DynamicToolCall": itemTool,
	"collab_tool_call": itemCollab, "collabAgentToolCall": itemCollab, "CollabAgentToolCall": itemCollab,
	"web_search": itemWeb, "webSearch": itemWeb, "WebSearch": itemWeb,
	"imageView": itemImage, "ImageView": itemImage,
	"todo_list": itemTodo,
	"plan":      itemPlan, "Plan": itemPlan,
	"contextCompaction": itemCompact, "ContextCompaction": itemCompact, "context_compaction": itemCompact,
	"hookPrompt": itemHook, "HookPrompt": itemHook,
	"error":              itemWarning,
	"functionCallOutput": itemSilent, "subAgentActivity": itemSilent, "sleep": itemSilent, "imageGeneration": itemSilent, "image_generation": itemSilent,
	"enteredReviewMode": itemSilent, "exitedReviewMode": itemSilent,
}

// isTool tells the kinds that are calls with a result.
func isTool(kind string) bool {
	switch kind {
	case itemCommand, itemChange, itemMCP, itemTool, itemCollab, itemWeb, itemImage:
		return true
	}
	return false
}

// callReader reads calls and their results. The arguments of a call and the exit code of a result are valid until the next one is read.
type callReader struct {
	args []byte
	exit int
}

// callOf reads the call that an item stands for.
func (r *callReader) callOf(kind, id string, item jsontape.Value) session.Call {
	call := session.Call{ID: id, Name: item.TextOf("type")}
	switch kind {
	case itemCommand:
		call.Canonical = session.ToolBash
		if command := item.Get("command"); command.Exists() {
			call.Args = r.wrapped("command", command)
			call.Command = commandText(command)
		}
	case itemChange:
		changes := item.Get("changes")
		call.Canonical = session.ToolEdit
		paths, kinds := changedFiles(changes)
		if allAdded(kinds) {
			call.Canonical = session.ToolWrite
		}
		call.Paths = paths
		if changes.Exists() {
			call.Args = r.wrapped("changes", changes)
		}
	case itemMCP:
		call.Name = "mcp__" + item.TextOf("server") + "__" + item.TextOf("tool")
		call.Args = marshalled(item.Get("arguments"))
	case itemTool:
		call.Name = item.TextOf("tool")
		call.Args = marshalled(item.Get("arguments"))
	case itemCollab:
		call.Name, call.Canonical = item.TextOf("tool"), session.ToolTask
		if prompt := item.Get("prompt"); prompt.Exists() {
			call.Args = r.wrapped("prompt", prompt)
		}
	case itemWeb:
		call.Canonical = session.ToolWeb
		if query := item.Get("query"); query.Exists() {
			call.Args = r.wrapped("query", query)
		}
	case itemImage:
		call.Canonical = session.ToolRead
		call.Paths = []string{item.TextOf("path")}
	}
	return call
}

// resultOf reads the result that a completed item stands for.
func (r *callReader) resultOf(kind, id string, item jsontape.Value) session.Returned {
	status := item.TextOf("status")
	result := session.Returned{CallID: id, IsError: status == "failed" || status == "declined"}
	switch kind {
	case itemCommand:
		result.Content = either(item, "aggregated_output", "aggregatedOutput").Text()
		if code := either(item, "exit_code", "exitCode"); code.Kind() == jsontape.Number {
			r.exit = code.Int()
			result.ExitCode = &r.exit
		}
	case itemChange:
		result.Content = item.TextOf("stdout") + item.TextOf("stderr")
	case itemMCP:
		result.Content = session.ContentText(item.Path("result", "content"))
		if message := item.Path("error", "message").Text(); message != "" {
			result.IsError, result.Content = true, message
		}
	case itemTool:
		result.Content = session.ContentText(either(item, "contentItems", "content_items"))
		if item.Get("success").Kind() == jsontape.False {
			result.IsError = true
		}
	}
	return result
}

// commandText is the shell command of an item: a line, or an argument vector.
func commandText(command jsontape.Value) string {
	if command.Kind() == jsontape.String {
		return command.Text()
	}
	var words []string
	for word := range command.Elements() {
		words = append(words, word.Text())
	}
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return words[2] // a shell and its script
	}
	return strings.Join(words, " ")
}

// changedFiles lists the files of a change and what happened to each: a list of objects in the streams, an object by path on disk.
func changedFiles(changes jsontape.Value) (paths, kinds []string) {
	for change := range changes.Elements() {
		paths = append(paths, change.TextOf("path"))
		kinds = append(kinds, changeKind(change.Get("kind")))
	}
	for path, change := range changes.Members() {
		paths = append(paths, path)
		kinds = append(kinds, change.TextOf("type"))
	}
	return paths, kinds
}

func changeKind(kind jsontape.Value) string {
	if kind.Kind() == jsontape.String {
		return kind.Text()
	}
	return kind.TextOf("type")
}

func allAdded(kinds []string) bool {
	for _, kind := range kinds {
		if kind != "add" {
			return false
		}
	}
	return len(kinds) > 0
}

// textOf is what an item says: a text, or the parts of one.
func textOf(item jsontape.Value) string {
	if text := item.TextOf("text"); text != "" {
		return text
	}
	for _, key := range []string{"content", "summary", "summary_text", "raw_content", "fragments"} {
		if text := partsText(item.Get(key)); text != "" {
			return text
		}
	}
	return ""
}

// partsText joins a list of strings or of objects with a text.
func partsText(parts jsontape.Value) string {
	if parts.Kind() == jsontape.String {
		return parts.Text()
	}
	if only, ok := parts.Only(); ok {
		return partText(only)
	}
	var texts []string
	for part := range parts.Elements() {
		texts = append(texts, partText(part))
	}
	return strings.Join(texts, "\n")
}

func partText(part jsontape.Value) string {
	if part.Kind() != jsontape.Object {
		return part.Text()
	}
	if text := part.TextOf("text"); text != "" {
		return text
	}
	return "[" + part.TextOf("type") + "]"
}

// wrapped makes an argument a list of arguments.
func (r *callReader) wrapped(key string, value jsontape.Value) []byte {
	if cap(r.args) > maxArgs {
		r.args = nil
	}
	r.args = append(append(r.args[:0], `{"`...), key...)
	r.args = append(append(r.args, `":`...), value.Raw()...)
	r.args = append(r.args, '}')
	return r.args
}

// maxArgs is the memory for unusually long arguments that is not held on to.
const maxArgs = 1 << 20

func marshalled(value jsontape.Value) []byte {
	if value.Kind() == jsontape.Null {
		return nil
	}
	return value.Raw()
}
