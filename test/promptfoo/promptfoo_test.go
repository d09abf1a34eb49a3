// Package promptfoo runs promptfoo for real, against the scripted model on loopback, and reads what
// it writes: no key, no network beyond the installation.
package promptfoo

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// node is where test/acp brings a Node.js that is new enough.
const node = "../acp/node_modules/node/bin"

// TestAnEvaluationIsReadAsPromptfooCountsIt: what fit reads of a file of any kind is what promptfoo
// itself has counted: passes, failures and errors, with three repetitions, and from the cache.
func TestAnEvaluationIsReadAsPromptfooCountsIt(t *testing.T) {
	testenv.Soak(t)
	program := installed(t)
	dir := t.TempDir()
	config := write(t, dir, "config.json", configOf(serve(t)))
	evaluate := func(args ...string) {
		args = append([]string{program, "eval", "-c", config, "--no-progress-bar", "--no-table"}, args...)
		command := exec.Command("node", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "PROMPTFOO_CONFIG_DIR="+filepath.Join(dir, "home"), "CI=1",
			"PROMPTFOO_DISABLE_TELEMETRY=1", "PROMPTFOO_DISABLE_UPDATE=1", "PROMPTFOO_PASS_RATE_THRESHOLD=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Logf("promptfoo: %v\n%s", err, output) // tests that fail make it fail
		}
	}
	evaluate("--repeat", "3", "-o", "out.json", "-o", "out.jsonl", "-o", "out.yaml")
	evaluate("-o", "first.json")
	evaluate("-o", "cached.json")
	for _, name := range []string{"out.json", "out.jsonl", "out.yaml"} {
		if got := outcomes(t, dir, name); got != (counts{Successes: 3, Failures: 3, Errors: 6}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"out.json", "cached.json"} {
		if got, want := outcomes(t, dir, name), counted(t, dir, name); got != want {
			t.Errorf("%s: %+v, and promptfoo says %+v", name, got, want)
		}
	}
	for _, r := range read(t, dir, "cached.json") {
		if len(r.Imported.Doubts) == 0 || r.CostUSD != nil || r.Tokens != nil {
			t.Errorf("an answer from the cache: %+v", r)
		}
	}
}

// installed returns promptfoo, which it installs if it is not there.
func installed(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	program, err := filepath.Abs("node_modules/.bin/promptfoo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		install := exec.Command(testenv.NeedTool(t, "npm"), "install", "--no-package-lock", "--no-audit", "--no-fund",
			"--ignore-scripts", "--loglevel=error")
		output, err := install.CombinedOutput()
		if err != nil {
			testenv.Missing(t, "promptfoo cannot be installed: %v\n%s", err, output)
		}
	}
	return program
}

// serve starts two models: new is right where old is wrong, and both reject one test.
func serve(t *testing.T) string {
	t.Helper()
	models := map[string]*scripted.Script{}
	for name, answer := range map[string]string{"old": "6", "new": "4"} {
		file := write(t, t.TempDir(), "script.json", map[string]any{"turns": []any{map[string]any{
			"cases": []any{map[string]any{
				"when":  map[string]any{"request": "and 9"},
				"fault": map[string]any{"status": 400, "times": 100},
			}},
			"text": answer,
		}}})
		script, err := scripted.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		models[name] = script
	}
	server := httptest.NewServer(scripted.NewServer(models, scripted.Options{}))
	t.Cleanup(server.Close)
	return server.URL
}

func configOf(address string) map[string]any {
	var providers, tests []any
	for _, name := range []string{"old", "new"} {
		providers = append(providers, map[string]any{
			"id":    "openai:chat:scripted-model",
			"label": name,
			"config": map[string]any{
				"apiBaseUrl": address + "/s/" + name + "/v1", "apiKey": "none", "maxRetries": 0,
			},
		})
	}
	for _, b := range []int{2, 9} {
		tests = append(tests, map[string]any{
			"vars":   map[string]any{"a": 2, "b": b},
			"assert": []any{map[string]any{"type": "equals", "value": fmt.Sprint(2 + b)}},
		})
	}
	return map[string]any{
		"prompts":   []any{"What is {{a}} and {{b}}? A number only."},
		"providers": providers,
		"tests":     tests,
	}
}

func write(t *testing.T, dir, name string, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// counts are what promptfoo says of an evaluation.
type counts struct {
	Successes int `json:"successes"`
	Failures  int `json:"failures"`
	Errors    int `json:"errors"`
}

func counted(t *testing.T, dir, name string) counts {
	t.Helper()
	var document struct {
		Results struct {
			Stats counts `json:"stats"`
		} `json:"results"`
	}
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		err = json.Unmarshal(content, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	return document.Results.Stats
}

func read(t *testing.T, dir, name string) []ledger.Record {
	t.Helper()
	runs, err := foreign.Read(filepath.Join(dir, name), foreign.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return runs.Records()
}

func outcomes(t *testing.T, dir, name string) (all counts) {
	t.Helper()
	for _, r := range read(t, dir, name) {
		switch r.Verdict {
		case ledger.Pass:
			all.Successes++
		case ledger.Fail:
			all.Failures++
		default:
			all.Errors++
		}
	}
	return all
}
