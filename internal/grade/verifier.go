package grade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// The paths that the verifier of a Harbor task knows.
const (
	harborTests    = "/tests"
	harborLogs     = "/logs"
	harborSolution = "/solution"
	// maxTaken bounds what is taken from one directory of a container.
	maxTaken = 64 << 20
)

// The commands of Harbor tasks. Programs find the home directory that the image gives their user.
const (
	imageHome  = "unset HOME; export HOME=~; "
	runTests   = imageHome + "[ -x /tests/test.sh ] && exec /tests/test.sh; exec bash /tests/test.sh"
	runSolving = imageHome + "exec bash /solution/solve.sh"
)

// verified is the result of a verifier.
type verified struct {
	rewards map[string]float64
	health  health // why there are none
	said    string // the end of what it printed on stderr
	// accident is set if it printed the last words of a program that was killed.
	accident bool
}

// judgeVerifier runs the verifier of a Harbor task and makes rows of its rewards, or of those that
// the verifiers of its steps have given already.
func (g *grading) judgeVerifier(ctx context.Context) (graded, error) {
	switch {
	case g.Task.Verifier == nil:
		return graded{}, nil
	case len(g.Task.Steps) > 0:
		return g.judgeSteps(), nil
	}
	found, err := g.verify(ctx, g.Task.Verifier, "")
	if err == nil {
		err = g.confirmVerifier(ctx, g.Task.Verifier, &found)
	}
	if err != nil {
		return graded{}, err
	}
	return graded{rows: rewardRows(found.rewards, found.said), health: found.health}, nil
}

// verify runs a verifier and reads its rewards. Anything that the agent put in place of tests and
// rewards is removed first. Without a reward nothing was measured, which is an error and never a
// zero. What it prints and leaves is kept in a directory; empty: in that of all evidence.
func (g *grading) verify(ctx context.Context, v *task.Verifier, dir string) (verified, error) {
	room, err := os.MkdirTemp(g.scratch, "verifier-")
	if err != nil {
		return verified{}, err
	}
	defer func() { _ = scratch.RemoveAll(room) }()
	run := &verification{
		grading:  g,
		Verifier: v,
		dir:      dir,
		room:     room,
		tests:    filepath.Join(room, "tests"),
		rewards:  filepath.Join(room, "logs", "verifier"),
	}
	// The verifier's user writes there; only we can access the directory above.
	if err := errors.Join(stageTests(ctx, v.Tests, run.tests), os.MkdirAll(run.rewards, 0o777),
		os.Chmod(run.rewards, 0o777)); err != nil {
		return verified{}, fmt.Errorf("tests of %s: %w", g.Task.ID, err)
	}
	space, inside := g.container()
	var done ended
	if inside {
		done, err = run.inside(ctx, space)
	} else {
		done, err = run.here(ctx)
	}
	switch {
	case errors.As(err, new(*tamperedError)):
		return verified{health: health{broken: err.Error()}}, nil
	case ctx.Err() != nil || MachineFailed(err):
		return verified{}, errors.Join(ctx.Err(), err)
	case err != nil: // the task's author must fix it
		return verified{health: health{broken: "the verifier cannot run: " + err.Error(), graderFault: true}}, nil
	}
	g.keep(path.Join(dir, "verifier.stdout.log"), done.stdout.Bytes())
	g.keep(path.Join(dir, "verifier.stderr.log"), done.stderr.Bytes())
	g.keepTree(path.Join(dir, "verifier"), run.rewards)
	found := verified{
		said:     lastLine(done.stderr.Bytes()),
		accident: lastWords.MatchString(done.printed()),
	}
	if aborted := done.abortReason(); aborted != "" {
		found.health = health{broken: "the verifier " + aborted, graderFault: true}
		if done.failure == nil && done.TimedOut {
			found.health.cause = causeTimeout
		}
	} else if found.rewards, err = run.readRewards(); errors.As(err, new(*contradiction)) {
		found.health = health{broken: err.Error(), cause: causeBadReward}
	} else if err != nil {
		found.health = health{broken: err.Error(), cause: rewardCause(err), graderFault: true}
	}
	return found, nil
}

// lastLine returns the last line of what was printed.
func lastLine(printed []byte) string {
	lines := strings.Split(strings.TrimSpace(string(printed)), "\n")
	return display.CutBytes(strings.TrimSpace(lines[len(lines)-1]), 300)
}

// verification is one run of a verifier.
type verification struct {
	*grading
	*task.Verifier
	dir                  string   // of what is kept
	room, tests, rewards string   // of this machine
	left                 []string // names of processes that the agent left running
	rewardsErr           error    // why its rewards cannot be read
}

