package events_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	source, err := os.ReadFile("../../docs/schema/agent-events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root jsonschema.Schema
	if err := json.Unmarshal(source, &root); err != nil {
		t.Fatal(err)
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func valid(t *testing.T, schema *jsonschema.Resolved, line string) error {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(line), &value); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func TestTheSchema(t *testing.T) {
	s := schema(t)
	usd, code := 0.5, 3
	for _, event := range []any{
		events.Text{Type: events.TypeText, Text: "x"},
		events.Usage{Type: events.TypeUsage, InputTokens: 1, OutputTokens: 2, CostUSD: &usd, Model: "m"},
		events.Error{Type: events.TypeError, Kind: "rate_limit", Status: 429, Message: "m", Retrying: true, Attempt: 1},
		events.Result{Type: events.TypeResult, Text: "x", Kind: "api", Session: "s", ExitCode: &code},
		json.RawMessage(`{"type":"tool_call","id":"1","name":"bash","input":{"command":"ls"},"ts":1,"turn":"t","more":1}`),
		json.RawMessage(`{"type":"tool_result","id":"1","output":"","is_error":false,"exit_code":0}`),
	} {
		if err := valid(t, s, string(events.Line(event))); err != nil {
			t.Errorf("%s: %v", events.Line(event), err)
		}
	}
	for _, line := range []string{
		`{}`, `{"type":"other"}`, `{"type":"text"}`, `{"type":"text","text":5}`, `{"type":"result","success":"yes"}`,
		`{"type":"tool_call","id":"1","name":"x","input":[]}`, `{"type":"usage","input_tokens":-1,"output_tokens":0}`,
		`{"type":"error","message":"m","kind":"fate"}`,
	} {
		if valid(t, s, line) == nil {
			t.Errorf("%s is valid", line)
		}
	}
}

// maxExample is how many lines a whole agent may take.
const maxExample = 20

// The examples are agents: each does what the model says, and every line they print is an event.
// One that meets a model that fails says so, and it is not counted against it.
func TestTheExamples(t *testing.T) {
	broken := scriptedtest.Serve(t, `{"turns": [{"text": "Never said.", "fault": {"status": 401, "message": "no"}}]}`)
	url := scriptedtest.Serve(t, `{"turns": [{"text": "echo 42 > answer.txt; ls"}], "usage": {"input": 70, "output": 7}}`)
	examples, err := filepath.Abs("../../examples/agents")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"sh", "curl", "jq", "python3", "go"} {
		testenv.NeedTool(t, program)
	}
	built := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", built,
		filepath.Join(examples, "go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the packages are in the cache, compiled for fit
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, name := range []string{"go/main.go", "agent.py", "agent.sh"} {
		source, err := os.ReadFile(filepath.Join(examples, name))
		if lines := strings.Count(string(source), "\n"); err != nil || lines > maxExample {
			t.Errorf("%s has %d lines, %v", name, lines, err)
		}
	}
	s := schema(t)
	for _, program := range []string{built, filepath.Join(examples, "agent.py"), filepath.Join(examples, "agent.sh")} {
		t.Run(filepath.Base(program), func(t *testing.T) {
			var lines []string
			cfg := agent.Config{
				Dir: t.TempDir(), Home: t.TempDir(), Model: "m", ModelURL: url, Spawner: sandbox.NewSpawner(),
				Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
				Events:  func(event []byte) { lines = append(lines, string(event)) },
			}
			a := command.New(command.Entry{ID: "example", Command: program, Events: "ndjson"})
			conversation, err := a.Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			result, err := conversation.Prompt(t.Context(), "What is the answer?")
			if err != nil || !result.Success || result.Text != "I ran: echo 42 > answer.txt; ls" ||
				result.Usage.InputTokens != 70 || result.Usage.OutputTokens != 7 || result.Turns != 2 {
				t.Fatalf("%+v, %v\n%s", result, err, strings.Join(lines, "\n"))
			}
			answer, err := os.ReadFile(filepath.Join(cfg.Dir, "answer.txt"))
			if err != nil || string(answer) != "42\n" {
				t.Errorf("%q, %v", answer, err)
			}
			for _, line := range lines {
				if err := valid(t, s, line); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), a.Dialects(), session.Options{})
			if err != nil || len(sessions) != 1 || len(sessions[0].Milestones) < 2 ||
				sessions[0].Dialect != events.DialectName {
				t.Errorf("%+v, %v", sessions, err)
			}
			if program != built {
				return
			}
			cfg.ModelURL = broken
			failing, err := a.Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if result, err = failing.Prompt(t.Context(), "x"); err != nil || result.Outcome != session.OutcomeAuth {
				t.Errorf("a bad key: %+v, %v", result, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"tool_call","id":"1","name":"bash","input":{"command":"ls"}}`))
	f.Add([]byte(`{"type":"usage","input_tokens":-1,"output_tokens":1e99,"cost_usd":-1}`))
	f.Add([]byte(`{"type":"result","success":false,"kind":"auth"}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		fold := session.NewFold(session.Options{})
		decoder := events.Dialect().New()
		decoder.Decode(event, session.Stamp{Line: 1}, fold)
		decoder.Decode(event, session.Stamp{Line: 2}, fold)
		if usage := fold.TotalUsage(); usage.InputTokens < 0 || usage.OutputTokens < 0 {
			t.Errorf("%s: %+v", event, usage)
		}
	})
}
