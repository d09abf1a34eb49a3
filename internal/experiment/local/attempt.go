package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// withoutSecrets returns the record as others may see it: the secrets of the task, of the arm and
// of the session are known only here.
func (a *attempt) withoutSecrets() (ledger.Record, error) {
	if a.redact == nil {
		return a.record, nil
	}
	content, err := json.Marshal(a.record)
	if err != nil {
		return ledger.Record{}, fmt.Errorf("record of %s: %w", a.cell.Name(), err)
	}
	var clean ledger.Record
	if err := json.Unmarshal(a.redact.JSON(content), &clean); err != nil {
		return ledger.Record{}, fmt.Errorf("record of %s: %w", a.cell.Name(), err)
	}
	return clean, nil
}

// attempt is one call of Execute.
type attempt struct {
	*Executor
	cell   experiment.Cell
	number int
	arm    *experiment.Arm
	task   *task.Task
	dir    string // of the artefacts, absolute
	record ledger.Record
	space  *workspace.Workspace
	// changed are the files that the agent changed, once the workspace is sealed.
	changed []workspace.FileChange
	began   time.Time // by the monotonic clock: durations do not follow a clock that is set
	redact  *redact.Redactor
	answer  string             // the agent's last message
	used    session.TokenUsage // by all sessions of the agent
	steps   []grade.StepResult // of a task that has steps
	// verifying is the time that the agent phase spent on the verifiers of steps.
	verifying  time.Duration
	watched    *watchedSpawner  // that its agent starts processes with; nil before it starts
	pauses     *pauses          // of this process while its agent works; nil before it starts
	calls      *gateway.Record  // of the agent; nil before it starts
	pays       *gateway.Account // that everything in it is paid from
	account    *gateway.Account // that its agents pay their calls from
	mu         sync.Mutex
	seats      []*gateway.Seat // of its agents
	agentLines *trace.Writer   // of its agents; nil before there is one
	stock      stock           // what its agent is to be given
	// probed records what a probe cost; nil in a cell.
	probed func(experiment.Probe) error
}

