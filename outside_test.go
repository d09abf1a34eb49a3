package fit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// outsideProgram is the example of the README of the libraries that fit follows, in Go. It names no
// agent, no environment and no tool server.
const outsideProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fit-eval/fit"
)

func main() {
	cwd, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	facilitator, err := fit.NewFacilitator(fit.FacilitatorConfig{
		FacilitatorCwd: cwd,
		AgentConfigs: []fit.AgentConfig{
			{Name: "alice", Role: "explorer", AgentProfile: "alice"},
			{Name: "bob", Role: "tester", AgentProfile: "bob"},
		},
		Output:             os.Stdout,
		Redactor:           fit.NewRedactor(),
		FacilitatorProfile: "improvement-coach",
	})
	if err != nil {
		panic(err)
	}
	result, err := facilitator.Run(context.Background(), "Run a kata storyboard meeting.")
	fmt.Fprintln(os.Stderr, result.Success, result.Turns, result.Summary, err)
}
`

// guideProgram is a file with the box of the guide to measuring from Go.
func guideProgram(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("docs/measure-from-go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	box, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the guide has no box")
	}
	return "package main\n\nimport (\n\"context\"\n\"os\"\n\n\"github.com/fit-eval/fit\"\n)\n\n" +
		"func guide(ctx context.Context, before, after fit.Arm) error {\n" + box + "return err\n}\n"
}

// buildOutside builds a program in a module of its own against this one, without a network.
func buildOutside(t *testing.T, dir string, files map[string]string) (program string) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	files["go.sum"] = string(sums)
	files["go.mod"] = "module example.com/outside\n\ngo 1.26.0\n\nrequire github.com/fit-eval/fit v0.0.0\n\n" +
		"replace github.com/fit-eval/fit => " + root + "\n"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(t.TempDir(), "outside")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = dir
	// With -trimpath what other tests have compiled serves this one, too.
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	return program
}

// TestTheLibraryFromOutside runs the examples of what a program can ask and plug in, as a module of
// its own would.
func TestTheLibraryFromOutside(t *testing.T) {
	sources, err := filepath.Glob("examples/library/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	files := map[string]string{}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(source)] = string(content)
	}
	files["guide.go"] = guideProgram(t)
	program := buildOutside(t, t.TempDir(), files)
	family, err := filepath.Abs("examples/quick-shell")
	if err != nil {
		t.Fatal(err)
	}
	judged := t.TempDir()
	err = errors.Join(versustest.Three([3]string{"claude-code", "codex", "pi-agent"}, "m").Write(judged),
		versustest.Judge(t.Context(), judged, versus.Options{Dialects: fit.Agents().Dialects()}, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range []struct {
		args []string
		want []string
	}{
		{[]string{"report", judged}, []string{
			"correctness: Pass by member-1 (citations: 1)",
			"correctness of claude-code: 100% of 1 runs as judged, uncalibrated",
		}},
		{[]string{"agent", t.TempDir()}, []string{"true: Remember this.", "ran scribe 1.0.0 and ended with 0"}},
		{[]string{"spawner", t.TempDir()}, []string{"programs were started: true"}},
		{[]string{"tools", t.TempDir()}, []string{"the tool answered: true"}},
		{[]string{"experiment", family, filepath.Join(t.TempDir(), "results")}, []string{
			"complete\n", "treatment: prompt given in 2 of 2 runs of after and 0 of 2 of before",
			"the files alone say the same: true", "add by after: correct true", "add by before: correct false",
		}},
	} {
		t.Run(example.args[0], func(t *testing.T) {
			run := exec.CommandContext(t.Context(), program, example.args...)
			run.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			output, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			for _, want := range example.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("it does not print %q:\n%s", want, output)
				}
			}
		})
	}
}

// namesakes is a program that uses the library and has arguments of its own, which happen to be
// named like what fit starts its helpers with.
const namesakes = `package main

import (
	"fmt"
	"os"

	"github.com/fit-eval/fit"
)

