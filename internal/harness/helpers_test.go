package harness_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
)

// keepGoing continues without a participant that has failed.
var keepGoing = harness.Options{Errors: harness.ErrorPolicy{KeepGoing: true}}

// cast maps members to what they do in a turn.
type cast map[string]harnesstest.Func

func (c cast) query(cfg harness.AgentConfig) (agent.Agent, error) {
	play := c[cfg.Name]
	if play == nil {
		return nil, fmt.Errorf("nobody plays %s", cfg.Name)
	}
	return harnesstest.New(cfg, play), nil
}

// buffer is a trace in memory.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// line is a line of a trace as tests look at it.
type line struct {
	Source string
	Seq    int64
	Event  map[string]any
}

func (l line) kind() string { return fmt.Sprint(l.Event["type"]) }

func lines(t testing.TB, trace string) []line {
	t.Helper()
	var all []line
	scanner := bufio.NewScanner(strings.NewReader(trace))
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.Fatalf("line %q: %v", scanner.Text(), err)
		}
		all = append(all, l)
	}
	return all
}

// ofType are the orchestrator's events of one type.
func ofType(all []line, kind string) []map[string]any {
	var events []map[string]any
	for _, l := range all {
		if l.Source == "orchestrator" && l.kind() == kind {
			events = append(events, l.Event)
		}
	}
	return events
}

// say returns what a tool answered, or fails the turn.
func say(ctx context.Context, turn *harnesstest.Turn, tool string, args map[string]any) (string, error) {
	result, err := turn.Call(ctx, tool, args)
	if err != nil {
		return "", err
	}
	if result.IsError {
		return result.Text, fmt.Errorf("%s: %s", tool, result.Text)
	}
	return result.Text, nil
}

// answerAll answers every ask in the prompt.
func answerAll(text string) harnesstest.Func {
	return func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		for _, id := range askIDs(turn.Prompt) {
			if _, err := say(ctx, turn, "Answer", map[string]any{"message": text, "askId": id}); err != nil {
				return "", err
			}
		}
		return "ok", nil
	}
}

func askIDs(prompt string) []int {
	var ids []int
	for l := range strings.SplitSeq(prompt, "\n") {
		var id int
		if _, err := fmt.Sscanf(l, "[ask#%d]", &id); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func facilitate(t testing.TB, players cast, out *buffer, options harness.Options,
	names ...string,
) *harness.Session {
	t.Helper()
	var configs []harness.AgentConfig
	for _, name := range names {
		configs = append(configs, harness.AgentConfig{Name: name, Role: name})
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: configs, NewAgent: players.query, Output: out, Options: options,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
