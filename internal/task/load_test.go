package task

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/testenv"
)

// write makes files below a directory: content that begins with "-> " makes a link, "#!" an
// executable.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			err = os.Symlink(target, full)
		} else if strings.HasPrefix(content, "#!") {
			err = os.WriteFile(full, []byte(content), 0o755)
		} else {
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// minimal is the smallest task that there can be.
var minimal = map[string]string{"tasks/one/agent.task.md": "Do it.\n", "tasks/one/hooks/invariants.sh": "#!/bin/sh\n"}

// newFamily writes a family with the minimal task and more files.
func newFamily(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, minimal)
	write(t, dir, files)
	return dir
}

func mustLoad(t *testing.T, dir string) *Family {
	t.Helper()
	family, err := Load(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return family
}

func TestAFamilyInFull(t *testing.T) {
	dir := newFamily(t, map[string]string{
		"family.yaml":  "name: Test\ntags: [all]\ntimeouts: {agent: 300}\nnetwork: {agent: false}\n",
		"judge.md":     "---\nmodel: x\n---\n\nBe fair.\n",
		"workdir/base": "", "specs/s": "", ".claude/settings.json": "{}", "tasks/.hidden/agent.task.md": "x",
		"tasks/.hidden/hooks/invariants.sh": "#!/bin/sh\n", "tasks/README.md": "no task",
		"tasks/one/supervisor.task.md": "lead", "tasks/one/judge.task.md": "{{GRADE_RESULT}} {{TASK_ID}}",
		"tasks/one/hooks/preflight.sh": "#!/bin/sh\n", "tasks/one/hooks/fixture.json": "{}",
		"tasks/one/workdir/w": "", "tasks/one/solution/w": "done",
		"tasks/one/task.yaml": "tags: [more]\ncluster: c\ntimeouts: {test: 90s}\nlimits: {memoryMB: 512}\nprotected: ['*.lock', 'a/**']\nchecks: [a]\nscored: true\n",
	})
	family := mustLoad(t, dir)
	if family.Name != "Test" || family.JudgeProfile != "Be fair.\n" || family.Skills != family.Dir ||
		!strings.HasPrefix(family.Revision, "sha256:") {
		t.Errorf("%+v", family)
	}
	if len(family.Tasks) != 2 || family.Tasks[0].ID != ".hidden" || family.Tasks[1].ID != "one" {
		t.Fatalf("tasks %v", family.Tasks)
	}
	one := family.Tasks[1]
	var overlays []string
	for _, overlay := range one.Overlays {
		rel, _ := filepath.Rel(family.Dir, overlay.From)
		overlays = append(overlays, rel+" → "+overlay.To)
	}
	if diff := cmp.Diff([]string{"workdir → ", "specs → specs", "tasks/one/workdir → "}, overlays); diff != "" {
		t.Error(diff)
	}
	yes := true
	want := Settings{
		Tags: []string{"all", "more"}, Cluster: "c", Scored: &yes, Workspace: "export", Port: true,
		AgentNetwork: AgentNetwork{Kind: "model"},
		Checks:       []string{"a"}, Protected: []string{"*.lock", "a/**"},
		Limits: Limits{MemoryMB: 512},
		Timeouts: Timeouts{
			Agent: 5 * time.Minute, Preflight: 2 * time.Minute, Invariants: 2 * time.Minute,
			Test: 90 * time.Second, Judge: 10 * time.Minute,
		},
	}
	if diff := cmp.Diff(want, one.Settings); diff != "" {
		t.Error(diff)
	}
	if one.Prompt != "Do it.\n" || one.SupervisorPrompt != "lead" || one.Suite != nil || one.Solution == "" ||
		filepath.Base(one.Hooks.Preflight) != "preflight.sh" {
		t.Errorf("%+v", one)
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"family.yaml":                       "name: [1]\ntimeouts:\n  agent: soon\nunknown: 1\n",
		"tasks/a/hooks/invariants.sh":       "echo no shebang\n",
		"tasks/b/agent.task.md":             "x",
		"tasks/c/agent.task.md":             "x",
		"tasks/c/judge.task.md":             "fine {{TASK_ID}}\nbut {{WRONG}} and {{ TASK_DIR }}\n",
		"tasks/c/hooks/invariants.sh":       "#!/bin/sh\n",
		"tasks/c/task.yaml":                 "protected: ['!x']\nworkspace: worktree\nisolation: jail\n",
		"tasks/d/agent.task.md":             "x",
		"tasks/d/hooks/invariants.sh":       "#!/bin/sh\n",
		"tasks/d/workdir/out":               "-> /etc/passwd",
		"tasks/d/workdir/up":                "-> ../..",
		"tasks/d/workdir/gone":              "-> nowhere",
		"tasks/d/workdir/a/b/back":          "-> ../..",
		"tasks/d/workdir/a/b/sneaky":        "-> back/../x",
		"tasks/e/agent.task.md":             "x",
		"tasks/e/tests/a.test.js":           "",
		"tasks/e/tests/sub/a.gate.test.mjs": "",
		"tasks/f/agent.task.md":             "x",
		"tasks/f/tests/helper.js":           "",
		"tasks/g/agent.task.md":             "x",
		"tasks/g/tests/x.test.js":           "-> gone.js",
		"tasks/g/tests/y.test.js":           "-> /etc/passwd",
		"tasks/h/agent.task.md":             "x",
		"tasks/h/tests/x.test.js":           "", "tasks/h/tests/test_y.py": "",
		"tasks/i/agent.task.md": "x", "tasks/i/tests/x_test.go": "package x\n",
		"tasks/i/task.yaml": "tests:\n  weights:\n    nobody: 2\n",
	})
	_, err := Load(t.Context(), dir, Options{})
	if err == nil {
		t.Fatal("loaded")
	}
	for _, want := range []string{
		"family.yaml:1:7: name:", "family.yaml:3:10: timeouts.agent:",
		"family.yaml:4:1: unknown: there is no such setting",
		"tasks/a/agent.task.md: missing", "tasks/a/hooks/invariants.sh: not executable",
		"tasks/a/hooks/invariants.sh:1:1: the first line",
		"tasks/b: nothing is checked", "tasks/c/judge.task.md:2:5: unknown placeholder {{WRONG}}",
		"tasks/c/judge.task.md:2:19: write {{TASK_DIR}}",
		"tasks/c/task.yaml:3:12: isolation:",
		"tasks/d/workdir/out: the link to /etc/passwd leads out", "tasks/d/workdir/up: the link to ../.. leads out",
		"tasks/d/workdir/gone: the link to nowhere leads nowhere",
		"tasks/d/workdir/a/b/sneaky: the link to back/../x leads out",
		`tasks/e/tests/sub/a.gate.test.mjs: the check "a" exists already: a.test.js`,
		"tasks/f/tests: no file is a check", "tasks/g/tests/x.test.js: not a regular file: the link leads nowhere",
		"tasks/g/tests/y.test.js: not a regular file: the link leads out of the family",
		"tasks/h/tests: tests in several languages (node, python)", "tasks/i/tests/x_test.go: it has no tests",
		"tasks/i/task.yaml:3:13: tests.weights.nobody: there is no such check",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if strings.Contains(err.Error(), "workdir/a/b/back") {
		t.Error("a link that stays inside was refused")
	}
	if t.Failed() {
		t.Log(err)
	}
	var located *document.Error
	if !errors.As(err, &located) {
		t.Error("mistakes are no located errors")
	}
}

func TestSettingsThatASchemaCannotCheck(t *testing.T) {
	for yaml, want := range map[string]string{
		"protected: ['!x']":   "task.yaml:1:13: protected.0: unsupported pattern",
		"workspace: worktree": "task.yaml:1:12: workspace: a worktree needs repo",
		"repo: nowhere":       "task.yaml:1:7: repo: there is no directory",
		"checks: [a, a]":      `task.yaml:1:9: checks: "a" is named twice`,
		"workspace: worktree\nrepo: https://example.invalid/x.git": "task.yaml:2:7: repo: a worktree needs a repository on this machine",
	} {
		t.Run(yaml, func(t *testing.T) {
			dir := newFamily(t, map[string]string{"tasks/one/task.yaml": yaml})
			if _, err := Load(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s gives %v, want %q", yaml, err, want)
			}
		})
	}
}

func TestTheRevisionIsStableAndNoticesEverything(t *testing.T) {
	dir := newFamily(t, map[string]string{
		"apm.yml": "x", "workdir/file": "a", "tasks/one/tests/a.test.js": "",
		"tasks/one/workdir/run": "#!/bin/sh\n",
	})
	first := mustLoad(t, dir)
	write(t, dir, map[string]string{ // what an installation and a machine leave behind
		".claude/skills/x": "", "apm_modules/o/p/agents/a.md": "", "apm.lock.yaml": "", "node_modules/x/index.js": "",
		".env.local": "A=1\n", "tasks/one/tests/__pycache__/x.pyc": "",
	})
	if again := mustLoad(t, dir); again.Revision != first.Revision {
		t.Error("generated files change the revision")
	}
	for name, change := range map[string]struct {
		do              func() error
		visible, hidden bool
	}{
		"one byte in a workdir": {func() error {
			return os.WriteFile(filepath.Join(dir, "workdir/file"), []byte("b"),
				0o644)
		}, true, false},
		"a hidden test": {func() error {
			return os.WriteFile(filepath.Join(dir, "tasks/one/tests/a.test.js"),
				[]byte("x"), 0o644)
		}, false, true},
		"a mode": {
			func() error { return os.Chmod(filepath.Join(dir, "tasks/one/workdir/run"), 0o644) },
			true, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := mustLoad(t, dir)
			visible, hidden := before.Tasks[0].Digest.Visible, before.Tasks[0].Digest.Hidden
			if err := change.do(); err != nil {
				t.Fatal(err)
			}
			after := mustLoad(t, dir)
			if after.Revision == before.Revision {
				t.Errorf("%s does not change the revision", name)
			}
			if (after.Tasks[0].Digest.Visible != visible) != change.visible ||
				(after.Tasks[0].Digest.Hidden != hidden) != change.hidden {
				t.Errorf("%s: digests before and after %v %v", name, before.Tasks[0].Digest, after.Tasks[0].Digest)
			}
		})
	}
}

