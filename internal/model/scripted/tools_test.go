package scripted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schema makes the fields of a tool out of their names, each with its type and description after a
// colon where they matter.
func schema(names ...string) fields {
	all := fields{}
	for _, name := range names {
		name, about, _ := strings.Cut(name, ":")
		kind, about, _ := strings.Cut(about, " ")
		all[name] = field{kind: kind, about: about}
	}
	return all
}

// execDescription declares tools the way a client does that lets the model call them by code.
const execDescription = "Run JavaScript.\n\n### `apply_patch`\ndeclare const tools: { apply_patch(input: string): Promise<unknown>; };\n\n### `exec_command`\n" +
	"declare const tools: { exec_command(args: {\n  // Shell command to execute.\n  cmd: string;\n  prefix_rule?: Array<string>;\n  // Wait before yielding output.\n" +
	"  yield_time_ms?: number;\n}): Promise<{\n  output: string;\n}>; };\n"

func codeTools() []offeredTool {
	exec := offeredTool{name: "exec", kind: "custom", namespace: "functions"}
	return append([]offeredTool{exec}, exec.declared(execDescription)...)
}

// The tools that the real clients offer, with the fields of theirs that matter here, and those of a
// client that nobody has seen.
var clients = map[string]conversation{
	"claude": {
		system: "environment:\n - Primary working directory: /repo\n - Platform: linux",
		tools: []offeredTool{
			{
				name: "Bash", kind: "function",
				input: schema("command", "timeout:number Optional timeout in milliseconds (max 600000)",
					"description"),
			},
			{name: "Read", kind: "function", input: schema("file_path:string The absolute path to the file to read")},
			{name: "Edit", kind: "function", input: schema("file_path", "old_string", "new_string")},
			{name: "Write", kind: "function", input: schema("file_path", "content")},
			{name: "mcp__orc__ask", kind: "function"},
		},
	},
	"builtin": {
		system: "Working directory: /repo",
		tools: []offeredTool{
			{name: "Bash", kind: "function", input: schema("command")},
			{name: "Read", kind: "function", input: schema("file_path")},
			{name: "Edit", kind: "function", input: schema("file_path", "old_string", "new_string")},
			{name: "Write", kind: "function", input: schema("file_path", "content")},
			{name: "Glob", kind: "function", input: schema("pattern", "path")},
			{name: "Grep", kind: "function", input: schema("pattern", "path", "output_mode")},
			{name: "mcp__orc__ask", kind: "function"},
		},
	},
	"pi": {
		system: "Current working directory: /repo",
		tools: []offeredTool{
			{
				name: "read", kind: "function",
				input: schema("path:string Path to the file to read (relative or absolute)"),
			},
			{
				name: "bash", kind: "function",
				input: schema("command", "timeout:number Timeout in seconds (optional, no default timeout)"),
			},
			{name: "edit", kind: "function", input: fields{
				"path":  {about: "Path to the file to edit (relative or absolute)"},
				"edits": {kind: "array", items: schema("oldText", "newText")},
			}},
			{
				name: "write", kind: "function",
				input: schema("path:string Path to the file to write (relative or absolute)", "content"),
			},
			{name: "ask", kind: "function"},
		},
	},
	"codex": {
		tools: []offeredTool{
			{name: "exec_command", kind: "function", input: schema("cmd", "yield_time_ms")},
			{name: "apply_patch", kind: "custom"},
			{name: "tool_search", kind: "tool_search"},
		},
		steps: []step{{kind: stepResult, text: "Output:\npackage calc\n\treturn a - b\n"}},
	},
	"codex-unknown-model": {tools: []offeredTool{
		{name: "exec_command", kind: "function", input: schema("cmd", "yield_time_ms")},
		{name: "ask", kind: "function", namespace: "mcp__orc"},
	}},
	"codex-code-mode": {tools: codeTools(), steps: []step{{kind: stepResult, text: "package calc\n\treturn a - b\n"}}},
	"codex-old": {tools: []offeredTool{{
		name: "shell", kind: "function",
		input: schema("command:array", "timeout_ms"),
	}}},
	"unseen": {
		system: "Working directory: /repo",
		tools: []offeredTool{
			{name: "run_shell_command", kind: "function", input: schema("command", "timeout_seconds")},
			{name: "write", kind: "function", input: schema("id")}, // not what its name says
			{
				name: "write_file", kind: "function",
				input: schema("filePath:string Relative to the project", "contents"),
			},
			{name: "edit_file", kind: "function", input: schema("file", "old_str", "new_str")},
		},
	},
	// no schema at all
	"silent": {tools: []offeredTool{{name: "shell", kind: "function"}, {name: "edit", kind: "function"}}},
}

