package render

import (
	"bytes"
	"cmp"
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

// Hint describes a tool call in a few words.
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
	case "Edit":
		if args["replace_all"] == true {
			return display.FirstRunes(text("file_path")+" (replace_all)", hintWidth)
		}
	case "Grep":
		if path := text("path"); path != "" {
			return truncate(text("pattern") + " in " + path)
		}
	case "TodoWrite":
		todos, _ := args["todos"].([]any)
		return fmt.Sprintf("%d todos", len(todos))
	case "Agent", "Task":
		return cmp.Or(text("prompt"), text("description"))
	}
	if argument, known := mainArgument[tool]; known {
		return text(argument)
	}
	return ""
}

// mainArgument are the most informative arguments of a tool call.
var mainArgument = map[string]string{
	"Bash": "command", "bash": "command", "exec_command": "command", "shell": "command", "command_execution": "command",
	"Read": "file_path", "Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path",
	"read": "path", "write": "path", "edit": "path",
	"Glob": "pattern", "Grep": "pattern", "WebFetch": "url", "WebSearch": "query", "ToolSearch": "query",
	"Skill": "skill",
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
