package benchmarkcli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/model/scripted"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		beBenchmark()
	}
	os.Exit(m.Run())
}

// command runs fit-benchmark in memory, in a directory of the test's own.
type command struct {
	t      testing.TB
	dir    string
	env    []string
	stdout string
	stderr string
	again  []string // the command line of a run
}

func newCommand(t testing.TB) *command {
	t.Helper()
	dir := t.TempDir()
	return &command{t: t, dir: dir, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}}
}

// run runs a command line and returns its exit code.
func (c *command) run(args ...string) int {
	c.t.Helper()
	var stdout, stderr bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: c.env, Dir: c.dir,
		Version: "test",
	}
	root := New(con, agent.NewRegistry(builtin.New()))
	root.SilenceErrors, root.SilenceUsage = true, true
	// as the root of all commands does
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Exit(console.ExitUsage, err) })
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(context.Background())
	c.stdout, c.stderr = stdout.String(), stderr.String()
	if err != nil && err.Error() != "" {
		c.stderr += err.Error() + "\n"
	}
	return console.Code(err)
}

// want runs a command line and checks its exit code.
func (c *command) want(code int, args ...string) {
	c.t.Helper()
	if got := c.run(args...); got != code {
		c.t.Fatalf("%s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got, code, c.stdout,
			c.stderr)
	}
}

// model serves a scripted model and returns its address.
func (c *command) model(script string) string {
	c.t.Helper()
	open := make(chan struct{})
	close(open)
	return c.modelBehind(open, script)
}

// modelBehind serves a script; every request takes a token first, or waits for one.
func (c *command) modelBehind(tokens <-chan struct{}, script string) string {
	c.t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		c.t.Fatal(err)
	}
	model := scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// until the body is read the server does not notice that a client is gone
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-tokens:
			model.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	c.t.Cleanup(server.Close)
	return server.URL
}

func (c *command) contains(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// solvesGreeting solves the task of the scaffold.
const solvesGreeting = `{"turns":[
	{"calls":[{"read":"greet.sh"}]},
	{"calls":[{"bash":"printf '#!/bin/sh\\necho \"Hello, ${1:-world}!\"\\n' > greet.sh"}]},
	{"text":"It greets now."}]}`

const idles = `{"turns":[{"text":"There is nothing to do."}]}`

func TestFromScaffoldToComparison(t *testing.T) {
	c := newCommand(t)
	c.want(0, "init", "family")
	c.want(0, "lint", "--family", "family")
	c.contains(c.stdout, "1 task, 0 errors, 0 warnings")
	c.want(0, "list", "--family", "family")
	c.contains(c.stdout, "greeting")

	good, idle := c.model(solvesGreeting), c.model(idles)
	run := []string{
		"run", "--family", "family", "--runs", "2", "--output", "out", "--format", "text",
		"--arm", "before=agent:builtin,model:claude-sonnet-4-5,modelUrl:" + idle, "--arm",
		"after=agent:builtin,model:claude-sonnet-4-5,modelUrl:" + good,
	}
	c.want(0, run...)
	c.contains(c.stderr, "1 task × 2 arms × 2 runs", "4 cells, 4 to do")
	c.contains(c.stdout, "before", "after", "0 of 2 runs passed", "2 of 2 runs passed")
	c.want(0, run...)
	c.contains(c.stderr, "4 cells, 0 to do")

	c.want(0, "report", "--input", "out", "--k", "1,2")
	var report struct {
		Groups []struct {
			Name  string
			Tasks []struct {
				N, C    int
				PassAtK map[string]float64
			}
		}
	}
	if err := json.Unmarshal([]byte(c.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Groups) != 2 || report.Groups[0].Name != "before" || report.Groups[1].Tasks[0].PassAtK["1"] != 1 ||
		report.Groups[0].Tasks[0].C != 0 {
		t.Errorf("%+v", report)
	}
	c.want(0, "compare", "out:before", "out:after", "--format", "json")
	c.contains(c.stdout, `"claim": "insufficient"`)
	c.want(0, "compare", "out")
	c.want(1, "compare", "out", "--fail-on", "insufficient")
	c.want(2, "compare", "out", "--fail-on", "bad")
	c.want(2, "compare", "out:nobody", "out:after")
	c.want(0, "plan", "--effect", "0.1", "--runs", "3")
	c.contains(c.stdout, "tasks × 2 arms × 3 runs")
	c.want(0, "plan", "--tasks", "20", "--cost-per-run", "1", "--max-cost-usd", "200")
	for _, design := range []string{"for the budget: ", "20 tasks × 2 arms"} {
		_, rest, _ := strings.Cut(c.stdout, design)
		c.contains(rest, "percentage points if the variances are exactly these")
	}
	c.want(0, "grade", "--family", "family", "--input", "out")
	c.contains(c.stderr, "4 runs graded again, 0 differ")
	c.want(0, "list", "out")
	if err := os.Rename(filepath.Join(c.dir, "out"), filepath.Join(c.dir, "o[u]t")); err != nil {
		t.Fatal(err)
	}
	c.want(0, "clean", "o[u]t")
	if left := glob.Below(filepath.Join(c.dir, "o[u]t"), "runs/*/*/*/*/cwd"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
