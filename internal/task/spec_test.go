package task

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/document"
)

// writeAll writes files below a directory.
func writeAll(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

const wholeSpec = `id: fix-sum
title: Add, do not subtract
prompt: |
  Repair add.
repo: { path: repo, ref: v1 }
setupCommand: make tools
verifyCommand: make test
verifyTimeoutSec: 90
lintCommand: make lint {files}
testGlobs: ["**/*_test.go"]
requirements: ["r1: add adds", "r2: a test says so"]
reference: { patch: sum.patch, maxLines: 4 }
timeoutSec: 60
maxCostUsd: 2.5
network: deny
tags: [go]
split: val
`

func TestSpecBecomesATaskOfTheEngine(t *testing.T) {
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"task.yaml": wholeSpec, "sum.patch": "--- a/x\n", "repo/x": "1\n"})
	repo := filepath.Join(dir, "repo")
	gitIn(t, repo, "init", "-q", "-b", "main")
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-qm", "one")
	gitIn(t, repo, "tag", "v1")
	gitIn(t, repo, "remote", "add", "origin", "https://example.com/x.git")
	sha := gitIn(t, repo, "rev-parse", "HEAD")
	family, err := LoadSpecs(t.Context(), []string{filepath.Join(dir, "task.yaml")}, SpecOptions{Workspace: "worktree"})
	if err != nil {
		t.Fatal(err)
	}
	got := family.Tasks[0]
	if got.Prompt != "Repair add.\n" || got.Settings.Ref != sha || got.Settings.Workspace != "worktree" ||
		got.Settings.Timeouts.Agent != time.Minute || got.Settings.Timeouts.Test != 90*time.Second ||
		got.Settings.AgentNetwork != (AgentNetwork{Kind: networkModel}) || !got.HasSolution() {
		t.Errorf("the settings are wrong: %+v", got)
	}
	if diff := cmp.Diff([]string{"**/*_test.go"}, got.Settings.Protected); diff != "" {
		t.Errorf("tests are protected where nothing else is said: %s", diff)
	}
	want := &Spec{
		File:          filepath.Join(dir, "task.yaml"),
		Title:         "Add, do not subtract",
		Requirements:  []Requirement{{"r1", "add adds"}, {"r2", "a test says so"}},
		SetupCommand:  "make tools",
		VerifyCommand: "make test",
		LintCommand:   "make lint {files}",
		TestGlobs:     []string{"**/*_test.go"},
		Reference:     &Reference{File: filepath.Join(dir, "sum.patch"), Patch: []byte("--- a/x\n"), MaxLines: 4},
		MaxCostUSD:    got.Spec.MaxCostUSD,
		Network:       "deny",
		Split:         "val",
		Origin:        "https://example.com/x.git",
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" || *got.Spec.MaxCostUSD != 2.5 {
		t.Errorf("the spec differs: %s", diff)
	}
	if err := family.CheckUnchanged(&got); err != nil {
		t.Errorf("nothing was changed: %v", err)
	}
	writeAll(t, dir, map[string]string{"sum.patch": "--- a/y\n"})
	if family.CheckUnchanged(&got) == nil {
		t.Error("a changed reference patch was not noticed")
	}
}

