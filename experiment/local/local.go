package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/gateway"
	"github.com/fit-eval/fit/grade"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

// Config is what an executor of this machine works with.
type Config struct {
	Prepared *experiment.Prepared
	Machine  *Machine
	// Artefacts takes what attempts leave.
	Artefacts experiment.Sink
	// Work is a private directory outside any repository for workspaces. It is emptied at the
	// start: what an earlier process left there belongs to attempts that are over.
	Work   string
	Faults *gateway.Faults      // that model calls meet on purpose; nil: none
	Rate   *gateway.RateControl // of the calls of all cells; nil: unbounded
	// Budgets bound what all cells spend together, and Spent is what earlier processes have spent,
	// by arm.
	Budgets experiment.Budgets
	Spent   map[string]experiment.Spent
	// Watch, if set, is called when a workspace was made and when an agent was started, from
	// several goroutines.
	Watch func(Step)
	// KeepWorkspaces leaves the workspaces of attempts where they are, worktrees registered: for
	// people who want to look. The next executor of the same Work removes them.
	KeepWorkspaces bool
}

// Step is a step of an attempt that people may want to see.
type Step struct {
	Cell    experiment.Cell
	Attempt int
	Kind    string // allocated, started
	Dir     string // the agent's working directory
	Detail  string // how well the workspace is sealed, or which agent runs
}

// The kinds of steps.
const (
	stepAllocated = "allocated"
	stepStarted   = "started"
)

// defaultAgentTimeout is how long an agent may work where neither the task nor anybody else says.
const defaultAgentTimeout = 20 * time.Minute

// The names of the artefacts of an attempt.
const (
	agentTrace = "agent.ndjson"
	judgeTrace = "judge.ndjson"
	FinalDir   = "cwd" // what the agent left
	diffFile   = "diff.patch"
	gradingDir = "grading"
)

// Executor runs cells on this machine.
type Executor struct {
	prepared  *experiment.Prepared
	machine   *Machine
	artefacts experiment.Sink
	work      string
	spawner   sandbox.ProcessSpawner
	tasks     map[string]*task.Task
	arms      map[string]*experiment.Arm
	networks  map[networkKey]network
	ports     *workspace.Ports
	bases     *workspace.Bases
	caches    *workspace.Caches
	baseline  *grade.Baseline
	packers   *packers
	minFree   uint64 // bytes
	watch     func(Step)
	keepAll   bool
	gateway   *gateway.OnDemand
	replays   map[ledger.Cell]string      // the recorded attempts of cells, where this is a replay
	whole     *gateway.Account            // of the experiment
	accounts  map[string]*gateway.Account // by arm
	inside    insideAgents
}

// New makes the executor of a prepared experiment. Every agent in it must be installed here.
func New(ctx context.Context, cfg Config) (*Executor, error) {
	e := &Executor{
		prepared:  cfg.Prepared,
		machine:   cfg.Machine,
		artefacts: cfg.Artefacts,
		work:      cfg.Work,
		spawner:   cfg.Machine.Host.Spawner,
		tasks:     map[string]*task.Task{},
		arms:      map[string]*experiment.Arm{},
		ports:     &workspace.Ports{},
		bases:     workspace.NewBases(filepath.Join(cfg.Work, "bases")),
		baseline:  grade.NewBaseline(),
		packers:   &packers{},
		minFree:   minFree,
		watch:     cfg.Watch,
		keepAll:   cfg.KeepWorkspaces,
		gateway:   newGateway(cfg),
	}
	e.whole, e.accounts = openAccounts(cfg)
	if err := e.findAll(ctx); err != nil {
		return nil, err
	}
	if err := e.findReplays(); err != nil {
		return nil, err
	}
	var err error
	if e.networks, err = e.machine.decideNetworks(ctx, &e.prepared.Setup); err != nil {
		return nil, err
	}
	if err := e.forgetWorktrees(ctx); err != nil {
		return nil, err
	}
	if err := RemoveAll(e.work); err != nil {
		return nil, fmt.Errorf("empty the directory for workspaces: %w", err)
	}
	if err := os.MkdirAll(e.work, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for workspaces: %w", err)
	}
	if e.spawner == nil {
		e.spawner = sandbox.NewSpawner()
	}
	if cache := e.machine.Host.CacheDir; cache != "" {
		e.caches = workspace.NewCaches(filepath.Join(cache, "build"))
	}
	for i := range e.prepared.Family.Tasks {
		e.tasks[e.prepared.Family.Tasks[i].ID] = &e.prepared.Family.Tasks[i]
	}
	for i := range e.prepared.Arms {
		e.arms[e.prepared.Arms[i].Name] = &e.prepared.Arms[i]
	}
	return e, nil
}

