package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/tree"
)

// task loads one task.
func (l *loader) task(id string) Task {
	rel := path.Join("tasks", id)
	own, where := l.ownSettings(rel)
	t := l.taskIn(id, rel, own, where)
	prompt, ok := l.text(path.Join(rel, "agent.task.md"))
	if !ok || strings.TrimSpace(prompt) == "" {
		l.wrong(path.Join(rel, "agent.task.md"), "missing or empty: it is the agent's prompt")
	}
	t.Prompt = prompt
	if t.Suite == nil && t.Hooks.Invariants == "" {
		l.wrong(rel, "nothing is checked: the task needs hooks/invariants.sh or tests/")
	}
	l.overlays(&t)
	return t
}

// ownSettings reads the task.yaml of a directory.
func (l *loader) ownSettings(rel string) (own TaskFile, where settingsFile) {
	name := path.Join(rel, "task.yaml")
	where, err := l.readSettings(name, &own)
	l.add(err)
	return own, where
}

// taskIn loads what is in the directory of a task beside its prompt.
func (l *loader) taskIn(id, rel string, own TaskFile, where settingsFile) Task {
	t := Task{ID: id, Dir: filepath.Join(l.real, filepath.FromSlash(rel))}
	t.SupervisorPrompt, _ = l.text(path.Join(rel, "supervisor.task.md"))
	if template, ok := l.text(path.Join(rel, "judge.task.md")); ok {
		t.JudgeTemplate = template
		l.checkPlaceholders(path.Join(rel, "judge.task.md"), template)
	}
	t.Hooks = l.hooks(rel)
	t.Settings = settings(own, l.file.TaskFile, t.Hooks.Preflight != "")
	t.Settings.Environment = l.environment(&t, own, where)
	l.checkSettings(&t, own, where)
	t.Suite = l.loadSuite(&t, own.Tests.merge(l.file.Tests), where)
	secrets := secretNames{secret: l.file.Secrets, public: l.file.Public}
	var warnings []string
	var err error
	t.Env, warnings, err = loadEnv(l.read, []string{"", rel}, l.opts.Environ, secrets)
	if _, out := errors.AsType[*tree.LinkError](err); out {
		l.refused(path.Join(rel, ".env"), err)
	} else {
		l.fail(err)
	}
	for _, warning := range warnings {
		l.family.Warnings = append(l.family.Warnings, rel+": "+warning)
	}
	t.Solution = l.dir(path.Join(rel, "solution"))
	return t
}

// hooks finds the hooks of a task. One that exists must be able to run.
func (l *loader) hooks(rel string) Hooks {
	h := Hooks{}
	if hooks := l.dir(path.Join(rel, "hooks")); hooks != "" {
		h.Dir = hooks
		h.Preflight = l.hook(filepath.Join(hooks, "preflight.sh"))
		h.Invariants = l.hook(filepath.Join(hooks, "invariants.sh"))
	}
	return h
}

func (l *loader) hook(name string) string {
	if !exists(name) {
		return ""
	}
	rel := l.rel(name)
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := l.linkError(rel); err != nil {
			l.wrong(rel, "the link %v", err)
			return name
		}
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		l.wrong(rel, "not a regular file")
		return name
	}
	if info.Mode()&0o111 == 0 {
		l.wrong(rel, "not executable: run chmod +x on it")
	}
	head := make([]byte, 256)
	file, err := os.Open(name)
	if err != nil {
		l.fail(err)
		return name
	}
	defer file.Close()
	n, _ := file.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	switch {
	case bytes.HasPrefix(line, []byte("\x7fELF")):
	case !bytes.HasPrefix(line, []byte("#!")):
		l.add(&document.Error{
			File:    rel,
			Line:    1,
			Col:     1,
			Msg:     "the first line must name the interpreter, such as #!/bin/sh",
			Excerpt: strings.ToValidUTF8(string(line), "?"),
		})
	case bytes.HasSuffix(line, []byte("\r")):
		l.add(&document.Error{
			File: rel,
			Line: 1,
			Col:  len(line),
			Msg:  "the line ends with a carriage return, which becomes part of the interpreter's name",
		})
	}
	return name
}

