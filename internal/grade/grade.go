package grade

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// Source makes the copies that graders work on, and says where their processes run. A
// *workspace.Workspace is one.
type Source interface {
	Copy(ctx context.Context, cfg workspace.CopyConfig) (*workspace.Copy, error)
	// Hook is the place of the family's own hook: with the hook variables, hidden material
	// readable.
	Hook(dir string) workspace.Place
	// Grader is the place of hidden tests and of the agent's code under them: no hook variables,
	// nothing hidden.
	Grader(c *workspace.Copy) workspace.Place
}

// Config says what to grade and where to leave the evidence.
type Config struct {
	Task *task.Task
	// Source has what the agent left and the base it started from. It must be sealed: nothing
	// writes to it any more.
	Source Source
	// Artifacts is a directory outside the agent's reach that gets the ends of what graders
	// printed; empty: they are not kept.
	Artifacts string
	// Scratch is a directory outside the agent's reach for reporters and compiled tests, which is
	// made where a grader needs it; empty: a fresh one, which is removed.
	Scratch string
	// Baseline remembers how graders behave without the agent. Attempts of one experiment share
	// one; nil: a new one.
	Baseline *Baseline
	// Spawner runs graders; nil: the real one.
	Spawner sandbox.ProcessSpawner
	// Redactor takes secrets out of everything that is kept; nil removes only the task's secret
	// variables.
	Redactor *redact.Redactor
	// Verify are commands that are run as checks beside the task's own graders.
	Verify []Command
	// Steps are the results of the step verifiers, which ran while the agent worked.
	Steps []StepResult
	// Answer is the agent's answer, for the samples of datasets; nil is none.
	Answer *Answer
	// Patch, if set, is graded in place of what the agent left, for the tasks of SWE-bench.
	Patch *string
}

// Result is the mechanical grade of one attempt.
type Result struct {
	Grade ledger.Grade `json:"grade"`
	// Unverified is set on an error that the agent's work may have caused: the grader broke with it
	// and then worked, and never broke without it.
	Unverified bool `json:"unverified,omitempty"`
	// Cause says for programs why nothing was measured: one of the Cause words, or empty.
	Cause       string              `json:"cause,omitempty"`
	Invariants  ledger.Invariants   `json:"invariants"`
	HiddenTests *ledger.HiddenTests `json:"hiddenTests,omitempty"`
	// Score is the effective score before any judge; nil for a task without a score, and if nothing
	// was measured.
	Score *float64 `json:"score,omitempty"`
	// Rows are all rows in order, stamped with their source.
	Rows []json.RawMessage `json:"rows"`
	// Commands are the results of Config.Verify, in order.
	Commands []CommandResult `json:"commands,omitempty"`
	// Instance is the report about a task of SWE-bench; nil for other tasks.
	Instance *InstanceReport `json:"instance,omitempty"`
	// Notes tell a reader of the verdict what no row says.
	Notes []string `json:"notes,omitempty"`
	// Artifacts are the files that were left in Config.Artifacts, relative to it.
	Artifacts  []string `json:"artifacts,omitempty"`
	DurationMs int64    `json:"durationMs"`
}

// Run grades one attempt: hooks first, then the hidden suite, each on a fresh copy. The error is
// for causes that are neither the agent's nor the grader's: a cancelled context, a full disk.
func Run(ctx context.Context, cfg Config) (Result, error) {
	began := time.Now()
	g, err := newGrading(cfg)
	if err != nil {
		return Result{}, err
	}
	defer g.close()
	result, err := g.grade(ctx)
	result.Artifacts, result.Notes = g.artifacts, g.notes
	result.DurationMs = time.Since(began).Milliseconds()
	return result, err
}

// grading is one call of Run, or one run of graders without the agent.
type grading struct {
	Config
	scratch    string       // always there
	ownScratch *scratch.Dir // nil where the caller gave one
	artifacts  []string
	notes      []string
	instance   *InstanceReport // about a task of SWE-bench, once its tests have run
	// fromBase grades the base instead of what the agent left, and solved lays the reference
	// solution over it.
	fromBase, solved bool
	again            *repetition
}

func newGrading(cfg Config) (*grading, error) {
	if cfg.Task == nil || cfg.Source == nil {
		return nil, errors.New("grade: a task and its workspace are needed")
	}
	g := &grading{Config: cfg, scratch: cfg.Scratch, again: &repetition{}}
	g.Spawner = cmp.Or(g.Spawner, sandbox.NewSpawner())
	if g.Baseline == nil {
		g.Baseline = NewBaseline()
	}
	if g.Redactor == nil {
		g.Redactor = redact.New(redact.Config{})
	}
	g.Redactor = g.Redactor.With(cfg.Task.Secrets())
	switch {
	case g.scratch != "" && g.startsPrograms():
		if err := os.MkdirAll(g.scratch, 0o700); err != nil {
			return nil, fmt.Errorf("grade %s: %w", cfg.Task.ID, err)
		}
	case g.scratch == "":
		own, err := scratch.Make("", "fit-grade-")
		if err != nil {
			return nil, fmt.Errorf("grade %s: %w", cfg.Task.ID, err)
		}
		g.scratch, g.ownScratch = own.Path, own
	}
	return g, nil
}

// startsPrograms reports whether grading needs more than the answer to a sample.
func (g *grading) startsPrograms() bool {
	t := g.Task
	return t.Sample == nil || t.Verifier != nil || t.Suite != nil || t.Hooks.Invariants != "" || len(g.Verify) > 0 ||
		slices.ContainsFunc(t.Sample.Checks, func(c task.AnswerCheck) bool { return c.Kind == task.CheckCommand })
}

