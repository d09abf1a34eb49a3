package task

import (
	"encoding/json"
	"time"
)

// Family is a set of tasks that share a base and settings.
type Family struct {
	// Origin is how the family was named by the user: a path, or url//subdir@ref.
	Origin string
	// Dir is its directory on this machine.
	Dir string
	// Name is for people: the settings' name, else the directory's.
	Name string
	// Revision identifies the content: "git:<sha>" or "sha256:<hex>". Generated files do not change
	// it.
	Revision string
	Tasks    []Task
	// Skills is the directory that holds the .claude to stage; empty if there is none.
	Skills string
	// JudgeProfile is the text of judge.md without its front matter; empty if there is none.
	JudgeProfile string
	// Calibration is the file with human verdicts on the judge's work; empty if there is none.
	Calibration string
	// Warnings do not stop a run.
	Warnings []string
	// LeftOut are the tasks that the source has and Tasks lacks, because they cannot be run.
	LeftOut []LeftOut
}

// LeftOut is a task that cannot be run.
type LeftOut struct {
	// Task is its name, or the place of its row where it has none.
	Task   string `json:"task"`
	Reason string `json:"reason"`
}

// Task is one task, with everything needed to set it up and to grade it.
type Task struct {
	ID  string
	Dir string
	// Prompt is agent.task.md, word for word.
	Prompt string
	// SupervisorPrompt is appended for a supervising lead, if there is one.
	SupervisorPrompt string
	// JudgeTemplate turns the judge on; empty means that the mechanical grade decides alone.
	JudgeTemplate string
	// Overlays make up the working directory, in order; later ones win.
	Overlays []Overlay
	// Solution makes all checks pass when laid over the working directory; empty if there is none.
	Solution string
	Env      []Variable
	Hooks    Hooks
	Suite    *Suite // nil: no hidden tests
	Settings Settings
	Digest   Digest
	// Files are the digests of the files alone, which are read again at every attempt.
	Files Digest
	// Spec is the task's own file; nil for a task of a family.
	Spec *Spec
	// Sample is the row of a dataset that the task was made from; nil for other tasks.
	Sample *Sample
	// Verifier grades a Harbor task; nil for other tasks.
	Verifier *Verifier
	// Instance describes a task of SWE-bench; nil for other tasks.
	Instance *Instance
	// Steps are done one after the other, each with its own prompt and verifier; empty if the task
	// has no steps.
	Steps []Step
}

// Overlay is a directory whose content is copied into the working directory, below To.
type Overlay struct {
	From string
	To   string
}

// Variable is one line of an environment file.
type Variable struct {
	Name, Value string
	// File is ".env" or ".env.local": where the agent finds it.
	File string
	// Secret values are redacted from everything that is written.
	Secret bool
}

// Hooks are the family author's own programs. Empty paths are hooks that do not exist; an existing
// hook that cannot be executed is a mistake.
type Hooks struct {
	Dir        string
	Preflight  string
	Invariants string
}

// Suite is a hidden test suite.
type Suite struct {
	Dir    string
	Checks []Check
	// Support are the other files of the suite, relative to Dir.
	Support []string
	Runner  Runner
}

// Check is one hidden test file, which becomes one row.
type Check struct {
	Name   string
	File   string // relative to the suite's Dir
	Gate   bool
	Weight float64
	// Tests are the names of the tests in the file, where the family declares them; every one must
	// be reported exactly once.
	Tests []string
}

// Runner says how tests are run and how their report is read.
type Runner struct {
	Language string // node, go, python, other
	// Own says that Command is our choice and not the family's. Graders then run the language's
	// tests in their own, better guarded way.
	Own bool
	// Command is what runs one test file. {file} stands for the test file, {dir} for its directory,
	// {tests} for a regular expression that matches exactly the check's Tests (or everything, where
	// they are not known), {report} for Report, {runner} for a file that holds Script, {nonce} for
	// a secret of this run.
	Command []string
	Parser  string // go-test-json, pytest, node-test, tap, junit, exit-nonce
	Report  string // file the command writes its report to, relative to the working directory; empty: standard output
	// Script is a program of fit that the command needs; empty: none. It is put outside of what the
	// agent has written.
	Script string
}

// Settings holds what family.yaml and task.yaml add to the layout.
type Settings struct {
	Tags    []string
	Cluster string
	// Repository is what the task works on, as its file names it; empty if it names none.
	Repository string `json:",omitempty"`
	// Scored says whether the task has a score or only a verdict; nil: it follows from the rows.
	Scored   *bool
	Timeouts Timeouts
	// Isolation is "none", "bwrap", "podman", "docker" or "" for the best that works here.
	Isolation string
	// Environment is the container that the task's processes run in; nil: it needs none.
	Environment *Environment `json:",omitempty"`
	// Workspace is "export" (a new directory) or "worktree" (of the repository Repo at Ref).
	Workspace    string
	Repo, Ref    string
	AgentNetwork AgentNetwork
	// Registries are hosts that agents reach over TLS beside their model where they have no other
	// network: a name, with :port where that is not 443.
	Registries []string `json:",omitempty"`
	// GraderNetwork allows graders the host's network.
	GraderNetwork bool
	// PreflightNetwork lets preflight and what it starts use the host's network.
	PreflightNetwork bool
	// Port asks for a port for the task.
	Port bool
	// Checks are the names of the rows that the hooks must produce, where the family declares them.
	Checks []string
	// Cache names the warmed build caches to mount read-only: go, npm.
	Cache []string
	// Protected are globs of files that are restored from the base before grading.
	Protected []string
	Limits    Limits
	// Needs are labels that a worker of a fleet must have to run the task.
	Needs []string `json:",omitempty"`
	// JudgeVotes is how many votes of the judge decide; 0 is one.
	JudgeVotes int `json:",omitempty"` // a task without it keeps its old digest
	// Threshold is the score from which the task passes; nil: all scored checks must pass.
	Threshold *float64 `json:",omitempty"`
	// Context is what agents read of their project: project or none; empty is project, unless the
	// arm says otherwise.
	Context string `json:",omitempty"`
}

// AgentNetwork is what the agents of a task reach.
type AgentNetwork struct {
	Kind string // host, model or none
	// Required says that an agent that cannot have it is not run.
	Required bool
}

const (
	networkHost  = "host"
	networkModel = "model"
	networkNone  = "none"
)

// MarshalJSON writes what earlier versions could express as they wrote it, so that such a task
// keeps its digest.
func (n AgentNetwork) MarshalJSON() ([]byte, error) {
	switch n {
	case AgentNetwork{Kind: networkHost}:
		return []byte("true"), nil
	case AgentNetwork{Kind: networkModel}:
		return []byte("false"), nil
	}
	type plain AgentNetwork
	return json.Marshal(plain(n))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *AgentNetwork) UnmarshalJSON(text []byte) error {
	var onHost bool
	if json.Unmarshal(text, &onHost) == nil {
		*n = AgentNetwork{Kind: networkModel}
		if onHost {
			n.Kind = networkHost
		}
		return nil
	}
	type plain AgentNetwork
	return json.Unmarshal(text, (*plain)(n))
}

// Timeouts bound the phases of an attempt.
type Timeouts struct {
	Agent, Preflight, Invariants, Test, Judge time.Duration
}

// Limits bound what the processes of an attempt may use; zero is no limit.
type Limits struct {
	MemoryMB, Processes, FileMB int
	CPUs                        float64 `json:",omitempty"`
	DiskMB                      int     `json:",omitempty"`
}

// Digest identifies a task's content: what the agent sees, and what it must not see.
type Digest struct {
	Visible string
	Hidden  string
}
