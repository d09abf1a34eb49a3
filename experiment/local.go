package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/grade"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

// LocalConfig is what the local executor needs to know.
type LocalConfig struct {
	// Dir is the run directory, where artefacts go; Work is a private directory outside any
	// repository for workspaces, which is emptied at the start.
	Dir  string
	Work string
	// CacheDir keeps warmed build caches between runs; empty: none are kept, and tasks that want
	// one fail to set up.
	CacheDir string
	Family   *task.Family
	// Arms are the sealed arms, with the values of their variables.
	Arms     []Arm
	Registry *agent.Registry
	// Installations are the agents that were found, by id, so that not every cell looks for them
	// again.
	Installations map[string]agent.Installation
	// SkillHashes are the digests of the staged skills, by arm.
	SkillHashes map[string]string
	NodeModules string
	Environ     []string
	Redactor    *redact.Redactor
	Spawner     sandbox.ProcessSpawner
	// Isolation is "none", "bwrap", or empty for what the task says or the best that works here.
	Isolation string
	// ReadOnly are more paths that processes in the sandbox may read, such as toolchains outside
	// the system's directories.
	ReadOnly []string
	// AgentTimeout bounds the agent beside what the task says; 0 does not.
	AgentTimeout time.Duration
	CellBudget   Budget
	Prices       session.Prices
	Judge        JudgeConfig
	Tools        map[string]string
	// Commands are names under which hooks find the program that runs now.
	Commands []string
	Host     string
	// KeepFinal keeps a copy of the final working directory of every attempt, so that it can be
	// graded again.
	KeepFinal bool
	// KeepRaw leaves traces as they were written; otherwise they are packed when an attempt is
	// over.
	KeepRaw bool
	Now     func() time.Time
}

// DefaultAgentTimeout is how long an agent may work where neither the task nor anybody else says.
const DefaultAgentTimeout = 20 * time.Minute

// The names of the artefacts of an attempt.
const (
	AgentTrace = "agent.ndjson"
	JudgeTrace = "judge.ndjson"
	FinalDir   = "cwd" // what the agent left
	DiffFile   = "diff.patch"
	gradingDir = "grading"
)

// Local is the executor that does everything on this machine.
type Local struct {
	cfg      LocalConfig
	tasks    map[string]*task.Task
	arms     map[string]*Arm
	ports    *workspace.Ports
	bases    *workspace.Bases
	caches   *workspace.Caches
	baseline *grade.Baseline
	packers  *packers
}

// NewLocal makes the executor. It empties the directory for workspaces: what an earlier process
// left there belongs to attempts that are over.
func NewLocal(cfg LocalConfig) (*Local, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Spawner == nil {
		cfg.Spawner = sandbox.NewSpawner()
	}
	if err := RemoveAll(cfg.Work); err != nil {
		return nil, fmt.Errorf("empty the directory for workspaces: %w", err)
	}
	if err := os.MkdirAll(cfg.Work, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for workspaces: %w", err)
	}
	l := &Local{
		cfg:      cfg,
		tasks:    map[string]*task.Task{},
		arms:     map[string]*Arm{},
		ports:    &workspace.Ports{},
		bases:    workspace.NewBases(filepath.Join(cfg.Work, "bases")),
		baseline: grade.NewBaseline(),
		packers:  &packers{},
	}
	if cfg.CacheDir != "" {
		l.caches = workspace.NewCaches(cfg.CacheDir)
	}
	for i := range cfg.Family.Tasks {
		l.tasks[cfg.Family.Tasks[i].ID] = &cfg.Family.Tasks[i]
	}
	for i := range cfg.Arms {
		l.arms[cfg.Arms[i].Name] = &cfg.Arms[i]
	}
	return l, nil
}

// Warm fills the build caches that tasks ask for, before the first attempt and not within it.
func (l *Local) Warm(ctx context.Context) error {
	for _, t := range l.tasks {
		if len(t.Settings.Cache) == 0 || l.caches == nil {
			continue
		}
		for _, arm := range l.arms {
			if err := l.caches.Warm(ctx, l.workspaceConfig(arm, t, "warm", "warm")); err != nil {
				return fmt.Errorf("warm the build cache of task %s: %w", t.ID, err)
			}
			break // the cache is filled from the author's files, which arms share
		}
	}
	return nil
}

// Close removes everything the executor keeps outside the run directory.
func (l *Local) Close() error {
	return errors.Join(l.bases.Close(), RemoveAll(l.cfg.Work))
}

