package selfedit

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// project is a repository on a feature branch whose settings allow edits below .claude/skills.
type project struct {
	t    *testing.T
	root string
	home string
	// configs are files of git's configuration that the caller names.
	configs []string
}

const skill = ".claude/skills/review/SKILL.md"

func newProject(t *testing.T) *project {
	t.Helper()
	return newProjectIn(t, t.TempDir())
}

func newProjectIn(t *testing.T, dir string) *project {
	t.Helper()
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, root: filepath.Join(resolved, "project"), home: t.TempDir()}
	first.Do(func() {
		made := &project{t: t, root: filepath.Join(firstDir, "project")}
		made.allow("Edit(.claude/skills/**)")
		made.put(skill, "old\n")
		made.git("init", "-q", "-b", "feature")
		made.commit()
	})
	must(t, os.CopyFS(p.root, os.DirFS(filepath.Join(firstDir, "project"))))
	return p
}

// The first project is made by git, below a directory that TestMain makes; the others are copies.
var (
	firstDir string
	first    sync.Once
)

func (p *project) path(rel string) string { return filepath.Join(p.root, filepath.FromSlash(rel)) }

func (p *project) put(rel, content string) {
	p.t.Helper()
	must(p.t, os.MkdirAll(filepath.Dir(p.path(rel)), 0o755))
	must(p.t, os.WriteFile(p.path(rel), []byte(content), 0o644))
}

func (p *project) get(rel string) string {
	p.t.Helper()
	content, err := os.ReadFile(p.path(rel))
	must(p.t, err)
	return string(content)
}

// allow and deny write the rules of the project's settings file.
func (p *project) allow(rules ...string) {
	p.t.Helper()
	p.settings(".claude/settings.json", rules, nil)
}

func (p *project) settings(rel string, allow, deny []string) {
	p.t.Helper()
	text, err := json.Marshal(map[string]any{"permissions": map[string]any{
		"allow": allow,
		"deny":  append([]string{}, deny...),
	}})
	must(p.t, err)
	p.put(rel, string(text))
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	return gitIn(p.t, p.root, args...)
}

func (p *project) commit() {
	p.t.Helper()
	p.git("add", "-A")
	p.git("commit", "-q", "--allow-empty", "-m", "state")
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	command := exec.CommandContext(t.Context(), testenv.NeedTool(t, "git"),
		append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com",
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func (p *project) request(rel, content string) Request {
	return Request{Path: rel, Dir: p.root, Content: strings.NewReader(content), Home: p.home, GitConfigs: p.configs}
}

func (p *project) edit(rel, content string) (Result, error) {
	return (&Editor{}).Edit(p.t.Context(), p.request(rel, content))
}

// mustEdit carries out an edit that has to succeed.
func (p *project) mustEdit(rel, content string) Result {
	p.t.Helper()
	result, err := p.edit(rel, content)
	if err != nil {
		p.t.Fatal(err)
	}
	if got := p.get(rel); got != content {
		p.t.Fatalf("%s holds %q, want %q", rel, got, content)
	}
	return result
}

// mustRefuse expects a refusal by the given safeguard that mentions the words, and nothing left
// behind.
func (p *project) mustRefuse(rel, safeguard string, words ...string) {
	p.t.Helper()
	before := snapshot(p.t, p.root)
	_, err := p.edit(rel, "new\n")
	wantRefusal(p.t, err, safeguard, words...)
	wantSame(p.t, before, snapshot(p.t, p.root))
}

func wantRefusal(t *testing.T, err error, safeguard string, words ...string) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal by %s", err, safeguard)
	}
	if !strings.HasPrefix(err.Error(), safeguard+": ") {
		t.Errorf("the refusal %q does not start with %s", err, safeguard)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal %q does not mention %q", err, word)
		}
	}
}

// snapshot returns every file below a directory with its content, links with their target; git's
// own directory is left out.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case rel == ".":
		case entry.Name() == ".git":
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case entry.Type()&os.ModeSymlink != 0:
			files[rel], err = os.Readlink(path)
		case entry.Type().IsRegular():
			var content []byte
			content, err = os.ReadFile(path)
			files[rel] = string(content)
		default:
			files[rel] = entry.Type().String()
		}
		return err
	}))
	return files
}

func wantSame(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, content := range after {
		if old, ok := before[name]; !ok {
			t.Errorf("%s was left behind", name)
		} else if old != content {
			t.Errorf("%s changed from %q to %q", name, old, content)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
