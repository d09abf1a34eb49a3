package harness_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/session"
)

// durable is an agent whose conversation survives a crash as it was at that moment, like that of an
// agent which writes every step to its session file. It is played by a function of everything it
// was ever told.
type durable struct {
	cfg    harness.AgentConfig
	play   durablePlay
	vendor bool // it can resume a conversation, but not a turn
}

type durablePlay func(call func(tool string, args map[string]any) (harness.ToolResult, error), told []string) error

func (d *durable) Info() agent.Info { return agent.Info{ID: "durable"} }
func (d *durable) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}
func (d *durable) Dialects() []session.Dialect { return nil }

func (d *durable) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	if err := os.MkdirAll(cfg.Home, 0o700); err != nil {
		return nil, err
	}
	s := &durableSession{durable: d, path: filepath.Join(cfg.Home, "journal"), events: cfg.Events}
	if d.vendor {
		return vendorSession{s}, nil
	}
	return s, nil
}

// vendorSession hides that the session can continue a turn.
type vendorSession struct{ agent.Session }

type durableSession struct {
	*durable
	path   string
	events func([]byte)
	lastID string // of the prompts in the journal
}

// journalEntry is one step: a prompt, the result of a call, or the end of a turn.
type journalEntry struct {
	Prompt *string             `json:"prompt,omitempty"`
	ID     string              `json:"id,omitempty"` // of the prompt
	Call   string              `json:"call,omitempty"`
	Result *harness.ToolResult `json:"result,omitempty"`
	End    bool                `json:"end,omitempty"`
}

func (s *durableSession) ID() string   { return "conversation-of-" + s.cfg.Name }
func (s *durableSession) Close() error { return nil }

func (s *durableSession) Prompt(ctx context.Context, text string) (agent.Result, error) {
	return s.prompt(ctx, "", text)
}

func (s *durableSession) prompt(ctx context.Context, id, text string) (agent.Result, error) {
	if err := s.write(journalEntry{Prompt: &text, ID: id}); err != nil {
		return agent.Result{}, err
	}
	return s.work(ctx)
}

// PromptOnce takes the turn up where the journal ends.
func (s *durableSession) PromptOnce(ctx context.Context, id, text string) (agent.Result, error) {
	_, _, ended, err := s.read()
	switch {
	case err != nil:
		return agent.Result{}, err
	case s.lastID != id:
		return s.prompt(ctx, id, text)
	case ended:
		return agent.Result{Success: true, Outcome: session.OutcomeSuccess}, nil
	default:
		return s.work(ctx)
	}
}

func (s *durableSession) work(ctx context.Context) (agent.Result, error) {
	told, results, _, err := s.read()
	if err != nil {
		return agent.Result{}, err
	}
	s.events([]byte(`{"type":"note","text":"working"}`))
	calls := 0
	call := func(tool string, args map[string]any) (harness.ToolResult, error) {
		calls++
		id := fmt.Sprintf("turn%d-call%d", len(told), calls)
		if known, ok := results[id]; ok {
			return known, nil
		}
		encoded, _ := json.Marshal(args)
		result, err := s.cfg.Dispatcher.CallOnce(ctx, id, s.cfg.Name, tool, encoded)
		if err != nil {
			return result, err
		}
		return result, s.write(journalEntry{Call: id, Result: &result})
	}
	if err := s.play(call, told); err != nil {
		return agent.Result{Outcome: session.OutcomeError, Err: err}, nil
	}
	if err := s.write(journalEntry{End: true}); err != nil {
		return agent.Result{}, err
	}
	return agent.Result{
		Success: true, Outcome: session.OutcomeSuccess, Turns: 1,
		Usage: session.TokenUsage{TotalTokens: 10},
	}, nil
}

func (s *durableSession) write(e journalEntry) error {
	encoded, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(encoded, '\n'))
	return err
}