func main() { fmt.Println("main", fit.Agents() != nil, len(os.Args)) }
`

// TestImportingTheLibraryStartsNothing: what a process does before its main is decided by the name
// that it was started under, and fit alone gives those.
func TestImportingTheLibraryStartsNothing(t *testing.T) {
	program := buildOutside(t, t.TempDir(), map[string]string{"main.go": namesakes})
	for _, args := range [][]string{
		{"fit-serve-go-cache", "a", "b"},
		{"fit-mcp-relay"},
		{"fit-go-cache", "a", "b"},
		{"fit-untrusted", "true"},
		{"fit-sandbox-first", "/", "0", "0", "0", "--", "/bin/true", "true"},
		{"fit-sandbox-reaper"},
		{"fit-sandbox-inside", "{}", "true"},
		{"fit-sandbox-container", "/nowhere"},
		{"fit-watchdog"},
	} {
		t.Run(args[0], func(t *testing.T) {
			run := exec.CommandContext(t.Context(), program, args...)
			run.Dir, run.Env = t.TempDir(), []string{"FIT_MCP_SOCKET=/nowhere", "FIT_UNTRUSTED=PATH"}
			output, err := run.CombinedOutput()
			if want := fmt.Sprintln("main", true, 1+len(args)); err != nil || string(output) != want {
				t.Errorf("%v, printed %q, want %q", err, output, want)
			}
			if left, err := os.ReadDir(run.Dir); err != nil || len(left) > 0 {
				t.Errorf("it has made %v (%v)", left, err)
			}
		})
	}
}

// TestAProgramOutsideTheRepository runs a program of another module with nothing but a key and the
// address of a model in its environment.
func TestAProgramOutsideTheRepository(t *testing.T) {
	dir, remove := workspace("alice", "bob", "improvement-coach")
	defer remove()
	program := buildOutside(t, dir, map[string]string{"main.go": outsideProgram})

	url, stop := serveScript(meeting)
	defer stop()
	const key = "sk-ant-api03-outside-the-repository-0123456789"
	run := exec.CommandContext(t.Context(), program)
	run.Dir = dir
	run.Env = []string{"PATH=/nowhere", "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=" + key, "FIT_MODEL_URL=" + url}
	var trace, messages bytes.Buffer
	run.Stdout, run.Stderr = &trace, &messages
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s", err, messages.String())
	}
	if !strings.Contains(messages.String(), "Everybody reported. <nil>") {
		t.Errorf("the meeting ended with %s", messages.String())
	}
	for _, want := range []string{`"type":"session_start"`, "Seven out of ten.", `"type":"summary"`} {
		if !strings.Contains(trace.String(), want) {
			t.Errorf("the trace lacks %s", want)
		}
	}
	if strings.Contains(trace.String(), key) {
		t.Error("the key is in the trace")
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	dir, remove := workspace()
	defer remove()
	participants := []fit.AgentConfig{{Name: "alice"}}
	for _, c := range []struct {
		name  string
		try   func() error
		field string
	}{
		{"no trace", func() error {
			_, err := fit.NewFacilitator(fit.FacilitatorConfig{FacilitatorCwd: dir, AgentConfigs: participants})
			return err
		}, "FacilitatorConfig.Output"},
		{"no trace of a run", func() error {
			_, err := fit.Run(t.Context(), fit.RunConfig{Task: "x", Cwd: dir})
			return err
		}, "RunConfig.Output"},
		{"no task", func() error {
			_, err := fit.Run(t.Context(), fit.RunConfig{Cwd: dir, Output: &bytes.Buffer{}})
			return err
		}, "RunConfig.Task"},
		{"no participants", func() error {
			_, err := fit.NewFacilitator(fit.FacilitatorConfig{FacilitatorCwd: dir, Output: &bytes.Buffer{}})
			return err
		}, "FacilitatorConfig.AgentConfigs"},
		{"no URL", func() error {
			cfg := fit.FacilitatorConfig{FacilitatorCwd: dir, AgentConfigs: participants, Output: &bytes.Buffer{}}
			cfg.Options.Base.ModelURL = "localhost:80"
			_, err := fit.NewFacilitator(cfg)
			return err
		}, "ModelURL"},
		{"no such agent", func() error {
			cfg := fit.FacilitatorConfig{FacilitatorCwd: dir, AgentConfigs: participants, Output: &bytes.Buffer{}}
			cfg.Options.DefaultAgent = "nobody"
			_, err := fit.Facilitate(t.Context(), cfg, "Meet.")
			return err
		}, "Agent"},
		{"no directory", func() error {
			_, err := fit.Run(t.Context(), fit.RunConfig{Task: "x", Cwd: dir + "/nowhere", Output: &bytes.Buffer{}})
			return err
		}, "RunConfig.Cwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.try()
			var config *fit.ConfigError
			if !errors.As(err, &config) || config.Field != c.field {
				t.Errorf("%s: %v, want an error that names %s", c.name, err, c.field)
			}
		})
	}
	// A key that is missing is named by its variable.
	wiring := fit.Wiring{Environ: []string{"PATH=/nowhere", "HOME=" + dir}}
	_, err := wiring.Run(t.Context(), fit.RunConfig{Task: "x", Cwd: dir, Agent: "builtin", Output: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
}