// WorkDir is where the workspaces of a run directory lie: in a private temporary directory of its
// own, so that the next process finds what a killed one left.
func WorkDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = real
	}
	sum := sha256.Sum256([]byte(absolute))
	return filepath.Join(os.TempDir(), fmt.Sprintf("fit-work-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6]))), nil
}

// forgetWorktrees takes the worktrees of attempts whose process was killed out of the repositories
// of the tasks.
func (e *Executor) forgetWorktrees(ctx context.Context) error {
	seen := map[string]bool{}
	for i := range e.prepared.Family.Tasks {
		s := &e.prepared.Family.Tasks[i].Settings
		if s.Workspace != "worktree" || seen[s.Repo] {
			continue
		}
		seen[s.Repo] = true
		if err := workspace.ForgetWorktrees(ctx, s.Repo, e.work); err != nil {
			return fmt.Errorf("forget the worktrees that a killed process left: %w", err)
		}
	}
	return nil
}

// Warm fills the build caches that tasks ask for, before the first attempt and not within it.
func (e *Executor) Warm(ctx context.Context) error {
	for _, t := range e.tasks {
		if len(t.Settings.Cache) == 0 || e.caches == nil {
			continue
		}
		for _, arm := range e.arms {
			if err := e.caches.Warm(ctx, e.workspaceConfig(arm, t, "warm", "warm")); err != nil {
				return fmt.Errorf("warm the build cache of task %s: %w", t.ID, err)
			}
			break // the cache is filled from the author's files, which arms share
		}
	}
	return nil
}

// Close removes everything the executor keeps outside the run directory.
func (e *Executor) Close() error {
	err := errors.Join(e.gateway.Close(), e.bases.Close())
	if e.keepAll {
		return err
	}
	return errors.Join(err, RemoveAll(e.work))
}

// Execute implements Executor: workspace, preflight, agent, seal, snapshot, grade, judge, record,
// teardown.
func (e *Executor) Execute(ctx context.Context, cell experiment.Cell, attempt int) (ledger.Record, error) {
	a, err := e.newAttempt(cell, attempt)
	if err != nil {
		return ledger.Record{}, err
	}
	a.phases(ctx)
	a.end(context.WithoutCancel(ctx))
	if err := a.keep(); err != nil {
		return ledger.Record{}, err
	}
	return a.withoutSecrets()
}

// withoutSecrets is the record as others may see it: the secrets of the task, of the arm and of the
// session are known here and nowhere else.
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
	verifying time.Duration
	watched   *watchedSpawner  // that its agent starts processes with; nil before it starts
	calls     *gateway.Record  // of the agent; nil before it starts
	account   *gateway.Account // that its agents pay their calls from
	mu        sync.Mutex
	seats     []*gateway.Seat // of its agents
	// probed records what a probe cost; nil in a cell.
	probed func(experiment.Probe) error
}

