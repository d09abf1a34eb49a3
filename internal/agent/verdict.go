package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// result returns how a prompt went. A run is finished only with the agent's final event, and
// successful only by its content, whatever the exit code says.
func (c *Conversation) result(ctx context.Context, proc *process, before mark, why reason) Result {
	c.flushDropped()
	c.mu.Lock()
	defer c.mu.Unlock()
	final := c.meter.final()
	usage := c.meter.fold.TotalUsage().Since(before.usage)
	result := Result{
		SessionID: c.id,
		Turns:     c.meter.fold.Turns() - before.turns,
		Usage:     usage,
		Text:      c.meter.fold.LastText(),
		Output:    c.output(proc, before),
	}
	if final != nil && final.Text != "" {
		result.Text = final.Text
	}
	judge(&result, final, c.meter.fold.UsageReports() > before.reports)
	if proc.exited() {
		explainEnd(&result, proc, c.lastStderr, c.cfg.Config.outputLimit())
	}
	if proc.refused != nil {
		result.Success, result.Outcome, result.Err = false, session.OutcomeError, proc.refused
	}
	switch why {
	case reasonContext:
		// What the agent reports while it stops does not count: its commands were killed under it,
		// and it may call that a success.
		result.Aborted = true
		result.Success, result.Outcome, result.Err = false, session.OutcomeCancelled, nil
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			result.Outcome, result.Output.TimedOut = session.OutcomeTimeout, true
		}
	case reasonTurns:
		result.Success, result.Outcome, result.Err = false, session.OutcomeMaxTurns, nil
	case reasonFinal, reasonExit:
	}
	return result
}

// judge reads the final event. Success without any sign that a model worked is not success; in a
// stream that says nothing about tokens, a turn is such a sign.
func judge(result *Result, final *session.Final, usageTold bool) {
	if final == nil {
		result.Outcome = session.OutcomeNoResult
		return
	}
	result.Outcome = final.Outcome
	switch final.Outcome {
	case session.OutcomeSuccess:
		worked := result.Usage.TotalTokens > 0 || (result.Usage.CostUSD != nil && *result.Usage.CostUSD > 0)
		result.Success = worked || !usageTold && result.Turns > 0
		if !result.Success {
			result.Outcome, result.Err = session.OutcomeError, ErrNoModelWork
		}
	case session.OutcomeError, session.OutcomeAuth, session.OutcomeProvider:
		result.Err = errors.New(cmp.Or(display.Line(final.Text), "the agent failed without saying why"))
	case session.OutcomeMaxTurns, session.OutcomeBudget, session.OutcomeAborted, session.OutcomeNoResult,
		session.OutcomeTimeout, session.OutcomeOutput,
		session.OutcomeCancelled:
	}
}

// withStderr adds to an error what the program has said.
func withStderr(err error, lastStderr string) error {
	if lastStderr == "" {
		return err
	}
	return fmt.Errorf("%w; it said: %s", err, display.Line(lastStderr))
}

// explainEnd adds what the end of the process says beyond the stream.
func explainEnd(result *Result, proc *process, lastStderr string, limit int64) {
	switch {
	case proc.spawned.OutputLimit && !result.Success:
		result.Outcome, result.Err = session.OutcomeOutput, fmt.Errorf(
			"the agent printed more than the output limit of %d MB (--max-trace-mb) and was killed", limit>>20)
	case proc.cause != nil && !errors.Is(proc.cause, context.Canceled) &&
		!errors.Is(proc.cause, context.DeadlineExceeded) && !errors.Is(proc.cause, errClosed):
		if !result.Success {
			result.Err = proc.cause
		}
		if result.Outcome == session.OutcomeNoResult {
			result.Outcome = session.OutcomeError
		}
	case result.Outcome == session.OutcomeNoResult:
		result.Err = withStderr(fmt.Errorf("the agent ended without a result: %w", proc.failure()), lastStderr)
	case result.Success && proc.err != nil:
		result.Err = proc.err
	}
}

func (c *Conversation) output(proc *process, before mark) RawAgentOutput {
	lane := c.cfg.Config.Name
	out := RawAgentOutput{
		Agent:      c.cfg.Agent,
		Argv:       proc.argv,
		Version:    c.cfg.Started.Version,
		KeyVisible: c.cfg.Started.KeyVisible,
		StartMs:    before.startMs,
		EndMs:      time.Now().UnixMilli(),
	}
	if proc.exited() { // the writers are done, so the tallies may be read
		out.ExitCode, out.Signal, out.TimedOut = proc.spawned.ExitCode, proc.spawned.Signal, proc.spawned.TimedOut
		out.Stdout = BlobRef{Lane: lane, Bytes: c.stdout.bytes, SHA256: c.stdout.sum()}
		out.Stderr = BlobRef{
			Lane:   lane,
			Type:   trace.TypeStderr,
			Bytes:  c.stderr.bytes,
			SHA256: c.stderr.sum(),
		}
		return out
	}
	out.Stdout, out.Stderr = BlobRef{Lane: lane}, BlobRef{Lane: lane, Type: trace.TypeStderr}
	return out
}
