package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/glob"
)

// Spec holds what a task file adds to what every task has: one YAML file that names a repository, a
// prompt and a command that verifies the result.
type Spec struct {
	File  string // absolute
	Title string
	// Requirements are what the task asks for, one by one.
	Requirements []Requirement
	// SetupCommand runs once per task, before any agent; what it leaves is part of the base.
	SetupCommand string
	// VerifyCommand passes by exit code 0. It runs on a copy of what the agent left.
	VerifyCommand string
	// AlsoVerify are further commands that must pass, each on its own.
	AlsoVerify []string
	// LintCommand gets the changed files for {files}; empty: there is no linter.
	LintCommand string
	TestGlobs   []string
	Reference   *Reference // nil: there is none
	MaxCostUSD  *float64   // of one attempt
	Network     string     // what the file says: deny, registries, allow, or nothing
	Split       string
	// Origin is the URL of the repository's remote called origin; empty: it has none.
	Origin string
}

// Requirement is one thing that a task asks for.
type Requirement struct{ ID, Text string }

// Reference is a solution that no agent ever sees.
type Reference struct {
	// File is a patch that git apply understands, and Patch what is in it.
	File  string
	Patch []byte
	// MaxLines and MaxFiles are the most that a good solution needs; 0 is the size of the patch.
	MaxLines, MaxFiles int
}

// specFile is the YAML file of a task.
type specFile struct {
	ID       string   `yaml:"id" doc:"Name of the task, unique among those of a run." pattern:"^[a-z0-9][a-z0-9-]{0,63}$" required:"true"`
	Title    string   `yaml:"title" doc:"Name for people."`
	Prompt   string   `yaml:"prompt" doc:"The text that every agent is given, byte for byte; at most 64 KiB." required:"true"`
	Repo     specRepo `yaml:"repo" doc:"What the agent starts from." required:"true"`
	Setup    string   `yaml:"setupCommand" doc:"Shell command that runs once per task before any agent; what it leaves is part of what agents start from."`
	Verify   string   `yaml:"verifyCommand" doc:"Shell command that decides by its exit code. It runs after the agent, on a copy, with the protected files restored." required:"true"`
	AlsoV    []string `yaml:"alsoVerify" doc:"Further shell commands that must pass as well. Each is a check of its own, so that a report can tell work that is incomplete, or that broke what passed before, from work that is wrong."`
	VerifyS  int      `yaml:"verifyTimeoutSec" doc:"How long verifyCommand may take; default 600." min:"1" max:"86400"`
	Lint     string   `yaml:"lintCommand" doc:"Shell command that prints one line for each violation; {files} are the changed files."`
	Tests    []string `yaml:"testGlobs" doc:"Globs of the files that count as tests; default: the usual names of test files."`
	Protect  []string `yaml:"protectedGlobs" doc:"Globs of the files that are restored before verifyCommand runs; default: testGlobs."`
	Require  []string `yaml:"requirements" doc:"What the task asks for, one by one, as \"id: text\"." pattern:"^[A-Za-z0-9][A-Za-z0-9_-]*: .+"`
	Ref      specRef  `yaml:"reference" doc:"A solution that no agent sees."`
	TimeoutS int      `yaml:"timeoutSec" doc:"How long an agent may take; default 1200." min:"10" max:"86400"`
	MaxCost  *float64 `yaml:"maxCostUsd" doc:"What one attempt may cost." min:"0"`
	Network  string   `yaml:"network" doc:"deny: neither setup nor graders reach the network, and agents reach only their model where the machine can see to it. registries: as deny for graders and agents, but agents also reach package registries; setup reaches the network. allow: all of them do. Default: setup and agents do, graders do not." enum:"deny,registries,allow"`
	Reach    []string `yaml:"registries" doc:"Hosts that agents reach with network: registries, over https, as name or name:port; default: those of the usual package managers." pattern:"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$"`
	Context  string   `yaml:"context" doc:"What agents read of the repository by themselves: instruction files, skills, sub-agents and commands, or nothing; arms may say otherwise. Default: project." enum:"project,none"`
	Cache    []string `yaml:"cache" doc:"Build caches to warm once and to mount read-only." enum:"go,npm"`
	Tags     []string `yaml:"tags" doc:"Words to select tasks by."`
	Cluster  string   `yaml:"cluster" doc:"Tasks of one cluster are not independent of each other; default: those of one repository, if there are several."`
	Split    string   `yaml:"split" doc:"Part of the tasks that this one belongs to." enum:"train,val,test"`
}

