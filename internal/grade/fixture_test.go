package grade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/workspace"
)

// bench is a task with a workspace that an agent has worked in.
type bench struct {
	t         *testing.T
	family    *task.Family
	task      *task.Task
	ws        *workspace.Workspace
	artifacts string
	config    grade.Config
}

// files are the content of a directory by path. A value that starts with "-> " is a link, and one
// that starts with "#!" is executable.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range f {
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(target); err != nil {
			t.Fatal(err)
		}
		if link, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(link, target); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(target, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// newBench loads a family of one task and prepares a workspace for it. Paths are relative to the
// task.
func newBench(t *testing.T, content files) *bench {
	t.Helper()
	dir := t.TempDir()
	base := files{"agent.task.md": "Do it.\n"}
	base.write(t, filepath.Join(dir, "tasks", "one"))
	content.write(t, filepath.Join(dir, "tasks", "one"))
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return benchOf(t, family)
}

func benchOf(t *testing.T, family *task.Family) *bench {
	t.Helper()
	b := &bench{t: t, family: family, task: &family.Tasks[0], artifacts: filepath.Join(t.TempDir(), "evidence")}
	ws, err := workspace.Prepare(t.Context(), workspace.Config{
		Root: filepath.Join(t.TempDir(), "root"), Name: "cell", Family: family, Task: b.task, Environ: os.Environ(),
		Ports: &workspace.Ports{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.ws = ws
	b.config = grade.Config{
		Task: b.task, Source: ws, Artifacts: b.artifacts, Scratch: t.TempDir(),
		Baseline: grade.NewBaseline(),
	}
	return b
}

// another is a second attempt at the same task, which shares what is known about its graders.
func (b *bench) another(t *testing.T) *bench {
	t.Helper()
	next := benchOf(t, b.family)
	next.config.Baseline = b.config.Baseline
	if w, ok := b.config.Source.(warm); ok {
		next.config.Source = warm{next.ws, w.cache, w.server}
	}
	return next
}

// agent does what an agent may do: write anything to the working directory.
func (b *bench) agent(content files) *bench {
	b.t.Helper()
	content.write(b.t, b.ws.Dir)
	return b
}

func (b *bench) grade() grade.Result {
	b.t.Helper()
	result, err := grade.Run(b.t.Context(), b.config)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// want grades and compares the verdict, and the reasons with a part of what they must say.
func (b *bench) want(verdict, reason string) grade.Result {
	b.t.Helper()
	result := b.grade()
	if result.Grade.Verdict != verdict {
		b.t.Errorf("the verdict is %s, want %s\n%s", result.Grade.Verdict, verdict, describe(result))
	}
	if reason != "" && !strings.Contains(describe(result), reason) {
		b.t.Errorf("the grade does not say %q:\n%s", reason, describe(result))
	}
	return result
}

// wantTimeout grades work that hangs, with longer and longer limits until a slow machine has graded
// the base within one.
func wantTimeout(t *testing.T, phase string, prepare func(*testing.T, files) *bench, work files) grade.Result {
	t.Helper()
	var result grade.Result
	var limit time.Duration
	for _, limit = range testenv.Limits() {
		yaml := files{"task.yaml": fmt.Sprintf("timeouts:\n  %s: %s\n", phase, limit)}
		if result = prepare(t, yaml).agent(work).grade(); result.Grade.Verdict != grade.VerdictError {
			break
		}
	}
	reason := fmt.Sprintf("timed out after %dms", limit.Milliseconds())
	if result.Grade.Verdict != grade.VerdictFail || !strings.Contains(describe(result), reason) {
		t.Errorf("work that hangs is not failed because it %s:\n%s", reason, describe(result))
	}
	return result
}

func describe(result grade.Result) string {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err.Error()
	}
	// Messages are compared as people read them.
	return strings.NewReplacer(`\"`, `"`, `\u003e`, ">", `\u003c`, "<", `\u0026`, "&").Replace(string(text))
}

// warm is a workspace whose graders use the build cache of the tests themselves, as one of the
// harness's warmed caches would be used.
type warm struct {
	*workspace.Workspace
	cache string
	// server is a link to the tests, under the name that serves a cache.
	server string
}

// Grader implements grade.Source.
func (w warm) Grader(c *workspace.Copy) workspace.Place {
	place := w.Workspace.Grader(c)
	place.Env["GOCACHE"] = w.cache
	place.Env["GOCACHEPROG"] = strings.Join([]string{w.server, w.cache, "unused"}, " ")
	place.Isolation.ReadOnly = append(place.Isolation.ReadOnly, w.cache, w.server)
	return place
}

// goBench is a bench for a hidden suite in Go.
func goBench(t *testing.T, content files) *bench {
	t.Helper()
	testenv.NeedTool(t, "go")
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// A user who has compiled nothing yet has none.
	fill := exec.CommandContext(t.Context(), "go", "build", "testing", "embed", "regexp")
	fill.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := newBench(t, content)
	server := filepath.Join(t.TempDir(), "fit-go-cache")
	if self, err := os.Executable(); err != nil {
		t.Fatal(err)
	} else if err := os.Symlink(self, server); err != nil {
		t.Fatal(err)
	}
	b.config.Source = warm{b.ws, strings.TrimSpace(string(cache)), server}
	return b
}

func nodeBench(t *testing.T, content files) *bench {
	t.Helper()
	testenv.NeedTool(t, "node")
	return newBench(t, content)
}

func pythonBench(t *testing.T, content files) *bench {
	t.Helper()
	testenv.NeedTool(t, "python3")
	b := newBench(t, content)
	if b.ws.Isolation == "bwrap" {
		if _, err := os.Stat("/usr/bin/python3"); err != nil {
			testenv.Missing(t, "python3 is not among the system's programs, and the sandbox shows no others")
		}
	}
	return b
}
