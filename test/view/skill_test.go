package view

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
)

// greetingModel is the agent of the test and the judge of its sentences. With the skill the agent
// greets; the judge cites the line.
const greetingModel = `{"scenarios": [
	{"name": "judge", "when": {"system": "fit-judge/1 sentence outputs"}, "turns": [{"cases": [
		{"when": {"request": "greeting.txt:1 + | hello"}, "text":
			"{\"result\": \"Pass\", \"confidence\": 0.9, \"critique\": \"it is\", \"evidence\": [\"greeting.txt:1 \\\"hello\\\"\"]}"}],
		"text": "{\"result\": \"Fail\", \"confidence\": 0.9, \"critique\": \"too formal\", \"evidence\": [\"greeting.txt:1 \\\"good day\\\"\"]}"}]},
	{"name": "offered", "when": {"request": "zebrafinch"}, "turns": [
		{"calls": [{"bash": "cat .claude/skills/greetings/SKILL.md"}]},
		{"calls": [{"bash": "echo hello > greeting.txt"}]}, {"text": "<b>The greeting</b> is written."}]}],
	"turns": [{"calls": [{"bash": "echo good day > greeting.txt"}]}, {"text": "<b>The greeting</b> is written."}]}`

// testGreetings makes a skill, tests it, and returns its directory and a function that tests it
// again.
func testGreetings(t *testing.T) (dir string, again func(flags ...string) string) {
	t.Helper()
	top := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("greetings/SKILL.md", "---\nname: greetings\ndescription: How a greeting is worded, by the rules of "+
		"zebrafinch. Use it for greetings.\n---\nA greeting is the word hello.\n")
	const sentence = `"checks": [{"exists": "greeting.txt"}], "assertions": ["The greeting is the word hello"]}`
	write("greetings/evals/evals.json", `{"evals": [{"id": "first guest", "prompt": "Greet guest 1.", `+sentence+
		`, {"id": 2, "prompt": "Greet guest 2.", `+sentence+`]}`)
	url := scriptedtest.Serve(t, greetingModel)
	write("panel.yaml", "members:\n  - {name: mistral, protocol: chat, model: mistral-large, modelUrl: "+url+
		"/v1, family: mistral}\n")
	return filepath.Join(top, "greetings-workspace", "iteration-1"), func(flags ...string) string {
		cmd := fitCommand(t, append([]string{
			"skill", "test", "greetings", "--runs", "1", "--agent", "builtin", "--model",
			"claude-sonnet-4-5", "--model-url", url, "--no-probe",
		}, flags...)...)
		var printed bytes.Buffer
		cmd.Dir, cmd.Stderr = top, &printed
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, printed.String())
		}
		return string(out)
	}
}

// TestASkillIsLookedAtCaseByCase: a person decides about a sentence without knowing whose it is;
// then the page has cases by arms by runs, what each arm made of a case with the lines that were
// cited, and keeps what is said about the case.
func TestASkillIsLookedAtCaseByCase(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	dir, test := testGreetings(t)
	if said := test(); !strings.Contains(said, "unjudged: 4 verdicts") {
		t.Fatalf("the test says %s", said)
	}
	address := serve(t, dir)
	left := decode[string](t, b.run(t, "labelSentence", map[string]any{
		"url": address, "secrets": []string{"without", "zebrafinch", "greetings"},
	}))
	if !strings.HasPrefix(left, "sentences: 0 pass, 1 fail, 3 left") {
		t.Errorf("after one label the page counts %q", left)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "sentences.json"))
	if err != nil || strings.Count(string(kept), `"by": "person"`) != 1 {
		t.Errorf("sentences.json: %s %v", kept, err)
	}
	said := test("--panel", "panel.yaml", "--self-test", "off")
	if strings.Contains(said, "unjudged") {
		t.Errorf("the panel left sentences: %s", said)
	}
	const words = "Say <i>who</i> is greeted."
	type page struct {
		Sentence string
		Marks    []string
		Columns  []string
		Cited    []string
	}
	got := decode[page](t, b.run(t, "skill", map[string]any{"url": address, "case": "2", "text": words}))
	first, _, _ := strings.Cut(said, "\n")
	if plain := strings.ReplaceAll(got.Sentence, "−", "-"); !strings.Contains(first, plain) || plain == "" {
		t.Errorf("the page says %q, the command %q", got.Sentence, first)
	}
	if len(got.Marks) != 4 || len(got.Columns) != 2 || len(got.Cited) == 0 {
		t.Fatalf("%d runs, %d columns, %d cited lines", len(got.Marks), len(got.Columns), len(got.Cited))
	}
	for i, own := range []string{"good day", "hello"} {
		for _, want := range []string{own, "<b>The greeting</b> is written.", "The greeting is the word hello"} {
			if !strings.Contains(got.Columns[i], want) {
				t.Errorf("column %d reads %q, without %q", i, got.Columns[i], want)
			}
		}
	}
	var feedback map[string]string
	content, err := os.ReadFile(filepath.Join(dir, "feedback.json"))
	if err == nil {
		err = json.Unmarshal(content, &feedback)
	}
	if err != nil || feedback["eval-2"] != words {
		t.Errorf("feedback.json: %s %v", content, err)
	}
	said = test("--panel", "panel.yaml", "--self-test", "off")
	if !strings.Contains(said, "feedback on case 2: "+words) {
		t.Errorf("the command does not say the feedback: %s", said)
	}
}