type specRepo struct {
	Path string `yaml:"path" doc:"Repository, relative to this file; without ref also a plain directory, whose files become one commit." required:"true"`
	Ref  string `yaml:"ref" doc:"Commit, tag or branch; default: HEAD."`
}

type specRef struct {
	Patch    string `yaml:"patch" doc:"Patch file, relative to this file and outside the repository."`
	MaxLines int    `yaml:"maxLines" doc:"Changed lines that a good solution needs at most; default: those of the patch." min:"1"`
	MaxFiles int    `yaml:"maxFiles" doc:"Changed files that a good solution needs at most; default: those of the patch." min:"1"`
}

// The bounds of a task file.
const (
	specLimit            = 1 << 20
	promptLimit          = 64 << 10
	defaultVerifyTimeout = 10 * time.Minute
)

// SpecOptions say how task files are loaded.
type SpecOptions struct {
	// CacheDir keeps the repositories that are made of plain directories; empty: a directory of the
	// user's cache.
	CacheDir string
	// Workspace says how working directories are made: "export" or "worktree"; empty is export.
	Workspace string
}

// LoadSpecs reads task files and returns them as a family, each with its Spec. The error joins
// everything that is wrong, each a *document.Error that names file, line and column.
func LoadSpecs(ctx context.Context, files []string, opts SpecOptions) (*Family, error) {
	if len(files) == 0 {
		return nil, errors.New("no task file was given")
	}
	var problems []error
	family := &Family{Origin: strings.Join(files, " ")}
	revision := newDigester()
	seen := map[string]string{}
	for _, file := range files {
		l := &specLoader{ctx: ctx, opts: opts, name: file}
		t, err := l.load()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other := seen[t.ID]; other != "" {
			problems = append(problems, l.doc.ErrorAt([]string{"id"}, "%s has the same id; ids are unique", other))
			continue
		}
		seen[t.ID] = file
		revision.add(t.ID, "visible", []byte(t.Digest.Visible))
		revision.add(t.ID, "hidden", []byte(t.Digest.Hidden))
		family.Tasks = append(family.Tasks, *t)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	family.Dir = family.Tasks[0].Dir
	family.Name = family.Tasks[0].ID
	if len(files) > 1 {
		family.Name = filepath.Base(family.Dir)
	}
	family.Revision = revision.String()
	return family, nil
}

// specLoader reads one task file.
type specLoader struct {
	ctx  context.Context
	opts SpecOptions
	name string // as the user gave it
	path string // absolute
	doc  *document.Document
	file specFile
	errs []error
}

func (l *specLoader) wrong(path []string, format string, args ...any) {
	l.errs = append(l.errs, l.doc.ErrorAt(path, format, args...))
}

func (l *specLoader) load() (*Task, error) {
	if err := l.read(); err != nil {
		return nil, err
	}
	dir := filepath.Dir(l.path)
	t := &Task{ID: l.file.ID, Dir: dir, Prompt: l.file.Prompt}
	t.Spec = &Spec{
		File:          l.path,
		Title:         l.file.Title,
		SetupCommand:  l.file.Setup,
		VerifyCommand: l.file.Verify,
		AlsoVerify:    l.file.AlsoV,
		LintCommand:   l.file.Lint,
		TestGlobs:     l.file.Tests,
		MaxCostUSD:    l.file.MaxCost,
		Network:       l.file.Network,
		Split:         l.file.Split,
	}
	l.check(t.Spec)
	t.Settings = l.settings()
	l.repository(t)
	l.reference(t)
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return t, l.digests(t)
}

// read parses the file and checks it against its schema.
func (l *specLoader) read() error {
	var err error
	if l.path, err = filepath.Abs(l.name); err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	switch {
	case err != nil:
		return mistake(l.name, "%v", errors.Unwrap(err))
	case info.IsDir():
		return mistake(l.name, "a directory, not a task file; fit benchmark run --family %s measures a family", l.name)
	case !info.Mode().IsRegular() || info.Size() > specLimit:
		return mistake(l.name, "not a task file of at most %d bytes", specLimit)
	}
	source, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	l.doc, err = document.Read(l.name, source, &l.file)
	return err
}

// check finds what a schema cannot.
func (l *specLoader) check(spec *Spec) {
	if strings.TrimSpace(l.file.Prompt) == "" {
		l.wrong([]string{"prompt"}, "it is empty")
	}
	if len(l.file.Prompt) > promptLimit {
		l.wrong([]string{"prompt"}, "%d bytes; at most %d", len(l.file.Prompt), promptLimit)
	}
	if strings.TrimSpace(l.file.Verify) == "" {
		l.wrong([]string{"verifyCommand"}, "it is empty")
	}
	for i, command := range l.file.AlsoV {
		if strings.TrimSpace(command) == "" {
			l.wrong([]string{"alsoVerify", strconv.Itoa(i)}, "it is empty")
		}
		if command == l.file.Verify || slices.Contains(l.file.AlsoV[:i], command) {
			l.wrong([]string{"alsoVerify", strconv.Itoa(i)}, "this command is there already")
		}
	}
	for key, patterns := range map[string][]string{"testGlobs": l.file.Tests, "protectedGlobs": l.file.Protect} {
		for i, pattern := range patterns {
			if _, err := glob.Compile(pattern); err != nil {
				l.wrong([]string{key, strconv.Itoa(i)}, "%v", err)
			}
		}
	}
	seen := map[string]bool{}
	for i, text := range l.file.Require {
		id, rest, _ := strings.Cut(text, ":")
		if id == "task" {
			l.wrong([]string{"requirements", strconv.Itoa(i)}, "the id task is taken: judges cite the prompt by it")
		}
		if seen[id] {
			l.wrong([]string{"requirements", strconv.Itoa(i)}, "the id %q is used twice", id)
		}
		seen[id] = true
		spec.Requirements = append(spec.Requirements, Requirement{ID: id, Text: strings.TrimSpace(rest)})
	}
}

func (l *specLoader) settings() Settings {
	protected := l.file.Protect
	if protected == nil {
		protected = l.file.Tests
	}
	seconds := func(n int, byDefault time.Duration) time.Duration {
		return cmp.Or(time.Duration(n)*time.Second, byDefault)
	}
	return Settings{
		Tags:          l.file.Tags,
		Cluster:       l.file.Cluster,
		Repository:    l.file.Repo.Path,
		Workspace:     cmp.Or(l.opts.Workspace, "export"),
		AgentNetwork:  l.agentNetwork(),
		Registries:    l.registries(),
		GraderNetwork: l.file.Network == "allow",
		Protected:     protected,
		Context:       l.file.Context,
		Cache:         l.file.Cache,
		Timeouts: Timeouts{
			Agent:      seconds(l.file.TimeoutS, defaultAgentTimeout),
			Preflight:  defaultHookTimeout,
			Invariants: defaultHookTimeout,
			Test:       seconds(l.file.VerifyS, defaultVerifyTimeout),
			Judge:      defaultJudgeTimeout,
		},
	}
}

// agentNetwork returns what agents reach: only their model, if that can be enforced.
func (l *specLoader) agentNetwork() AgentNetwork {
	switch l.file.Network {
	case "deny", networkRegistries:
		return AgentNetwork{Kind: networkModel}
	}
	return AgentNetwork{Kind: networkHost}
}

// networkRegistries is the network of a task file whose agents may install packages.
const networkRegistries = "registries"

// packageRegistries are the hosts from which package managers get packages by default.
var packageRegistries = []string{
	"registry.npmjs.org", "registry.yarnpkg.com", // npm, Yarn, pnpm
	"pypi.org", "files.pythonhosted.org", // pip, uv, Poetry
	"proxy.golang.org", "sum.golang.org", // Go
	"index.crates.io", "static.crates.io", // Cargo
	"rubygems.org", "index.rubygems.org", // Bundler
	"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", // Maven, Gradle
	"api.nuget.org",      // .NET
	"repo.packagist.org", // Composer
}

// registries returns the hosts of package registries that agents reach.
func (l *specLoader) registries() []string {
	switch {
	case l.file.Network == networkRegistries && l.file.Reach == nil:
		return packageRegistries
	case l.file.Network == networkRegistries:
		return l.file.Reach
	case l.file.Reach != nil:
		l.wrong([]string{"registries"}, "it needs network: registries")
	}
	return nil
}

// digests identifies the task: what agents see, and what decides about them.
func (l *specLoader) digests(t *Task) error {
	visible, hidden := newDigester(), newDigester()
	visible.add("prompt", "prompt", []byte(t.Prompt))
	visible.add("repo", "commit", []byte(t.Settings.Ref))
	visible.add("setupCommand", "command", []byte(t.Spec.SetupCommand))
	visible.add("workspace", "kind", []byte(t.Settings.Workspace))
	if reach := t.Settings.Registries; len(reach) > 0 { // other tasks keep their old digest
		visible.add("registries", "hosts", []byte(strings.Join(reach, "\x00")))
	}
	if t.Settings.Context != "" {
		visible.add("context", "kind", []byte(t.Settings.Context))
	}
	hidden.add("verifyCommand", "command", []byte(t.Spec.VerifyCommand))
	for _, command := range t.Spec.AlsoVerify { // tasks without them keep their old digest
		hidden.add("alsoVerify", "command", []byte(command))
	}
	hidden.add("lintCommand", "command", []byte(t.Spec.LintCommand))
	hidden.add("protected", "globs", []byte(strings.Join(t.Settings.Protected, "\x00")))
	hidden.add("timeouts", "ms", fmt.Append(nil, t.Settings.Timeouts))
	hidden.add("network", "kind", []byte(t.Spec.Network))
	t.Digest = Digest{Visible: visible.String(), Hidden: hidden.String()}
	var err error
	t.Files, err = t.Spec.fileDigests()
	return err
}

// fileDigests identifies the files that a task is made of, as they are now.
func (s *Spec) fileDigests() (Digest, error) {
	visible, hidden := newDigester(), newDigester()
	for _, part := range []struct {
		file string
		into *digester
	}{{s.File, visible}, {s.referenceFile(), hidden}} {
		if part.file == "" {
			continue
		}
		content, err := os.ReadFile(part.file)
		if err != nil {
			return Digest{}, err
		}
		part.into.add(filepath.Base(part.file), "file", content)
	}
	return Digest{Visible: visible.String(), Hidden: hidden.String()}, nil
}

func (s *Spec) referenceFile() string {
	if s.Reference == nil {
		return ""
	}
	return s.Reference.File
}

// HasSolution reports whether there is a reference solution: a directory or a patch.
func (t *Task) HasSolution() bool {
	return t.Solution != "" || t.Spec != nil && t.Spec.referenceFile() != "" ||
		t.Instance != nil && t.Instance.Gold != ""
}

// IsTest reports whether a file counts as a test; without globs no file does.
func (s *Spec) IsTest(name string) bool {
	return slices.ContainsFunc(s.TestGlobs, func(source string) bool {
		pattern, err := glob.Compile(source)
		return err == nil && pattern.Match(name)
	})
}