func TestOneCallBecomesTheToolOfEachClient(t *testing.T) {
	const patch = "*** Begin Patch\n*** Update File: calc.go\n@@\n-\treturn a - b\n+\treturn a + b\n*** End Patch\n"
	js := func(call string) toolCall {
		name, input, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
		return offeredTool{name: "exec", namespace: "functions"}.javascript(name, input)
	}
	for _, tt := range []struct {
		call string
		want map[string]toolCall
	}{
		{`{"bash": "go test && echo \"ok\"", "timeout_ms": 1500}`, map[string]toolCall{
			"claude": {
				name:      "Bash",
				arguments: `{"command":"go test && echo \"ok\"","description":"Run a command","timeout":1500}`,
			},
			"builtin": {name: "Bash", arguments: `{"command":"go test && echo \"ok\""}`},
			"pi":      {name: "bash", arguments: `{"command":"go test && echo \"ok\"","timeout":2}`},
			"codex": {
				name:      "exec_command",
				arguments: `{"cmd":"go test && echo \"ok\"","yield_time_ms":30000}`,
			},
			"codex-old": {
				name:      "shell",
				arguments: `{"command":["bash","-c","go test && echo \"ok\""],"timeout_ms":1500}`,
			},
			"codex-code-mode": js(`exec_command({"cmd":"go test && echo \"ok\"","yield_time_ms":30000})`),
			"unseen": {
				name:      "run_shell_command",
				arguments: `{"command":"go test && echo \"ok\"","timeout_seconds":2}`,
			},
			"silent": {name: "shell", arguments: `{"command":"go test && echo \"ok\""}`},
		}},
		{`{"read": "calc.go"}`, map[string]toolCall{
			"claude":  {name: "Read", arguments: `{"file_path":"/repo/calc.go"}`},
			"builtin": {name: "Read", arguments: `{"file_path":"/repo/calc.go"}`},
			"pi":      {name: "read", arguments: `{"path":"calc.go"}`},
			"codex":   {name: "exec_command", arguments: `{"cmd":"cat -- 'calc.go'","yield_time_ms":30000}`},
		}},
		{`{"edit": "calc.go", "old": "a - b", "new": "a + b"}`, map[string]toolCall{
			"claude": {
				name:      "Edit",
				arguments: `{"file_path":"/repo/calc.go","new_string":"a + b","old_string":"a - b"}`,
			},
			"pi": {
				name:      "edit",
				arguments: `{"edits":[{"newText":"a + b","oldText":"a - b"}],"path":"calc.go"}`,
			},
			"codex":           {name: "apply_patch", custom: true, arguments: patch},
			"codex-code-mode": js("apply_patch(" + string(marshal(patch)) + ")"),
			"unseen": {
				name:      "edit_file",
				arguments: `{"file":"/repo/calc.go","new_str":"a + b","old_str":"a - b"}`,
			},
			"silent": {
				name:      "edit",
				arguments: `{"file_path":"calc.go","new_string":"a + b","old_string":"a - b"}`,
			},
		}},
		{`{"write": "a/b.txt", "content": "x\n"}`, map[string]toolCall{
			"claude": {name: "Write", arguments: `{"content":"x\n","file_path":"/repo/a/b.txt"}`},
			"pi":     {name: "write", arguments: `{"content":"x\n","path":"a/b.txt"}`},
			"unseen": {name: "write_file", arguments: `{"contents":"x\n","filePath":"a/b.txt"}`},
			"codex": {
				name: "apply_patch", custom: true,
				arguments: "*** Begin Patch\n*** Add File: a/b.txt\n+x\n*** End Patch\n",
			},
			"codex-unknown-model": {
				name:      "exec_command",
				arguments: `{"cmd":"mkdir -p -- 'a' && printf %s 'x\n' > 'a/b.txt'","yield_time_ms":30000}`,
			},
		}},
		{`{"glob": "**/*.go", "in": "src"}`, map[string]toolCall{
			"builtin": {name: "Glob", arguments: `{"path":"/repo/src","pattern":"**/*.go"}`},
		}},
		{`{"grep": "TODO"}`, map[string]toolCall{
			"builtin": {name: "Grep", arguments: `{"output_mode":"content","pattern":"TODO"}`},
			"pi":      {name: "bash", arguments: `{"command":"grep -rnE -e 'TODO' -- '.'"}`},
		}},
		{`{"mcp": "orc/ask", "input": {"to": "bob"}}`, map[string]toolCall{
			"claude":              {name: "mcp__orc__ask", arguments: `{"to": "bob"}`},
			"pi":                  {name: "ask", arguments: `{"to": "bob"}`},
			"codex":               {name: "ask", namespace: "mcp__orc", arguments: `{"to": "bob"}`},
			"codex-unknown-model": {name: "ask", namespace: "mcp__orc", arguments: `{"to": "bob"}`},
			"codex-code-mode":     js(`mcp__orc__ask({"to": "bob"})`),
		}},
		{
			`{"mcp": "orc/unheard", "input": {}}`,
			map[string]toolCall{"claude": {name: "mcp__orc__unheard", arguments: `{}`}},
		},
		{
			`{"tool": "NoSuchTool", "input": {"a": 1}}`,
			map[string]toolCall{"claude": {name: "NoSuchTool", arguments: `{"a": 1}`}},
		},
		{
			`{"tool": "apply_patch", "raw": "*** nonsense"}`,
			map[string]toolCall{"codex": {name: "apply_patch", custom: true, arguments: "*** nonsense"}},
		},
		{
			`{"first_of": [{"tool": "exec_command", "input": {"cmd": "x"}}, {"tool": "Bash", "input": {"command": "x"}}]}`,
			map[string]toolCall{
				"claude": {name: "Bash", arguments: `{"command": "x"}`},
				"codex":  {name: "exec_command", arguments: `{"cmd": "x"}`},
				"pi":     {name: "Bash", arguments: `{"command": "x"}`},

				"codex-code-mode": js(`exec_command({"cmd": "x"})`),
			},
		},
	} {
		t.Run(tt.call, func(t *testing.T) {
			var call Call
			if err := json.Unmarshal([]byte(tt.call), &call); err != nil {
				t.Fatal(err)
			}
			for client, want := range tt.want {
				if diff := cmp.Diff(want, clients[client].resolve(call), cmp.AllowUnexported(toolCall{})); diff != "" {
					t.Errorf("%s for %s:\n%s", tt.call, client, diff)
				}
			}
		})
	}
}