// judgePlaceholders are the names that a judge's template may use in double braces.
var judgePlaceholders = []string{
	"GRADE_RESULT", "AGENT_TRACE_PATH", "AGENT_INSTRUCTIONS", "AGENT_ANSWER", "AGENT_PROFILE", "SKILL_SET_HASH",
	"TASK_ID", "TASK_DIR",
}

var placeholder = lazyregexp.New(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

func (l *loader) checkPlaceholders(file, template string) {
	for number, line := range strings.Split(template, "\n") {
		for _, at := range placeholder.Get().FindAllStringSubmatchIndex(line, -1) {
			name, whole := line[at[2]:at[3]], line[at[0]:at[1]]
			problem := &document.Error{
				File:    file,
				Line:    number + 1,
				Col:     at[0] + 1,
				Excerpt: line,
			}
			switch {
			case !slices.Contains(judgePlaceholders, name):
				problem.Msg = "unknown placeholder " + whole + ": there are " + strings.Join(judgePlaceholders, ", ")
			case whole != "{{"+name+"}}":
				problem.Msg = "write {{" + name + "}}, without blanks"
			default:
				continue
			}
			l.add(problem)
		}
	}
}

// checkSettings checks what a schema cannot say.
func (l *loader) checkSettings(t *Task, own TaskFile, where settingsFile) {
	rel := l.rel(t.Dir)
	at := where
	if own.Protected == nil {
		at = l.where
	}
	l.globs(t.Settings.Protected, at, []string{"protected"}, rel)
	if twice := duplicate(t.Settings.Checks); twice != "" {
		l.add(where.wrong(rel, []string{"checks"}, "%q is named twice", twice))
	}
	if len(t.Settings.Checks) > 0 && t.Hooks.Invariants == "" {
		l.add(where.wrong(rel, []string{"checks"},
			"rows are named but there is no hooks/invariants.sh to produce them"))
	}
	if t.Settings.JudgeVotes > 0 && t.Settings.JudgeVotes%2 == 0 {
		at := where
		if own.Judge.Votes == 0 {
			at = l.where
		}
		l.add(at.wrong(rel, []string{"judge", "votes"}, "%d votes can tie; use an odd number",
			t.Settings.JudgeVotes))
	}
	l.resolveRepo(t, own, where)
}

// resolveRepo finds the repository that a task starts from.
func (l *loader) resolveRepo(t *Task, own TaskFile, where settingsFile) {
	s, base := &t.Settings, t.Dir
	if own.Repo == "" && own.Workspace == "" {
		where = l.where
	}
	if own.Repo == "" {
		base = l.real
	}
	if s.Repo == "" {
		if s.Workspace == "worktree" {
			l.add(where.wrong(l.rel(t.Dir), []string{"workspace"},
				"a worktree needs repo: the repository that it belongs to"))
		}
		return
	}
	origin, err := ParseOrigin(s.Repo)
	if err != nil {
		l.add(where.wrong(l.rel(t.Dir), []string{"repo"}, "%v", err))
		return
	}
	if origin.Path == "" {
		if s.Workspace == "worktree" {
			l.add(where.wrong(l.rel(t.Dir), []string{"repo"}, "a worktree needs a repository on this machine"))
			return
		}
		l.fetchRepo(s, origin, where, l.rel(t.Dir))
		return
	}
	if !filepath.IsAbs(s.Repo) {
		s.Repo = filepath.Join(base, filepath.FromSlash(s.Repo))
	}
	if err := l.ownRepository(s.Repo); err != nil {
		l.add(where.wrong(l.rel(t.Dir), []string{"repo"}, "%v", err))
	} else if !isDir(s.Repo) {
		l.add(where.wrong(l.rel(t.Dir), []string{"repo"}, "there is no directory %s", s.Repo))
	}
}

// fetchRepo fetches a remote repository, so that all attempts start from the same commit.
func (l *loader) fetchRepo(s *Settings, origin Origin, where settingsFile, otherwise string) {
	cache, err := l.opts.cacheDir()
	if err != nil {
		l.fail(err)
		return
	}
	origin.Ref = cmp.Or(s.Ref, origin.Ref)
	dir, sha, err := fetch(l.ctx, origin, cache)
	if err != nil {
		l.add(where.wrong(otherwise, []string{"repo"}, "%v", err))
		return
	}
	s.Repo, s.Ref = filepath.Join(filepath.Dir(dir), "store.git"), sha
}

// overlays lists what makes up the working directory, checks its links, and takes the task's
// digests.
func (l *loader) overlays(t *Task) {
	visible, all := newDigester(), merged{}
	visible.add("agent.task.md", "prompt", []byte(t.Prompt))
	rel := l.rel(t.Dir)
	for _, overlay := range []Overlay{
		{l.dir("workdir"), ""},
		{l.dir("specs"), "specs"},
		{l.dir(path.Join(rel, "workdir")), ""},
		{l.dir(path.Join(rel, "specs")), "specs"},
	} {
		if overlay.From == "" || slices.Contains(t.Overlays, overlay) {
			continue
		}
		t.Overlays = append(t.Overlays, overlay)
		entries, err := walkTree(overlay.From, nil)
		if err != nil {
			l.fail(err)
			continue
		}
		for _, e := range entries {
			if e.IsSpecial() {
				l.wrong(l.rel(e.source), "neither a regular file, a directory nor a link")
			}
		}
		all.add(overlay.To, entries)
		l.fail(visible.addTree(overlay.To, entries))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if e := all[name]; e.IsLink() {
			err := all.follow(name)
			mayComeFromRepo := errors.Is(err, errDangling) && t.Settings.Repo != ""
			if err != nil && !mayComeFromRepo {
				l.wrong(l.rel(e.source), "the link to %s %v", e.Target, err)
			}
		}
	}
	for _, v := range t.Env {
		if v.Secret { // the value of a secret does not change the task
			v.Value = ""
		}
		visible.add(v.File, "variable", []byte(v.Name+"="+v.Value))
	}
	t.Digest = Digest{Visible: visible.String(), Hidden: l.hiddenDigest(t)}
	t.Files = l.fileDigests(t)
}

// fileDigests identifies the files that attempts and graders read, regardless of the settings.
func (l *loader) fileDigests(t *Task) Digest {
	visible, hidden := newDigester(), newDigester()
	l.addOverlays(visible, t)
	l.addHidden(hidden, t)
	return Digest{Visible: visible.String(), Hidden: hidden.String()}
}

// addOverlays adds what makes up the working directory.
func (l *loader) addOverlays(d *digester, t *Task) {
	for _, overlay := range t.Overlays {
		l.fail(d.addDir(overlay.To, overlay.From, nil))
	}
}

// addHidden adds hooks, tests and steps.
func (l *loader) addHidden(d *digester, t *Task) {
	dirs := []string{"hooks", "tests"}
	if len(t.Steps) > 0 {
		dirs = append(dirs, "steps")
	}
	for _, dir := range dirs {
		entries, err := walkTree(filepath.Join(t.Dir, dir), isGenerated)
		if err == nil {
			err = d.addTree(dir, followed(entries))
		}
		l.fail(err)
	}
}

// hiddenDigest identifies everything that decides about the grade and is not shown to the agent.
// The reference solution does not decide.
func (l *loader) hiddenDigest(t *Task) string {
	d := newDigester()
	d.add("judge.md", "profile", []byte(l.family.JudgeProfile))
	d.add("judge.task.md", "template", []byte(t.JudgeTemplate))
	d.add("supervisor.task.md", "prompt", []byte(t.SupervisorPrompt))
	l.addHidden(d, t)
	s := t.Settings
	s.Repo, s.Needs = "", nil // its path and its worker do not matter
	settings, err := json.Marshal(s)
	l.fail(err)
	d.add("settings", "json", settings)
	if t.Suite != nil {
		for _, check := range t.Suite.Checks {
			d.add(check.File, "check", []byte(check.Name+"\x00"+strconv.FormatBool(check.Gate)+"\x00"+
				strconv.FormatFloat(check.Weight, 'g', -1, 64)+"\x00"+strings.Join(check.Tests, "\x00")))
		}
		d.add("runner", "command", []byte(strings.Join(append(slices.Clone(t.Suite.Runner.Command),
			t.Suite.Runner.Parser, t.Suite.Runner.Report), "\x00")))
	}
	return d.String()
}

// followed replaces links with the regular files they lead to: a hidden test that is a link changes
// when its target does.
func followed(entries []entry) []entry {
	out := slices.Clone(entries)
	for i, e := range out {
		if !e.IsLink() {
			continue
		}
		if info, err := os.Stat(e.source); err == nil && info.Mode().IsRegular() {
			out[i].Mode = info.Mode()
		}
	}
	return out
}