func (g *grading) close() {
	if g.ownScratch != nil {
		// It is not needed any more; leftovers in the temporary directory do no harm.
		_ = g.ownScratch.Remove()
	}
}

func (g *grading) grade(ctx context.Context) (Result, error) {
	hook, err := g.judgeHook(ctx)
	if err != nil {
		return Result{}, err
	}
	tests, err := g.judgeTests(ctx)
	if err != nil {
		return Result{}, err
	}
	h := hook.health.or(tests.health)
	for _, judge := range []func(context.Context) (graded, error){g.judgeAnswer, g.judgeVerifier, g.judgeInstance} {
		found, err := judge(ctx)
		if err != nil {
			return Result{}, err
		}
		h = h.or(found.health)
		tests.rows = append(tests.rows, found.rows...)
		tests.reasons = append(tests.reasons, found.reasons...)
	}
	rows := slices.Concat(hook.rows, tests.rows)
	result := Result{
		Grade:      decide(tallyOf(rows), g.Task.Settings.Threshold, h, append(hook.reasons, tests.reasons...)),
		Invariants: ledger.Invariants{Details: raws(hook.rows), ExitCode: hook.exitCode, Stderr: hook.stderr},
		Unverified: h.works,
		Cause:      h.why(),
		Rows:       []json.RawMessage{},
		Commands:   tests.commands,
		Instance:   g.instance,
	}
	result.Grade.Score = declaredScore(g.Task.Settings.Scored, result.Grade)
	if g.Task.Suite != nil || len(g.Verify) > 0 || g.Task.Sample != nil ||
		g.Task.Verifier != nil || g.Task.Instance != nil {
		result.HiddenTests = &ledger.HiddenTests{Details: raws(tests.rows), Error: tests.health.broken}
	}
	for _, row := range hook.rows {
		result.Rows = append(result.Rows, stamp(row, sourceInvariants))
	}
	for _, row := range tests.rows {
		result.Rows = append(result.Rows, stamp(row, sourceTests))
	}
	if result.Grade.Verdict != VerdictError {
		// Rows from another writer make all rows doubtful.
		trusted := len(hook.reasons) == 0
		result.Score = Effective(result.Grade.Score, result.Grade.Healthy && trusted, result.Grade.GatesPass, true)
	}
	return result, nil
}

// declaredScore returns the score as the task declares it, so that attempts at one task never mix:
// a binary task has none, and a scored one always has one, even if its graders produced no scored
// row.
func declaredScore(scored *bool, g ledger.Grade) *float64 {
	switch {
	case scored == nil || *scored && g.Score != nil:
		return g.Score
	case !*scored || g.Verdict == VerdictError:
		return nil
	}
	score := 0.0
	if g.Verdict == VerdictPass {
		score = 1
	}
	return &score
}

func raws(rows []Row) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(rows))
	for _, row := range rows {
		list = append(list, row.Raw)
	}
	return list
}

// copyError marks a working directory that cannot be copied because of what the agent left in it.
type copyError struct{ err error }

func (e *copyError) Error() string {
	return "the working directory cannot be copied: " + e.err.Error()
}
func (e *copyError) Unwrap() error { return e.err }

// MachineFailed reports whether an error is the machine's and not the agent's.
func MachineFailed(err error) bool { return sandbox.MachineFailed(err) }

// copy makes a fresh copy for one grader.
func (g *grading) copy(ctx context.Context, restore ...string) (*workspace.Copy, error) {
	copied, err := g.Source.Copy(ctx,
		workspace.CopyConfig{FromBase: g.fromBase, Restore: append(restore, g.Task.Settings.Protected...)})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case MachineFailed(err):
		return nil, fmt.Errorf("copy the working directory: %w", err)
	case err != nil:
		return nil, &copyError{err}
	}
	if g.solved {
		if err := g.solve(ctx, copied.Dir); err != nil {
			return nil, fmt.Errorf("reference solution of %s: %w", g.Task.ID, err)
		}
	}
	return copied, nil
}

// solve puts the reference solution into a copy.
func (g *grading) solve(ctx context.Context, dir string) error {
	if g.Task.Solution != "" {
		return lay(ctx, dir, g.Task.Solution)
	}
	if g.Task.Instance != nil {
		return ApplyPatch(ctx, dir, []byte(g.Task.Instance.Gold))
	}
	return ApplyPatch(ctx, dir, g.Task.Spec.Reference.Patch)
}

// ApplyPatch applies a patch to the files of a directory, whether that is a repository or not.
func ApplyPatch(ctx context.Context, dir string, patch []byte) error {
	return git.Run(ctx, git.Command{
		Dir:   dir,
		Args:  []string{"apply", "--whitespace=nowarn", "-"},
		Env:   []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)},
		Stdin: bytes.NewReader(patch),
	})
}

// note keeps something for the record.
func (g *grading) note(format string, args ...any) {
	if !g.fromBase {
		g.notes = append(g.notes, g.Redactor.String(fmt.Sprintf(format, args...)))
	}
}

// takeNotes returns the notes and forgets them.
func (g *grading) takeNotes() []string {
	notes := g.notes
	g.notes = nil
	return notes
}

// keep writes evidence, without secrets, for people to read.
func (g *grading) keep(name string, content []byte) {
	if g.Artifacts == "" || g.fromBase || len(content) == 0 {
		return
	}
	// Evidence that cannot be kept does not change the grade.
	file := filepath.Join(g.Artifacts, filepath.FromSlash(name))
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	if os.WriteFile(file, g.Redactor.Bytes(content), 0o600) == nil {
		g.artifacts = append(g.artifacts, name)
	}
}

// kept returns the name of an artefact; empty if there is no such artefact.
func (g *grading) kept(name string) string {
	if slices.Contains(g.artifacts, name) {
		return name
	}
	return ""
}
