package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/skill"
)

// isSkill reports whether a directory is a skill with test cases.
func isSkill(dir string) bool {
	return isFile(filepath.Join(dir, skill.FileName)) &&
		isFile(filepath.Join(dir, filepath.FromSlash(skill.EvalsFile))) &&
		!exists(filepath.Join(dir, "family.yaml")) && !isDir(filepath.Join(dir, "tasks"))
}

// evals loads the test cases of a skill as tasks. Nothing but the files that a case names is put
// into its working directory: the skill itself comes with an arm.
func (l *loader) evals() {
	l.family.Skills = ""
	text, ok := l.text(skill.EvalsFile)
	if !ok {
		return
	}
	evals, err := skill.ParseEvals(skill.EvalsFile, []byte(text))
	l.add(l.unlessElsewhere(evals, err))
	if evals == nil {
		return
	}
	for _, note := range evals.Notes {
		l.family.Warnings = append(l.family.Warnings, note.Error())
	}
	name := filepath.Base(l.real)
	if about, err := skill.Read(l.root, "."); err == nil && about.Name != "." {
		name = about.Name
	}
	l.family.Name = name
	for i := range evals.Cases {
		d := &datasetLoader{loader: l, seen: map[string]int{}}
		t, err := d.evalCase(&evals.Cases[i], name)
		if !l.wanted(evals.Cases[i].ID) && (err != nil || len(evals.Cases[i].Problems) > 0) {
			continue
		}
		if err != nil {
			for _, one := range unjoined(err) {
				l.add(rowError(one, skill.EvalsFile, evals.Cases[i].Line))
			}
			continue
		}
		l.family.Tasks = append(l.family.Tasks, t)
	}
}

// unlessElsewhere returns what is wrong with a file of test cases, unless it is wrong only in cases
// that are not wanted.
func (l *loader) unlessElsewhere(evals *skill.Evals, err error) error {
	if err == nil || evals == nil {
		return err
	}
	problems := len(unjoined(err))
	for i := range evals.Cases {
		if c := &evals.Cases[i]; !l.wanted(c.ID) {
			problems -= len(c.Problems)
		}
	}
	if problems > 0 {
		return err
	}
	return nil
}

// wanted reports whether a test case is.
func (l *loader) wanted(id string) bool {
	return l.opts.Cases == nil || slices.Contains(l.opts.Cases, id)
}

func unjoined(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// evalCase makes a task of a test case.
func (d *datasetLoader) evalCase(c *skill.Case, name string) (Task, error) {
	t := Task{
		ID:       c.ID,
		Dir:      filepath.Join(d.real, "evals"),
		Prompt:   c.Prompt,
		Settings: settings(TaskFile{}, TaskFile{}, false),
	}
	sample := &Sample{
		Columns: map[string]any{"id": c.ID, "prompt": c.Prompt, "expected_output": c.Expected},
		Silent:  c.Silent,
	}
	rubric, err := d.checkCase(sample, c)
	if rubric != "" {
		sample.Statements = append(sample.Statements, Statement{Text: rubric})
	}
	for _, statement := range c.Statements {
		sample.Statements = append(sample.Statements, Statement{Text: statement.Text, Conduct: statement.Conduct})
	}
	if c.Silent {
		sample.Checks = append(sample.Checks, AnswerCheck{
			Name:    "the skill stays unopened",
			Kind:    CheckUnopened,
			Weight:  1,
			Pattern: name,
		})
	}
	for _, file := range c.Files {
		err = errors.Join(err, d.caseFile(sample, c, file))
	}
	if err != nil {
		return t, err
	}
	t.Sample = sample
	visible := newDigester()
	visible.add("prompt", "prompt", []byte(t.Prompt))
	t.Digest = Digest{Visible: visible.String(), Hidden: d.hiddenDigest(&t)}
	t.Files = d.fileDigests(&t)
	return t, d.sampleDigests(&t)
}

// CheckCase returns what says, of a test case of the skill in a directory, all that is wrong with
// its id and its checks: each a *document.Error.
func CheckCase(dir *os.Root) func(*skill.Case) error {
	d := &datasetLoader{loader: &loader{real: dir.Name(), root: dir, family: &Family{}}}
	return func(c *skill.Case) error {
		sample := &Sample{Columns: map[string]any{"id": c.ID, "prompt": c.Prompt, "expected_output": c.Expected}}
		_, err := d.checkCase(sample, c)
		return err
	}
}

// checkCase checks the id of a case, and fills in its checks.
func (d *datasetLoader) checkCase(sample *Sample, c *skill.Case) (rubric string, err error) {
	var problems []error
	wrong := func(line int, format string, args ...any) {
		one := &document.Error{File: skill.EvalsFile, Line: line, Msg: fmt.Sprintf(format, args...)}
		problems = append(problems, one)
	}
	if !isTaskID(c.ID) || tooLong(c.ID) {
		wrong(c.Line, "the id %q must be printable text of at most %d bytes", display.CutBytes(c.ID, 60), maxTaskID)
	}
	var checks []checkTemplate
	for i, check := range c.Checks {
		own, err := d.ownChecks("[" + string(check.JSON) + "]")
		for k := 0; k < len(own) && err == nil; k++ {
			_, _, err = own[k].fillIn(sample.Columns)
		}
		if err != nil {
			said := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "0: "), "0.")
			wrong(check.Line, "case %s: check %d: %s", display.CutBytes(c.ID, 60), i+1, said)
		}
		checks = append(checks, own...)
	}
	if len(problems) > 0 {
		return "", errors.Join(problems...)
	}
	return sample.fillIn(checks)
}

// maxCaseFiles bounds the files of one case: a case may name directories.
const maxCaseFiles = 1000

// caseFile adds what a case puts into the working directory: a file or a directory of the skill or
// of its repository. What is part of the skill comes with the skill, and must not reach the arm
// without it.
func (d *datasetLoader) caseFile(sample *Sample, c *skill.Case, file skill.Statement) error {
	wrong := func(format string, args ...any) error {
		return &document.Error{
			File: skill.EvalsFile,
			Line: file.Line,
			Msg:  fmt.Sprintf("case %s: files: %s ", c.ID, file.Text) + fmt.Sprintf(format, args...),
		}
	}
	found, err := skill.FindCaseFile(d.real, file.Text)
	if err != nil {
		return wrong("%v", err)
	}
	name := found.Name
	if found.OfSkill {
		d.family.Warnings = append(d.family.Warnings, fmt.Sprintf("%s:%d: case %s: %s is part of the skill, so "+
			"the arm without it does not get it; put files for both arms below evals/", skill.EvalsFile,
			file.Line, c.ID, name))
		return nil
	}
	to := name
	for _, prefix := range []string{"evals/files/", "evals/"} {
		if rest, found := strings.CutPrefix(name, prefix); found && !strings.Contains(c.Prompt, name) {
			to = rest
			break
		}
	}
	err = filepath.WalkDir(found.From, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Type().IsRegular() && len(sample.Files) >= maxCaseFiles:
			return fmt.Errorf("holds more than %d files", maxCaseFiles)
		case e.Type().IsRegular():
			rel, _ := filepath.Rel(found.From, at) // at is below it
			sample.Files = append(sample.Files, SampleFile{Path: path.Join(to, filepath.ToSlash(rel)), From: at})
		}
		return nil
	})
	if err != nil {
		return wrong("%v", err)
	}
	slices.SortFunc(sample.Files, func(a, b SampleFile) int { return strings.Compare(a.Path, b.Path) })
	return nil
}
