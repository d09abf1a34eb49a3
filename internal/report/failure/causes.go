package failure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
)

// Cause is one reason why runs have no verdict, and what to do about it.
type Cause struct {
	Class string `json:"class"`
	Cause string `json:"cause,omitempty"` // where it is known better
	// Message is the first one of this class.
	Message string `json:"message"`
	WayOut  string `json:"wayOut,omitempty"`
	Runs    int    `json:"runs"`
}

// Causes groups the runs without a verdict by their reason, the most frequent first.
func Causes(records []ledger.Record) []Cause {
	var causes []Cause
	for i := range records {
		r := &records[i]
		cause := CauseOf(r)
		if cause == nil {
			continue
		}
		at := slices.IndexFunc(causes, func(c Cause) bool { return c.Class == cause.Class && c.Cause == cause.Cause })
		if at < 0 {
			causes = append(causes, *cause)
		} else {
			causes[at].Runs++
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return b.Runs - a.Runs })
	return causes
}

// CauseOf returns why a run has no verdict; nil if it has one.
func CauseOf(r *ledger.Record) *Cause {
	if r.Verdict != ledger.Error {
		return nil
	}
	return &Cause{
		Class:   r.ErrorClass,
		Cause:   r.ErrorCause,
		Message: strings.TrimPrefix(r.ErrorMessage, r.ErrorClass+": "),
		WayOut:  wayOut(r.ErrorClass, r.ErrorCause),
		Runs:    1,
	}
}

// maxCause bounds what is shown of the message of a cause.
const maxCause = 400

// Lines says how many runs have no verdict, why, and what to do, safe for a terminal.
func (c *Cause) Lines() []string {
	runs := "1 run"
	if c.Runs > 1 {
		runs = fmt.Sprintf("%d runs", c.Runs)
	}
	lines := []string{fmt.Sprintf("%s without a verdict (%s): %s", runs, display.Line(c.Class),
		display.CutRunes(display.Line(c.Message), maxCause))}
	if c.WayOut != "" {
		lines = append(lines, "  "+c.WayOut)
	}
	return lines
}

// wayOut returns what to do about an error of a class, and of a cause that is known better; empty
// if nothing is known.
func wayOut(class, cause string) string { return cmp.Or(waysOut[cause], waysOut[class]) }

// noReward is the advice for a verifier without a result.
const noReward = "the verifier left no reward that can be read: see its output in the run directory, and try " +
	"fit-benchmark lint --family FAMILY"

// GradeAgain is the command for runs whose grader was repaired: their family is another one now, so
// that the experiment itself cannot go on.
const GradeAgain = "grade what the runs left: fit-benchmark grade --family FAMILY DIR"

// OnlyGraders reports whether all causes are graders that are broken themselves.
func OnlyGraders(causes []Cause) bool {
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c Cause) bool {
		return c.Class != ledger.ErrorGrader || c.Cause != ""
	})
}

// waysOut says what to do about a class of errors, or about a cause that is known better.
var waysOut = map[string]string{
	ledger.CauseNoRecording: "replay what was recorded: the same tasks, arms and number of runs; or record the " +
		"others with --record bodies",
	ledger.CauseNotRecorded: "the arm or its task is not what was recorded, and says where: run it with its model, " +
		"without --replay; --replay-mode live asks the model for such requests only",
	ledger.CauseHealthcheck: "the task's container does not become healthy: try fit-benchmark lint --family FAMILY",
	ledger.CauseKilled: "something killed a program of the grader, or kept it from starting one: look for a system " +
		"short of memory (dmesg), or run fewer at a time, then --retry-errors",
	ledger.CauseTimeout:     "the verifier ran out of time: raise its limit in the task, or run fewer at a time",
	ledger.CauseNoReward:    noReward,
	ledger.CauseEmptyReward: noReward,
	ledger.CauseBadReward:   noReward,
	ledger.CauseUnknown: "nobody can know it, and running it again does not help: leave out what has the same text " +
		"(--with), or use an agent whose model calls fit records",
	ledger.CauseNoPrice: "give the model a price (FIT_PRICES), or a budget in tokens, then rerun the same command",
	ledger.ErrorSetup: "the workspace could not be created: run fit doctor, or fix the family, which then needs " +
		"another --output",
	ledger.ErrorPreflight: "the task's preflight hook fails without an agent: try fit-benchmark lint --family " +
		"FAMILY; a family that was changed needs another --output",
	ledger.ErrorProvider: "the model provider failed: check --model-url where it is not reached, the model's " +
		"name where that is not found (404), the proxy where a page of HTML came back; else wait, or lower the " +
		"concurrency; then --retry-errors",
	ledger.ErrorAgentStart: "the agent did not start or got no reply: check the model, --model-url and fit doctor",
	ledger.ErrorAgentKilled: "something killed the agents: look for a system short of memory (dmesg), or run fewer " +
		"at a time, then --retry-errors",
	ledger.ErrorAuth: "check the credentials with fit doctor, and the limits and the balance of the account",
	ledger.ErrorGrader: "the grader is broken or flaky: try fit-benchmark lint --family FAMILY --repeat 5; once it " +
		"is repaired, " + GradeAgain,
	ledger.ErrorJudge: "the judge did not conclude: see its trace, or choose another --judge-model",
	ledger.ErrorSandbox: "a sandbox could not be started on this machine, or something ended a process in it: see " +
		"fit doctor, then --retry-errors",
	ledger.ErrorNotDelivered: "put it where the agent looks, or leave it out of the arm; fit-benchmark run --dry-run " +
		"checks it without a model",
	ledger.ErrorInternal: "fit itself failed: see fit doctor, then --retry-errors",
	ledger.ErrorBypass: "find what sends the agent to another endpoint, such as a settings file of the project, or " +
		"run with --gateway off, where nobody can know what the model was given",
	ledger.ErrorResources: "this machine lacks disk space, memory, files or processes: free some, or run fewer " +
		"attempts at a time, then rerun the same command",
}
