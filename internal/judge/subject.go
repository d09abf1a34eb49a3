package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Subject is one run with everything that judges may see of it.
type Subject struct {
	Task evidence.Task
	// Run is the evidence about the run. It says who did it, which is then hidden.
	Run *evidence.Run
	// ArmHash identifies what the arm of the run is.
	ArmHash string
	// Patch is the unified diff of what the agent changed.
	Patch []byte
	// VerifyOutput is what the harness's own check printed.
	VerifyOutput string
	// Hide lists what else would reveal who did the work: names, and directories, which begin with
	// a slash.
	Hide []string
	// Sentences are what a panel is asked about where the settings say so, Answer is the agent's
	// last message, and Attempt the attempt that the run is.
	Sentences []Sentence
	Answer    string
	Attempt   int
	// Problem says why the run cannot be judged; empty if it can.
	Problem string
}

// name identifies a run in replies.jsonl, for people.
func (s *Subject) name() string {
	return fmt.Sprintf("%s/%s/%d", s.Task.ID, s.Run.Key.Arm, s.Run.Key.RunIndex)
}

// cell identifies the run among those of the directory.
func (s *Subject) cell() ledger.Cell {
	return ledger.Cell{Arm: s.Run.Key.Arm, TaskID: s.Task.ID, RunIndex: s.Run.Key.RunIndex}
}

// cluster returns the group of tasks that is not independent of the run's task.
func (s *Subject) cluster() string { return cmp.Or(s.Task.Cluster, s.Task.ID) }

func (s *Subject) verify() *session.VerifyResult { return s.Run.Session.Verify }

// testsPassed reports whether the tests passed, so that a claim that they fail is refuted.
func (s *Subject) testsPassed() bool {
	return s.verify() != nil && s.verify().Passed && !s.Run.TestsTampered()
}

// names returns the names and directories that reveal who did the work.
func (s *Subject) names() []string {
	run := &s.Run.Session
	names := []string{s.Run.Agent, string(run.Agent), run.Model, run.Cwd}
	names = append(names, slices.Sorted(maps.Keys(run.ModelUsage))...)
	return append(names, s.Hide...)
}

// The modes: which runs are asked about.
const (
	// Auto skips runs that code alone decides.
	Auto = "auto"
	// All asks about every run that is part of the experiment's result.
	All = "all"
)

// asked reports whether a mode asks about a dimension of the run. Nobody is asked about missing
// data or about disqualified runs, which fail in every dimension.
func (s *Subject) asked(mode, dimension string) bool {
	switch {
	case s.Problem != "" || s.Run.Status == evidence.StatusEnvError || s.Run.Disqualified():
		return false
	case mode == All:
		return true
	case len(s.Patch) == 0:
		return false
	}
	return dimension != evidence.Correctness || s.verify() == nil || s.verify().Passed
}
