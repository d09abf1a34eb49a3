package codex

import (
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/messages"
	"github.com/fit-eval/fit/session"
)

// itemKind is the kind of an item. Each of the three formats spells it differently.
type itemKind uint8

const (
	itemUnknown itemKind = iota
	itemMessage
	itemUser
	itemReasoning
	itemTodo
	itemPlan
	itemCompact
	itemHook
	itemWarning
	itemSilent // known, and nothing to tell

	itemCommand // from here on: calls with a result
	itemChange
	itemMCP
	itemTool
	itemCollab
	itemWeb
	itemImage
)

// isTool reports whether a kind is a call with a result.
func (k itemKind) isTool() bool { return k >= itemCommand }

// kindOf returns the kind of an item from the name of its type.
func kindOf(name string) itemKind {
	switch name {
	case "agent_message", "agentMessage", "AgentMessage":
		return itemMessage
	case "userMessage", "UserMessage":
		return itemUser
	case "reasoning", "Reasoning":
		return itemReasoning
	case "command_execution", "commandExecution", "CommandExecution":
		return itemCommand
	case "file_change", "fileChange", "FileChange":
		return itemChange
	case "mcp_tool_call", "mcpToolCall", "McpToolCall":
		return itemMCP
	case "dynamicToolCall", "DynamicToolCall":
		return itemTool
	case "collab_tool_call", "collabAgentToolCall", "CollabAgentToolCall":
		return itemCollab
	case "web_search", "webSearch", "WebSearch":
		return itemWeb
	case "imageView", "ImageView":
		return itemImage
	case "todo_list":
		return itemTodo
	case "plan", "Plan":
		return itemPlan
	case "contextCompaction", "ContextCompaction", "context_compaction":
		return itemCompact
	case "hookPrompt", "HookPrompt":
		return itemHook
	case "error":
		return itemWarning
	case "functionCallOutput", "subAgentActivity", "sleep", "imageGeneration", "image_generation", "enteredReviewMode",
		"exitedReviewMode":
		return itemSilent
	}
	return itemUnknown
}

// callReader reads calls and their results. Its results share its memory and are valid until the
// next one is read.
type callReader struct {
	args     []byte
	name     []byte
	paths    []string
	allAdded bool // the files of the last change were all new
	exit     int
}

// callOf reads the call that an item stands for; its arguments only if the events are watched.
func (r *callReader) callOf(kind itemKind, id string, item jsontape.Value, seen bool) session.ToolUse {
	call := session.ToolUse{ID: id, Name: item.TextOf("type")}
	switch kind {
	case itemCommand:
		call.Canonical = session.ToolBash
		if command := item.Get("command"); command.Exists() {
			call.Command = commandText(command)
			if seen || call.Command == "" {
				call.Args = r.wrapped("command", command)
			}
		}
	case itemChange:
		changes := item.Get("changes")
		call.Canonical = session.ToolEdit
		if r.changedFiles(changes); r.allAdded {
			call.Canonical = session.ToolWrite
		}
		call.Paths = r.paths
		if changes.Exists() && (seen || len(r.paths) == 0) {
			call.Args = r.wrapped("changes", changes)
		}
	case itemMCP:
		call.Name = r.mcpName(item.TextOf("server"), item.TextOf("tool"))
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

// mcpName returns an agent's name for a server's tool.
func (r *callReader) mcpName(server, tool string) string {
	if cap(r.name) > maxArgs {
		r.name = nil
	}
	r.name = append(append(r.name[:0], "mcp__"...), server...)
	r.name = append(append(r.name, "__"...), tool...)
	return view(r.name)
}

// resultOf reads the result that a completed item stands for; its content only if the events are
// watched.
func (r *callReader) resultOf(kind itemKind, id string, item jsontape.Value, seen bool) session.Returned {
	status := item.TextOf("status")
	result := session.Returned{CallID: id, IsError: status == "failed" || status == "declined"}
	switch kind {
	case itemCommand:
		if seen {
			result.Content = either(item, "aggregated_output", "aggregatedOutput").Text()
		}
		if code := either(item, "exit_code", "exitCode"); code.Kind() == jsontape.Number {
			r.exit = code.Int()
			result.ExitCode = &r.exit
		}
	case itemChange:
		if seen {
			result.Content = item.TextOf("stdout") + item.TextOf("stderr")
		}
	case itemMCP:
		if seen {
			result.Content = messages.Text(item.Get("result").Get("content"))
		}
		if message := item.Get("error").TextOf("message"); message != "" {
			result.IsError, result.Content = true, message
		}
	case itemTool:
		if seen {
			result.Content = messages.Text(either(item, "contentItems", "content_items"))
		}
		if item.Get("success").Kind() == jsontape.False {
			result.IsError = true
		}
	}
	return result
}

// commandText returns the shell command of an item: a line, or an argument vector.
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

// changedFiles lists the files of a change and finds out whether all of them are new: a list of
// objects in the streams, an object by path on disk.
func (r *callReader) changedFiles(changes jsontape.Value) {
	if cap(r.paths) > maxPaths {
		r.paths = nil
	}
	r.paths, r.allAdded = r.paths[:0], !changes.Empty()
	for change := range changes.Elements() {
		r.paths = append(r.paths, change.TextOf("path"))
		r.allAdded = r.allAdded && changeKind(change.Get("kind")) == "add"
	}
	for path, change := range changes.Members() {
		r.paths = append(r.paths, path)
		r.allAdded = r.allAdded && change.TextOf("type") == "add"
	}
}

func changeKind(kind jsontape.Value) string {
	if kind.Kind() == jsontape.String {
		return kind.Text()
	}
	return kind.TextOf("type")
}

// textOf returns what an item says: a text, or the parts of one.
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

// The limits above which memory for long arguments and for many files is not kept.
const (
	maxArgs  = 1 << 20
	maxPaths = 1 << 10
)

func marshalled(value jsontape.Value) []byte {
	if value.Kind() == jsontape.Null {
		return nil
	}
	return value.Raw()
}
