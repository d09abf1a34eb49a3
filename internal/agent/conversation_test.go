package agent_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program plays the agent's program.
type program func(ctx context.Context, spec sandbox.SpawnSpec, stdout, stderr io.Writer) (sandbox.SpawnResult, error)

func (p program) Spawn(ctx context.Context, spec sandbox.SpawnSpec, stdout, stderr io.Writer) (sandbox.SpawnResult,
	error,
) {
	if spec.OnStart != nil {
		spec.OnStart(1)
	}
	return p(ctx, spec, stdout, stderr)
}

// prints is a program that prints lines and ends.
func prints(exitCode int, lines ...string) program {
	return func(_ context.Context, _ sandbox.SpawnSpec, stdout, _ io.Writer) (sandbox.SpawnResult, error) {
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return sandbox.SpawnResult{ExitCode: exitCode}, nil
	}
}

// recorder keeps what the caller of an agent sees.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) add(event []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, string(event))
}

func converse(spawner sandbox.ProcessSpawner, change func(*agent.ConversationConfig)) (*agent.Conversation, *recorder) {
	seen := &recorder{}
	cfg := agent.ConversationConfig{
		Agent: "some-agent", Dialect: session.StreamDialect("some-agent"),
		Config: agent.Config{Name: "worker", Spawner: spawner, Events: seen.add, Grace: time.Hour},
	}
	if change != nil {
		change(&cfg)
	}
	return agent.NewConversation(cfg), seen
}

const initEvent = `{"type":"system","subtype":"init","session_id":"s-1","model":"m"}`

func reply(id, text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","content":[{"type":"text","text":%q}]}}`, id,
		text)
}

func toolTurn(id string) []string {
	return []string{
		fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","content":[{"type":"tool_use","id":"c-%s","name":"Bash","input":{"command":"true"}}]}}`, id, id),
		fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c-%s","content":"ok"}]}}`, id),
	}
}

func closing(subtype string, isError bool, rest string) string {
	return fmt.Sprintf(`{"type":"result","subtype":%q,"is_error":%v%s}`, subtype, isError, rest)
}

const worked = `,"result":"done","usage":{"input_tokens":5,"output_tokens":5},"total_cost_usd":0.01`

// TestResultRules is the table of what a final event, its absence, and the exit code mean together.
func TestResultRules(t *testing.T) {
	failure := errors.New("the pipe broke")
	for name, test := range map[string]struct {
		program program
		success bool
		outcome session.Outcome
		err     string
	}{
		"success with model work": {
			prints(0, initEvent, reply("1", "done"), closing("success", false, worked)),
			true, session.OutcomeSuccess, "",
		},
		"success whatever the exit code": {
			prints(1, initEvent, closing("success", false, worked)), true,
			session.OutcomeSuccess, "",
		},
		"success without any usage field": {
			prints(0, initEvent, reply("1", "done"), closing("success", false, "")), true,
			session.OutcomeSuccess, "",
		},
		"success with nothing said, done or counted": {
			prints(0, initEvent, closing("success", false, "")), false, session.OutcomeError,
			"no model work was done",
		},
		"success without model work": {
			prints(0, initEvent, closing("success", false,
				`,"usage":{"input_tokens":0,"output_tokens":0},"total_cost_usd":0`)), false, session.OutcomeError,
			"no model work was done",
		},
		"success that is an error": {
			prints(1, initEvent, closing("success", true, `,"result":"API Error: 500 boom"`)),
			false, session.OutcomeProvider, "boom",
		},
		"turn limit": {
			prints(1, initEvent, closing("error_max_turns", true, "")), false,
			session.OutcomeMaxTurns, "",
		},
		"no final event": {
			prints(0, initEvent, reply("1", "and then")), false, session.OutcomeNoResult,
			"ended without a result",
		},
		"nothing at all, exit 0": {prints(0), false, session.OutcomeNoResult, "exit code 0"},
		"a reason on standard error": {func(_ context.Context, _ sandbox.SpawnSpec, _,
			stderr io.Writer,
		) (sandbox.SpawnResult, error) {
			fmt.Fprintln(stderr, "cannot be used as root")
			return sandbox.SpawnResult{ExitCode: 1}, nil
		}, false, session.OutcomeNoResult, "exit code 1; it said: cannot be used as root"},
		"success, then a failure": {func(_ context.Context, _ sandbox.SpawnSpec, stdout,
			_ io.Writer,
		) (sandbox.SpawnResult, error) {
			n, _ := fmt.Fprintln(stdout, closing("success", false, worked))
			return sandbox.SpawnResult{StdoutBytes: int64(n)}, failure
		}, true, session.OutcomeSuccess, "the pipe broke"},
		"too much output": {func(context.Context, sandbox.SpawnSpec, io.Writer, io.Writer) (sandbox.SpawnResult,
			error,
		) {
			return sandbox.SpawnResult{ExitCode: -1, OutputLimit: true}, nil
		}, false, session.OutcomeOutput, "output limit"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := converse(test.program, nil)
			result, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			if result.Success != test.success || result.Outcome != test.outcome || result.Aborted {
				t.Errorf("success %v, outcome %q, aborted %v", result.Success, result.Outcome, result.Aborted)
			}
			if (result.Err == nil) != (test.err == "") || result.Err != nil &&
				!strings.Contains(result.Err.Error(), test.err) {
				t.Errorf("error %v, want %q", result.Err, test.err)
			}
		})
	}
}