func (v *verification) readRewards() (map[string]float64, error) {
	if v.rewardsErr != nil {
		return nil, v.rewardsErr
	}
	return readRewards(v.rewards)
}

// container returns the workspace of an attempt that runs in a container.
func (g *grading) container() (*workspace.Workspace, bool) {
	space, ok := g.Source.(*workspace.Workspace)
	return space, ok && sandbox.InContainer(space.Isolation)
}

// stageTests copies tests to where they can be made executable, later ones over earlier ones.
func stageTests(ctx context.Context, from []string, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, dir := range from {
		if err := lay(ctx, to, dir); err != nil {
			return err
		}
	}
	err := os.Chmod(filepath.Join(to, "test.sh"), 0o755)
	if errors.Is(err, fs.ErrNotExist) { // the verifier's own image has it
		return nil
	}
	return err
}

// here runs the verifier on a copy, on this machine.
func (v *verification) here(ctx context.Context) (ended, error) {
	copied, err := v.copy(ctx, gitSettings...)
	if err != nil {
		return ended{}, err
	}
	defer func() { _ = copied.Remove() }()
	place := v.Source.Grader(copied)
	if !place.Isolation.Isolates() {
		return ended{}, errors.New("a Harbor task needs a sandbox, which shows its tests at " + harborTests)
	}
	place.Isolation.Shown = map[string]string{harborTests: v.tests, harborLogs: filepath.Join(v.room, "logs")}
	if workdir := v.Task.Settings.Environment.Workdir; workdir != "" {
		place.Isolation.Shown[workdir] = copied.Dir
	}
	return v.run(ctx, program{
		argv:    []string{"bash", "-c", harborTests + "/test.sh"},
		dir:     copied.Dir,
		place:   place,
		env:     v.Env,
		timeout: v.Timeout,
	})
}

// inside runs the verifier over the agent's container, or in its own.
func (v *verification) inside(ctx context.Context, space *workspace.Workspace) (done ended, err error) {
	agent := space.Agent().Isolation.Container
	place, release := space.Verifier(v.User, harborTests, workspace.HarborRewards)
	defer func() { err = errors.Join(err, release()) }()
	if err := v.noteLeft(ctx, agent, place.Isolation.Container); err != nil {
		return ended{}, err
	}
	if err := v.start(ctx, agent, place); err != nil {
		return ended{}, err
	}
	if err := v.takeArtifacts(ctx, place); err != nil {
		return ended{}, err
	}
	if v.Environment != nil {
		if place, err = v.ownContainer(ctx, space); err != nil {
			return ended{}, err
		}
		return v.runIn(ctx, place)
	}
	if err := replacedPrograms(ctx, agent); err != nil {
		return ended{}, err
	}
	done, err = v.runIn(ctx, place)
	if (err != nil || done.abortReason() != "") && ctx.Err() == nil && len(v.left) > 0 {
		if err := agent.EndLeft(ctx); err != nil { // it must not keep the verifier from its work
			return done, err
		}
		v.note("the verifier was run again without the processes that the agent left: with them it %s",
			cmp.Or(done.abortReason(), "did not start"))
		// they may have ended its container
		if err := place.Isolation.Container.Start(ctx, place.Isolation); err != nil {
			return done, err
		}
		done, err = v.runIn(ctx, place)
	}
	if err != nil {
		return done, err
	}
	return done, replacedPrograms(ctx, agent)
}

// start starts the container that inspects what the agent left. Processes of the agent that are in
// its way are ended.
func (v *verification) start(ctx context.Context, agent *sandbox.Container, place workspace.Place) error {
	err := place.Isolation.Container.Start(ctx, place.Isolation)
	if err == nil || ctx.Err() != nil || len(v.left) == 0 {
		return err
	}
	if err := agent.EndLeft(ctx); err != nil {
		return err
	}
	v.note("the processes that the agent left were ended: they kept its verifier from starting")
	return place.Isolation.Container.Start(ctx, place.Isolation)
}

// noteLeft notes what the agent left running, and whether the verifier is protected from it.
func (v *verification) noteLeft(ctx context.Context, agent, verifier *sandbox.Container) (err error) {
	if v.left, err = agent.Left(ctx); err != nil {
		return err
	}
	if len(v.left) > 0 {
		v.note("the agent left processes that ran beside its verifier: %s", strings.Join(v.left, ", "))
	}
	if agent == verifier && v.Environment == nil {
		v.note("the verifier ran in the agent's container: %s has none that lies over another",
			agent.Config().Engine.Kind)
	}
	return nil
}