func TestHiddenSuites(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		checks  []Check
		support []string
		runner  Runner
	}{
		"node": {
			map[string]string{
				"tests/b.test.js": "", "tests/sub/a.gate.test.js": "", "tests/c.test.mjs": "",
				"tests/sub/helper.js": "", "tests/d.test.ts": "", "tests/link.test.js": "-> ../../../workdir/x.js",
			},
			[]Check{
				{Name: "b", File: "b.test.js", Weight: 1},
				{Name: "c", File: "c.test.mjs", Weight: 1},
				{Name: "link", File: "link.test.js", Weight: 1},
				{Name: "a", File: "sub/a.gate.test.js", Gate: true, Weight: 1},
			},
			[]string{"d.test.ts", "sub/helper.js"},
			Runner{Language: LanguageNode, Parser: ParserNodeTest, Own: true},
		},
		"go": {
			map[string]string{"tests/p/x_test.go": "package p\nfunc TestA(t *T) {}\nfunc TestMain(m *M) {}\nfunc Testing() {}\nfunc Test(t *T) {}\n", "tests/p/y_gate_test.go": "package p\nfunc TestÄ(t *T) {}\n", "tests/p/h.go": "package p\n"},
			[]Check{
				{Name: "x", File: "p/x_test.go", Weight: 1, Tests: []string{"TestA", "Test"}},
				{Name: "y", File: "p/y_gate_test.go", Gate: true, Weight: 1, Tests: []string{"TestÄ"}},
			},
			[]string{"p/h.go"},
			Runner{Language: LanguageGo, Parser: ParserGoTest, Own: true},
		},
		"pytest": {
			map[string]string{
				"tests/test_a.py": "def test_x(): pass\n", "tests/b_gate_test.py": "",
				"tests/conftest.py": "",
			},
			[]Check{
				{Name: "b", File: "b_gate_test.py", Gate: true, Weight: 1},
				{Name: "a", File: "test_a.py", Weight: 1},
			},
			[]string{"conftest.py"},
			Runner{Language: LanguagePython, Parser: ParserPytest, Report: reportFile, Own: true},
		},
		"unittest": {
			map[string]string{"tests/test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_x(self): pass\n", "task.yaml": "tests: {weights: {a: 2.5}, names: {a: [test_x]}}"},
			[]Check{{Name: "a", File: "test_a.py", Weight: 2.5, Tests: []string{"test_x"}}},
			nil,
			Runner{Language: LanguagePython, Parser: ParserJUnit, Report: reportFile, Own: true},
		},
		"a command of the family": {
			map[string]string{
				"tests/a.test.js": "",
				"task.yaml":       "tests: {command: [node, --test, '{file}'], parser: tap}",
			},
			[]Check{{Name: "a", File: "a.test.js", Weight: 1}},
			nil,
			Runner{Language: LanguageNode, Parser: ParserTAP},
		},
		"other": {
			map[string]string{
				"tests/t/a.t": "", "tests/b.gate.t": "", "tests/lib.sh": "",
				"task.yaml": "tests: {language: other, files: ['*.t'], command: [prove, '{file}'], parser: tap}",
			},
			[]Check{{Name: "b", File: "b.gate.t", Gate: true, Weight: 1}, {Name: "a", File: "t/a.t", Weight: 1}},
			[]string{"lib.sh"},
			Runner{Language: languageOther, Parser: ParserTAP},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"workdir/x.js": ""}
			for file, content := range test.files {
				files["tasks/one/"+file] = content
			}
			suite := mustLoad(t, newFamily(t, files)).Tasks[0].Suite
			if diff := cmp.Diff(test.checks, suite.Checks); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.support, suite.Support); diff != "" {
				t.Error(diff)
			}
			got := Runner{
				Language: suite.Runner.Language, Parser: suite.Runner.Parser, Report: suite.Runner.Report,
				Own: suite.Runner.Own,
			}
			if diff := cmp.Diff(test.runner, got); diff != "" || len(suite.Runner.Command) == 0 {
				t.Error(diff)
			}
		})
	}
	linked := newFamily(t, map[string]string{"elsewhere/x.test.js": "", "tasks/one/tests": "-> ../../elsewhere"})
	if suite := mustLoad(t, linked).Tasks[0].Suite; suite != nil {
		t.Error("a linked directory is no suite")
	}
}