func TestAProgramThatCannotBeStartedIsAnError(t *testing.T) {
	broken := errors.New("no such program")
	c, _ := converse(program(func(context.Context, sandbox.SpawnSpec, io.Writer, io.Writer) (sandbox.SpawnResult,
		error,
	) {
		return sandbox.SpawnResult{}, broken
	}), nil)
	if _, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x"}}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestEveryLineReachesTheCaller(t *testing.T) {
	c, seen := converse(program(func(_ context.Context, _ sandbox.SpawnSpec, stdout,
		stderr io.Writer,
	) (sandbox.SpawnResult, error) {
		io.WriteString(stdout, initEvent[:20])
		io.WriteString(stdout, initEvent[20:]+"\n\n  \nnot json\x1b[0m\n{\"broken\":\n")
		io.WriteString(stderr, "careful\n")
		// no newline at the end
		io.WriteString(stdout, `{"type":"delta","x":1}`+"\n"+`{"type":"delta","x":2}`+"\n"+closing("success", false,
			worked))
		return sandbox.SpawnResult{}, nil
	}), func(cfg *agent.ConversationConfig) {
		cfg.Dialect.Repeats = func(line []byte) bool { return strings.Contains(string(line), `"delta"`) }
	})
	result, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x"}})
	if err != nil || !result.Success {
		t.Fatalf("success %v, %v, %v", result.Success, result.Err, err)
	}
	want := []string{
		initEvent, `{"type":"raw","text":"not json\u001b[0m"}`, `{"type":"raw","text":"{\"broken\":"}`,
		`{"type":"stderr","text":"careful"}`,
		closing("success", false, worked), `{"type":"dropped","count":2,"of":"delta"}`,
	}
	if !slices.Equal(seen.events, want) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(seen.events, "\n"), strings.Join(want, "\n"))
	}
	if result.SessionID != "s-1" || result.Output.Stdout.Bytes == 0 || len(result.Output.Stdout.SHA256) != 64 {
		t.Errorf("output: %+v, session %q", result.Output, result.SessionID)
	}
}

