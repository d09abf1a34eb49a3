package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// Config configures the executor of this machine.
type Config struct {
	Prepared *experiment.Prepared
	Machine  *Machine
	// Artefacts takes what attempts leave.
	Artefacts experiment.Sink
	// Work is a private directory outside any repository for workspaces. It is emptied at the
	// start: files of earlier processes belong to attempts that are over.
	Work string
	Rate *gateway.RateControl // of the calls of all cells; nil: unbounded
	// Accounts pay for the cells; nil: there is no limit but that of a cell.
	Accounts *experiment.Accounts
	// Watch, if set, is called when a workspace was made and when an agent was started, from
	// several goroutines.
	Watch func(Step)
	// KeepWorkspaces keeps the workspaces of attempts, with worktrees registered, for inspection.
	// The next executor of the same Work removes them.
	KeepWorkspaces bool
}

// Step is a step of an attempt that people may want to see.
type Step struct {
	Cell   experiment.Cell
	Kind   string // allocated, started
	Detail string // how well the workspace is sealed, or which agent runs
}

// The kinds of steps.
const (
	stepAllocated = "allocated"
	stepStarted   = "started"
)

// defaultAgentTimeout is how long an agent may work by default.
const defaultAgentTimeout = 20 * time.Minute

// The names of the artefacts of an attempt.
const (
	agentTrace = "agent.ndjson"
	judgeTrace = "judge.ndjson"
	FinalDir   = "cwd" // what the agent left
	diffFile   = "diff.patch"
	GradingDir = "grading"
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
	owns      *os.File // says that work is in use; nil where workspaces are kept
	gateway   *gateway.OnDemand
	replays   map[ledger.Cell]string // the recorded attempts of cells, where this is a replay
	accounts  *experiment.Accounts
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
	if e.accounts = cfg.Accounts; e.accounts == nil {
		e.accounts = experiment.NewAccounts()
	}
	e.accounts.SetPrices(e.machine.Prices)
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
	if err := scratch.RemoveAll(e.work); err != nil {
		return nil, fmt.Errorf("empty the directory for workspaces: %w", err)
	}
	if err := os.MkdirAll(e.work, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for workspaces: %w", err)
	}
	if !e.keepAll {
		scratch.Sweep(filepath.Dir(e.work), workPrefix())
		if e.owns, err = scratch.Own(e.work); err != nil {
			return nil, fmt.Errorf("mark the directory for workspaces: %w", err)
		}
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

// WorkDir returns the directory of the workspaces of a run directory: a private temporary directory
// that depends on it, so that the next process finds what a killed one left.
func WorkDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = real
	}
	sum := sha256.Sum256([]byte(absolute))
	return filepath.Join(os.TempDir(), workPrefix()+hex.EncodeToString(sum[:6])), nil
}

// workPrefix begins the names of all directories that WorkDir returns. What a killed process left
// of a run directory that nobody continues is found by it.
func workPrefix() string { return fmt.Sprintf("fit-work-%d-", os.Getuid()) }

// forgetWorktrees removes the worktrees of attempts whose process was killed from the repositories
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
			return fmt.Errorf("forget stale worktrees: %w", err)
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
	err = errors.Join(err, scratch.RemoveAll(e.work))
	_ = e.owns.Close() // it was opened for its lock
	return err
}

// Execute implements Executor: workspace, preflight, agent, seal, snapshot, grade, judge, record,
// teardown.
func (e *Executor) Execute(ctx context.Context, cell experiment.Cell, attempt int) (ledger.Record, error) {
	a, err := e.newAttempt(ctx, cell, attempt)
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
