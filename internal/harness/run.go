package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// runLane is the lane of the one agent of a run.
const runLane = "agent"

// modeRun is the mode of a run in session_start.
const modeRun = "run"

// RunConfig is one agent with one task.
type RunConfig struct {
	Agent agent.Agent
	// Session configures the agent; Name, Events, Started and OneShot are filled in here.
	Session agent.Config
	// Task is the whole prompt.
	Task string
	// Injections are the texts added to the agent's system prompt, for the trace;
	// Session.SystemPrompt holds their text.
	Injections []session.SystemPromptInjection
	// Timeout ends the run; 0 means never. Held, if set, returns how long the agent's calls were
	// held back so far, which does not count.
	Timeout time.Duration
	Held    func() time.Duration
	Trace   *trace.Writer
	// Advisor gives the agent a stronger model to ask; it needs NewAgent, to make the advisor's
	// agent, and Connect. Redactor is for what the advisor sees.
	Advisor  AdvisorConfig
	NewAgent AgentFunc
	Connect  func(*Dispatcher) (Connector, error)
	Redactor *redact.Redactor
	// Started, if set, is called with what runs, once it runs.
	Started func(agent.Started)
}

// RunResult is how a run ended.
type RunResult struct {
	agent.Result
	// Reason is the outcome in the summary: it distinguishes our reasons for stopping an agent from
	// the agent's own.
	Reason session.Outcome
}

// errRunTimeout cancels a run whose time is up.
var errRunTimeout = errors.New("the run took too long")

// Run gives one agent one task and writes the trace of it: session_start, agent_start, everything
// the agent prints, and a summary, which is the last line however the run ends. The error is only
// for runs that could not start or could not be recorded; how the agent did is in the result.
func Run(ctx context.Context, cfg RunConfig) (RunResult, error) {
	if cfg.Agent == nil {
		return RunResult{Reason: session.OutcomeError}, errors.New("the run has no agent: set RunConfig.Agent")
	}
	recorder := &runRecorder{cfg: cfg}
	recorder.emit(trace.SessionStart{
		Type:      trace.TypeSessionStart,
		Mode:      modeRun,
		Format:    trace.FormatVersion,
		Isolation: cfg.Session.Isolation.String(),
		Network:   cfg.Session.NetworkKind(),
		Context:   cmp.Or(cfg.Session.Context, agent.ContextProject),
	})

	result, err := recorder.drive(ctx)
	if err != nil && result.Err == nil {
		result.Err = err
	}
	recorder.started(agent.Started{}) // an agent that never ran still has its line
	recorder.ended(result)
	recorder.emit(summaryOf(result))
	if err != nil {
		return result, err
	}
	return result, recorder.err
}

// runRecorder keeps the order of the trace: the line that opens the lane comes before the lane's
// first event.
type runRecorder struct {
	cfg     RunConfig
	advisor *runAdvisor // nil without
	opened  bool
	auth    string
	err     error
}

func (r *runRecorder) drive(ctx context.Context) (RunResult, error) {
	if r.cfg.Timeout > 0 {
		var stop func()
		ctx, stop = withWorkingTime(ctx, r.cfg.Timeout, r.cfg.Held)
		defer stop()
	}
	settings := r.cfg.Session
	settings.Name, settings.OneShot = runLane, true
	settings.Redactor = cmp.Or(settings.Redactor, r.cfg.Redactor)
	if r.cfg.Advisor.Model != "" {
		var err error
		if r.advisor, err = openRunAdvisor(r.cfg); err != nil {
			return RunResult{Reason: session.OutcomeError}, err
		}
		defer r.advisor.close()
		settings.MCPServers = append(r.advisor.servers, settings.MCPServers...)
		settings.Spawner = r.advisor.loop.connector.Spawner(runLane, settings.Spawner)
	}
	settings.Started = r.started
	settings.Called = func(call calls.Call) {
		_, _ = r.cfg.Trace.EmitValue(trace.Orchestrator, gateway.NewCallEvent(call)) // the trace keeps its error
	}
	settings.Events = func(event []byte) {
		r.started(agent.Started{})
		r.advisor.line(event)
		if _, err := r.cfg.Trace.Emit(runLane, event); err != nil && r.err == nil {
			r.err = err
		}
	}
	var result RunResult
	var err error
	if broken := guard(func() { result, err = r.converse(ctx, settings) }); broken != nil {
		return RunResult{Reason: session.OutcomeError}, fmt.Errorf("agent %s: %w", r.cfg.Agent.Info().ID, broken)
	}
	return result, err
}

