package experimentcli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// A signal before the first cell is an interruption, wherever it finds the preparation.
func TestInterruptedBeforeTheFirstCell(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	con := &console.Console{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
	plan, output := &experiment.Plan{}, t.TempDir()
	dir, err := experiment.OpenDirectory(output, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	run := Run{
		Console: con,
		Prepared: &experiment.Prepared{
			Setup: experiment.Setup{Family: &task.Family{Tasks: []task.Task{
				{ID: "t", Settings: task.Settings{Workspace: "worktree", Repo: t.TempDir()}},
			}}},
			Plan: plan,
		},
		Machine: &local.Machine{Registry: &agent.Registry{}},
		Dir:     dir,
		Output:  output,
	}
	_, err = run.Do(ctx)
	const want = "interrupted before the first cell; nothing was started"
	if err == nil || err.Error() != want || console.Code(err) != console.ExitInterrupted {
		t.Errorf("Do = %v with code %d, want %q with 130", err, console.Code(err), want)
	}
}

// Advice fits its error: a cause that is known better than its class has its own.
func TestAdviceFitsTheError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ class, cause, want string }{
		{ledger.ErrorSetup, "", "run fit doctor, or fix the family, which then needs another --output"},
		{ledger.ErrorSetup, ledger.CauseNoRecording, "replay what was recorded"},
		{ledger.ErrorSetup, ledger.CauseHealthcheck, "does not become healthy"},
		{ledger.ErrorPreflight, "", "preflight hook fails without an agent"},
		{ledger.ErrorProvider, "", "the model provider failed"},
		{ledger.ErrorAgentStart, "", "check the model"},
		{ledger.ErrorAgentKilled, "", "something killed the agents"},
		{ledger.ErrorAuth, "", "check the credentials"},
		{ledger.ErrorGrader, "", "the grader is broken or flaky"},
		{ledger.ErrorGrader, ledger.CauseKilled, "something killed a program of the grader"},
		{ledger.ErrorGrader, ledger.CauseTimeout, "the verifier ran out of time"},
		{ledger.ErrorGrader, ledger.CauseNoReward, "left no reward"},
		{ledger.ErrorGrader, ledger.CauseEmptyReward, "left no reward"},
		{ledger.ErrorGrader, ledger.CauseBadReward, "left no reward"},
		{ledger.ErrorJudge, "", "the judge did not conclude"},
		{ledger.ErrorInterrupted, "", ""}, // the last line says how to resume
		{ledger.ErrorBudget, "", ""},      // the message says what to do
		{ledger.ErrorBudget, ledger.CauseNoPrice, "give the model a price (FIT_PRICES), or a budget in tokens"},
		{ledger.ErrorSandbox, "", "a sandbox could not be started"},
		{ledger.ErrorResources, "", "this machine lacks"},
		{ledger.ErrorNotDelivered, "", "put it where the agent looks"},
		{ledger.ErrorBypass, "", "another endpoint"},
		{ledger.ErrorInternal, "", "fit itself failed"},
	} {
		t.Run(test.class, func(t *testing.T) {
			var told bytes.Buffer
			run := Run{Console: &console.Console{Stderr: &told}}
			run.explain(failure.Causes([]ledger.Record{{
				Verdict: ledger.Error, ErrorClass: test.class, ErrorCause: test.cause, ErrorMessage: "it broke",
			}}))
			first, advice, _ := strings.Cut(told.String(), "\n")
			if first != "1 run without a verdict ("+test.class+"): it broke" || !strings.Contains(advice, test.want) ||
				(advice == "") != (test.want == "") {
				t.Errorf("%s: %q", test.cause, told.String())
			}
		})
	}
}