// runIn puts the tests in place, empties the directory of rewards, runs the verifier and gets what
// it leaves.
func (v *verification) runIn(ctx context.Context, place workspace.Place) (ended, error) {
	container := place.Isolation.Container
	if v.Environment == nil {
		if err := container.Put(ctx, v.tests, harborTests); err != nil {
			return ended{}, fmt.Errorf("put the tests in place: %w", err)
		}
	}
	if err := errors.Join(container.Clear(ctx, workspace.HarborRewards, 0o755),
		container.Own(ctx, v.User, place.Isolation, workspace.HarborRewards)); err != nil {
		return ended{}, fmt.Errorf("empty %s: %w", workspace.HarborRewards, err)
	}
	place.Env["TMPDIR"] = "/tmp"
	done, err := v.run(ctx, program{
		argv:    []string{"bash", "-c", runTests},
		dir:     place.Dir,
		place:   place,
		env:     v.Env,
		timeout: v.Timeout,
	})
	if err != nil {
		return done, err
	}
	v.rewardsErr = v.takeRewards(ctx, container)
	return done, ctx.Err()
}

// takeRewards takes what the verifier left, or the rewards alone where there is too much beside
// them. A missing reward is not an error here: it is reported when it is read.
func (v *verification) takeRewards(ctx context.Context, container *sandbox.Container) error {
	// A link is taken as one, so that it is refused in place of a file.
	err := container.Extract(ctx, workspace.HarborRewards, v.rewards, maxTaken)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{rewardJSON, rewardText} {
		err := container.Extract(ctx, path.Join(workspace.HarborRewards, name), v.rewards, maxRewardFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the verifier's %s cannot be read: %w", name, err)
		}
	}
	return nil
}

// graders are the programs that run tests, which an agent has no reason to change.
var graders = []string{"bash", "sh", "dash", "env", "pytest", "py.test"}

// tamperedError names programs of the image that run tests and are not the image's any more.
type tamperedError struct{ programs []string }

func (e *tamperedError) Error() string {
	return "the agent replaced programs that run its verifier: " + strings.Join(e.programs, ", ")
}

// replacedPrograms returns a *tamperedError if the agent has put others in place of the programs
// that run tests.
func replacedPrograms(ctx context.Context, container *sandbox.Container) error {
	changed, err := container.Changed(ctx)
	if err != nil {
		return err
	}
	changed = slices.DeleteFunc(changed, func(name string) bool {
		return !slices.Contains([]string{"bin", "sbin"}, path.Base(path.Dir(name))) ||
			!slices.Contains(graders, path.Base(name))
	})
	if len(changed) == 0 {
		return nil
	}
	return &tamperedError{changed}
}

// Solve runs the solution of a Harbor task, or of a step of it, where the agent would work.
func Solve(ctx context.Context, cfg Config, v *task.Verifier, user string) error {
	if v.SolutionLacks != "" {
		return fmt.Errorf("solution/solve.sh cannot run: %s", v.SolutionLacks)
	}
	g, err := newGrading(cfg)
	if err != nil {
		return err
	}
	defer g.close()
	staged, err := os.MkdirTemp(g.scratch, "solution-")
	if err != nil {
		return err
	}
	defer func() { _ = scratch.RemoveAll(staged) }()
	err = lay(ctx, staged, v.Solution)
	if err = errors.Join(err, os.Chmod(staged, 0o755)); err != nil { //nolint:gosec // the solver reads it
		return err
	}
	space, ok := g.Source.(*workspace.Workspace)
	if !ok {
		return errors.New("grade: a solution needs a workspace")
	}
	place := space.Agent()
	argv := []string{"bash", harborSolution + "/solve.sh"}
	if container := place.Isolation.Container; container != nil {
		if err := container.Put(ctx, staged, harborSolution); err != nil {
			return err
		}
		place.Isolation.User, place.Env["TMPDIR"] = user, "/tmp"
		argv = []string{"bash", "-c", runSolving}
	} else {
		shown := map[string]string{harborSolution: staged}
		maps.Copy(shown, place.Isolation.Shown)
		place.Isolation.Shown = shown
	}
	done, err := g.run(ctx, program{
		argv:    argv,
		dir:     place.Dir,
		place:   place,
		env:     v.SolutionEnv,
		timeout: min(g.Task.Settings.Timeouts.Agent, time.Hour),
	})
	if err == nil && (done.failure != nil || done.abortReason() != "") {
		err = fmt.Errorf("solution/solve.sh %s", done.abortReason())
	}
	return err
}
