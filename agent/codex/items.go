package codex

import (
	"strings"

	"github.com/valyala/fastjson"

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

// callOf reads the call that an item stands for.
func callOf(kind, id string, item *fastjson.Value) session.Call {
	call := session.Call{ID: id, Name: str(item, "type")}
	switch kind {
	case itemCommand:
		call.Canonical = session.ToolBash
		if command := item.Get("command"); command != nil {
			call.Args = wrapped("command", command)
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
		if changes != nil {
			call.Args = wrapped("changes", changes)
		}
	case itemMCP:
		call.Name = "mcp__" + str(item, "server") + "__" + str(item, "tool")
		call.Args = marshalled(item.Get("arguments"))
	case itemTool:
		call.Name = str(item, "tool")
		call.Args = marshalled(item.Get("arguments"))
	case itemCollab:
		call.Name, call.Canonical = str(item, "tool"), session.ToolTask
		if prompt := item.Get("prompt"); prompt != nil {
			call.Args = wrapped("prompt", prompt)
		}
	case itemWeb:
		call.Canonical = session.ToolWeb
		if query := item.Get("query"); query != nil {
			call.Args = wrapped("query", query)
		}
	case itemImage:
		call.Canonical = session.ToolRead
		call.Paths = []string{str(item, "path")}
	}
	return call
}

// resultOf reads the result that a completed item stands for.
func resultOf(kind, id string, item *fastjson.Value) session.Returned {
	status := str(item, "status")
	result := session.Returned{CallID: id, IsError: status == "failed" || status == "declined"}
	switch kind {
	case itemCommand:
		if output := either(item, "aggregated_output", "aggregatedOutput"); output != nil {
			result.Content = string(output.GetStringBytes())
		}
		if code := either(item, "exit_code", "exitCode"); code != nil && code.Type() == fastjson.TypeNumber {
			number := code.GetInt()
			result.ExitCode = &number
		}
	case itemChange:
		result.Content = str(item, "stdout") + str(item, "stderr")
	case itemMCP:
		result.Content = session.ContentText(item.Get("result", "content"))
		if message := string(item.GetStringBytes("error", "message")); message != "" {
			result.IsError, result.Content = true, message
		}
	case itemTool:
		result.Content = session.ContentText(either(item, "contentItems", "content_items"))
		if success := item.Get("success"); success != nil && success.Type() == fastjson.TypeFalse {
			result.IsError = true
		}
	}
	return result
}

// commandText is the shell command of an item: a line, or an argument vector.
func commandText(command *fastjson.Value) string {
	if command.Type() == fastjson.TypeString {
		return string(command.GetStringBytes())
	}
	var words []string
	for _, word := range command.GetArray() {
		words = append(words, string(word.GetStringBytes()))
	}
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return words[2] // a shell and its script
	}
	return strings.Join(words, " ")
}

// changedFiles lists the files of a change and what happened to each: a list of objects in the streams, an object by path on disk.
func changedFiles(changes *fastjson.Value) (paths, kinds []string) {
	if changes == nil {
		return nil, nil
	}
	for _, change := range changes.GetArray() {
		paths = append(paths, str(change, "path"))
		kinds = append(kinds, changeKind(change.Get("kind")))
	}
	if byPath := changes.GetObject(); byPath != nil {
		byPath.Visit(func(path []byte, change *fastjson.Value) {
			paths = append(paths, string(path))
			kinds = append(kinds, str(change, "type"))
		})
	}
	return paths, kinds
}

func changeKind(kind *fastjson.Value) string {
	if kind == nil {
		return ""
	}
	if kind.Type() == fastjson.TypeString {
		return string(kind.GetStringBytes())
	}
	return str(kind, "type")
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
func textOf(item *fastjson.Value) string {
	if text := str(item, "text"); text != "" {
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
func partsText(parts *fastjson.Value) string {
	if parts == nil {
		return ""
	}
	if parts.Type() == fastjson.TypeString {
		return string(parts.GetStringBytes())
	}
	var texts []string
	for _, part := range parts.GetArray() {
		text := string(part.GetStringBytes())
		if part.Type() == fastjson.TypeObject {
			if text = str(part, "text"); text == "" {
				text = "[" + str(part, "type") + "]"
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

func wrapped(key string, value *fastjson.Value) []byte {
	args := append([]byte(`{"`), key...)
	args = append(args, `":`...)
	return append(value.MarshalTo(args), '}')
}

func marshalled(value *fastjson.Value) []byte {
	if value == nil || value.Type() == fastjson.TypeNull {
		return nil
	}
	return value.MarshalTo(nil)
}
