package grade

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

//go:embed assets/node_reporter.mjs
var nodeReporter []byte

//go:embed assets/node_guard.cjs
var nodeGuard []byte

//go:embed assets/node_main.mjs
var nodeMain []byte

//go:embed assets/python_runner.py
var pythonRunner []byte

// pythonImports are files that Python or pytest run without being asked. They are put back as they
// were before any Python test runs.
var pythonImports = []string{"**/conftest.py", "**/sitecustomize.py", "**/usercustomize.py", "**/*.pth"}

// suiteRun is a copy with the hidden suite in it.
type suiteRun struct {
	*grading
	suite    *task.Suite
	language language
	copied   *workspace.Copy
	root     *os.Root
	place    workspace.Place
	// private is a directory of this run that the tests can read but the agent never saw.
	private string
	// binaries are the compiled tests of each check, for Go; nil before they are built.
	binaries map[string]goBinary
}

func (g *grading) openSuite(ctx context.Context) (*suiteRun, error) {
	suite := g.Task.Suite
	if suite == nil {
		suite = &task.Suite{}
	}
	language := languageOf(suite)
	restore := language.restore
	if !suite.Runner.Own {
		restore = append(slices.Clone(restore), gitSettings...)
	}
	copied, err := g.copy(ctx, restore...)
	if err != nil {
		return nil, err
	}
	s := &suiteRun{
		grading:  g,
		suite:    suite,
		language: language,
		copied:   copied,
	}
	if s.root, err = os.OpenRoot(copied.Dir); err != nil {
		return nil, errors.Join(err, copied.Remove())
	}
	if s.private, err = os.MkdirTemp(g.scratch, "suite-"); err != nil {
		return nil, errors.Join(err, s.root.Close(), copied.Remove())
	}
	s.place = g.Source.Grader(copied)
	if err := s.stageSupport(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// stageSupport puts the files of the suite beside its checks into the copy.
func (s *suiteRun) stageSupport() error {
	for _, file := range s.suite.Support {
		if err := stage(s.root, s.suite.Dir, file); err != nil {
			return fmt.Errorf("hidden file %s: %w", file, err)
		}
	}
	return nil
}

func (s *suiteRun) close() {
	// All three are temporary; leftovers do no harm.
	_ = s.root.Close()
	_ = s.copied.Remove()
	_ = os.RemoveAll(s.private)
}

// renew prepares for the next check: it discards what the agent's code did to the files during the
// last one. Go's tests are compiled already and only need the other files of the suite.
func (s *suiteRun) renew(ctx context.Context) (*suiteRun, error) {
	if s.suite.Runner.Own && s.language.compiled {
		return s, s.stageSupport()
	}
	fresh, err := s.openSuite(ctx)
	if err != nil {
		return s, err
	}
	s.close()
	return fresh, nil
}

// asset writes a file of ours where tests can read it.
func (s *suiteRun) asset(name string, content []byte) (string, error) {
	path := filepath.Join(s.private, name)
	return path, os.WriteFile(path, content, 0o600)
}

// judgeTests runs every check of the hidden suite, and the commands to verify, and makes a row of
// each.
func (g *grading) judgeTests(ctx context.Context) (graded, error) {
	var found graded
	if g.Task.Suite == nil && len(g.Verify) == 0 {
		return found, nil
	}
	var checks []task.Check
	if g.Task.Suite != nil {
		checks = g.Task.Suite.Checks
	}
	s, err := g.openSuite(ctx)
	_, unfit := errors.AsType[*copyError](err)
	switch {
	case unfit:
		for _, check := range checks {
			found.rows = append(found.rows, testRow(check.Name, check.Gate, check.Weight, false, err.Error()))
		}
		g.unverified(&found, err.Error())
		found.reasons = append(found.reasons, err.Error())
		return found, nil
	case ctx.Err() != nil:
		return found, ctx.Err()
	case MachineFailed(err):
		return found, err
	case err != nil:
		return g.unstaged(ctx, checks, err)
	}
	defer func() { s.close() }()
	for i, check := range checks {
		if i > 0 {
			if s, err = s.renew(ctx); err != nil {
				return found, err
			}
		}
		if err := s.judge(ctx, check, &found); err != nil {
			return found, err
		}
	}
	for i, command := range g.Verify {
		if i > 0 {
			if s, err = s.renew(ctx); err != nil {
				return found, err
			}
		}
		if err := s.verify(ctx, command, &found); err != nil {
			return found, err
		}
	}
	return found, nil
}

// unstaged returns the grade of a suite that could not be put into the copy: the agent is to blame
// if it can be put into the base.
func (g *grading) unstaged(ctx context.Context, checks []task.Check, reason error) (graded, error) {
	found := graded{reasons: []string{reason.Error()}}
	for _, check := range checks {
		base, err := g.withoutAgent(ctx, trying(check))
		if err != nil {
			return found, err
		}
		if base.cannotRun != "" {
			found.health = health{broken: reason.Error(), graderFault: true}
		}
		found.rows = append(found.rows, testRow(check.Name, check.Gate, check.Weight, false, reason.Error()))
	}
	g.unverified(&found, reason.Error())
	return found, nil
}

// unverified fails the commands to verify because the copy could not be made.
func (g *grading) unverified(found *graded, reason string) {
	for _, command := range g.Verify {
		found.rows = append(found.rows, testRow(command.Name, command.Gate, 0, false, reason))
		found.commands = append(found.commands, CommandResult{Name: command.Name, Error: reason})
	}
}

// judge makes the row of one check.
func (s *suiteRun) judge(ctx context.Context, check task.Check, found *graded) error {
	want, err := s.expect(ctx, check)
	if err != nil {
		return err
	}
	shown, err := s.try(ctx, check, want)
	if err != nil {
		return err
	}
	reason := shown.failure(want)
	if err := s.blame(ctx, "the hidden test "+check.Name, shown, want, trying(check), found); err != nil {
		return err
	}
	found.rows = append(found.rows,
		testRow(check.Name, check.Gate, check.Weight, reason == "", s.Redactor.String(reason)))
	return nil
}

// try runs one check, with the runner of its language unless the family has its own command.
func (s *suiteRun) try(ctx context.Context, check task.Check, want expectation) (evidence, error) {
	if s.suite.Runner.Own && s.language.try != nil {
		return s.language.try(s, ctx, check, want)
	}
	return s.tryCommand(ctx, check)
}

// evidenceOf starts the evidence of a run.
func (s *suiteRun) evidenceOf(check string, done ended) evidence {
	s.keep("tests."+fileName(check)+".stdout.log", done.stdout.Bytes())
	s.keep("tests."+fileName(check)+".stderr.log", done.stderr.Bytes())
	shown := evidence{
		abortReason: done.abortReason(),
		status:      done.status(),
		note:        done.stderr.last(maxMessage),
		timedOut:    done.TimedOut,
		startMs:     done.StartMs,
		endMs:       done.EndMs,
		died:        done.killed(),
		accident:    lastWords.MatchString(done.printed()),
	}
	if done.failure != nil {
		shown.cannotRun, shown.abortReason = shown.abortReason, ""
	}
	return shown
}

// fileName makes a file name of the name of a check.
func fileName(name string) string {
	safe := []rune(display.CutBytes(name, 100))
	for i, r := range safe {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", r) {
			safe[i] = '_'
		}
	}
	return string(safe)
}
