package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
)

// hintWidth is how many characters (code points) of a hint or preview are shown.
const hintWidth = 80

// ToolName shortens the name of an MCP tool to the tool itself: mcp__server__method becomes method.
func ToolName(name string) string {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return name
	}
	if _, method, ok := strings.Cut(rest, "__"); ok && method != "" {
		return method
	}
	return name
}

// Hint says in a few words what a tool call is about.
func Hint(tool string, input json.RawMessage) string {
	if strings.HasPrefix(tool, "mcp__") {
		return compactJSON(input)
	}
	var args map[string]any
	_ = json.Unmarshal(input, &args) // arguments that are not an object have no hint
	text := func(key string) string {
		value, _ := args[key].(string)
		return sanitise(value)
	}
	switch tool {
	case "Bash", "bash", "exec_command", "shell", "command_execution":
		return text("command")
	case "Read", "Write":
		return text("file_path")
	case "read", "write", "edit":
		return text("path")
	case "Edit":
		if args["replace_all"] == true {
			return display.FirstRunes(text("file_path")+" (replace_all)", hintWidth)
		}
		return text("file_path")
	case "Glob":
		return text("pattern")
	case "Grep":
		if path := text("path"); path != "" {
			return truncate(text("pattern") + " in " + path)
		}
		return text("pattern")
	case "WebFetch":
		return text("url")
	case "WebSearch", "ToolSearch":
		return text("query")
	case "TodoWrite":
		todos, _ := args["todos"].([]any)
		return fmt.Sprintf("%d todos", len(todos))
	case "NotebookEdit":
		return text("notebook_path")
	case "Skill":
		return text("skill")
	case "Agent", "Task":
		if prompt := text("prompt"); prompt != "" {
			return prompt
		}
		return text("description")
	default:
		return ""
	}
}

// Preview shows the first line of a tool's result that is not blank.
func Preview(content string, isError bool) string {
	for line := range strings.SplitSeq(content, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			return truncate(display.Line(line))
		}
	}
	if isError {
		return "(no output)"
	}
	return "(ok)"
}

// sanitise makes one short line of a tool argument.
func sanitise(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.NewReplacer("{", "", "}", "", `"`, "").Replace(line)
	return truncate(display.Line(strings.Join(strings.Fields(line), " ")))
}

func truncate(text string) string {
	if utf8.RuneCountInString(text) <= hintWidth {
		return text
	}
	return display.FirstRunes(text, hintWidth-3) + "..."
}

func compactJSON(input json.RawMessage) string {
	var out bytes.Buffer
	if len(input) == 0 || json.Compact(&out, input) != nil || out.String() == "null" {
		return "{}"
	}
	return display.Text(out.String())
}