func (l *Local) workspaceConfig(arm *Arm, t *task.Task, name, runID string) workspace.Config {
	return workspace.Config{
		Root:        l.cfg.Work,
		Name:        name,
		Family:      l.cfg.Family,
		Task:        t,
		Skills:      arm.Skills,
		NodeModules: l.cfg.NodeModules,
		Environ:     l.cfg.Environ,
		Env:         arm.Env,
		RunID:       runID,
		Isolation:   l.cfg.Isolation,
		ReadOnly:    l.readable(arm),
		Ports:       l.ports,
		Bases:       l.bases,
		Caches:      l.caches,
		Spawner:     l.cfg.Spawner,
		Commands:    l.cfg.Commands,
	}
}

// readable are the paths that the processes of an arm must be able to read in a sandbox:
// toolchains, and the agent's own program.
func (l *Local) readable(arm *Arm) []string {
	paths := append([]string(nil), l.cfg.ReadOnly...)
	paths = append(paths, l.cfg.Installations[arm.Agent].ReadPaths...)
	if arm.Lead != "" {
		paths = append(paths, l.cfg.Installations[arm.Lead].ReadPaths...)
	}
	return paths
}

// Execute implements Executor: workspace, preflight, agent, seal, snapshot, grade, judge, record,
// teardown.
func (l *Local) Execute(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
	a, err := l.newAttempt(cell, attempt)
	if err != nil {
		return ledger.Record{}, err
	}
	a.phases(ctx)
	a.end(context.WithoutCancel(ctx))
	a.keep()
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
		return ledger.Record{}, fmt.Errorf("record of %s: %w", a.cell.slug(), err)
	}
	var clean ledger.Record
	if err := json.Unmarshal(a.redact.JSON(content), &clean); err != nil {
		return ledger.Record{}, fmt.Errorf("record of %s: %w", a.cell.slug(), err)
	}
	return clean, nil
}

// attempt is one call of Execute.
type attempt struct {
	*Local
	cell   Cell
	number int
	arm    *Arm
	task   *task.Task
	dir    string // of the artefacts, absolute
	record ledger.Record
	space  *workspace.Workspace
	began  time.Time
	redact *redact.Redactor
}

func (l *Local) newAttempt(cell Cell, number int) (*attempt, error) {
	a := &attempt{
		Local:  l,
		cell:   cell,
		number: number,
		arm:    l.arms[cell.Arm],
		task:   l.tasks[cell.TaskID],
		began:  l.cfg.Now(),
	}
	if a.arm == nil || a.task == nil {
		return nil, fmt.Errorf("cell %s: no such arm or task", cell.slug())
	}
	a.record = l.blank(cell, number)
	a.record.StartMs = a.began.UnixMilli()
	a.redact = l.cfg.Redactor
	if a.redact != nil {
		a.redact = a.redact.With(secretsOf(a.task, a.arm))
	}
	a.dir = filepath.Join(l.cfg.Dir, cell.RunDir(number))
	if err := os.MkdirAll(filepath.Dir(a.dir), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	if err := os.Mkdir(a.dir, 0o755); err != nil { // one that exists would be another attempt's
		return nil, fmt.Errorf("make the directory of the attempt: %w", err)
	}
	return a, nil
}

// blank is a record with what is known before anything has happened.
func (l *Local) blank(cell Cell, number int) ledger.Record {
	arm := l.arms[cell.Arm]
	r := ledger.Record{
		RunDir:       filepath.ToSlash(cell.RunDir(number)),
		PhaseMs:      map[string]int64{},
		Tools:        l.cfg.Tools,
		Host:         l.cfg.Host,
		SkillSetHash: l.cfg.SkillHashes[cell.Arm],
		Isolation:    l.cfg.Isolation,
	}
	if arm == nil {
		return r
	}
	r.Agent, r.AgentVersion = arm.Agent, l.cfg.Installations[arm.Agent].Version
	r.Model.Agent = arm.Model
	if arm.Lead != "" {
		r.Model.Supervisor = arm.LeadModel
	}
	if arm.Profile != "" {
		r.Profiles.Agent = &arm.Profile
	}
	return r
}

// secretsOf are the values that must not appear in anything that is written about an attempt.
func secretsOf(t *task.Task, arm *Arm) map[string]string {
	secrets := map[string]string{}
	for _, variable := range t.Env {
		if variable.Secret {
			secrets[variable.Name] = variable.Value
		}
	}
	for name, value := range arm.Env {
		if sensitive(name) {
			secrets[name] = value
		}
	}
	return secrets
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
		{"setup", a.setUp}, {"preflight", a.preflight}, {"agent", a.work}, {"seal", a.seal}, {"grade", a.grade},
		{"judge", a.judge},
	} {
		began := a.cfg.Now()
		goOn := phase.run(ctx)
		if ms := a.cfg.Now().Sub(began).Milliseconds(); ms > 0 {
			a.record.PhaseMs[phase.name] = ms
		}
		if !goOn {
			break
		}
	}
	a.record.EndMs = a.cfg.Now().UnixMilli()
	a.record.DurationMs = a.record.EndMs - a.record.StartMs
}

