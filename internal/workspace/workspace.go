package workspace

import (
	"sync"
	"sync/atomic"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
)

// Config says which workspace to make.
type Config struct {
	// Root is a private directory outside any repository. The workspace is a directory in it called
	// Name, which must not exist or be empty.
	Root string
	Name string
	// Family and Task are what the workspace is made from.
	Family *task.Family
	Task   *task.Task
	// SkillsDir is where the agent looks for skills: those of the family and of the image go there;
	// empty: .claude/skills.
	SkillsDir string
	// WithoutSkills leaves out the family's skills, because the arm has its own.
	WithoutSkills bool
	// Brings is what the arm brings beside the files of the task.
	Brings []Bring
	// NodeModules is a directory that becomes node_modules; empty: none.
	NodeModules string
	// Environ is the harness's environment as os.Environ gives it. Only allow-listed variables
	// reach the workspace.
	Environ []string
	// Env is added to the agent's environment by name: the arm's own variables.
	Env map[string]string
	// RunID marks every process of the attempt; it must be unique. Empty: one is made.
	RunID string
	// Isolation is one of the sandbox's kinds; empty: what the task says, else the best that works
	// here, which for a task with an image is a container.
	Isolation string
	// AgentNetwork is what the agent can reach: sandbox.NetworkHost, NetworkModel or NetworkNone;
	// empty is the host's network.
	AgentNetwork string
	// ReadOnly are more paths that processes may read: toolchains outside the system's directories.
	ReadOnly []string
	// Hidden are paths that no process of the attempt may see, wherever they are: the run directory
	// and what the harness keeps. The family, its repository, that of the task and Root are hidden
	// anyway.
	Hidden []string
	// Commands are names under which hooks find the running program, such as fit-trace. They always
	// find untrusted.Name.
	Commands []string
	// Ports, Bases and Caches are shared by the workspaces of a run. Without Ports there is no
	// port; without Bases every workspace keeps its own; without Caches a task that asks for warmed
	// build caches is an error.
	Ports  *Ports
	Bases  *Bases
	Caches *Caches
	// Spawner runs hooks; nil: the real one.
	Spawner sandbox.ProcessSpawner
	// Engines finds the images of tasks that run in containers; nil: those of this process.
	Engines *Engines
	// Tools are files of the machine that programs in the agent's container find by these names,
	// where the image has none.
	Tools map[string]string
}

// Workspace is one attempt's place to work. Root holds everything; the agent sees Dir, Home and
// TmpDir only.
type Workspace struct {
	Root   string
	Dir    string
	Home   string
	TmpDir string
	// Port is the attempt's own, or 0.
	Port int
	// RunID is in the environment of every process of the attempt.
	RunID string
	// Isolation is the kind in use.
	Isolation string
	// Label says for the record how well the attempt is sealed, such as "bwrap", "none", "bwrap,
	// worktree (leaky)" or "bwrap (as root)".
	Label string

	cfg          Config
	base         *Base
	brought      brought
	caches       []*cacheDir
	services     *services
	wantsNetwork bool                    // services and graders are to share a private network
	private      *sandbox.PrivateNetwork // of services and graders; nil: they have none in common
	toServices   *relay                  // from the host to the services in it
	toHost       *relay                  // from it to services on the host
	worktree     *worktree
	adopted      bool // Dir is somebody else's
	// containers are in use in place of a sandbox on the machine itself; nil: they are not.
	containers  *containers
	beside      *beside // what runs beside the agent's container; nil: nothing
	servicesDir string  // what preflight worked in
	copies      atomic.Int64
	hooksOnce   sync.Once
	hooksErr    error
	programs    sync.Mutex // guards the homes of programs under fit-untrusted
}

// Base returns the snapshot that the agent started from.
func (w *Workspace) Base() *Base { return w.base }

// Place says where and how the processes of one phase run; it fills a sandbox.SpawnSpec or an
// agent's configuration.
type Place struct {
	Dir       string
	Home      string
	TmpDir    string
	Env       sandbox.Environment
	Isolation sandbox.Isolation
	Limits    sandbox.Limits
}

// PreflightResult is the result of the preflight hook. The services that it started are alive until
// StopServices.
type PreflightResult struct {
	// Ran is false for a task without the hook.
	Ran      bool
	ExitCode int    // -1 if a signal ended it
	Signal   string // set if a signal ended it
	TimedOut bool
	// Message is the end of what it printed on stderr, or a sentence if it printed nothing; empty
	// on success.
	Message string
}

// OK reports whether the attempt may continue.
func (r PreflightResult) OK() bool { return !r.Ran || r.ExitCode == 0 && r.Signal == "" && !r.TimedOut }

// Sealed is the result of sealing the workspace.
type Sealed struct {
	// Killed counts processes of the agent that were still alive and had to be killed.
	Killed int `json:"killed"`
	// Unkillable are those that could not be killed. If there are any, distrust everything that
	// comes after.
	Unkillable []int `json:"unkillable,omitempty"`
}

// CopyConfig says what to copy, where to, and within which bounds.
type CopyConfig struct {
	// Dest is the directory to make, which must not exist or be empty; empty: a fresh one in the
	// workspace's Root.
	Dest string
	// FromBase copies what the agent started from, in place of what it left.
	FromBase bool
	// Restore are globs of files that are put back as they were in the base, and removed if they
	// were not there.
	Restore []string
}

// The bounds of a copy.
const (
	maxBytes = 2 << 30
	maxFiles = 200_000
)

// Copy is a copy of a workspace for graders: regular files, directories and links that stay inside.
type Copy struct {
	Dir    string
	Home   string
	TmpDir string
	// Dropped are the entries that were left out, each with the reason: special files and links
	// that lead outside.
	Dropped []string
	// Restored are the files that CopyConfig.Restore brought back or removed.
	Restored []string
	root     string       // what Remove deletes
	end      func() error // ends what runs on it; nil: nothing does
}

// Diff is the difference between the base and what is there now.
type Diff struct {
	// Patch is a unified patch that git apply understands, of text files and links; binary files
	// are named in lines that begin with #. Files that would make it grow over its bound are left
	// out.
	Patch     []byte
	Truncated bool
	Files     []FileChange
}

// FileChange is one changed path.
type FileChange struct {
	Path   string `json:"path"`
	Status string `json:"status"` // added, deleted, modified, renamed, mode, type
	Binary bool   `json:"binary,omitempty"`
	// Before and After are content hashes, "sha256:…"; empty where there is no file.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Size   int64  `json:"size,omitempty"`
}
