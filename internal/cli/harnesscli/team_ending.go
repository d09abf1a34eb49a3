package harnesscli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/internal/cli/console"
)

// teamError gives the end of a session its exit code and, unless all is well, one line that says
// what happened.
func teamError(mode harness.Mode, result harness.Result, err error) error {
	switch result.Reason {
	case harness.ReasonInterrupted:
		return console.Exitf(console.ExitInterrupted, "interrupted; the trace is complete up to here")
	case harness.ReasonBudget:
		return console.Exitf(console.ExitBudget,
			"the budget of the session is used up; --session-max-tokens and --session-max-cost-usd set it")
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
		return console.Exit(console.ExitIncomplete, because("the judge did not conclude", result, err))
	case result.Reason == harness.ReasonQuiescent:
		return console.Exitf(console.ExitNegative, "the lead did not conclude, and nobody had anything left to do")
	case result.Reason == harness.ReasonMaxTurns:
		return console.Exitf(console.ExitNegative,
			"the turns were used up before the lead concluded; --session-max-turns, --max-lead-turns and "+
				"--participant-max-turns set how many there are")
	case result.Reason == harness.ReasonTimeout:
		return console.Exitf(console.ExitNegative,
			"the time was up before the lead concluded; --session-timeout sets how much there is")
	case result.Reason == harness.ReasonError && !cannotStart(err):
		return console.Exit(console.ExitNegative, because("an agent failed", result, err))
	default:
		return console.Exit(console.ExitIncomplete, because("the session could not go on", result, err))
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

// cannotStart tells an agent that could not be run at all from one that ran and failed.
func cannotStart(err error) bool {
	var start *harness.StartError
	return errors.As(err, &start)
}

func because(what string, result harness.Result, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case result.Summary != "":
		return fmt.Errorf("%s: %s", what, result.Summary)
	default:
		return errors.New(what)
	}
}