func (e *Executor) newAttempt(ctx context.Context, cell experiment.Cell, number int) (*attempt, error) {
	a := &attempt{
		Executor: e,
		cell:     cell,
		number:   number,
		arm:      e.arms[cell.Arm],
		task:     e.tasks[cell.TaskID],
		began:    time.Now(),
	}
	if a.arm == nil || a.task == nil {
		return nil, fmt.Errorf("cell %s: no such arm or task", cell.Name())
	}
	a.pays = e.accounts.Attempt(cell)
	a.account = a.pays.Child("this cell", gateway.Budget{
		USD:    cheaper(e.prepared.CellBudget.USD, a.task),
		Tokens: e.prepared.CellBudget.Tokens,
	})
	e.machine.refresh(ctx, a.arm.Agent)
	a.record = e.blank(cell, number)
	a.record.StartMs = e.machine.now().UnixMilli()
	a.redact = e.machine.Redactor.With(secretsOf(a.task, a.arm, e.machine))
	a.dir = e.artefacts.AttemptDir(a.record.RunDir)
	if err := os.MkdirAll(filepath.Dir(a.dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil { // an existing one would be another attempt's
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	return a, nil
}

// blank returns a record with what is known at the start.
func (e *Executor) blank(cell experiment.Cell, number int) ledger.Record {
	arm := e.arms[cell.Arm]
	r := ledger.Record{
		RunDir:       cell.RunDir(number),
		Alias:        cell.Alias(),
		PhaseMs:      map[string]int64{},
		Tools:        e.prepared.Tools,
		Host:         e.prepared.Plan.Host,
		SkillSetHash: e.prepared.SkillHashes[cell.Arm],
		Isolation:    e.prepared.Isolation,
		Faults:       e.prepared.Faults.Digest(),
	}
	if arm == nil {
		return r
	}
	found := e.machine.installation(arm.Agent)
	r.Agent, r.AgentVersion, r.AgentBinary, r.AgentSHA256 = arm.Agent, found.Version, found.Path, found.SHA256
	r.AgentScripts = found.ScriptSHA256
	if t := e.tasks[cell.TaskID]; t != nil {
		r.Workspace = t.Settings.Workspace
	}
	r.Model.Agent = arm.Model
	if arm.Lead != "" {
		r.Model.Supervisor = arm.LeadModel
	}
	if arm.Profile != "" {
		r.Profiles.Agent = &arm.Profile
	}
	return r
}

// fail records an error that the agent did not cause. It returns false, like the phase that it
// ends.
func (a *attempt) fail(ctx context.Context, class string, err error) bool {
	switch {
	case ctx.Err() != nil:
		class = ledger.ErrorInterrupted
	case grade.MachineFailed(err):
		class = ledger.ErrorResources
	case class == ledger.ErrorGrader && errors.Is(err, sandbox.ErrBroken):
		class = ledger.ErrorSandbox
	}
	a.record.Verdict, a.record.ErrorClass, a.record.ErrorMessage = ledger.Error, class, err.Error()
	switch {
	case errors.Is(err, workspace.ErrUnhealthy):
		a.record.ErrorCause = ledger.CauseHealthcheck
	case errors.Is(err, errNoRecording):
		a.record.ErrorCause = ledger.CauseNoRecording
	case errors.Is(err, errNotRecorded):
		a.record.ErrorCause = ledger.CauseNotRecorded
	case unpriced(err):
		a.record.ErrorCause = ledger.CauseNoPrice
	}
	return false
}

// unpriced reports whether a call was refused because nobody knows what it costs.
func unpriced(err error) bool {
	refused, ok := errors.AsType[*gateway.BudgetError](err)
	return ok && refused.Unpriced
}

// phases runs one phase after the other until one of them ends the attempt.
func (a *attempt) phases(ctx context.Context) {
	for _, phase := range []struct {
		name string
		run  func(context.Context) bool
	}{
		{"setup", a.setUp},
		{"preflight", a.preflight},
		{"agent", a.runAgent},
		{"seal", a.seal},
		{"grade", a.grade},
		{"judge", a.judge},
	} {
		began, before := time.Now(), readWaits(pressureDir)
		goOn := phase.run(ctx)
		took := time.Since(began)
		switch phase.name { // the verifiers of steps run between them
		case "agent":
			a.record.Pressure = before.until(readWaits(pressureDir))
			took -= a.verifying + time.Duration(a.record.HeldMs)*time.Millisecond
		case "grade":
			took += a.verifying
		}
		if ms := took.Milliseconds(); ms > 0 {
			a.record.PhaseMs[phase.name] = ms
		}
		if !goOn {
			break
		}
	}
	a.record.DurationMs = time.Since(a.began).Milliseconds()
	a.record.EndMs = a.record.StartMs + a.record.DurationMs
}

// taskUnchanged makes sure that the files of the task are those of the plan.
func (a *attempt) taskUnchanged(ctx context.Context) bool {
	if err := a.prepared.Family.CheckUnchanged(a.task); err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	return true
}

func (a *attempt) setUp(ctx context.Context) bool {
	if err := freeSpace(a.minFree, a.work, a.dir); err != nil {
		return a.fail(ctx, ledger.ErrorResources, err)
	}
	if !a.taskUnchanged(ctx) || !a.bringsUnchanged(ctx) {
		return false
	}
	name := fmt.Sprintf("%s.%d", a.cell.Alias(), a.number)
	space, err := workspace.Prepare(ctx, a.workspaceConfig(a.arm, a.task, name, ""))
	if err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	a.space = space
	a.record.Isolation, a.record.Digests.Base = space.Label, space.StartHash()
	a.noteContainer()
	if err := a.findInside(ctx); err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	a.step(stepAllocated, space.Label)
	return true
}

func (a *attempt) preflight(ctx context.Context) bool {
	result, err := a.space.Preflight(ctx, "")
	if err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	if !result.OK() {
		class := ledger.ErrorPreflight
		if result.Signal != "" { // something killed it
			class = ledger.ErrorSandbox
		}
		a.fail(ctx, class, fmt.Errorf("preflight: %s", result.Message))
		a.record.PreflightError = &ledger.PreflightError{
			Phase: "preflight", Message: result.Message,
			ExitCode: result.ExitCode,
		}
		return false
	}
	return a.ready(ctx)
}

// servicesLive makes sure that the services of the task have not ended. A request of the agent can
// bring that about.
func (a *attempt) servicesLive(ctx context.Context) bool {
	err := a.space.CheckServices()
	if err == nil {
		return true
	}
	a.record.Unverified = 1
	return a.fail(ctx, ledger.ErrorSandbox, err)
}

// seal makes sure that nothing writes any more, and stores the result.
func (a *attempt) seal(ctx context.Context) bool {
	if !a.servicesLive(ctx) {
		return false
	}
	if !a.startedNoProcess() {
		sealed, err := a.space.Seal(ctx)
		a.record.Survivors = sealed.Killed
		if err != nil {
			return a.fail(ctx, ledger.ErrorInternal, err)
		}
	}
	if err := a.space.Withdraw(); err != nil { // a verifier may work in the directory itself
		return a.fail(ctx, ledger.ErrorInternal, err)
	}
	diff, err := a.space.Diff(ctx)
	if err == nil {
		a.changed = diff.Files
	}
	switch {
	case errors.As(err, new(*tree.LimitError)): // the agent caused it: grading will say the same
	case err != nil:
		return a.fail(ctx, ledger.ErrorInternal, err)
	case len(diff.Patch) > 0:
		if err := os.WriteFile(filepath.Join(a.dir, diffFile), a.redact.Bytes(diff.Patch), 0o600); err != nil {
			return a.fail(ctx, ledger.ErrorInternal, err)
		}
		a.record.DiffPath = filepath.ToSlash(filepath.Join(a.record.RunDir, diffFile))
	}
	if _, err := a.space.Copy(ctx, workspace.CopyConfig{Dest: filepath.Join(a.dir, FinalDir)}); err != nil &&
		!errors.As(err, new(*tree.LimitError)) {
		return a.fail(ctx, ledger.ErrorInternal, err)
	}
	// a copy that was given up half way has none
	if digest, err := experiment.TreeDigest(filepath.Join(a.dir, FinalDir)); err == nil {
		a.record.Digests.Final = digest
	}
	return true
}

// end removes the workspace, whatever has happened, within a time limit.
func (a *attempt) end(ctx context.Context) {
	if a.space == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	if a.record.Verdict == ledger.Error { // an attempt that ended early may not have been sealed
		if sealed, err := a.space.Seal(ctx); err == nil {
			a.record.Survivors = max(a.record.Survivors, sealed.Killed)
		}
	}
	if a.keepAll {
		a.space.StopServices()
	} else if err := a.space.Remove(ctx); err != nil && a.record.ErrorMessage == "" {
		a.note("teardown: %v", err)
	}
	if ms := time.Since(began).Milliseconds(); ms > 0 {
		a.record.PhaseMs["teardown"] = ms
	}
}

// step reports a step of the attempt to Config.Watch.
func (a *attempt) step(kind, detail string) {
	if a.watch != nil {
		a.watch(Step{Cell: a.cell, Kind: kind, Detail: detail})
	}
}

// note adds a note to the record, which changes nothing else.
func (a *attempt) note(format string, args ...any) {
	a.record.Notes = append(a.record.Notes, fmt.Sprintf(format, args...))
}
