package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/workspace"
)

// The paths that the verifier of a Harbor task knows.
const (
	harborTests    = "/tests"
	harborLogs     = "/logs"
	harborRewards  = "/logs/verifier"
	harborSolution = "/solution"
	// maxRewards bounds what is taken from a verifier's folder.
	maxRewards = 64 << 20
)

// rooms are the containers of an attempt.
type rooms interface {
	// Verifier is the place of a verifier, in the agent's container where the task shares it.
	Verifier(user string) workspace.Place
}

// judgeVerifier runs the verifier of a Harbor task and reads its rewards. What the agent may have
// put where tests and rewards belong is gone before. Without a reward nothing was measured, which
// is an error and never a zero.
func (g *grading) judgeVerifier(ctx context.Context) (graded, error) {
	v := g.Task.Verifier
	if v == nil {
		return graded{}, nil
	}
	room, err := os.MkdirTemp(g.scratch, "verifier-")
	if err != nil {
		return graded{}, err
	}
	defer func() { _ = os.RemoveAll(room) }()
	tests, rewards := filepath.Join(room, "tests"), filepath.Join(room, "logs", "verifier")
	// Whoever the verifier runs as writes there; the directory above is ours alone.
	if err := errors.Join(stageTests(v.Tests, tests), os.MkdirAll(rewards, 0o777),
		os.Chmod(rewards, 0o777)); err != nil {
		return graded{}, fmt.Errorf("tests of %s: %w", g.Task.ID, err)
	}
	var done ended
	if containers, ok := g.containers(); ok {
		done, err = g.verifyInside(ctx, containers, tests, rewards)
	} else {
		done, err = g.verifyHere(ctx, tests, filepath.Join(room, "logs"))
	}
	if err != nil {
		return graded{}, err
	}
	g.keep("verifier.stdout.log", done.stdout.Bytes())
	g.keep("verifier.stderr.log", done.stderr.Bytes())
	found := graded{exitCode: done.status()}
	if death := done.death(); death != "" {
		found.health = health{broken: "the verifier " + death, ours: true}
		return found, nil
	}
	if found.rows, err = readRewards(rewards); err != nil {
		found.health = health{broken: err.Error(), ours: true}
	}
	return found, nil
}

// containers returns the containers of the attempt, where it has any.
func (g *grading) containers() (rooms, bool) {
	space, ok := g.Source.(*workspace.Workspace)
	if !ok || !sandbox.InContainer(space.Isolation) {
		return nil, false
	}
	containers, ok := any(space).(rooms)
	return containers, ok
}

// stageTests copies tests to where they can be made executable.
func stageTests(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return os.Chmod(filepath.Join(to, "test.sh"), 0o755)
}

// verifyHere runs the verifier on a copy, with what this machine has.
func (g *grading) verifyHere(ctx context.Context, tests, logs string) (ended, error) {
	copied, err := g.copy(ctx, gitSettings...)
	if err != nil {
		return ended{}, err
	}
	defer func() { _ = copied.Remove() }()
	place := g.Source.Grader(copied)
	if !place.Isolation.Isolates() {
		return ended{}, errors.New("a Harbor task needs a sandbox, which shows its tests at " + harborTests)
	}
	place.Isolation.Shown = map[string]string{harborTests: tests, harborLogs: logs}
	if workdir := g.Task.Settings.Environment.Workdir; workdir != "" {
		place.Isolation.Shown[workdir] = copied.Dir
	}
	return g.run(ctx, program{
		argv:    []string{"bash", "-c", harborTests + "/test.sh"},
		dir:     copied.Dir,
		place:   place,
		env:     g.Task.Verifier.Env,
		timeout: g.Task.Verifier.Timeout,
	})
}

// verifyInside runs the verifier in the agent's container.
func (g *grading) verifyInside(ctx context.Context, containers rooms, tests, rewards string) (ended, error) {
	v := g.Task.Verifier
	place := containers.Verifier(v.User)
	container := place.Isolation.Container
	if err := container.Put(ctx, tests, harborTests); err != nil {
		return ended{}, fmt.Errorf("put the tests in place: %w", err)
	}
	if err := container.Clear(ctx, harborRewards, 0o777); err != nil {
		return ended{}, fmt.Errorf("empty %s: %w", harborRewards, err)
	}
	done, err := g.run(ctx, program{
		argv:    []string{"bash", "-c", harborTests + "/test.sh"},
		dir:     place.Dir,
		place:   place,
		env:     v.Env,
		timeout: v.Timeout,
	})
	if err != nil {
		return done, err
	}
	err = container.Get(ctx, harborRewards, rewards, maxRewards)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the reward is missing, which is said where it is read
	}
	return done, err
}

// readRewards reads what a verifier left: reward.json, an object of numbers, or reward.txt, one
// number. Each becomes a scored row.
func readRewards(dir string) ([]Row, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rewards := map[string]float64{}
	content, err := root.ReadFile("reward.json")
	switch {
	case err == nil:
		if err := json.Unmarshal(content, &rewards); err != nil {
			return nil, fmt.Errorf("the verifier's reward.json is not an object of numbers: %w", err)
		}
		if len(rewards) == 0 {
			return nil, errors.New("the verifier's reward.json is not an object of numbers: it is empty")
		}
	case errors.Is(err, fs.ErrNotExist):
		if content, err = root.ReadFile("reward.txt"); err != nil {
			return nil, errors.New("the verifier wrote no reward: there is neither reward.json nor reward.txt in " +
				harborRewards)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(string(content)), 64)
		if err != nil {
			return nil, fmt.Errorf("the verifier's reward.txt is not one number: %.100q", content)
		}
		rewards["reward"] = value
	default:
		return nil, err
	}
	var rows []Row
	for name, value := range rewards {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("the reward %s is not a number", name)
		}
		rows = append(rows, rewardRow(name, value))
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// rewardRow is a row that passes with a reward of 1 and gives the share of its weight before.
func rewardRow(name string, value float64) Row {
	row := testRow(name, false, 1, value >= 1, "")
	share := min(max(value, 0), 1)
	row.Share = &share
	reward, err := json.Marshal(value)
	if err == nil {
		row.Raw = append(bytes.TrimSuffix(row.Raw, []byte("}")), `,"reward":`+string(reward)+`}`...)
	}
	return row
}

// Solve runs the solution of a Harbor task where the agent would work, as its oracle does.
func Solve(ctx context.Context, cfg Config) error {
	g, err := newGrading(cfg)
	if err != nil {
		return err
	}
	defer g.close()
	v := g.Task.Verifier
	staged := filepath.Join(g.scratch, "solution")
	if err := os.CopyFS(staged, os.DirFS(v.Solution)); err != nil {
		return err
	}
	space, ok := g.Source.(*workspace.Workspace)
	if !ok {
		return errors.New("grade: a solution needs a workspace")
	}
	place := space.Agent()
	if place.Isolation.Container != nil {
		if err := place.Isolation.Container.Put(ctx, staged, harborSolution); err != nil {
			return err
		}
	} else {
		shown := map[string]string{harborSolution: staged}
		maps.Copy(shown, place.Isolation.Shown)
		place.Isolation.Shown = shown
	}
	done, err := g.run(ctx, program{
		argv:    []string{"bash", harborSolution + "/solve.sh"},
		dir:     place.Dir,
		place:   place,
		env:     v.SolutionEnv,
		timeout: min(g.Task.Settings.Timeouts.Agent, time.Hour),
	})
	if err == nil && (done.failure != nil || done.death() != "") {
		err = fmt.Errorf("solution/solve.sh %s", done.death())
	}
	return err
}