func TestALineThatIsTooLongIsSkipped(t *testing.T) {
	c, seen := converse(program(func(_ context.Context, _ sandbox.SpawnSpec, stdout, _ io.Writer) (sandbox.SpawnResult,
		error,
	) {
		piece := strings.Repeat("x", 1<<20)
		for range 65 {
			io.WriteString(stdout, piece)
		}
		fmt.Fprintln(stdout)
		fmt.Fprintln(stdout, closing("success", false, worked))
		return sandbox.SpawnResult{}, nil
	}), nil)
	result, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x"}})
	if err != nil || !result.Success || len(seen.events) != 2 ||
		!strings.HasPrefix(seen.events[0], `{"type":"skipped","bytes":68157440,`) {
		t.Errorf("success %v, %v, %d events: %.200s", result.Success, err, len(seen.events), seen.events)
	}
}

func TestStartIsAnnouncedOnceAndFirst(t *testing.T) {
	var order []string
	c, _ := converse(prints(0, initEvent, closing("success", false, worked)), func(cfg *agent.ConversationConfig) {
		cfg.Config.Installation = &agent.Installation{Version: "1"}
		cfg.Config.Started = func(s agent.Started) {
			order = append(order, "started "+s.Version)
		}
		cfg.Config.Events = func([]byte) { order = append(order, "event") }
	})
	for range 2 {
		if _, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x", "-y"}}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"started 1", "event", "event", "event", "event"}; !slices.Equal(order, want) {
		t.Errorf("order: %v", order)
	}
}

// chatty is a program of a long-lived protocol: it answers every line it reads.
func chatty(answer func(line map[string]any, say func(...string))) program {
	return func(ctx context.Context, spec sandbox.SpawnSpec, stdout, _ io.Writer) (sandbox.SpawnResult, error) {
		lines := make(chan string)
		go func() {
			defer close(lines)
			scanner := bufio.NewScanner(spec.Stdin)
			for scanner.Scan() {
				lines <- scanner.Text()
			}
		}()
		defer func() { // whoever feeds us learns about the end
			spec.Stdin.(io.Closer).Close()
			for range lines {
			}
		}()
		for {
			select {
			case <-ctx.Done():
				return sandbox.SpawnResult{ExitCode: -1, Signal: "SIGTERM", Cancelled: true}, nil
			case line, ok := <-lines:
				if !ok {
					return sandbox.SpawnResult{}, nil
				}
				var message map[string]any
				_ = json.Unmarshal([]byte(line), &message)
				answer(message, func(said ...string) {
					for _, s := range said {
						fmt.Fprintln(stdout, s)
					}
				})
			}
		}
	}
}