func TestRunnersOfOtherLanguagesMustBeBelievable(t *testing.T) {
	for yaml, want := range map[string]string{
		"{language: other, files: ['*.t'], parser: tap}":                                       "needs a command",
		"{language: other, files: ['*.t'], command: [x, '{file}']}":                            "needs a parser",
		"{language: other, files: ['*.t'], command: [x], parser: tap}":                         "does not say which file",
		"{language: other, files: ['*.t'], command: [x, '{file}'], parser: exit-nonce}":        "needs {nonce}",
		"{language: other, command: [x, '{file}'], parser: tap}":                               "needs files",
		"{language: other, files: ['*.x'], command: [x, '{file}'], parser: tap}":               "match nothing",
		"{language: other, files: ['*.t'], command: [x, '{file}'], parser: tap, report: ../x}": "not inside",
		"{language: fortran}": "tests.language:",
	} {
		t.Run(yaml, func(t *testing.T) {
			dir := newFamily(t, map[string]string{"tasks/one/tests/a.t": "", "tasks/one/task.yaml": "tests: " + yaml})
			if _, err := Load(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s gives %v, want %q", yaml, err, want)
			}
		})
	}
}

func TestWhereFamiliesComeFrom(t *testing.T) {
	for text, want := range map[string]Origin{
		"families/x":                         {Path: "families/x"},
		"https://host/o/r.git":               {URL: "https://host/o/r.git"},
		"https://host/o/r.git//sub/dir@v1.2": {URL: "https://host/o/r.git", Subdir: "sub/dir", Ref: "v1.2"},
		"https://user@host/o/r.git":          {URL: "https://user@host/o/r.git"},
		"https://user@host/r.git@feature/x":  {URL: "https://user@host/r.git", Ref: "feature/x"},
		"git@host:o/r.git//sub@abc":          {URL: "git@host:o/r.git", Subdir: "sub", Ref: "abc"},
		"git@host:o/r.git":                   {URL: "git@host:o/r.git"},
		"ssh://git@host:22/o/r//a":           {URL: "ssh://git@host:22/o/r", Subdir: "a"},
		"file:///srv/r.git//x@main":          {URL: "file:///srv/r.git", Subdir: "x", Ref: "main"},
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseOrigin(text); err != nil || got != want {
				t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"", "https://host/r//../x", "https://host/r@", "https://host/r@--upload-pack=x"} {
		if got, err := ParseOrigin(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestAFamilyFromGitIsCachedByCommit(t *testing.T) {
	testenv.NeedTool(t, "git")
	repo, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(repo, "sub"), minimal)
	do := func(args ...string) string {
		out, err := git.Output(t.Context(), repo, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do("init", "-q", "-b", "main")
	do("add", "-A")
	do("commit", "-q", "-m", "one")
	sha := do("rev-parse", "HEAD")
	load := func(origin string) *Family {
		family, err := Load(t.Context(), origin, Options{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		return family
	}
	url := "file://" + repo + "//sub"
	first, again := load(url), load(url)
	if first.Revision != "git:"+sha || first.Dir != again.Dir || !strings.HasPrefix(first.Dir, cache) {
		t.Errorf("%s at %s, then at %s", first.Revision, first.Dir, again.Dir)
	}
	write(t, filepath.Join(repo, "sub"), map[string]string{"workdir/new": "x"})
	do("add", "-A")
	do("commit", "-q", "-m", "two")
	if moved := load(url); moved.Dir == first.Dir || moved.Revision == first.Revision {
		t.Error("a new commit was not seen")
	}
	if pinned := load(url + "@main"); pinned.Revision == first.Revision {
		t.Error("the branch is old")
	}
	if _, err := Load(t.Context(), "file://"+repo+"//nowhere", Options{CacheDir: cache}); err == nil ||
		!strings.Contains(err.Error(), "no directory") {
		t.Errorf("a missing directory gives %v", err)
	}
	if _, err := Load(t.Context(), "file://"+repo+"//sub@no-such-branch", Options{CacheDir: cache}); err == nil {
		t.Error("a missing branch was found")
	}
	entries, _ := filepath.Glob(filepath.Join(cache, "*", "partial-*"))
	if len(entries) > 0 {
		t.Errorf("left over: %v", entries)
	}
	tasks := mustLoad(t, filepath.Join(repo, "sub")).Tasks
	if !slices.Equal([]string{"one"}, []string{tasks[0].ID}) {
		t.Errorf("tasks %v", tasks)
	}
}