func (a *attempt) setUp(ctx context.Context) bool {
	name := fmt.Sprintf("%s.%d", a.cell.slug(), a.number)
	space, err := workspace.Prepare(ctx, a.workspaceConfig(a.arm, a.task, name, ""))
	if err != nil {
		a.fail(ctx, ledger.ErrorSetup, err)
		return false
	}
	a.space = space
	a.record.Isolation, a.record.Digests.Base = space.Label, space.Base().Hash
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
		a.record.PreflightError = &ledger.PreflightError{Phase: "preflight", Message: result.Message,
			ExitCode: result.ExitCode}
		return false
	}
	return true
}

// seal makes sure that nobody writes any more, and keeps what there is.
func (a *attempt) seal(ctx context.Context) bool {
	sealed, err := a.space.Seal(ctx)
	a.record.Survivors = sealed.Killed
	if err != nil {
		a.fail(ctx, ledger.ErrorInternal, err)
		return false
	}
	diff, err := a.space.Diff(ctx)
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
		if err := os.WriteFile(filepath.Join(a.dir, DiffFile), patch, 0o600); err != nil {
			a.fail(ctx, ledger.ErrorInternal, err)
			return false
		}
		a.record.DiffPath = filepath.ToSlash(filepath.Join(a.record.RunDir, DiffFile))
	}
	if a.cfg.KeepFinal {
		if _, err := a.space.Copy(ctx, workspace.CopyConfig{Dest: filepath.Join(a.dir, FinalDir)}); err != nil &&
			!errors.As(err, &limit) {
			a.fail(ctx, ledger.ErrorInternal, err)
			return false
		}
		// a copy that was given up half way has none
		if digest, err := TreeDigest(filepath.Join(a.dir, FinalDir)); err == nil {
			a.record.Digests.Final = digest
		}
	}
	return true
}

// grade runs the mechanical graders on copies. From here on there is a verdict, unless the grader
// itself is broken.
func (a *attempt) grade(ctx context.Context) bool {
	a.record.GraderNetwork, a.record.ServiceNetwork = a.space.GraderNetwork(), a.space.ServiceNetwork()
	scratch, err := os.MkdirTemp(a.cfg.Work, "grading-")
	if err != nil {
		a.fail(ctx, ledger.ErrorInternal, err)
		return false
	}
	defer func() { _ = RemoveAll(scratch) }() // what stays is removed with the directory of all workspaces
	result, err := grade.Run(ctx, grade.Config{
		Task:      a.task,
		Source:    a.space,
		Artifacts: filepath.Join(a.dir, gradingDir),
		Scratch:   scratch,
		Baseline:  a.baseline,
		Spawner:   a.cfg.Spawner,
		Redactor:  a.redact,
	})
	if err != nil {
		a.fail(ctx, ledger.ErrorGrader, err)
		return false
	}
	if ctx.Err() != nil {
		a.fail(ctx, ledger.ErrorInterrupted, ctx.Err())
		return false
	}
	a.adopt(result)
	return a.record.Verdict == ledger.Pass
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
	r.Invariants = &ledger.Invariants{Details: result.Invariants.Details, ExitCode: result.Invariants.ExitCode,
		Stderr: result.Invariants.Stderr}
	if result.HiddenTests != nil {
		r.HiddenTests = &ledger.HiddenTests{Details: result.HiddenTests.Details, Error: result.HiddenTests.Error}
	}
	r.Score = result.Score
	switch g.Verdict {
	case ledger.Pass, ledger.Fail:
		r.Verdict, r.ErrorClass, r.ErrorMessage = g.Verdict, "", ""
	default:
		r.Verdict, r.ErrorClass, r.ErrorMessage = ledger.Error, ledger.ErrorGrader, g.Reason
		if r.ErrorMessage == "" {
			r.ErrorMessage = "the grader came to no verdict"
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
	began := a.cfg.Now()
	if a.record.Verdict == ledger.Error { // an attempt that ended early may not have been sealed
		if sealed, err := a.space.Seal(ctx); err == nil {
			a.record.Survivors = max(a.record.Survivors, sealed.Killed)
		}
	}
	if err := a.space.Remove(ctx); err != nil && a.record.ErrorMessage == "" {
		a.record.Tools = withNote(a.record.Tools, "teardown", err.Error())
	}
	if ms := a.cfg.Now().Sub(began).Milliseconds(); ms > 0 {
		a.record.PhaseMs["teardown"] = ms
	}
}

func withNote(tools map[string]string, key, note string) map[string]string {
	noted := map[string]string{key: note}
	for name, version := range tools {
		noted[name] = version
	}
	return noted
}
