package session

import (
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// The canonical tools.
const (
	ToolRead   = "read"
	ToolWrite  = "write"
	ToolEdit   = "edit"
	ToolSearch = "search"
	ToolList   = "list"
	ToolBash   = "bash"
	ToolWeb    = "web"
	ToolTask   = "task"
	ToolPlan   = "plan"
	ToolOther  = "other"

	// ToolTest and ToolBuild are derived from shell commands; no agent has a tool for them.
	ToolTest  = "test"
	ToolBuild = "build"
)

// canonicalTools maps the names of tools in lower case to canonical ones. The agents' names do not
// collide, so one table serves them all; a decoder whose agent means something else by a name says
// so in ToolUse.Canonical.
var canonicalTools = map[string]string{
	"read": ToolRead, "notebookread": ToolRead, "view": ToolRead, "read_file": ToolRead, "view_image": ToolRead,
	"write": ToolWrite, "write_file": ToolWrite,
	"edit": ToolEdit, "multiedit": ToolEdit, "notebookedit": ToolEdit, "apply_patch": ToolEdit, "edit_file": ToolEdit,
	"grep": ToolSearch, "glob": ToolSearch, "find": ToolSearch, "search": ToolSearch,
	"ls": ToolList, "list": ToolList, "list_dir": ToolList,
	"bash": ToolBash, "killshell": ToolBash, "bashoutput": ToolBash, "shell": ToolBash, "exec_command": ToolBash,
	"write_stdin": ToolBash,
	"local_shell": ToolBash, "command_execution": ToolBash,
	"webfetch": ToolWeb, "websearch": ToolWeb, "web_search": ToolWeb, "web_fetch": ToolWeb,
	"task": ToolTask, "agent": ToolTask, "taskoutput": ToolTask, "taskstop": ToolTask,
	"todowrite": ToolPlan, "exitplanmode": ToolPlan, "todo_list": ToolPlan, "plan": ToolPlan, "update_plan": ToolPlan,
}

// CanonicalTool maps an agent's name of a tool to the canonical one.
func CanonicalTool(name string) string {
	if strings.HasPrefix(name, "mcp__") {
		return ToolOther
	}
	if canonical, known := canonicalTools[name]; known {
		return canonical
	}
	lower := strings.ToLower(name)
	if canonical, known := canonicalTools[lower]; known {
		return canonical
	}
	switch {
	case strings.HasPrefix(lower, "web"):
		return ToolWeb
	case strings.HasPrefix(lower, "todo"):
		return ToolPlan
	}
	return ToolOther
}

// previewBytes is how much of a tool's result the stored session keeps.
const previewBytes = 400

// ToolCall records the use of a tool.
func (f *Fold) ToolCall(o Origin, call ToolUse) {
	f.turns.note(true, o)
	f.tool = ToolCall{
		CallID:     call.ID,
		NativeName: call.Name,
		Canonical:  call.Canonical,
		Args:       call.Args,
		Paths:      call.Paths,
		Command:    call.Command,
	}
	tool := &f.tool
	if tool.Canonical == "" {
		tool.Canonical = CanonicalTool(call.Name)
	}
	if len(tool.Args) == 0 {
		tool.Args = noArgs
	} else if f.detailed(tool) {
		f.describe(tool)
	}
	var head string
	if tool.Canonical == ToolBash && tool.Command != "" && f.detailed(tool) {
		refined := f.shell.refine(tool.Command)
		tool.Derived, head = refined.derived, refined.head
		if len(tool.Paths) == 0 {
			tool.Paths = refined.paths
		}
		if f.opts.VerifyCommand != "" && strings.Contains(tool.Command, f.opts.VerifyCommand) {
			tool.Derived = ToolTest
		}
	}
	at := f.position(o)
	if f.watched {
		f.emit(o, at, EnrichedEvent{Kind: KindToolCall, Role: "assistant", Tool: tool})
	}
	f.open(tool, head, at.turn)
	f.noteCall(o, tool)
}

// noArgs are the arguments of a call that has none.
var noArgs = []byte("{}")

// describe finds the command and the files in a call's arguments.
func (f *Fold) describe(tool *ToolCall) {
	isShell := tool.Canonical == ToolBash
	if (isShell && tool.Command != "") || (!isShell && len(tool.Paths) > 0) {
		return
	}
	args, ok := f.args.Parse(tool.Args)
	if !ok {
		return
	}
	if isShell {
		tool.Command = shellCommand(args)
		return
	}
	for _, key := range pathKeys {
		if path := args.TextOf(key); path != "" {
			f.paths = append(f.paths[:0], path)
			tool.Paths = f.paths
			return
		}
	}
}

var pathKeys = []string{"file_path", "path", "notebook_path", "filePath", "file"}

// shellCommand finds the command in a shell tool's arguments: a string, or an argument vector.
func shellCommand(args jsontape.Value) string {
	for _, key := range []string{"command", "cmd"} {
		switch value := args.Get(key); value.Kind() {
		case jsontape.String:
			return value.Text()
		case jsontape.Array:
			words := make([]string, 0, 4)
			for word := range value.Elements() {
				words = append(words, word.Text())
			}
			if len(words) == 3 && isShell(words[0]) && strings.HasPrefix(words[1], "-") {
				return words[2]
			}
			return strings.Join(words, " ")
		default:
		}
	}
	return ""
}

func (f *Fold) open(tool *ToolCall, head string, turn int) {
	if tool.CallID == "" {
		return
	}
	call := f.calls.add(tool.CallID)
	call.canonical, call.effective, call.turn = tool.Canonical, tool.Effective(), turn
	call.path, call.head = call.path[:0], refilled(call.head, head)
	if len(tool.Paths) > 0 {
		call.path = refilled(call.path, tool.Paths[0])
	}
	if call.canonical == ToolTask && len(f.tasks) < maxOpenCalls {
		f.tasks[strings.Clone(tool.CallID)] = turn
	}
}

// ToolResult records the result of a tool call.
func (f *Fold) ToolResult(o Origin, r Returned) {
	f.turns.note(false, o)
	if at := f.position(o); f.watched {
		f.result = ToolResult{
			CallID:   r.CallID,
			IsError:  r.IsError,
			ExitCode: r.ExitCode,
			Bytes:    len(r.Content),
			Preview:  preview(r.Content),
			Content:  r.Content,
		}
		f.emit(o, at, EnrichedEvent{Kind: KindToolResult, Role: "user", Result: &f.result})
	}
	if call := f.calls.take(r.CallID); call != nil {
		failed := r.IsError || (r.ExitCode != nil && *r.ExitCode != 0)
		f.noteResult(o, call, failed)
	}
}

// preview cuts a text at a rune's border.
func preview(text string) string {
	if len(text) <= previewBytes {
		return text
	}
	end := previewBytes
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end]
}

// inside reports whether a path is in a directory. Relative paths do, unless they climb out;
// without a directory everything does.
func inside(path, dir string) bool {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return path != ".." && !strings.HasPrefix(path, "../")
	}
	return dir == "" || path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