// read returns everything the agent was told, the results of the calls of its last turn, and
// whether that turn has ended.
func (s *durableSession) read() (told []string, results map[string]harness.ToolResult, ended bool, err error) {
	data, err := os.ReadFile(s.path)
	if os.IsNotExist(err) {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	results = map[string]harness.ToolResult{}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		var e journalEntry
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, nil, false, err
		}
		switch {
		case e.Prompt != nil:
			told, ended = append(told, *e.Prompt), false
			s.lastID = e.ID
		case e.Result != nil:
			results[e.Call] = *e.Result
		case e.End:
			ended = true
		}
	}
	return told, results, ended, nil
}

// The meeting: five rounds, in each of which the facilitator asks four participants, one of them
// asks another, and one announces something.
const meetingRounds = 5

var meetingNames = []string{"ann", "ben", "cat", "dan"}

func meetingPlay(name string) durablePlay {
	if name == "facilitator" {
		return playFacilitator
	}
	return func(call func(string, map[string]any) (harness.ToolResult, error), told []string) error {
		return playParticipant(name, call, told)
	}
}

// roundsDone counts the rounds in which every participant has answered.
func roundsDone(told []string) int {
	text := strings.Join(told, "\n")
	for round := 1; round <= meetingRounds; round++ {
		for _, name := range meetingNames {
			if !strings.Contains(text, fmt.Sprintf("round %d done by %s", round, name)) {
				return round - 1
			}
		}
	}
	return meetingRounds
}

func playFacilitator(call func(string, map[string]any) (harness.ToolResult, error), told []string) error {
	last := told[len(told)-1]
	done, before := roundsDone(told), roundsDone(told[:len(told)-1])
	if done == meetingRounds {
		for range 2 { // the first may be refused
			result, err := call("Conclude",
				map[string]any{"verdict": "success", "summary": fmt.Sprintf("%d rounds", done)})
			if err != nil || !result.IsError {
				return err
			}
		}
		return nil
	}
	if len(told) > 1 && done == before && !strings.Contains(last, "repeated here") {
		return nil // more answers are to come
	}
	text := strings.Join(told, "\n")
	for _, name := range meetingNames {
		if strings.Contains(text, fmt.Sprintf("round %d done by %s", done+1, name)) {
			continue
		}
		if _, err := call("Ask", map[string]any{
			"question": fmt.Sprintf("round %d please", done+1),
			"to":       name,
		}); err != nil {
			return err
		}
	}
	return nil
}

func playParticipant(name string, call func(string, map[string]any) (harness.ToolResult, error), told []string) error {
	last := told[len(told)-1]
	for l := range strings.SplitSeq(last, "\n") {
		var id, round int
		if n, _ := fmt.Sscanf(l, "[ask#%d] facilitator: round %d please", &id, &round); n == 2 {
			if name == "ann" {
				if _, err := call("Ask", map[string]any{"question": fmt.Sprintf("is ask %d of round %d right?", id,
					round), "to": "ben"}); err != nil {
					return err
				}
				continue // answered when ben has replied
			}
			if name == "dan" {
				if _, err := call("Announce", map[string]any{"message": fmt.Sprintf("dan is at round %d",
					round)}); err != nil {
					return err
				}
			}
			if _, err := call("Answer", map[string]any{
				"message": fmt.Sprintf("round %d done by %s", round, name),
				"askId":   id,
			}); err != nil {
				return err
			}
		}
		var asked int
		if n, _ := fmt.Sscanf(l, "[ask#%d] ann: is ask %d of round %d right?", &id, &asked, &round); n == 3 {
			if _, err := call("Answer", map[string]any{
				"message": fmt.Sprintf("yes %d %d", asked, round),
				"askId":   id,
			}); err != nil {
				return err
			}
		}
		if n, _ := fmt.Sscanf(l, "[answer#%d] ben: yes %d %d", &id, &asked, &round); n == 3 {
			if _, err := call("Answer", map[string]any{
				"message": fmt.Sprintf("round %d done by ann", round),
				"askId":   asked,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func meetingQuery(vendor bool) harness.AgentFunc {
	return func(cfg harness.AgentConfig) (agent.Agent, error) {
		return &durable{cfg: cfg, play: meetingPlay(cfg.Name), vendor: vendor}, nil
	}
}
