package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/trace"
)

// envForgetful makes the test binary hold a session of functions, which remember nothing, and kill
// itself right after a call has returned.
const envForgetful = "HARNESS_TEST_FORGETFUL"

// forgetfulCast is a session in which the facilitator asks one participant after the other and
// knows only what is in its prompt. Called is told when a call has returned.
func forgetfulCast(called func()) cast {
	act := func(ctx context.Context, turn *harnesstest.Turn, tool string, args map[string]any) (string, error) {
		defer called()
		return say(ctx, turn, tool, args)
	}
	participant := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		for _, id := range askIDs(turn.Prompt) {
			if _, err := act(ctx, turn, "Answer", map[string]any{"message": "done", "askId": id}); err != nil {
				return "", err
			}
		}
		return "", nil
	}
	lead := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		switch {
		case strings.Contains(turn.Prompt, "] ben: done"):
			for range 2 { // the first is refused if somebody was asked twice
				result, err := turn.Call(ctx, "Conclude",
					map[string]any{"verdict": "success", "summary": "both have answered"})
				called()
				if err != nil || !result.IsError {
					return "", err
				}
			}
			return "", nil
		case strings.Contains(turn.Prompt, "] ann: done"):
			return act(ctx, turn, "Ask", map[string]any{"question": "and you?", "to": "ben"})
		default:
			return act(ctx, turn, "Ask", map[string]any{"question": "are you done?", "to": "ann"})
		}
	}
	return cast{"facilitator": lead, "ann": participant, "ben": participant}
}

func holdForgetful(dir, killAfter string) error {
	limit, err := strconv.ParseInt(killAfter, 10, 64)
	if err != nil {
		return err
	}
	writer, err := trace.Open(filepath.Join(dir, "trace.ndjson"), trace.Config{})
	if err != nil {
		return err
	}
	var calls atomic.Int64
	players := forgetfulCast(func() {
		if calls.Add(1) == limit {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not a step further
		}
	})
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: dir, AgentConfigs: []harness.AgentConfig{{Name: "ann"}, {Name: "ben"}}, NewAgent: players.query,
		Options: harness.Options{Trace: writer, HomeDir: filepath.Join(dir, "homes")},
	})
	if err != nil {
		return err
	}
	_, err = f.Run(context.Background(), "Ask them.")
	return errors.Join(err, writer.Close())
}

func TestKilledRightAfterACallASessionOfFunctionsIsResumed(t *testing.T) {
	killed := 0
	for ; ; killed++ {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", envForgetful+"="+dir,
			envMeetingKill+"="+strconv.Itoa(killed+1))
		output, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("kill after call %d: %v\n%s", killed+1, err, output)
		}
		checkForgetful(t, filepath.Join(dir, "trace.ndjson"), killed+1)
	}
	if killed < 5 {
		t.Errorf("the session was killed only %d times", killed)
	}
}

func checkForgetful(t *testing.T, path string, killAfter int) {
	t.Helper()
	result, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: forgetfulCast(func() {}).query})
	data, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || !result.Success {
		t.Fatalf("killed after call %d: %+v, %v, %v\n%s", killAfter, result, err, readErr, data)
	}
	checkDeliveries(t, data, killAfter, true)
	ends := map[string]int{}
	for _, m := range ofType(lines(t, string(data)), "message") {
		switch m["kind"] {
		case "ask":
			ends[fmt.Sprint(m["askId"])] += 0
		case "answer":
			ends[fmt.Sprint(m["askId"])]++
		}
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("killed after call %d: ask %s ended %d times\n%s", killAfter, id, n, data)
		}
	}
}

// longLived is an agent with a conversation that can be taken up again.
type longLived struct{ agent.Agent }

func (r longLived) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	s, err := r.Agent.Start(ctx, cfg)
	return longLivedSession{s}, err
}

type longLivedSession struct{ agent.Session }

func (longLivedSession) ID() string { return "conversation-7" }

func TestLineOfACallIsInTheTraceWhenTheCallReturns(t *testing.T) {
	heard := json.RawMessage(`{"message":"heard"}`)
	transport := func(ctx context.Context, d *harness.Dispatcher) (harness.ToolResult, error) {
		return d.CallOnce(ctx, "", "ann", "Announce", heard)
	}
	inside := func(ctx context.Context, d *harness.Dispatcher) (harness.ToolResult, error) {
		return d.Call(ctx, "ann", "Announce", heard)
	}
	for _, test := range []struct {
		name      string
		call      func(context.Context, *harness.Dispatcher) (harness.ToolResult, error)
		remembers bool
	}{
		{name: "over a transport", call: transport},
		{name: "by an agent with a conversation", call: inside, remembers: true},
		{name: "by a function", call: inside},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := &buffer{}
			inTrace := func() bool { return strings.Contains(out.String(), `"text":"heard"`) }
			var dispatcher *harness.Dispatcher
			players := cast{
				"ann": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
					if result, err := test.call(ctx, dispatcher); err != nil || result.IsError {
						return "", fmt.Errorf("announce: %s, %w", result.Text, err)
					}
					if !inTrace() {
						t.Error("the call has returned, and its line is not in the trace")
					}
					return say(ctx, turn, "Answer", map[string]any{"message": "done"})
				},
				"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
					if strings.Contains(turn.Prompt, "heard") && !inTrace() {
						t.Error("the message was delivered, and its line is not in the trace")
					}
					switch {
					case strings.Contains(turn.Prompt, "[answer#1]"):
						return say(ctx, turn, "Conclude", map[string]any{"verdict": "success", "summary": "x"})
					case turn.Number > 1:
						return "", nil
					default:
						return say(ctx, turn, "Ask", map[string]any{"question": "anything new?"})
					}
				},
			}
			query := func(cfg harness.AgentConfig) (agent.Agent, error) {
				dispatcher = cfg.Dispatcher
				made, err := players.query(cfg)
				if test.remembers {
					made = longLived{made}
				}
				return made, err
			}
			f, err := harness.NewFacilitator(harness.FacilitatorConfig{
				FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "ann"}}, NewAgent: query,
				Output: out, Options: harness.Options{HomeDir: t.TempDir()},
			})
			if err != nil {
				t.Fatal(err)
			}
			if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
				t.Errorf("%+v, %v\n%s", result, err, out)
			}
		})
	}
}