func turn(t *testing.T, c *agent.Conversation, ctx context.Context, text string) agent.Result {
	t.Helper()
	send := func(message map[string]any) func() error { return func() error { return c.Send(message) } }
	result, err := c.Turn(ctx, send(map[string]any{"prompt": text}), send(map[string]any{"interrupt": true}))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestSeveralPromptsInOneProcess(t *testing.T) {
	count := 0
	c, _ := converse(chatty(func(_ map[string]any, say func(...string)) {
		count++
		say(reply(fmt.Sprint(count), "answer"), closing("success", false, fmt.Sprintf(
			`,"result":"answer %d","usage":{"input_tokens":5,"output_tokens":5},"modelUsage":{"m":{"inputTokens":%d,"outputTokens":%d}}`, count, 5*count, 5*count)))
	}), nil)
	if err := c.Open(t.Context(), agent.Command{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		result := turn(t, c, t.Context(), "go")
		if !result.Success || result.Text != fmt.Sprint("answer ", i+1) || result.Turns != 1 ||
			result.Usage.TotalTokens != 10 {
			t.Errorf("prompt %d: %+v", i+1, result)
		}
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil || c.Alive() {
		t.Errorf("close: %v, alive %v", err, c.Alive())
	}
}

func TestAnInterruptIsAskedForFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := converse(chatty(func(message map[string]any, say func(...string)) {
		switch {
		case message["interrupt"] != nil:
			say(closing("error_during_execution", true, `,"terminal_reason":"aborted_tools"`))
		case message["prompt"] == "slow":
			cancel()
		default:
			say(closing("success", false, worked))
		}
	}), nil)
	if err := c.Open(t.Context(), agent.Command{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	result := turn(t, c, ctx, "slow")
	if result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled || result.Err != nil {
		t.Errorf("interrupted: %+v", result)
	}
	if again := turn(t, c, t.Context(), "quick"); !again.Success {
		t.Errorf("afterwards: %+v", again)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// An agent that is told to end may see its command die, take that for a result, and finish its work
// within the grace period. The run was aborted all the same.
func TestASuccessAfterTheAbortIsNone(t *testing.T) {
	for name, cause := range map[string]struct {
		err     error
		outcome session.Outcome
	}{
		"interrupted": {context.Canceled, session.OutcomeCancelled},
		"timed out":   {context.DeadlineExceeded, session.OutcomeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, _ := converse(program(func(running context.Context, _ sandbox.SpawnSpec, stdout,
				_ io.Writer,
			) (sandbox.SpawnResult, error) {
				fmt.Fprintln(stdout, initEvent)
				cancel(cause.err)
				<-running.Done()
				fmt.Fprintln(stdout, closing("success", false, worked))
				return sandbox.SpawnResult{}, nil
			}), nil)
			result, err := c.RunOnce(ctx, agent.Command{Argv: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			if result.Success || !result.Aborted || result.Outcome != cause.outcome || result.Err != nil {
				t.Errorf("success %v, aborted %v, outcome %q, error %v", result.Success, result.Aborted, result.Outcome,
					result.Err)
			}
		})
	}
}

// The program ignores requests, the end of its input, and signals. It is gone when the grace
// period is over, and not later.
func TestAnAgentThatDoesNotStopIsKilled(t *testing.T) {
	deaf := program(func(ctx context.Context, spec sandbox.SpawnSpec, _, _ io.Writer) (sandbox.SpawnResult, error) {
		<-ctx.Done()
		time.Sleep(spec.Grace) // of the test's own clock
		return sandbox.SpawnResult{ExitCode: -1, Signal: "SIGKILL", Cancelled: true}, nil
	})
	for name, test := range map[string]struct {
		grace time.Duration
		run   func(ctx context.Context, c *agent.Conversation) agent.Result
	}{
		"asked": {time.Second, func(ctx context.Context, c *agent.Conversation) agent.Result {
			return turn(t, c, ctx, "sleep")
		}},
		"one process": {0, func(ctx context.Context, c *agent.Conversation) agent.Result {
			result, _ := c.RunOnce(ctx, agent.Command{Argv: []string{"x"}})
			return result
		}},
		"closed": {2 * time.Second, func(ctx context.Context, c *agent.Conversation) agent.Result {
			<-ctx.Done()
			_ = c.Close()
			return agent.Result{Outcome: session.OutcomeTimeout}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := converse(deaf, func(cfg *agent.ConversationConfig) { cfg.Config.Grace = test.grace })
				if name != "one process" {
					if err := c.Open(t.Context(), agent.Command{Argv: []string{"x"}}); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begin := time.Now()
				result := test.run(ctx, c)
				if result.Outcome != session.OutcomeTimeout || c.Alive() {
					t.Errorf("outcome %q, alive %v", result.Outcome, c.Alive())
				}
				want := time.Minute + cmp.Or(test.grace, agent.DefaultGrace)
				if took := time.Since(begin); took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
				_ = c.Close()
			})
		})
	}
}

func TestATurnLimitThatWeHold(t *testing.T) {
	count := 0
	c, _ := converse(chatty(func(message map[string]any, say func(...string)) {
		if message["interrupt"] != nil {
			say(closing("error_during_execution", true, `,"terminal_reason":"aborted_tools"`))
			return
		}
		for range 3 {
			count++
			say(toolTurn(fmt.Sprint("m", count))...)
		}
	}), func(cfg *agent.ConversationConfig) { cfg.EnforceTurns, cfg.Config.MaxTurns = true, 2 })
	if err := c.Open(t.Context(), agent.Command{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	result := turn(t, c, t.Context(), "count")
	if result.Success || result.Outcome != session.OutcomeMaxTurns || result.Aborted || result.Err != nil {
		t.Errorf("result: %+v", result)
	}
	_ = c.Close()
}

// TestWhatIsConsumedIsTold: a caller learns what a prompt consumes while it runs, and can stop it.
func TestWhatIsConsumedIsTold(t *testing.T) {
	var told []session.TokenUsage
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := converse(chatty(func(message map[string]any, say func(...string)) {
		if message["interrupt"] == nil {
			say(`{"usage":300}`, `{"other":1}`, `{"usage":400}`)
		} else {
			say(`{"usage":1,"final":true}`)
		}
	}), func(cfg *agent.ConversationConfig) {
		cfg.Dialect = session.Dialect{Name: "toy", New: func() session.Decoder { return toy{} }}
		cfg.Config.Prices = func(_ string, u session.TokenUsage, _ int64) (float64, bool) {
			return float64(u.InputTokens) / 1000, true
		}
		cfg.Config.Consumed = func(used session.TokenUsage) {
			if told = append(told, used); used.TotalTokens > 500 {
				cancel()
			}
		}
	})
	if err := c.Open(t.Context(), agent.Command{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if result := turn(t, c, ctx, "spend"); !result.Aborted || *result.Usage.CostUSD != 0.701 {
		t.Errorf("result: %+v", result)
	}
	_ = c.Close()
	if len(told) != 2 || told[0].TotalTokens != 300 || told[1].TotalTokens != 700 || *told[1].CostUSD != 0.7 {
		t.Errorf("the caller was told %+v", told)
	}
}

// toy is a dialect of two words.
type toy struct{}

func (toy) Decode(event []byte, at session.Stamp, to *session.Fold) {
	var e struct {
		Usage int64
		Final bool
	}
	_ = json.Unmarshal(event, &e)
	if e.Usage > 0 {
		to.Usage(session.Origin{Stamp: at}, session.UsageReport{Tokens: session.TokenUsage{InputTokens: e.Usage}})
	}
	if e.Final {
		to.Final(session.Origin{Stamp: at}, session.Final{Outcome: session.OutcomeAborted})
	}
}

func TestAnEventThatIsNotAcceptableEndsTheRun(t *testing.T) {
	endsAtAnEvent(t, false)
}

// TestWhatIsReportedAfterAnUnacceptableEventDoesNotCount: an agent may be done before it is
// stopped.
func TestWhatIsReportedAfterAnUnacceptableEventDoesNotCount(t *testing.T) {
	endsAtAnEvent(t, true)
}

func endsAtAnEvent(t *testing.T, quick bool) {
	t.Helper()
	wrong := errors.New("wrong account")
	c, _ := converse(program(func(ctx context.Context, _ sandbox.SpawnSpec, stdout, _ io.Writer) (sandbox.SpawnResult,
		error,
	) {
		fmt.Fprintln(stdout, initEvent)
		if quick {
			fmt.Fprintln(stdout, reply("1", "Done."))
			fmt.Fprintln(stdout, closing("success", false, worked))
		}
		<-ctx.Done()
		return sandbox.SpawnResult{ExitCode: -1, Signal: "SIGTERM", Cancelled: true}, nil
	}), func(cfg *agent.ConversationConfig) {
		cfg.Observe = func(event []byte) error {
			if string(event) == initEvent {
				return wrong
			}
			return nil
		}
	})
	result, err := c.RunOnce(t.Context(), agent.Command{Argv: []string{"x"}})
	if err != nil || result.Success || !errors.Is(result.Err, wrong) || result.Outcome != session.OutcomeError ||
		result.Aborted {
		t.Errorf("result %+v, %v", result, err)
	}
}