func TestEveryVerbWorksForEveryClient(t *testing.T) {
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			for _, call := range []Call{
				{Bash: "x"},
				{Read: "x"},
				{Write: "x"},
				{Edit: "x", Old: "y"},
				{Glob: "x"},
				{Grep: "x"},
			} {
				got := client.resolve(call)
				if !client.offers(got.name) {
					t.Errorf("%s: %+v became %s, which is not offered", name, call.verbs(), got.name)
				}
				if !got.custom && !json.Valid([]byte(got.arguments)) {
					t.Errorf("%s: %s is not JSON", name, got.arguments)
				}
			}
		})
	}
}

// shellRun runs a command that a client without the tool would be told to run.
func shellRun(t *testing.T, dir, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheShellDoesWhatTheToolsWould(t *testing.T) {
	for _, program := range []string{"bash", "perl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing", program)
		}
	}
	const name = "sub dir/it's.txt"
	for _, text := range []string{
		"plain", "two\nlines\n", "it's \"quoted\"", "$HOME `id` \\n %s %% !x",
		"ünïcödé\t\n\n", "-e --", "\n",
	} {
		dir := t.TempDir()
		if out, err := shellRun(t, dir, writeCommand(name, text+"OLD"+text)); err != nil {
			t.Fatalf("write %q: %v %s", text, err, out)
		}
		if out, err := shellRun(t, dir, editCommand(name, "OLD", text)); err != nil {
			t.Fatalf("edit %q: %v %s", text, err, out)
		}
		for _, wrong := range []string{"ABSENT", text} { // not there, and there three times
			if out, err := shellRun(t, dir, editCommand(name, wrong, "x")); err == nil {
				t.Errorf("an edit of %q succeeds: %s", wrong, out)
			}
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text+text+text {
			t.Errorf("the file holds %q, want %q (%v)", got, text+text+text, err)
		}
	}
}

func TestAPatchReplacesWholeLines(t *testing.T) {
	shown := []string{"package a\n\nfunc A() {\n\tone()\n\ttwo()\n}\n"}
	for name, tt := range map[string]struct {
		old, new string
		before   []string
		after    []string
		ok       bool
	}{
		"part of a line": {"one", "1", []string{"\tone()"}, []string{"\t1()"}, true},
		"over two lines": {
			"one()\n\ttwo", "1()\n\t2",
			[]string{"\tone()", "\ttwo()"},
			[]string{"\t1()", "\t2()"},
			true,
		},
		"whole lines":          {"\tone()\n", "\t1()\n\t1()\n", []string{"\tone()"}, []string{"\t1()", "\t1()"}, true},
		"a line deleted":       {"\tone()\n", "", []string{"\tone()"}, nil, true},
		"two lines joined":     {"one()\n", "1() ", nil, nil, false},
		"not shown":            {"three", "3", nil, nil, false},
		"shown more than once": {"(", "[", nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, ok := wholeLines(shown, tt.old, tt.new)
			if ok != tt.ok || !cmp.Equal(before, tt.before) || !cmp.Equal(after, tt.after) {
				t.Errorf("%s: %q → %q, %v", name, before, after, ok)
			}
		})
	}
}
