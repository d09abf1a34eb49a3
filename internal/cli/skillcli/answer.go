package skillcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/stats"
)

// claims are what --fail-on takes.
var claims = []string{
	string(stats.Regressed), "not-proven", string(stats.Insufficient), string(stats.Improved),
}

// answer reads a run directory and makes the answer of it.
func (t *skillTest) answer(ctx context.Context, output string) (*skilltest.Answer, error) {
	made, err := skilltest.Read(ctx, output, t.reading())
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	return made, nil
}

// reading says how run directories are read.
func (t *skillTest) reading() skilltest.Options {
	return skilltest.Options{
		Auditor: experimentcli.Auditor(t.con, t.registry),
		Allow:   t.opts.Proof.Allow.List(),
		Seed:    t.opts.Seed,
	}
}

// cases describes the cases that are run.
func (t *skillTest) cases() []skilltest.Case {
	var cases []skilltest.Case
	for i := range t.family.Tasks {
		one := &t.family.Tasks[i]
		if !slices.Contains(t.only, one.ID) {
			continue
		}
		expected, _ := one.Sample.Columns["expected_output"].(string)
		c := skilltest.Case{
			ID:       one.ID,
			Prompt:   one.Prompt,
			Expected: expected,
			Labels:   map[string]string{},
			Silent:   one.Sample.Silent,
		}
		for _, check := range one.Sample.Checks {
			c.Labels[check.Name] = labelOf(&check)
		}
		for _, statement := range one.Sample.Statements {
			sentence := judge.Sentence{Text: statement.Text, Shown: judge.ShownOutputs}
			if statement.Conduct {
				sentence.Shown = judge.ShownTrace
			}
			c.Sentences = append(c.Sentences, sentence)
		}
		cases = append(cases, c)
	}
	return cases
}

// labelOf says in words what a check without a name of its own asks for.
func labelOf(c *task.AnswerCheck) string {
	name, _, _ := strings.Cut(c.Name, "-")
	if name != c.Kind {
		return c.Name
	}
	text := c.Kind
	if c.Not {
		text = "not " + text
	}
	if c.File != "" {
		text += " " + c.File
	}
	if about := cmp.Or(strings.Join(c.Want, ", "), c.Pattern, strings.Join(c.Command, " ")); about != "" {
		text += ": " + about
	}
	return text
}

// leaks names the cases whose prompt or expected output repeats the skill.
func (t *skillTest) leaks() []skilltest.Leak {
	text := t.skill.Text
	references := filepath.Join(t.skill.Path, "references")
	if entries, err := os.ReadDir(references); err == nil {
		for _, e := range entries {
			if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > skill.MaxFile {
				continue
			}
			if content, err := os.ReadFile(filepath.Join(references, e.Name())); err == nil {
				text += "\n\n" + string(content)
			}
		}
	}
	var found []skilltest.Leak
	for i := range t.family.Tasks {
		one := &t.family.Tasks[i]
		expected, _ := one.Sample.Columns["expected_output"].(string)
		if shared := cmp.Or(skill.Leak(text, one.Prompt), skill.Leak(text, expected)); shared != "" {
			found = append(found, skilltest.Leak{Case: one.ID, Shared: shared})
		}
	}
	return found
}

// print writes an answer.
func (t *skillTest) print(answer any, text func(io.Writer) error, output string) error {
	if t.opts.Format.JSON() {
		return jsonenc.WriteIndented(t.con.Stdout, answer)
	}
	if err := t.con.Folded(text); err != nil {
		return err
	}
	if here, err := filepath.Abs(t.con.Path(".")); err == nil {
		if rel, err := filepath.Rel(here, output); err == nil && filepath.IsLocal(rel) {
			output = rel
		}
	}
	fmt.Fprintf(t.con.Stderr, "look closer: fit view %s\n", output)
	return nil
}

// gate turns a claim into an exit code.
func gate(skill string, comparison *report.Comparison, failOn []string) error {
	if comparison == nil {
		return nil
	}
	claim := strings.ReplaceAll(string(comparison.Decision.Claim), " ", "-")
	if slices.Contains(failOn, claim) {
		return console.Exitf(console.ExitNegative, "gate: the claim about %s is %s", skill, claim)
	}
	return nil
}

// iteration chooses the directory: the last iteration of the same skill and cases, or a new one.
func (t *skillTest) iteration() (err error) {
	t.about = skilltest.Test{
		Version: 1,
		Against: t.opts.against,
		Runs:    t.opts.Runs.Value,
		Cases:   t.cases(),
		LeftOut: t.leftOut,
	}
	if t.about.Digest, err = t.digest(); err != nil {
		return err
	}
	return t.place(func(dir string) bool {
		before, err := skilltest.ReadTest(dir)
		return err == nil && before.Same(&t.about)
	})
}

// newest is the last directory of the test's kind that the same test made, or a new one.
func (t *skillTest) newest(same func(dir string) bool) string {
	workspace := t.con.Path(filepath.Base(t.dir) + "-workspace")
	last := 0
	entries, _ := os.ReadDir(workspace) // none: this is the first
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), t.opts.kind+"-")); err == nil && e.IsDir() {
			last = max(last, n)
		}
	}
	name := func(n int) string { return filepath.Join(workspace, fmt.Sprintf("%s-%d", t.opts.kind, n)) }
	if same(name(last)) {
		return name(last)
	}
	return name(last + 1)
}

// place makes the run directory: the one that was asked for, or the newest.
func (t *skillTest) place(same func(dir string) bool) (err error) {
	dir := t.con.Path(t.opts.Output)
	if t.opts.Output == "" {
		dir = t.newest(same)
	}
	if t.output, err = filepath.Abs(dir); err != nil {
		return err
	}
	_, err = os.Lstat(t.output)
	t.made = errors.Is(err, fs.ErrNotExist)
	return os.MkdirAll(t.output, 0o700)
}

// tidy removes the run directory that a call made and then found nothing to run for: a mistake in a
// flag, or a dry run, is no iteration.
func (t *skillTest) tidy() {
	if !t.made || t.begun {
		return
	}
	_ = scratch.RemoveAll(t.output) // it holds copies only
	if t.opts.Output == "" {
		_ = os.Remove(filepath.Dir(t.output)) // the workspace, unless there are other iterations
	}
}

// digest is that of the skill with its tests.
func (t *skillTest) digest() (string, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	digest, err := skill.Digest(root, ".")
	if err != nil {
		err = console.Exit(console.ExitUsage, err)
	}
	return digest, err
}

// describe completes what is written into the run directories.
func (t *skillTest) describe() {
	t.about.Skill = t.skill.Name
	t.about.DescriptionTokens = calls.EstimateTokens(len(t.skill.Name) + len(t.skill.Description))
	t.about.BodyTokens = calls.EstimateTokens(len(t.skill.Body))
	t.about.Leaks = t.leaks()
}

func hasSentences(c skilltest.Case) bool { return len(c.Sentences) > 0 }