// longestHeld bounds how much longer a run takes because its calls were held back.
const longestHeld = time.Hour

// withWorkingTime returns a context that ends with errRunTimeout after a time, not counting the
// time in which calls were held back.
func withWorkingTime(ctx context.Context, limit time.Duration, held func() time.Duration) (context.Context, func()) {
	if held == nil {
		held = func() time.Duration { return 0 }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	granted := held() // before this run
	most := granted + longestHeld
	var over sync.WaitGroup
	over.Go(func() {
		for left := limit; left > 0; {
			timer := time.NewTimer(left)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			now := min(held(), most)
			left, granted = now-granted, now
		}
		cancel(errRunTimeout)
	})
	return ctx, func() {
		cancel(nil)
		over.Wait()
	}
}

// converse starts the agent and gives it the task.
func (r *runRecorder) converse(ctx context.Context, settings agent.Config) (RunResult, error) {
	id := r.cfg.Agent.Info().ID
	conversation, err := agent.Start(ctx, r.cfg.Agent, settings)
	if err != nil {
		return RunResult{Reason: session.OutcomeError}, fmt.Errorf("start agent %s: %w", id, err)
	}
	result, err := conversation.Prompt(ctx, r.cfg.Task)
	if closeErr := conversation.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("end agent %s: %w", id, closeErr)
	}
	return RunResult{Result: result, Reason: reasonOf(ctx, result)}, err
}

func reasonOf(ctx context.Context, result agent.Result) session.Outcome {
	switch {
	case result.Success:
		return session.OutcomeSuccess
	case errors.Is(context.Cause(ctx), errRunTimeout):
		return session.OutcomeTimeout
	case ctx.Err() != nil:
		return session.OutcomeCancelled
	case result.Outcome == "":
		return session.OutcomeNoResult
	default:
		return result.Outcome
	}
}

func (r *runRecorder) started(info agent.Started) {
	if r.opened {
		return
	}
	r.opened, r.auth = true, info.Auth
	r.emit(agentStart(runLane, string(r.cfg.Agent.Info().ID), "", info))
	for _, injection := range r.cfg.Injections {
		r.emit(trace.SystemPrompt{
			Type:    trace.TypeSystemPrompt,
			Agent:   runLane,
			Source:  injection.Source,
			Label:   injection.Label,
			Content: injection.Content,
		})
	}
	r.emit(trace.Prompt{Type: trace.TypePrompt, Agent: runLane, Text: r.cfg.Task})
	if r.cfg.Started != nil {
		r.cfg.Started(info)
	}
}

// ended records how the agent's process ended, if there was one.
func (r *runRecorder) ended(result RunResult) {
	out := result.Output
	if out.EndMs == 0 {
		return
	}
	event := trace.AgentEnd{
		Type:     trace.TypeAgentEnd,
		Agent:    runLane,
		ExitCode: out.ExitCode,
		Signal:   out.Signal,
		TimedOut: out.TimedOut || result.Reason == session.OutcomeTimeout,
		Argv:     out.Argv,
		Version:  out.Version,
		Auth:     r.auth,
		StartMs:  out.StartMs,
		EndMs:    out.EndMs,
	}
	if len(out.Argv) > 0 {
		event.Binary = out.Argv[0]
	}
	if found := r.cfg.Session.Installation; found != nil {
		event.BinarySHA256 = found.SHA256
	}
	r.emit(event)
}

func (r *runRecorder) emit(event any) {
	if _, err := r.cfg.Trace.EmitValue(trace.Orchestrator, event); err != nil && r.err == nil {
		r.err = err
	}
}

// summaryLimit is how many characters of the agent's final text the summary repeats.
const summaryLimit = 2000

func summaryOf(result RunResult) trace.Summary {
	verdict, text := "failure", result.Text
	if result.Success {
		verdict = "success"
	}
	if text == "" && result.Err != nil {
		text = result.Err.Error()
	}
	return trace.Summary{
		Type:    trace.TypeSummary,
		Success: result.Success,
		Verdict: verdict,
		Turns:   result.Turns,
		Summary: display.CutRunes(text, summaryLimit),
		Reason:  string(result.Reason),
		CostUSD: result.Usage.CostUSD,
	}
}