// What decides the measurement decides the digests, and nothing else does.
func TestSpecDigests(t *testing.T) {
	digest := func(text string) Digest {
		t.Helper()
		dir := t.TempDir()
		writeAll(t, dir, map[string]string{"task.yaml": text, "base/x": "1\n"})
		family, err := LoadSpecs(t.Context(), []string{filepath.Join(dir, "task.yaml")}, SpecOptions{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return family.Tasks[0].Digest
	}
	const plain = "id: a\nprompt: do\nrepo: { path: base }\nverifyCommand: make\n"
	base := digest(plain)
	if again := digest(plain + "title: another title\ntags: [x]\n"); again != base {
		t.Error("a title changed the task, or the same files in another place are another commit")
	}
	if changed := digest(strings.Replace(plain, "do", "do it", 1)); changed.Visible == base.Visible {
		t.Error("another prompt is the same task")
	}
	if changed := digest(plain + "setupCommand: make all\n"); changed.Visible == base.Visible {
		t.Error("another setup is the same base")
	}
	if changed := digest(strings.Replace(plain, "make", "make x", 1)); changed.Hidden == base.Hidden {
		t.Error("another check is the same check")
	}
}

func TestSpecMistakesNameTheirPlace(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no id", "prompt: x\nrepo: { path: base }\nverifyCommand: y\n", "task.yaml:1:1: the setting id is missing"},
		{"bad id", "id: Bad Id\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n", "task.yaml:1:5: id"},
		{"unknown", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nverify: z\n", "task.yaml:5:1: verify"},
		{
			"unknown inside", "id: a\nprompt: x\nrepo: { path: base, branch: m }\nverifyCommand: y\n",
			"task.yaml:3:21: repo.branch",
		},
		{"empty prompt", "id: a\nprompt: ' '\nrepo: { path: base }\nverifyCommand: y\n", "task.yaml:2:9: prompt"},
		{
			"long prompt", "id: a\nprompt: " + strings.Repeat("x", 70_000) + "\nrepo: { path: base }\nverifyCommand: y\n",
			"task.yaml:2:9: prompt",
		},
		{"no directory", "id: a\nprompt: x\nrepo: { path: nowhere }\nverifyCommand: y\n", "task.yaml:3:15: repo.path"},
		{
			"ref of a plain directory", "id: a\nprompt: x\nrepo: { path: base, ref: v1 }\nverifyCommand: y\n",
			"task.yaml:3:26: repo.ref",
		},
		{
			"timeout", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\ntimeoutSec: 9\n",
			"task.yaml:5:13: timeoutSec",
		},
		{
			"glob", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\ntestGlobs: ['[']\n",
			"task.yaml:5:13: testGlobs.0",
		},
		{
			"requirement", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nrequirements: [no id]\n",
			"task.yaml:5:16: requirements.0",
		},
		{
			"a requirement with the prompt's name", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n" +
				"requirements: ['task: a']\n", "task.yaml:5:16: requirements.0",
		},
		{
			"no number", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nmaxCostUsd: .nan\n",
			"task.yaml:5:13: maxCostUsd: must be a finite number",
		},
		{
			"no end", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nmaxCostUsd: .inf\n",
			"task.yaml:5:13: maxCostUsd: must be a finite number",
		},
		{"requirement twice", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n" +
			"requirements: ['r: a', 'r: b']\n", "task.yaml:5:24: requirements.1"},
		{
			"no patch", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nreference: { patch: p }\n",
			"task.yaml:5:21: reference.patch",
		},
		{"patch for agents to read", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n" +
			"reference: { patch: base/x }\n", "task.yaml:5:21: reference.patch"},
		{
			"network", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\nnetwork: some\n",
			"task.yaml:5:10: network",
		},
		{
			"a registry that is no host", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n" +
				"network: registries\nregistries: ['https://pypi.org/']\n", "task.yaml:6:14: registries.0",
		},
		{
			"registries that nobody reaches", "id: a\nprompt: x\nrepo: { path: base }\nverifyCommand: y\n" +
				"network: deny\nregistries: [pypi.org]\n", "task.yaml:6:13: registries: it needs network: registries",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeAll(t, dir, map[string]string{"task.yaml": test.text, "base/x": "1\n"})
			file := filepath.Join(dir, "task.yaml")
			_, err := LoadSpecs(t.Context(), []string{file}, SpecOptions{CacheDir: filepath.Join(dir, "cache")})
			var located *document.Error
			if !errors.As(err, &located) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to begin with %s", err, test.want)
			}
		})
	}
}

// Two directories with the same files are the same commit, and one that is made twice is made once.
func TestPlainDirectoriesAreCommits(t *testing.T) {
	cache, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		writeAll(t, dir, map[string]string{"x": "1\n", "sub/y": "2\n", ".gitignore": "y\n", "node_modules/z": "3\n"})
	}
	repository, sha, err := repositoryOf(t.Context(), a, cache)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := repositoryOf(t.Context(), b, cache)
	if err != nil || same != sha || again != repository {
		t.Errorf("got %s %s %v, want %s %s", again, same, err, repository, sha)
	}
	if got := gitIn(t, repository, "ls-tree", "-r", "--name-only", sha); got != ".gitignore\nsub/y\nx" {
		t.Errorf("the commit holds %q", got)
	}
	if got := gitIn(t, repository, "status", "--porcelain"); got != "" {
		t.Errorf("the repository is not clean: %s", got)
	}
}

// FuzzSpec: whatever a task file holds, it is read or refused with a place in it.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(wholeSpec))
	f.Add([]byte("id: a\nprompt: x\nrepo: {path: .}\nverifyCommand: y\n"))
	f.Add([]byte("id: &a [*a]\n"))
	f.Add([]byte("repo: .\nreference: [1]\nmaxCostUsd: .nan\ntestGlobs: [\"{\"]\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		l := &specLoader{ctx: t.Context(), name: "task.yaml"}
		var err error
		if l.doc, err = document.Read(l.name, source, &l.file); err != nil {
			var located *document.Error
			if !errors.As(err, &located) {
				t.Fatalf("a mistake without a place: %v", err)
			}
			return
		}
		l.check(&Spec{})
		s := l.settings()
		if s.Timeouts.Agent < 10*time.Second || s.Timeouts.Test < time.Second {
			t.Fatalf("no time is left: %+v", s.Timeouts)
		}
	})
}
