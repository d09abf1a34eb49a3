package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/task/template"
)

// Instance is a task of SWE-bench: a repository at a commit, and tests of it that must pass.
type Instance struct {
	Repo       string // owner/name
	BaseCommit string
	// Repository is the repository on this machine that the working directory starts from if there
	// is no image; empty if only the image has it.
	Repository string
	// Gold is the patch that solves the task, and TestPatch the one that brings the tests.
	Gold, TestPatch string
	// EvalScript runs the tests, LogParser names the format of what it prints.
	EvalScript, LogParser string
	// FailOnly says that only a test that is reported as failed fails.
	FailOnly               bool
	FailToPass, PassToPass []string
	Timeout                time.Duration
	// Lacks is what the row lacks for grading; empty if it can be graded.
	Lacks []string
}

// Testbed is the path of the repository in the images of SWE-bench.
const Testbed = "/testbed"

// swebenchFile is the part of family.yaml about SWE-bench.
type swebenchFile struct {
	SWEBench     string `yaml:"swebench" doc:"File of SWE-bench rows, each of which becomes a task: .jsonl or .json."`
	Repositories string `yaml:"repositories" doc:"Directory of git repositories by owner/name, for SWE-bench tasks that run without an image."`
}

// The files of an instance in a repository of SWE-bench tasks.
const (
	instanceStatement = "problem_statement.md"
	instanceTests     = "tests.json"
)

const (
	evalTypeAll      = "pass_and_fail"
	evalTypeFailOnly = "fail_only"
	evalTimeout      = 30 * time.Minute
)

// isInstances reports whether a directory is a repository of SWE-bench tasks.
func isInstances(dir string) bool {
	return len(glob.Below(dir, "tasks/*/"+instanceStatement)) > 0
}

// isRowsName reports whether a name is that of a file of SWE-bench rows.
func isRowsName(name string) bool {
	return slices.Contains([]string{".jsonl", ".json", ".ndjson"}, strings.ToLower(filepath.Ext(name)))
}

// instancesLoader makes tasks of the instances of SWE-bench.
type instancesLoader struct {
	*loader
	prompt  *template.Template
	seen    map[string]string // where ids stand
	leftOut []error           // what is wrong with rows that are left out
}

func (l *loader) instances() *instancesLoader {
	i := &instancesLoader{loader: l, seen: map[string]string{}}
	source := cmp.Or(l.file.Data.Prompt, "{{problem_statement}}")
	var err error
	if i.prompt, err = template.Parse(source); err != nil {
		l.add(l.where.wrong("family.yaml", []string{"prompt"}, "%v", err))
		i.prompt = &template.Template{}
	}
	return i
}

// rows loads a file of rows.
func (l *loader) rows(name string) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		l.add(l.where.wrong("family.yaml", []string{"swebench"}, "%s is not a file of this directory", name))
		return
	}
	i, before := l.instances(), len(l.problems)
	reader := &datasetReader{
		name:   name,
		bounds: l.opts.bounds(),
		header: func([]string) error { return nil },
		row:    func(row datasetRow) error { return i.row(name, row) },
		malformed: func(err error) error {
			i.leftOut = append(i.leftOut, err)
			return nil
		},
	}
	if isRowsName(name) {
		l.readRows(reader)
	} else {
		l.wrong(name, "rows of SWE-bench are a .jsonl or .json file; convert other formats first")
	}
	i.conclude(name, before)
}

func (i *instancesLoader) row(file string, row datasetRow) error {
	t, err := i.instance(fmt.Sprintf("%s:%d", file, row.line), row.columns, "")
	if err != nil {
		i.leftOut = append(i.leftOut, rowError(err, file, row.line))
		return nil
	}
	return i.keep(t)
}

// taskRepository loads the instances of a repository of tasks.
func (l *loader) taskRepository() {
	i, before := l.instances(), len(l.problems)
	for _, id := range l.taskIDs() {
		dir := path.Join("tasks", id)
		columns, err := i.directory(dir)
		var t Task
		if err == nil {
			if columns["instance_id"] == nil {
				columns["instance_id"] = id
			}
			t, err = i.instance(dir, columns, dir)
		}
		if err != nil {
			i.leftOut = append(i.leftOut, rowError(err, path.Join(dir, "task.yaml"), 0))
			continue
		}
		l.family.Tasks = append(l.family.Tasks, t)
	}
	i.conclude("tasks", before)
}