func (e *Executor) newAttempt(cell experiment.Cell, number int) (*attempt, error) {
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
	a.account = e.accounts[cell.Arm].Child("this cell", gateway.Budget{
		USD:    cheaper(e.prepared.CellBudget.USD, a.task),
		Tokens: e.prepared.CellBudget.Tokens,
	})
	a.record = e.blank(cell, number)
	a.record.StartMs = e.machine.now().UnixMilli()
	a.redact = e.machine.Redactor
	if a.redact != nil {
		a.redact = a.redact.With(secretsOf(a.task, a.arm))
	}
	a.dir = e.artefacts.AttemptDir(a.record.RunDir)
	if err := os.MkdirAll(filepath.Dir(a.dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil { // one that exists would be another attempt's
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	return a, nil
}

// blank is a record with what is known before anything has happened.
func (e *Executor) blank(cell experiment.Cell, number int) ledger.Record {
	arm := e.arms[cell.Arm]
	r := ledger.Record{
		RunDir:       cell.RunDir(number),
		PhaseMs:      map[string]int64{},
		Tools:        e.prepared.Tools,
		Host:         e.prepared.Plan.Host,
		SkillSetHash: e.prepared.SkillHashes[cell.Arm],
		Isolation:    e.prepared.Isolation,
	}
	if arm == nil {
		return r
	}
	found := e.machine.installation(arm.Agent)
	r.Agent, r.AgentVersion, r.AgentBinary, r.AgentSHA256 = arm.Agent, found.Version, found.Path, found.SHA256
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

// fail records an error that is not the agent's doing.
func (a *attempt) fail(ctx context.Context, class string, err error) {
	if ctx.Err() != nil {
		class = ledger.ErrorInterrupted
	}
	a.record.Verdict, a.record.ErrorClass, a.record.ErrorMessage = ledger.Error, class, err.Error()
}

// phases runs one phase after the other until one of them decides.
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
		began := time.Now()
		goOn := phase.run(ctx)
		took := time.Since(began)
		switch phase.name { // the verifiers of steps run between them
		case "agent":
			took -= a.verifying
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
		a.fail(ctx, ledger.ErrorSetup, err)
		return false
	}
	return true
}

func (a *attempt) setUp(ctx context.Context) bool {
	if err := a.freeSpace(a.work, a.dir); err != nil {
		a.fail(ctx, ledger.ErrorResources, err)
		return false
	}
	if !a.taskUnchanged(ctx) {
		return false
	}
	name := fmt.Sprintf("%s.%d", a.cell.Name(), a.number)
	space, err := workspace.Prepare(ctx, a.workspaceConfig(a.arm, a.task, name, ""))
	if err != nil {
		a.fail(ctx, ledger.ErrorSetup, err)
		return false
	}
	a.space = space
	a.record.Isolation, a.record.Digests.Base = space.Label, space.Base().Hash
	a.noteContainer()
	if err := a.findInside(ctx); err != nil {
		a.fail(ctx, ledger.ErrorSetup, err)
		return false
	}
	a.step(stepAllocated, space.Label)
	return true
}

func (a *attempt) preflight(ctx context.Context) bool {
	result, err := a.space.Preflight(ctx, "")
	if err != nil {
		a.fail(ctx, ledger.ErrorSetup, err)
		return false
	}
	if !result.OK() {
		a.fail(ctx, ledger.ErrorPreflight, fmt.Errorf("preflight: %s", result.Message))
		a.record.PreflightError = &ledger.PreflightError{
			Phase: "preflight", Message: result.Message,
			ExitCode: result.ExitCode,
		}
		return false
	}
	return true
}

// seal makes sure that nobody writes any more, and keeps what there is.
func (a *attempt) seal(ctx context.Context) bool {
	if !a.onlyTalked() {
		sealed, err := a.space.Seal(ctx)
		a.record.Survivors = sealed.Killed
		if err != nil {
			a.fail(ctx, ledger.ErrorInternal, err)
			return false
		}
	}
	diff, err := a.space.Diff(ctx)
	if err == nil {
		a.changed = diff.Files
	}
	var limit *workspace.LimitError
	switch {
	case errors.As(err, &limit): // the agent's doing: grading will say the same
	case err != nil:
		a.fail(ctx, ledger.ErrorInternal, err)
		return false
	case len(diff.Patch) > 0:
		patch := diff.Patch
		if a.redact != nil {
			patch = a.redact.Bytes(patch)
		}
		if err := os.WriteFile(filepath.Join(a.dir, diffFile), patch, 0o600); err != nil {
			a.fail(ctx, ledger.ErrorInternal, err)
			return false
		}
		a.record.DiffPath = filepath.ToSlash(filepath.Join(a.record.RunDir, diffFile))
	}
	if _, err := a.space.Copy(ctx, workspace.CopyConfig{Dest: filepath.Join(a.dir, FinalDir)}); err != nil &&
		!errors.As(err, &limit) {
		a.fail(ctx, ledger.ErrorInternal, err)
		return false
	}
	// a copy that was given up half way has none
	if digest, err := experiment.TreeDigest(filepath.Join(a.dir, FinalDir)); err == nil {
		a.record.Digests.Final = digest
	}
	return true
}

// grade runs the mechanical graders on copies. From here on there is a verdict, unless the grader
// itself is broken.
func (a *attempt) grade(ctx context.Context) bool {
	if !a.taskUnchanged(ctx) {
		return false
	}
	if err := a.keepAnswer(); err != nil {
		a.fail(ctx, ledger.ErrorInternal, err)
		return false
	}
	a.record.GraderNetwork, a.record.ServiceNetwork = a.space.GraderNetwork(), a.space.ServiceNetwork()
	config := a.gradeConfig()
	defer func() { _ = RemoveAll(config.Scratch) }() // what stays is removed with the directory of all workspaces
	config.Answer, config.Steps = a.answered(a.record.PhaseMs["agent"]), a.steps
	result, err := grade.Run(ctx, config)
	if err != nil {
		a.fail(ctx, ledger.ErrorGrader, err)
		return false
	}
	if ctx.Err() != nil {
		a.fail(ctx, ledger.ErrorInterrupted, ctx.Err())
		return false
	}
	a.adopt(result)
	a.verified(result)
	a.lint(ctx, config)
	return a.record.Verdict == ledger.Pass
}

// gradeConfig is how the attempt is graded, with a new directory for graders.
func (a *attempt) gradeConfig() grade.Config {
	return grade.Config{
		Task:      a.task,
		Source:    a.space,
		Artifacts: filepath.Join(a.dir, gradingDir),
		Scratch:   filepath.Join(a.work, "grading-"+rand.Text()),
		Baseline:  a.baseline,
		Spawner:   a.spawner,
		Redactor:  a.redact,
		Verify:    verifyCommands(a.task),
	}
}

// adopt takes the mechanical grade into the record.
func (a *attempt) adopt(result grade.Result) { applyGrade(&a.record, result) }

func applyGrade(r *ledger.Record, result grade.Result) {
	g := result.Grade
	r.Grade = &ledger.Grade{
		Verdict:   g.Verdict,
		GatesPass: g.GatesPass,
		Score:     g.Score,
		Malformed: g.Malformed,
		Healthy:   g.Healthy,
		Reason:    g.Reason,
	}
	r.Invariants = &ledger.Invariants{
		Details: result.Invariants.Details, ExitCode: result.Invariants.ExitCode,
		Stderr: result.Invariants.Stderr,
	}
	if result.HiddenTests != nil {
		r.HiddenTests = &ledger.HiddenTests{Details: result.HiddenTests.Details, Error: result.HiddenTests.Error}
	}
	r.Score = result.Score
	switch g.Verdict {
	case ledger.Pass, ledger.Fail:
		r.Verdict, r.ErrorClass, r.ErrorMessage = g.Verdict, "", ""
	default:
		r.Verdict, r.ErrorClass, r.ErrorMessage = ledger.Error, ledger.ErrorGrader, g.Reason
		if result.Unverified {
			r.Unverified = 1
		}
		if r.ErrorMessage == "" {
			r.ErrorMessage = "the grader reached no verdict"
		}
	}
}

// end takes the workspace down, whatever has happened, and bounds the time it takes.
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
		a.space.StopServices(ctx)
	} else if err := a.space.Remove(ctx); err != nil && a.record.ErrorMessage == "" {
		a.note("teardown: %v", err)
	}
	if ms := time.Since(began).Milliseconds(); ms > 0 {
		a.record.PhaseMs["teardown"] = ms
	}
}

// step tells whoever watches what an attempt does.
func (a *attempt) step(kind, detail string) {
	if a.watch == nil {
		return
	}
	a.watch(Step{
		Cell:    a.cell,
		Attempt: a.number,
		Kind:    kind,
		Dir:     a.space.Dir,
		Detail:  detail,
	})
}

// note adds to the record what deserves a look and changes nothing.
func (a *attempt) note(format string, args ...any) {
	a.record.Notes = append(a.record.Notes, fmt.Sprintf(format, args...))
}
