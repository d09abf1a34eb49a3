package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// talker is an agent that says one thing in every turn, for 100 tokens and a quarter of a dollar,
// and then acts. Its lane tells so before it acts.
type talker struct {
	cfg    harness.AgentConfig
	events func([]byte)
	turns  int
	act    func(d *harness.Dispatcher, prompt string) error
}

func pricePerToken(_ string, used session.TokenUsage, _ int64) (float64, bool) {
	return float64(used.TotalTokens) / 400, true
}

func (w *talker) Info() agent.Info { return agent.Info{ID: "talker"} }
func (w *talker) Dialects() []session.Dialect {
	return []session.Dialect{session.StreamDialect("talker")}
}

func (w *talker) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}
func (w *talker) ID() string   { return w.cfg.Name }
func (w *talker) Close() error { return nil }

func (w *talker) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	w.events = cfg.Events
	w.events([]byte(`{"type":"system","subtype":"init","session_id":"` + w.cfg.Name + `","model":"m"}`))
	return w, nil
}

func (w *talker) Prompt(_ context.Context, prompt string) (agent.Result, error) {
	w.turns++
	w.events(
		fmt.Appendf(
			nil,
			`{"type":"assistant","session_id":%q,"message":{"id":"%s-%d-%d","role":"assistant","model":"m","content":[{"type":"text","text":"Hm."}],"usage":{"input_tokens":90,"output_tokens":10}}}`,
			w.cfg.Name,
			w.cfg.Name,
			len(prompt),
			w.turns,
		),
	)
	if err := w.act(w.cfg.Dispatcher, prompt); err != nil {
		return agent.Result{}, err
	}
	cost := 0.25
	return agent.Result{
		Success: true, SessionID: w.cfg.Name,
		Usage: session.TokenUsage{TotalTokens: 100, CostUSD: &cost},
	}, nil
}

// continuingTalker goes on in the middle of a turn.
type continuingTalker struct{ *talker }

func (w continuingTalker) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	_, err := w.talker.Start(ctx, cfg)
	return w, err
}

func (w continuingTalker) PromptOnce(ctx context.Context, _, prompt string) (agent.Result, error) {
	return w.Prompt(ctx, prompt)
}

// talkers ask and answer. The participant answers when ready is closed.
func talkers(continuing bool, ready <-chan struct{}) harness.AgentFunc {
	call := func(d *harness.Dispatcher, who, tool string, args map[string]any) error {
		data, err := json.Marshal(args)
		if err != nil {
			return err
		}
		_, err = d.Call(context.Background(), who, tool, data)
		return err
	}
	return func(cfg harness.AgentConfig) (agent.Agent, error) {
		w := &talker{cfg: cfg}
		w.act = func(d *harness.Dispatcher, prompt string) error {
			switch {
			case cfg.Name == "p":
				<-ready
				return call(d, "p", "Answer", map[string]any{"message": "yes"})
			case strings.Contains(prompt, "[answer#1]"):
				return call(d, cfg.Name, "Conclude", map[string]any{"verdict": "success", "summary": "it is"})
			default:
				return call(d, cfg.Name, "Ask", map[string]any{"question": "is it?"})
			}
		}
		if continuing {
			return continuingTalker{w}, nil
		}
		return w, nil
	}
}

