package experiment

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/ledger"
)

// gated is an executor whose cells wait until the test lets them go on.
type gated struct {
	started chan Cell
	verdict chan string
}

func (g *gated) Execute(ctx context.Context, cell Cell, _ int) (ledger.Record, error) {
	g.started <- cell
	select {
	case verdict := <-g.verdict:
		if verdict == ledger.Error {
			return failed(ledger.ErrorInternal, "broken"), nil
		}
		record := graded(verdict)
		usd := 0.5
		record.CostUSD = &usd
		return record, nil
	case <-ctx.Done():
		return ledger.Record{}, context.Cause(ctx)
	}
}

// steered starts an experiment that waits for the test.
func steered(t *testing.T, tasks, concurrency int) (*gated, string, func() Outcome) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name-", 12), "run")
	directory, err := OpenDirectory(dir, planOf(t, tasks, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{started: make(chan Cell), verdict: make(chan string)}
	ended := make(chan Outcome, 1)
	go func() {
		outcome, err := Run(t.Context(), directory, Config{
			Executor:    g,
			Concurrency: concurrency,
			Attempts:    1,
			BreakAfter:  -1,
			Steered:     true,
		})
		if err := errors.Join(err, directory.Close()); err != nil {
			t.Error(err)
		}
		ended <- outcome
	}()
	return g, dir, func() Outcome { return <-ended }
}

func ask(t *testing.T, dir string, c control.Command) *control.Answer {
	t.Helper()
	answer, err := control.Ask(t.Context(), dir, c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return answer
}

func refused(t *testing.T, dir string, c control.Command, want string) {
	t.Helper()
	_, err := control.Ask(t.Context(), dir, c)
	var no *control.Refused
	if !errors.As(err, &no) || !strings.Contains(no.Reason, want) {
		t.Fatalf("%+v: got %v, want a refusal with %q", c, err, want)
	}
}

func TestAPausedExperimentStartsNothingUntilItIsResumed(t *testing.T) {
	g, dir, end := steered(t, 4, 1)
	<-g.started
	g.verdict <- ledger.Pass
	<-g.started
	if got := ask(t, dir, control.Command{Action: control.Pause}); got.Status.State != control.Paused ||
		len(got.Status.Running) != 1 {
		t.Fatalf("paused: %+v", got)
	}
	g.verdict <- ledger.Pass
	for ask(t, dir, control.Command{Action: control.Ping}).Status.Done < 2 {
	}
	status := ask(t, dir, control.Command{Action: control.Ping}).Status
	if status.Queued != 2 || len(status.Running) != 0 || status.CostUSD != 1 || status.BurnUSDPerHour == nil ||
		status.LeftMs != nil {
		t.Fatalf("while paused: %+v, left %v", status, status.LeftMs)
	}
	ask(t, dir, control.Command{Action: control.Resume})
	for range 2 {
		<-g.started
		if left := ask(t, dir, control.Command{Action: control.Ping}).Status.LeftMs; left == nil {
			t.Error("it is resumed, and nobody knows how long it takes")
		}
		g.verdict <- ledger.Pass
	}
	if outcome := end(); outcome.Status != Complete {
		t.Fatalf("%+v", outcome)
	}
	_, err := control.Ask(t.Context(), dir, control.Command{Action: control.Ping})
	if !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, control.SocketFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestACancelledCellWaitsUntilItIsRequeued(t *testing.T) {
	g, dir, end := steered(t, 2, 1)
	cell := <-g.started
	named := control.Command{Action: control.Cancel, Task: cell.TaskID, Arm: cell.Arm, Run: cell.RunIndex}
	ask(t, dir, named)
	other := <-g.started // the next cell takes its place
	if other == cell {
		t.Fatal("the cancelled cell was started again")
	}
	refused(t, dir, named, "cancelled already")
	if held := ask(t, dir, control.Command{Action: control.Ping}).Status.Held; len(held) != 1 ||
		held[0] != (control.Name{Task: cell.TaskID, Arm: cell.Arm, Run: cell.RunIndex}) {
		t.Errorf("held back: %v", held)
	}
	named.Action = control.Requeue
	ask(t, dir, named)
	g.verdict <- ledger.Fail
	if again := <-g.started; again != cell {
		t.Fatalf("got %v, want the requeued cell", again)
	}
	refused(t, dir, named, "is running")
	named.Task, named.Arm = other.TaskID, other.Arm
	refused(t, dir, named, "verdicts are never repeated")
	named.Task = "nothing"
	refused(t, dir, named, "has no cell nothing")
	g.verdict <- ledger.Pass
	if outcome := end(); outcome.Status != Complete {
		t.Fatalf("%+v", outcome)
	}
	records := recordsOf(t, dir)
	if len(records) != 3 || records[0].ErrorClass != ledger.ErrorInterrupted || records[0].Final {
		t.Errorf("the ledger has %d records, the first %+v", len(records), records[0])
	}
}

func TestCellsThatStayCancelledMakeTheExperimentIncomplete(t *testing.T) {
	g, dir, end := steered(t, 2, 1)
	first := <-g.started
	for _, task := range []string{"task-000", "task-001"} {
		if task != first.TaskID { // it waits
			ask(t, dir, control.Command{Action: control.Cancel, Task: task, Arm: first.Arm})
		}
	}
	g.verdict <- ledger.Pass
	outcome := end()
	if outcome.Status != Incomplete || !strings.Contains(outcome.Reason, "1 cell cancelled") {
		t.Fatalf("%+v", outcome)
	}
}

func TestAnErrorCanBeRequeued(t *testing.T) {
	g, dir, end := steered(t, 2, 1)
	broken := <-g.started
	g.verdict <- ledger.Error
	<-g.started
	ask(t, dir, control.Command{Action: control.Requeue, Task: broken.TaskID, Arm: broken.Arm})
	g.verdict <- ledger.Pass
	if again := <-g.started; again != broken {
		t.Fatalf("got %v", again)
	}
	g.verdict <- ledger.Pass
	if outcome := end(); outcome.Status != Complete || outcome.Progress.Errors != 0 || outcome.Progress.Done != 2 {
		t.Fatalf("%+v", outcome)
	}
}

func TestConcurrencyAndBudgetChangeWhileItRuns(t *testing.T) {
	g, dir, end := steered(t, 4, 1)
	<-g.started
	if got := ask(t, dir, control.Command{Action: control.Concurrency, N: 3}); got.Status.Concurrency != 3 {
		t.Fatalf("%+v", got)
	}
	<-g.started
	<-g.started
	refused(t, dir, control.Command{Action: control.Concurrency, N: 0}, "want a number from 1")
	refused(t, dir, control.Command{Action: "jump"}, "not an action")
	refused(t, dir, control.Command{Action: control.BudgetUSD, USD: new(-1.0)}, "number of dollars")
	refused(t, dir, control.Command{Action: control.BudgetUSD}, "no budget was named")
	got := ask(t, dir, control.Command{Action: control.BudgetUSD, USD: new(1.0)})
	if got.Status.BudgetUSD == nil || *got.Status.BudgetUSD != 1 {
		t.Fatalf("%+v", got)
	}
	for range 3 {
		g.verdict <- ledger.Pass
	}
	if outcome := end(); outcome.Status != OverBudget {
		t.Fatalf("%+v", outcome)
	}
}

func TestTheAccountsHearOfANewBudget(t *testing.T) {
	e := engine{
		cfg: Config{Budgets: Budgets{Experiment: Budget{USD: 1, Tokens: 9}}},
		dir: &Directory{spent: newSpending()},
	}
	e.status, e.stopped = OverBudget, "the budget is spent"
	if _, err := e.rebudget(new(3.0)); err != nil {
		t.Fatal(err)
	}
	if got := e.dir.Accounts().Whole().Budget(); got != (gateway.Budget{USD: 3, Tokens: 9}) {
		t.Errorf("the experiment may spend %+v", got)
	}
	if e.stopped != "" {
		t.Error("an experiment that stopped for its budget goes on with a larger one")
	}
}

// TestTheTimeThatIsLeft: after a few cells the limits are wide, and they come to those of the
// normal distribution.
func TestTheTimeThatIsLeft(t *testing.T) {
	for _, c := range []struct {
		cells  int
		factor float64 // by how many standard errors the limits are away
	}{{2, 12.706}, {5, 2.776}, {1000, 1.962}} {
		e := engine{cfg: Config{Concurrency: 1}, queue: make([]waiting, 10)}
		for i := range c.cells {
			e.times.add(100 + float64(i%2)) // one second of difference
		}
		left, n := e.left(), float64(c.cells)
		spread := math.Sqrt(e.times.m2 / (n - 1) * 10 * (1 + 10/n))
		if got := float64(left.Hi-left.Est) / 1000 / spread; math.Abs(got-c.factor) > 0.01 {
			t.Errorf("after %d cells the limit is %.3f standard errors away, want %.3f", c.cells, got, c.factor)
		}
	}
}
