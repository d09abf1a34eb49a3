package skillcli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// claims are what --fail-on takes.
var claims = []string{
	string(stats.Regressed), "not-proven", string(stats.Insufficient), string(stats.Improved),
}

// answered is the answer of one agent, with where its results are.
type answered struct {
	*skilltest.Answer
	output string
}

// answer reads a run directory and makes the answer of it.
func (t *skillTest) answer(ctx context.Context, output string) (*answered, error) {
	found, err := results.Load([]string{output}, false, nil)
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	found.Allow = t.opts.Proof.Allow.List()
	built, err := found.Build(ctx, experimentcli.Auditor(t.con, t.registry), []int{1}, false)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	groups := map[string]*report.Group{}
	for i := range built.Groups {
		groups[built.Groups[i].Provenance.Arm] = &built.Groups[i]
	}
	without := cmp.Or(groups[armFormer], groups[armWithout])
	if without == nil || groups[armWith] == nil {
		return nil, console.Exitf(console.ExitIncomplete, "%s has no results of both arms; rerun the command", output)
	}
	comparison, err := report.Compare(without, groups[armWith], report.CompareConfig{
		Seed:  t.opts.Seed,
		Allow: found.Allow,
	})
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	made := skilltest.Build(skilltest.Input{
		Skill:             t.skill.Name,
		Without:           without,
		With:              groups[armWith],
		Comparison:        comparison,
		Records:           ledger.Last(found.Records),
		Cases:             t.cases(),
		DescriptionTokens: calls.EstimateTokens(len(t.skill.Name) + len(t.skill.Description)),
		BodyTokens:        calls.EstimateTokens(len(t.skill.Body)),
		Runs:              t.opts.Runs.Value,
		Leaks:             t.leaks(),
		LeftOut:           t.leftOut,
	})
	return &answered{made, output}, nil
}

// cases describes the cases that are run.
func (t *skillTest) cases() map[string]skilltest.Case {
	cases := map[string]skilltest.Case{}
	for i := range t.family.Tasks {
		one := &t.family.Tasks[i]
		if !slices.Contains(t.only, one.ID) {
			continue
		}
		c := skilltest.Case{
			Labels:   map[string]string{},
			Unjudged: len(one.Sample.Statements),
			Silent:   one.Sample.Silent,
		}
		for _, check := range one.Sample.Checks {
			c.Labels[check.Name] = labelOf(&check)
		}
		cases[one.ID] = c
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

// print writes the answer.
func (t *skillTest) print(a *answered) error {
	if a == nil { // a dry run
		return nil
	}
	if t.opts.Format.JSON() {
		return jsonenc.WriteIndented(t.con.Stdout, a.Answer)
	}
	if err := t.con.Folded(a.Text); err != nil {
		return err
	}
	shown := a.output
	if here, err := filepath.Abs(t.con.Path(".")); err == nil {
		if rel, err := filepath.Rel(here, a.output); err == nil && filepath.IsLocal(rel) {
			shown = rel
		}
	}
	fmt.Fprintf(t.con.Stderr, "look closer: fit view %s\n", shown)
	return nil
}

// gate turns the answer into an exit code.
func gate(a *answered, failOn []string) error {
	if a == nil || len(failOn) == 0 {
		return nil
	}
	claim := strings.ReplaceAll(string(a.Comparison.Decision.Claim), " ", "-")
	if slices.Contains(failOn, claim) {
		return console.Exitf(console.ExitNegative, "gate: the claim about %s is %s", a.Skill, claim)
	}
	return nil
}

// tested is skill.json: what an iteration is a test of.
type tested struct {
	Version int    `json:"version"`
	Skill   string `json:"skill"`
	Digest  string `json:"digest"` // of the skill with its test cases
	Against string `json:"against,omitempty"`
}

const testedFile = "skill.json"

// iteration chooses the directory: the last iteration of the same skill and cases, or a new one.
func (t *skillTest) iteration() (string, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	now := tested{Version: 1, Skill: filepath.Base(t.dir), Against: t.opts.against}
	if now.Digest, err = skill.Digest(root, "."); err != nil {
		return "", console.Exit(console.ExitUsage, err)
	}
	dir := t.con.Path(t.opts.Output)
	if t.opts.Output == "" {
		dir = t.newest(now)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	content, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, testedFile), append(content, '\n'), 0o600)
}

func (t *skillTest) newest(now tested) string {
	workspace := t.con.Path(now.Skill + "-workspace")
	last := 0
	entries, _ := os.ReadDir(workspace) // none: this is the first
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "iteration-")); err == nil && e.IsDir() {
			last = max(last, n)
		}
	}
	name := func(n int) string { return path.Join(workspace, fmt.Sprintf("iteration-%d", n)) }
	var before tested
	content, err := os.ReadFile(filepath.Join(name(last), testedFile))
	if err == nil && json.Unmarshal(content, &before) == nil && before == now {
		return name(last)
	}
	return name(last + 1)
}
