package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/jsonenc"
)

// TasksFile is the file of a run directory that says what its tasks were.
const TasksFile = "tasks.json"

// Task describes a task to evidence and judges. It is stored in the run directory, so that neither
// the task's own file, nor its repository, nor an agent is needed afterwards.
type Task struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	// Prompt is the exact text that every agent was given.
	Prompt       string        `json:"prompt"`
	Requirements []Requirement `json:"requirements,omitempty"`
	Repo         Repo          `json:"repo"`
	// SetupCommand, VerifyCommand and LintCommand are the commands as the task's author wrote them.
	SetupCommand  string `json:"setupCommand,omitempty"`
	VerifyCommand string `json:"verifyCommand,omitempty"`
	// AlsoVerify are further commands that must pass, each a check of its own.
	AlsoVerify  []string `json:"alsoVerify,omitempty"`
	LintCommand string   `json:"lintCommand,omitempty"`
	// TestGlobs are the files that count as tests; empty: the usual names of test files.
	TestGlobs []string `json:"testGlobs,omitempty"`
	// ProtectedGlobs are the files that are restored before the check.
	ProtectedGlobs []string `json:"protectedGlobs,omitempty"`
	// VerifyFiles are globs of the scripts and settings that the check is made of, beside the
	// well-known ones.
	VerifyFiles []string   `json:"verifyFiles,omitempty"`
	Reference   *Reference `json:"reference,omitempty"` // nil: there is no reference solution
	// Expected are values that the tests expect, as ExpectedValues finds them in the test files of
	// the base.
	Expected []string `json:"expected,omitempty"`
	// PassingAtBase are the names of the checks that pass on the untouched base, where they are
	// known one by one.
	PassingAtBase []string `json:"passingAtBase,omitempty"`
	// RequiredTools are the programs that the task cannot be done without, for readers.
	RequiredTools    []string `json:"requiredTools,omitempty"`
	TimeoutSec       int      `json:"timeoutSec,omitempty"`
	VerifyTimeoutSec int      `json:"verifyTimeoutSec,omitempty"`
	MaxCostUSD       *float64 `json:"maxCostUsd,omitempty"`
	Network          string   `json:"network,omitempty"` // deny, registries, allow
	Tags             []string `json:"tags,omitempty"`
	Cluster          string   `json:"cluster,omitempty"` // tasks of one cluster are not independent
	Split            string   `json:"split,omitempty"`   // train, val, test
	// Workspace is how the working directory was made: export, or worktree, which shares the
	// repository's history with the agent.
	Workspace string `json:"workspace,omitempty"`
}

// described reports whether the run directory says what the task is. Where it does not, as in one
// of fit-benchmark, whose checks are out of an agent's reach, flags are for readers: what counts as
// a test or as the check is a guess, and nobody is disqualified by one.
func (t *Task) described() bool { return t.Prompt != "" }

// hasHistory reports whether the agent's repository may have more than the commit it started from:
// an export is one commit without a remote, so looking for others gains nothing.
func (t *Task) hasHistory() bool { return t.Workspace != "export" }

// Requirement is one thing that a task asks for.
type Requirement struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Check is the name of the ledger's row that decides about it; empty: no machine does.
	Check string `json:"check,omitempty"`
}

// Repo is the repository that a task starts from.
type Repo struct {
	SHA string `json:"sha,omitempty"` // the full commit
	// Origin is the URL of the repository's upstream; empty: it is not known.
	Origin string `json:"origin,omitempty"`
}

// Reference is the size of the reference solution, which agents never see.
type Reference struct {
	MaxLines int      `json:"maxLines,omitempty"` // changed lines, tests and generated files left out
	MaxFiles int      `json:"maxFiles,omitempty"`
	Files    []string `json:"files,omitempty"` // that it changes
	SHA256   string   `json:"sha256,omitempty"`
	// Patch is the reference solution itself: judges are tested with it.
	Patch string `json:"patch,omitempty"`
}

// tasksVersion is the version of tasks.json. Fields may be added; none is renamed or removed.
const tasksVersion = 1

type tasksDocument struct {
	Version int    `json:"version"`
	Tasks   []Task `json:"tasks"`
}

// TasksChanged is the error of a run directory whose tasks are no longer those of the run.
type TasksChanged struct {
	Path    string
	Missing bool
}

func (e *TasksChanged) Error() string {
	what := "was changed after the run"
	if e.Missing {
		what = "is missing"
	}
	return fmt.Sprintf("%s %s; rerun the command that made the run, which writes it again", e.Path, what)
}

// ReadTasks reads the tasks of a run directory. digest is what WriteTasks returned; another file,
// or none, is a TasksChanged. Where it is empty, a directory without the file has no tasks: they
// were written by another front end, and what is unknown is not measured.
func ReadTasks(dir, digest string) ([]Task, error) {
	path := filepath.Join(dir, TasksFile)
	data, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && digest == "":
		return nil, nil
	case err != nil && !missing:
		return nil, fmt.Errorf("read tasks: %w", err)
	case missing, digest != "" && digest != digestOf(data):
		return nil, &TasksChanged{path, missing}
	}
	var document tasksDocument
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("read tasks: %s is damaged: %w", path, err)
	}
	if document.Version > tasksVersion {
		return nil, fmt.Errorf("read tasks: %s has version %d, and this program knows %d; use a newer one",
			path, document.Version, tasksVersion)
	}
	return document.Tasks, nil
}

// WriteTasks writes the tasks of a run directory, all at once or not at all. It returns the digest
// of the file.
func WriteTasks(dir string, tasks []Task) (digest string, err error) {
	var out bytes.Buffer
	if err := jsonenc.WriteIndented(&out, tasksDocument{tasksVersion, tasks}); err != nil {
		return "", fmt.Errorf("write tasks: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, TasksFile), 0o600, out.Bytes()); err != nil {
		return "", fmt.Errorf("write tasks: %w", err)
	}
	return digestOf(out.Bytes()), nil
}

func digestOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