// directory reads the files of one instance as a row.
func (i *instancesLoader) directory(dir string) (map[string]any, error) {
	columns := map[string]any{}
	for _, name := range []string{"task.yaml", instanceTests} {
		text, ok := i.text(path.Join(dir, name))
		if !ok {
			continue
		}
		doc, err := document.Parse(path.Join(dir, name), []byte(text))
		if err != nil {
			return nil, err
		}
		if doc.Empty() {
			continue
		}
		content, err := doc.JSON()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(content, &columns); err != nil {
			return nil, doc.ErrorAt(nil, "want names and values")
		}
	}
	for column, name := range map[string]string{
		"problem_statement": instanceStatement, "patch": "gold.patch", "test_patch": "test.patch",
		"eval_script": "eval.sh",
	} {
		if text, ok := i.text(path.Join(dir, name)); ok {
			columns[column] = text
		}
	}
	return columns, nil
}

// conclude names the rows that are left out and reports once what others lack. A set without tasks
// is a mistake.
func (i *instancesLoader) conclude(name string, before int) {
	for _, err := range i.leftOut {
		out := LeftOut{Task: name, Reason: err.Error()}
		if row, ok := errors.AsType[*document.Error](err); ok {
			out = LeftOut{Task: fmt.Sprintf("%s:%d", row.File, row.Line), Reason: row.Msg}
		}
		i.family.LeftOut = append(i.family.LeftOut, out)
	}
	shown := i.leftOut[:min(len(i.leftOut), maxWrongRows)]
	if len(i.family.Tasks) == 0 {
		i.problems = append(i.problems, shown...)
	} else {
		for _, err := range shown {
			i.family.Warnings = append(i.family.Warnings, err.Error()+"; the row is left out")
		}
		if more := len(i.leftOut) - len(shown); more > 0 {
			i.family.Warnings = append(i.family.Warnings, fmt.Sprintf("%s: %d more rows are left out", name, more))
		}
	}
	lacking := map[string][]string{}
	for n := range i.family.Tasks {
		if t := &i.family.Tasks[n]; t.Instance != nil && len(t.Instance.Lacks) > 0 {
			what := strings.Join(t.Instance.Lacks, ", ")
			lacking[what] = append(lacking[what], t.ID)
		}
	}
	for what, ids := range lacking {
		more := ""
		if len(ids) > 3 {
			more = fmt.Sprintf(" and %d more", len(ids)-3)
		}
		i.family.Warnings = append(i.family.Warnings, fmt.Sprintf("%s%s cannot be graded and is left out of runs: "+
			"the row has no %s; rows of SWE-bench 5.x have it", strings.Join(ids[:min(len(ids), 3)], ", "), more, what))
	}
	slices.Sort(i.family.Warnings)
	if len(i.family.Tasks) == 0 && len(i.problems) == before {
		i.wrong(name, "it has no rows")
	}
}

// instance makes a task from a row at a position. A row of a repository of tasks has a directory.
func (i *instancesLoader) instance(place string, columns map[string]any, dir string) (Task, error) {
	t := Task{Dir: filepath.Join(i.real, filepath.FromSlash(dir))}
	row := instanceRow{columns: columns}
	t.ID = row.required("instance_id")
	n := &Instance{
		Repo:       row.required("repo"),
		BaseCommit: row.required("base_commit"),
		Gold:       row.text("patch"),
		TestPatch:  row.text("test_patch"),
		EvalScript: strings.ReplaceAll(row.text("eval_script"), "\r\n", "\n"),
		LogParser:  logParsers[strings.TrimPrefix(row.text("log_parser"), "parse_log_")],
		FailToPass: row.tests("FAIL_TO_PASS"),
		PassToPass: row.tests("PASS_TO_PASS"),
		Timeout:    cmp.Or(time.Duration(i.file.Timeouts.Test), evalTimeout),
	}
	row.required("problem_statement")
	n.FailOnly = row.choice("eval_type", evalTypeAll, evalTypeFailOnly) == evalTypeFailOnly
	if !commitHash.MatchString(n.BaseCommit) {
		row.wrong("base_commit: %q is not the hash of a commit", n.BaseCommit)
	}
	if !isTaskID(t.ID) {
		row.wrong("instance_id: %q is not printable text", t.ID)
	}
	if tooLong(t.ID) {
		row.wrong("instance_id: it is longer than %d bytes, and names directories", maxTaskID)
	}
	if before, twice := i.seen[t.ID]; twice {
		row.wrong("instance_id: %s is also that of %s; ids are unique", t.ID, before)
	}
	if row.err != nil {
		return t, row.err
	}
	i.seen[t.ID] = place
	n.Lacks = row.lacks(n)
	t.Instance = n
	var err error
	if t.Prompt, err = i.prompt.Fill(columns, nil); err != nil {
		return t, fmt.Errorf("%w, which the prompt names", err)
	}
	if n.Repository, err = i.localRepository(n); err != nil {
		return t, err
	}
	t.Settings = settings(TaskFile{}, i.file.TaskFile, false)
	t.Settings.Repo, t.Settings.Ref, t.Settings.Workspace = "", "", "export"
	t.Settings.Tags, t.Settings.Repository = append(t.Settings.Tags, n.Repo), n.Repo
	if t.Settings.Environment, err = i.instanceEnvironment(&t, row.text("image"), dir); err != nil {
		return t, err
	}
	// Scripts of SWE-bench may install the repository again, which fetches what it is built with.
	t.Settings.GraderNetwork = said(t.Settings.Environment != nil, i.file.Network.Grader)
	return t, i.instanceDigests(&t)
}

