package harnesscli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/harness"
)

// teamError gives the end of a session its exit code and, unless all is well, one line that says
// what happened.
func teamError(mode harness.Mode, result harness.Result, err error) error {
	switch result.Reason {
	case harness.ReasonInterrupted:
		return console.Exitf(console.ExitInterrupted, "interrupted; the trace is complete up to here")
	case harness.ReasonBudget:
		return console.Exit(console.ExitBudget, lowered(result.Summary))
	case harness.ReasonConcluded:
		return verdictError(result, err)
	}
	var coded *console.Error
	switch {
	case errors.As(err, &coded):
		return err
	case result.Reason == "" && err != nil: // nothing was started
		return startError(err)
	case mode == harness.ModeJudge:
		return console.Exit(console.ExitIncomplete, withReason("the judge did not conclude", result, err))
	case result.Reason == harness.ReasonQuiescent, result.Reason == harness.ReasonMaxTurns,
		result.Reason == harness.ReasonTimeout:
		return console.Exit(console.ExitNegative, lowered(result.Summary))
	case result.Reason == harness.ReasonTrace:
		return console.Exit(console.ExitIncomplete,
			withReason("the trace could not be written; fit-harness resume can continue the session", result, err))
	case result.Reason == harness.ReasonDisk:
		return console.Exit(console.ExitIncomplete,
			withReason("the disk is full; free some space, then fit-harness resume can continue the "+
				"session", result, err))
	case result.Reason == harness.ReasonError && !cannotStart(err):
		return console.Exit(console.ExitNegative, withReason("an agent failed", result, err))
	default:
		return console.Exit(console.ExitIncomplete, withReason("the session could not continue", result, err))
	}
}

// reportGone names the participants that left the session before its end.
func reportGone(con *console.Console, result harness.Result) {
	for _, p := range result.Participants {
		if p.Gone != "" {
			fmt.Fprintf(con.Stderr, "%s left the session early: it %s\n", p.Name, display.Line(p.Gone))
		}
	}
}

func verdictError(result harness.Result, err error) error {
	switch {
	case err != nil:
		return console.Exit(console.ExitIncomplete, err)
	case result.Success, result.Verdict == harness.VerdictRecessed:
		return nil
	default:
		summary, _, _ := strings.Cut(result.Summary, "\n")
		return console.Exitf(console.ExitNegative, "%s: %s", result.Verdict, summary)
	}
}

// cannotStart reports whether an agent could not be run at all, and did not just fail.
func cannotStart(err error) bool {
	var start *harness.StartError
	return errors.As(err, &start)
}

// lowered makes an error of a sentence of the summary.
func lowered(sentence string) error {
	if sentence == "" {
		return errors.New("the lead did not conclude")
	}
	return errors.New(strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], "."))
}

func withReason(what string, result harness.Result, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case result.Summary != "":
		return fmt.Errorf("%s: %s", what, result.Summary)
	default:
		return errors.New(what)
	}
}
