package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/testenv"
)

// definition is action.yml.
type definition struct {
	Inputs map[string]struct {
		Default  string `yaml:"default"`
		Required bool   `yaml:"required"`
	} `yaml:"inputs"`
	Runs struct {
		Steps []struct {
			Name string            `yaml:"name"`
			If   string            `yaml:"if"`
			Run  string            `yaml:"run"`
			Env  map[string]string `yaml:"env"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

func readAction(t *testing.T) *definition {
	t.Helper()
	var action definition
	read(t, "../../action.yml", &action)
	return &action
}

// read reads what a test needs of a file of YAML.
func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := document.Parse(file, content)
	if err == nil {
		err = doc.Decode(into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// project is a repository with a family, a skill that this commit has changed, and a model.
type project struct {
	t       *testing.T
	dir     string
	temp    string // of the runner
	environ []string
	api     *api
}

// api stands in for the comments of GitHub's API.
type api struct {
	mu       sync.Mutex
	comments []string
	calls    []string
	hidden   bool // the list of comments is not shown
}

const token = "ghs_0123456789abcdefghijABCDEFGHIJ012345"

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, r.Method+" "+r.URL.Path)
	if r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	var posted struct{ Body string }
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&posted); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch path := r.URL.Path; {
	case r.Method == http.MethodGet && a.hidden:
		http.Error(w, "not now", http.StatusForbidden)
	case r.Method == http.MethodGet && path == "/repos/you/project/issues/7/comments":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		found := []map[string]any{}
		for i := (page - 1) * 100; i < min(page*100, len(a.comments)); i++ {
			found = append(found, map[string]any{"id": i, "body": a.comments[i]})
		}
		_ = json.NewEncoder(w).Encode(found)
	case r.Method == http.MethodPost && path == "/repos/you/project/issues/7/comments":
		a.comments = append(a.comments, posted.Body)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPatch && strings.HasPrefix(path, "/repos/you/project/issues/comments/"):
		id, err := strconv.Atoi(filepath.Base(path))
		if err != nil || id >= len(a.comments) {
			http.NotFound(w, r)
			return
		}
		a.comments[id] = posted.Body
	default:
		http.NotFound(w, r)
	}
}

const skill = `---
name: try-scripts
description: Repair a shell script and try it. Use it before you change any script.
---
Run the script with every example of the task, and once without an argument. If it prints anything else
than the task asks for, repair it and run it again. Only then say that it works.
`

const model = `{"usage": {"input": 2000, "output": 300}, "turns": [
  {"cases": [{"when": {"request": "Use it before you change any script"}, "calls": [
     {"bash": "cat .*/skills/try-scripts/SKILL.md; sed -i '2s/!/, ${1:-world}!/' greet.sh"}]}],
   "calls": [{"read": "greet.sh"}]},
  {"text": "It greets now."}]}`

func newProject(t *testing.T) *project {
	t.Helper()
	for _, tool := range []string{"bash", "git", "jq", "curl", "bwrap"} {
		testenv.NeedTool(t, tool)
	}
	action, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, dir: t.TempDir(), temp: t.TempDir(), api: &api{}}
	for range 105 { // what others wrote fills a page
		p.api.comments = append(p.api.comments, "Looks good to me.")
	}
	server := httptest.NewServer(p.api)
	t.Cleanup(server.Close)
	p.write("event.json", `{"pull_request": {"number": 7}}`)
	p.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "RUNNER_TEMP=" + p.temp, "GITHUB_ACTION_PATH=" + action,
		"GITHUB_EVENT_PATH=" + filepath.Join(p.dir, "event.json"), "GITHUB_API_URL=" + server.URL,
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=you/project", "GITHUB_RUN_ID=42",
		"GITHUB_WORKFLOW=evaluation", "GITHUB_JOB=evaluate",
		"GOPATH=" + goEnv(t, "GOPATH"), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOPROXY=" + goEnv(t, "GOPROXY"),
		"GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@localhost", "GIT_COMMITTER_NAME=you",
		"GIT_COMMITTER_EMAIL=you@localhost",
	}
	return p
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (p *project) write(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// shell runs commands in the project as a step of the runner.
func (p *project) shell(commands string, environ ...string) (string, error) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), "bash", "-c", commands)
	command.Dir = p.dir
	command.Env = append(append(p.environ, environ...),
		"PATH="+strings.TrimSpace(p.file("path"))+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GITHUB_PATH="+filepath.Join(p.temp, "path"), "GITHUB_OUTPUT="+filepath.Join(p.temp, "output"),
		"GITHUB_STEP_SUMMARY="+filepath.Join(p.temp, "summary"))
	out, err := command.CombinedOutput()
	return string(out), err
}

func (p *project) must(commands string, environ ...string) string {
	p.t.Helper()
	out, err := p.shell(commands, environ...)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return out
}

// file is what steps have written for the runner.
func (p *project) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(p.temp, name))
	return string(content)
}

// step runs one step of action.yml with the inputs of a workflow.
func (p *project) step(name string, inputs map[string]string, environ ...string) (string, error) {
	p.t.Helper()
	action := readAction(p.t)
	for _, step := range action.Runs.Steps {
		if step.Name != name {
			continue
		}
		given := regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`)
		for variable, value := range step.Env {
			value = given.ReplaceAllStringFunc(value, func(text string) string {
				key := given.FindStringSubmatch(text)[1]
				input, declared := action.Inputs[key]
				if !declared {
					p.t.Errorf("step %s uses the input %s, which is not declared", name, key)
				}
				if value, ok := inputs[key]; ok {
					return value
				}
				return input.Default
			})
			environ = append(environ, variable+"="+value)
		}
		return p.shell(step.Run, environ...)
	}
	p.t.Fatalf("action.yml has no step %q", name)
	return "", nil
}

