package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/session"
)

// act is one thing that an agent does in a test.
type act struct {
	tool   string // bash, read, edit, write, web, say, or an error's kind
	arg    string // the command, the file or the address
	output string
	failed bool
}

func bash(command string) act { return act{tool: "bash", arg: command} }

// played lets an agent do things, a second and a turn each.
func played(task *Task, changed []string, cwd string, acts ...act) (*observer, *session.EnrichedSession) {
	files := map[string]bool{}
	for _, name := range changed {
		files[name] = true
	}
	o := newObserver(task, files)
	fold := session.NewFold(session.Options{
		Flat:          true,
		OnEvent:       o.observe,
		VerifyCommand: task.VerifyCommand,
		StartMs:       1,
	})
	fold.Identify(session.Identity{Cwd: cwd})
	for i, a := range acts {
		at := session.Origin{NativeMs: int64(i+1) * 1000, Stamp: session.Stamp{Line: int64(i + 1)}}
		id := fmt.Sprint("call-", i)
		switch a.tool {
		case "say":
			fold.Message(at, "assistant", a.arg, "")
			fold.Message(at, "user", "go on", "")
			continue
		case "reminder", "compaction":
			fold.Message(at, "user", a.arg, a.tool)
			continue
		case "error":
			fold.Error(at, session.ErrorInfo{Kind: session.ErrorKind(a.arg), Message: a.output})
			continue
		case "bash":
			args := fmt.Appendf(nil, `{"command":%q}`, a.arg)
			fold.ToolCall(at, session.ToolUse{ID: id, Name: "Bash", Command: a.arg, Args: args})
		case "web":
			fold.ToolCall(at, session.ToolUse{ID: id, Name: "WebFetch", Args: []byte(fmt.Sprintf(`{"url":%q}`, a.arg))})
		default:
			args := fmt.Appendf(nil, `{"path":%q}`, a.arg)
			fold.ToolCall(at, session.ToolUse{ID: id, Name: a.tool, Paths: []string{a.arg}, Args: args})
		}
		fold.ToolResult(at, session.Returned{CallID: id, Content: a.output, IsError: a.failed})
	}
	fold.Final(session.Origin{}, session.Final{Outcome: session.OutcomeSuccess})
	return o, fold.Session()
}

// flagged plays what an agent does and leaves, and returns the flags that are raised.
func flagged(task Task, diff, cwd string, acts ...act) []session.IntegrityFlag {
	p := patch.Parse([]byte(diff))
	f := &facts{
		task:    &task,
		patch:   p,
		classes: newClassifier(&task),
	}
	f.seen, f.session = played(&task, nil, cwd, acts...)
	return f.audit()
}

func kinds(list []session.IntegrityFlag) string {
	var names []string
	for _, flag := range list {
		names = append(names, flag.Kind+"@"+flag.Address())
	}
	return strings.Join(names, " ")
}

// modified is the diff of a file that was there before.
func modified(name string, lines ...string) string {
	old, new := 0, 0
	for _, line := range lines {
		if line[0] != '+' {
			old++
		}
		if line[0] != '-' {
			new++
		}
	}
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -10,%d +10,%d @@\n%s\n", name, old, new,
		strings.Join(lines, "\n"))
}

// added is the diff of a new file.
func added(name string, lines ...string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%d @@\n+%s\n",
		name, len(lines), strings.Join(lines, "\n+"))
}

// deleted is the diff of a file that is gone.
func deleted(name string, lines ...string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\ndeleted file mode 100644\n--- a/%[1]s\n+++ /dev/null\n@@ -1,%d +0,0 @@\n-%s\n",
		name, len(lines), strings.Join(lines, "\n-"))
}

func same(t *testing.T, what string, got, want *float64) {
	t.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil:
		t.Errorf("%s: %v, want %v", what, show(got), show(want))
	case *got-*want > 1e-9 || *want-*got > 1e-9:
		t.Errorf("%s: %v, want %v", what, *got, *want)
	}
}

func show(value *float64) string {
	if value == nil {
		return "nil"
	}
	return fmt.Sprint(*value)
}
