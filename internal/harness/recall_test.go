package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/trace"
)

// twoRounds is a lead that asks twice and a participant that runs a command and answers. Both keep
// what they were told.
type twoRounds struct {
	mu      sync.Mutex
	told    map[string][]string
	resumed map[string][]string // the ids that were to be resumed
	// unknown is the id of a conversation of which the agent has no record.
	unknown string
}

func (r *twoRounds) query(cfg harness.AgentConfig) (agent.Agent, error) {
	w := &talker{cfg: cfg}
	call := func(d *harness.Dispatcher, tool, args string) error {
		_, err := d.Call(context.Background(), cfg.Name, tool, json.RawMessage(args))
		return err
	}
	w.act = func(d *harness.Dispatcher, prompt string) error {
		r.mu.Lock()
		r.told[cfg.Name] = append(r.told[cfg.Name], prompt)
		r.mu.Unlock()
		switch {
		case cfg.Name == "p":
			w.events([]byte(`{"type":"assistant","session_id":"p","message":{"id":"a","role":"assistant","content":` +
				`[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make"}}]}}`))
			w.events([]byte(`{"type":"user","session_id":"p","message":{"role":"user","content":` +
				`[{"type":"tool_result","tool_use_id":"c1","content":"made"}]}}`))
			return call(d, "Answer", `{"message":"yes"}`)
		case strings.Contains(prompt, "[answer#2]"):
			return call(d, "Conclude", `{"verdict":"success","summary":"it is"}`)
		default:
			return call(d, "Ask", `{"question":"is it?"}`)
		}
	}
	return recalling{w, r}, nil
}

// recalling is a talker whose conversation may be lost.
type recalling struct {
	*talker
	rounds *twoRounds
}

func (r recalling) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	_, err := r.talker.Start(ctx, cfg)
	if cfg.Resume != "" {
		r.rounds.mu.Lock()
		r.rounds.resumed[cfg.Name] = append(r.rounds.resumed[cfg.Name], cfg.Resume)
		r.rounds.mu.Unlock()
		if cfg.Resume == r.rounds.unknown {
			return lostSession{}, err
		}
	}
	return r, err
}

// lostSession is what a vendor's program is that does not know its own conversation.
type lostSession struct{}

func (lostSession) ID() string   { return "" }
func (lostSession) Close() error { return nil }
func (lostSession) Prompt(context.Context, string) (agent.Result, error) {
	return agent.Result{Err: fmt.Errorf("%w: never heard of it", agent.ErrNoConversation)}, nil
}

// heldUntil is the trace of the session up to and without the n-th line that holds a text.
func (r *twoRounds) heldUntil(t *testing.T, text string, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	writer, err := trace.Open(path, trace.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "p"}}, NewAgent: r.query,
		Options: harness.Options{Trace: writer, HomeDir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Run(t.Context(), "go")
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, text) {
			if n--; n == 0 {
				break
			}
		}
		kept = append(kept, line)
	}
	if n > 0 {
		t.Fatalf("%q is not there often enough:\n%s", text, data)
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// write adds lines of the orchestrator to a trace.
func write(t *testing.T, path string, events ...string) {
	t.Helper()
	writer, err := trace.Open(path, trace.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		_, err = writer.Emit(trace.Orchestrator, []byte(e))
	}
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
}

// afterItsTurn is what a participant learns that had answered.
var afterItsTurn = []string{
	"interrupted after", "| - [ask#1] facilitator: is it?", ranMake, "you answered (ask #1): yes", "\n[ask#2]",
}

const ranMake = `| - Bash {"command":"make"} returned: made`

// TestAnAgentLearnsWhatItsOwnRecordMayLack kills a session at several moments. The agent's next
// prompt lists what it had done and been given, as long as its own record is not known to hold it.
func TestAnAgentLearnsWhatItsOwnRecordMayLack(t *testing.T) {
	for name, test := range map[string]struct {
		until string
		times int
		then  []string // lines that were written before another kill
		want  []string // in the first prompt of the participant
	}{
		"in its turn": {
			`"kind":"answer"`, 1, nil,
			[]string{"interrupted during", ranMake, "\n[ask#1] facilitator"},
		},
		"in its turn, and again before its next prompt": {
			`"kind":"answer"`, 1,
			[]string{
				`{"type":"resumed","interrupted":["p"],"openAsks":1}`,
				`{"type":"turn_end","agent":"p","turn":2,"outcome":"interrupted"}`,
				`{"type":"turn_start","agent":"p","turn":3}`,
				`{"type":"delivery","to":"p","turn":3,"ids":[1],"redelivery":true}`,
			},
			[]string{"interrupted during", ranMake, "\n[ask#1] facilitator"},
		},
		"after its answer": {
			`"type":"turn_end","agent":"p"`, 1, nil,
			afterItsTurn,
		},
		"after its turn": {
			`"type":"delivery","to":"facilitator"`, 2, nil,
			afterItsTurn,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := &twoRounds{told: map[string][]string{}, resumed: map[string][]string{}}
			path := before.heldUntil(t, test.until, test.times)
			write(t, path, test.then...)
			after := &twoRounds{told: map[string][]string{}, resumed: map[string][]string{}}
			result, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: after.query})
			if err != nil || !result.Success {
				t.Fatalf("%+v, %v", result, err)
			}
			first := after.told["p"][0]
			for _, want := range test.want {
				if !strings.Contains(first, want) {
					t.Errorf("%q is not in the first prompt:\n%s", want, first)
				}
			}
			for _, later := range after.told["p"][1:] {
				if strings.Contains(later, "interrupted") {
					t.Errorf("it is said again:\n%s", later)
				}
			}
		})
	}
}

// TestAConversationOfWhichNothingIsKeptBeginsAnew resumes a session whose agent shows the id of a
// conversation before it writes anything down.
func TestAConversationOfWhichNothingIsKeptBeginsAnew(t *testing.T) {
	before := &twoRounds{told: map[string][]string{}, resumed: map[string][]string{}}
	path := before.heldUntil(t, `"kind":"answer"`, 1)
	after := &twoRounds{told: map[string][]string{}, resumed: map[string][]string{}, unknown: "p"}
	result, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: after.query})
	if err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(after.resumed["p"]) != 1 || !strings.Contains(after.told["p"][0], ranMake) {
		t.Errorf("resumed %v, told %q", after.resumed["p"], after.told["p"])
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := ofType(lines(t, string(data)), "warning"); len(warnings) != 1 || warnings[0]["agent"] != "p" ||
		!strings.Contains(fmt.Sprint(warnings[0]["text"]), "a new conversation is started") {
		t.Errorf("warnings: %v", warnings)
	}
}