// localRepository finds the repository of an instance on this machine, if the family has it.
func (i *instancesLoader) localRepository(n *Instance) (string, error) {
	dir := i.file.SWE.Repositories
	if dir == "" {
		return "", nil
	}
	if !filepath.IsLocal(filepath.FromSlash(n.Repo)) {
		return "", fmt.Errorf("repo: %q is not owner/name", n.Repo)
	}
	found := filepath.Join(i.real, filepath.FromSlash(dir), filepath.FromSlash(n.Repo))
	if filepath.IsAbs(dir) {
		found = filepath.Join(dir, filepath.FromSlash(n.Repo))
	}
	if !isDir(found) {
		return "", nil // its image has it
	}
	if err := i.ownRepository(found); err != nil {
		return "", err
	}
	if _, err := git.Resolve(i.ctx, found, n.BaseCommit); err != nil {
		return "", fmt.Errorf("base_commit: the repository %s has no commit %s", found, n.BaseCommit)
	}
	return found, nil
}

// instanceEnvironment returns the container of an instance: the image of the row, or the Dockerfile
// beside it, or the image that SWE-bench publishes for it. An instance whose repository is here
// needs none.
func (i *instancesLoader) instanceEnvironment(t *Task, image, dir string) (*Environment, error) {
	e := &Environment{
		Image:   cmp.Or(image, i.file.Image),
		Images:  i.file.Images,
		Workdir: cmp.Or(i.file.Workdir, Testbed),
		User:    i.file.User,
	}
	dockerfile := i.at(path.Join(dir, "Dockerfile"))
	switch {
	case e.Image != "":
	case dir != "" && isFile(dockerfile):
		if err := e.buildFrom(dockerfile); err != nil {
			return nil, err
		}
	case t.Instance.Repository != "":
		return nil, nil //nolint:nilnil // there is none, which is not a mistake
	default:
		e.Image = "swebench/sweb.eval.x86_64." + strings.ToLower(strings.ReplaceAll(t.ID, "__", "_1776_")) + ":latest"
	}
	e.Image = e.replaced(e.Image)
	return e, nil
}

// instanceDigests identifies an instance: what the agent sees of it, and what decides.
func (i *instancesLoader) instanceDigests(t *Task) error {
	visible, hidden := newDigester(), newDigester()
	visible.add("prompt", "prompt", []byte(t.Prompt))
	visible.add("base", "commit", []byte(t.Instance.Repo+" "+t.Instance.BaseCommit))
	if e := t.Settings.Environment; e != nil {
		visible.add("environment", "content", []byte(cmp.Or(e.Content, e.Image)))
	}
	decides := *t.Instance
	decides.Gold, decides.Repository = "", ""
	content, err := json.Marshal(decides)
	if err != nil {
		return err
	}
	hidden.add("instance", "json", content)
	s := t.Settings
	s.Needs = nil
	if content, err = json.Marshal(s); err != nil {
		return err
	}
	hidden.add("settings", "json", content)
	t.Digest = Digest{Visible: visible.String(), Hidden: hidden.String()}
	return nil
}