// cutBeforeTheAnswer holds a session and leaves of its trace what stood there when the participant
// was about to answer, as if the process had been killed then. The lead's turn is over by then, so
// that nobody else is in one.
func cutBeforeTheAnswer(t *testing.T, query harness.AgentFunc, ready chan<- struct{},
	options harness.Options,
) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "trace.ndjson")
	var once sync.Once
	writer, err := trace.Open(path, trace.Config{OnLine: func(env trace.Envelope) {
		if strings.Contains(string(env.Event), `"type":"turn_end","agent":"facilitator"`) {
			once.Do(func() { close(ready) })
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	options.Trace, options.HomeDir = writer, t.TempDir()
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs:   []harness.AgentConfig{{Name: "p"}}, NewAgent: query, Options: options,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, found := strings.Cut(string(data), `"kind":"answer"`)
	if !found {
		t.Fatalf("nobody answered:\n%s", data)
	}
	if err := os.WriteFile(path, []byte(whole[:strings.LastIndexByte(whole, '\n')+1]), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestATurnThatACrashCutOffIsPaidFor resumes sessions whose participant had consumed something in a
// turn that never ended.
func TestATurnThatACrashCutOffIsPaidFor(t *testing.T) {
	for name, test := range map[string]struct {
		continuing bool
		options    harness.Options
		reason     string
		tokens     int64 // of everybody, and of the participant
		ofP        int64
	}{
		"messages are repeated": {false, harness.Options{}, harness.ReasonConcluded, 400, 200},
		"the turn goes on":      {true, harness.Options{}, harness.ReasonConcluded, 400, 200},
		"the budget in tokens is used up": {
			false,
			harness.Options{Limits: harness.Limits{Tokens: 150}},
			harness.ReasonBudget, 200, 100,
		},
		"the budget in dollars is used up": {
			false,
			harness.Options{Limits: harness.Limits{CostUSD: 0.4}},
			harness.ReasonBudget, 200, 100,
		},
		"the participant's is": {
			false,
			harness.Options{ParticipantLimits: harness.Limits{Tokens: 100}},
			harness.ReasonConcluded, 300, 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ready := make(chan struct{})
			query := talkers(test.continuing, ready)
			path := cutBeforeTheAnswer(t, query, ready, test.options)
			result, err := harness.Resume(
				t.Context(),
				path,
				harness.ResumeConfig{
					NewAgent: query,
					Options:  harness.Options{Base: agent.Config{Prices: pricePerToken}},
				},
			)
			if err != nil || result.Reason != test.reason || result.Tokens != test.tokens {
				data, _ := os.ReadFile(path)
				t.Fatalf("%+v, %v\n%s", result, err, data)
			}
			if want := float64(test.tokens) / 400; result.CostUSD == nil || *result.CostUSD != want {
				t.Errorf("cost %v, want %v", result.CostUSD, want)
			}
			if p := result.Participants[1]; p.Tokens != test.ofP {
				t.Errorf("the participant: %+v", p)
			}
		})
	}
}

// TestAParticipantThatHasUsedUpItsBudgetIsOut gives one participant of two less than the other, by
// its own limits or by those of all.
func TestAParticipantThatHasUsedUpItsBudgetIsOut(t *testing.T) {
	for name, test := range map[string]struct {
		own, all harness.Limits
		limit    float64
		turns    int // of the one that is limited
	}{
		"turns":                         {harness.Limits{Turns: 2}, harness.Limits{}, 2, 2},
		"tokens":                        {harness.Limits{Tokens: 250}, harness.Limits{}, 250, 3},
		"cost":                          {harness.Limits{CostUSD: 0.5}, harness.Limits{}, 0.5, 2},
		"its own wins over all (turns)": {harness.Limits{Turns: 3}, harness.Limits{Turns: 7}, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, " ")
			if strings.HasSuffix(name, "(turns)") {
				kind = "turns"
			}
			var out buffer
			var told []string
			lead := func(d *harness.Dispatcher, prompt string) error {
				told = append(told, prompt)
				tool, args := "Ask", `{"question":"and?"}`
				if len(told) == 6 {
					tool, args = "Conclude", `{"verdict":"success","summary":"enough"}`
				}
				_, err := d.Call(context.Background(), "facilitator", tool, json.RawMessage(args))
				return err
			}
			f, err := harness.NewFacilitator(harness.FacilitatorConfig{
				FacilitatorCwd: t.TempDir(), Output: &out,
				Options:      harness.Options{ParticipantLimits: test.all, BatchWindow: 1 << 40},
				AgentConfigs: []harness.AgentConfig{{Name: "poor", Limits: test.own}, {Name: "rich"}},
				NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
					if cfg.Name == "facilitator" {
						return &talker{cfg: cfg, act: lead}, nil
					}
					return &talker{cfg: cfg, act: func(d *harness.Dispatcher, _ string) error {
						_, err := d.Call(context.Background(), cfg.Name, "Answer", json.RawMessage(`{"message":"yes"}`))
						return err
					}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			result, err := f.Run(t.Context(), "go")
			if err != nil || !result.Success {
				t.Fatalf("%+v, %v\n%s", result, err, out.String())
			}
			poor, rich := result.Participants[1], result.Participants[2]
			if poor.Turns != test.turns || !strings.Contains(poor.Gone, "reached its limit") {
				t.Errorf("the one with a limit: %+v", poor)
			}
			if rich.Turns != 5 || rich.Gone != "" {
				t.Errorf("the other: %+v\n%s", rich, out.String())
			}
			reached := ofType(lines(t, out.String()), "limit")
			if len(reached) != 1 || reached[0]["agent"] != "poor" || reached[0]["name"] != kind ||
				reached[0]["limit"] != test.limit {
				t.Errorf("limits reached: %v", reached)
			}
		})
	}
}

// TestTheAdvisorIsPaidByWhoeverAsksIt lets a participant consult the advisor once.
func TestTheAdvisorIsPaidByWhoeverAsksIt(t *testing.T) {
	ready := make(chan struct{})
	close(ready)
	query := talkers(false, ready)
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "p"}}, Output: &buffer{},
		Options: harness.Options{Advisor: harness.AdvisorConfig{Model: "wise"}},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			made, err := query(cfg)
			w := made.(*talker)
			switch answer := w.act; cfg.Name {
			case "advisor":
				w.act = func(*harness.Dispatcher, string) error { return nil }
			case "p":
				w.act = func(d *harness.Dispatcher, prompt string) error {
					if _, err := d.Call(t.Context(), "p", "Advisor",
						json.RawMessage(`{"question":"what now?"}`)); err != nil {
						return err
					}
					return answer(d, prompt)
				}
			}
			return made, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Run(t.Context(), "go")
	if err != nil || !result.Success || result.Tokens != 400 || *result.CostUSD != 1 ||
		result.Participants[1].Tokens != 200 {
		t.Errorf("%+v, %v", result, err)
	}
}