// change makes a repository of twelve tasks, whose last commit adds the skill.
func (p *project) change() {
	p.t.Helper()
	p.write("model.json", model)
	p.must(`fit-benchmark init family
for word in Ahoy Aloha Bonjour Ciao Hey Hi Hola Howdy Salut Servus Welcome; do
  cp -r family/tasks/greeting "family/tasks/$word"
  sed -i "s/Hello/$word/g" $(grep -rl Hello "family/tasks/$word")
done
git init -q; git add family; git commit -q -m family`)
	p.write(".claude/skills/try-scripts/SKILL.md", skill)
	p.must("git add .claude; git commit -q -m after")
}

func TestThePullRequestGetsOneAnswer(t *testing.T) {
	p := newProject(t)
	if out, err := p.step("Install fit", nil); err != nil || !strings.Contains(out, "revision") {
		t.Fatalf("%v\n%s", err, out)
	}
	p.change()
	serve := exec.CommandContext(t.Context(), filepath.Join(p.temp, "fit", "bin", "fit"), "model", "serve", "--script",
		filepath.Join(p.dir, "model.json"))
	address, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = serve.Process.Kill(), serve.Wait() })
	var url string
	if _, err := fmt.Fscanln(address, &url); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{
		"family": "family", "skill": ".claude/skills", "agent": "builtin,model:claude-sonnet-4-5", "runs": "1",
		"max-cost-usd": "20", "github-token": token,
	}
	if out, err := p.step("Measure", inputs, "FIT_MODEL_URL="+url); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 2 { // another push edits the comment
		out, err := p.step("Answer", inputs)
		if err != nil || !strings.Contains(out, "Improved: pass rate of after is 100.0") {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(out, token) {
			t.Error("the token is in the log")
		}
	}
	if len(p.api.comments) != 106 {
		t.Errorf("%d comments, calls %q", len(p.api.comments), p.api.calls)
	}
	for _, want := range []string{
		"Improved: pass rate of after is 100.0", "skill try-scripts given in 12 of 12 runs of after", "$",
		"https://github.com/you/project/actions/runs/42",
	} {
		if body := p.api.comments[105]; !strings.Contains(body, want) {
			t.Errorf("the comment has no %q:\n%s", want, body)
		}
	}
	if output := p.file("output"); !strings.Contains(output, "claim=improved") {
		t.Errorf("outputs: %s", output)
	}
	if !strings.Contains(p.file("summary"), "Improved: pass rate") {
		t.Error("the summary of the step has no answer")
	}
	for _, name := range []string{"report.html", "report.md", "report.json", "junit.xml", "flags.sarif"} {
		content, err := os.ReadFile(filepath.Join(p.dir, "fit-results", name))
		if err != nil || len(content) == 0 || strings.Contains(string(content), token) {
			t.Errorf("%s: %v, %d bytes", name, err, len(content))
		}
	}
	// Where the comments that are there cannot be read, none is added.
	p.api.hidden = true
	if out, err := p.step("Answer", inputs); err != nil || !strings.Contains(out, "the comment could not be written") {
		t.Errorf("%v\n%s", err, out)
	}
	if p.api.hidden = false; len(p.api.comments) != 106 {
		t.Errorf("%d comments, calls %q", len(p.api.comments), p.api.calls)
	}
	// The gate is the only thing that fails the step.
	inputs["gate"] = "--fail-on improved"
	if out, err := p.step("Answer", inputs); err == nil {
		t.Errorf("the gate passes:\n%s", out)
	}
	// A comment that may not be written does not.
	inputs["gate"], inputs["github-token"] = "", "wrong"
	if out, err := p.step("Answer", inputs); err != nil || !strings.Contains(out, "pull-requests: write") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Run("a fork without secrets", func(t *testing.T) {
		inputs["output"] = "fork"
		out, err := p.step("Measure", inputs, "ANTHROPIC_API_KEY=")
		if err != nil || !strings.Contains(out, "::notice::no key") ||
			!strings.Contains(p.file("output"), "measured=no") {
			t.Errorf("%v\n%s", err, out)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "fork", "results", "results.jsonl")); err == nil {
			t.Error("something was measured")
		}
	})
	t.Run("a key of any vendor", func(t *testing.T) {
		out, err := p.step("Measure", inputs, "OPENROUTER_API_KEY=x")
		if err == nil || strings.Contains(out, "::notice::no key") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("a budget that ends it", func(t *testing.T) {
		inputs := maps.Clone(inputs)
		inputs["output"], inputs["max-cost-usd"], inputs["github-token"] = "stopped", "0.2", token
		out, err := p.step("Measure", inputs, "FIT_MODEL_URL="+url)
		if err != nil || !strings.Contains(out, "::warning::some runs have no verdict") {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := p.step("Answer", inputs); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if body := p.api.comments[105]; strings.Contains(body, "Improved") || !strings.Contains(body, "missing") {
			t.Errorf("the comment says\n%s", body)
		}
	})
	t.Run("a skill that was there before", func(t *testing.T) {
		p.write(".claude/skills/try-scripts/SKILL.md", skill+"Say what you have tried.\n")
		p.must("git commit -q -a -m more")
		inputs["output"] = "changed"
		if out, err := p.step("Measure", inputs, "FIT_MODEL_URL="+url); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out := p.must("fit-benchmark compare changed/results")
		if want := "given in 12 of 12 runs of after and 12 of 12 of before"; !strings.Contains(out, want) {
			t.Errorf("%s", out)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		for name, test := range map[string]struct {
			change map[string]string
			want   string
		}{
			"no arms":        {map[string]string{"skill": ""}, "takes two arms"},
			"skill and arms": {map[string]string{"arms": "a=agent:builtin"}, "both set"},
		} {
			changed := map[string]string{}
			for key, value := range inputs {
				changed[key] = value
			}
			for key, value := range test.change {
				changed[key] = value
			}
			if out, err := p.step("Measure", changed); err == nil || !strings.Contains(out, test.want) {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
}

// Workflows that are shown are right, and use inputs that the action has.
func TestWorkflowsPassALinter(t *testing.T) {
	lint, err := filepath.Abs("../../.tools/bin/actionlint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lint); err != nil {
		testenv.Missing(t, "actionlint is not installed: run make setup")
	}
	files, err := filepath.Glob("../../docs/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	whole, _, _ := strings.Cut(rest, "```")
	printed := filepath.Join(t.TempDir(), "printed.yml") // the one that is printed in the guide
	if err := os.WriteFile(printed, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shellcheck=", "-pyflakes=", printed}, files...)
	if out, err := exec.Command(lint, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	action := readAction(t)
	for _, file := range files {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Uses string         `yaml:"uses"`
					With map[string]any `yaml:"with"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		read(t, file, &workflow)
		used := 0
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				if !strings.HasPrefix(step.Uses, "fit-eval/fit@") {
					continue
				}
				used++
				for key := range step.With {
					if _, declared := action.Inputs[key]; !declared {
						t.Errorf("%s: the action has no input %q", file, key)
					}
				}
				for key, input := range action.Inputs {
					if _, given := step.With[key]; input.Required && !given {
						t.Errorf("%s: the input %q is missing", file, key)
					}
				}
			}
		}
		if discusses := filepath.Base(file) == "discussion.yml"; discusses != (used == 0) { // it measures nothing
			t.Errorf("%s uses the action %d times", file, used)
		}
	}
}
