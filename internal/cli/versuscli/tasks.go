package versuscli

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/task"
)

// isTest reports whether a file of a task counts as a test.
func isTest(t *task.Task, name string) bool {
	if len(t.Spec.TestGlobs) > 0 {
		return t.Spec.IsTest(name)
	}
	base := path.Base(name)
	return slices.ContainsFunc([]string{"_test.", ".test.", ".spec.", "test_"},
		func(mark string) bool { return strings.Contains(base, mark) })
}

// describe says what the tasks of a run are.
func describe(family *task.Family, facts map[string]local.TaskFacts) []evidence.Task {
	var tasks []evidence.Task
	for i := range family.Tasks {
		t := &family.Tasks[i]
		tasks = append(tasks, describeTask(t, facts[t.ID]))
	}
	return tasks
}

func describeTask(t *task.Task, facts local.TaskFacts) evidence.Task {
	spec := t.Spec
	one := evidence.Task{
		ID:               t.ID,
		Title:            spec.Title,
		Prompt:           t.Prompt,
		Repo:             evidence.Repo{SHA: t.Settings.Ref, Origin: spec.Origin},
		SetupCommand:     spec.SetupCommand,
		VerifyCommand:    spec.VerifyCommand,
		AlsoVerify:       spec.AlsoVerify,
		LintCommand:      spec.LintCommand,
		TestGlobs:        spec.TestGlobs,
		ProtectedGlobs:   t.Settings.Protected,
		PassingAtBase:    facts.Passing,
		RequiredTools:    tools(slices.Concat([]string{spec.SetupCommand, spec.VerifyCommand}, spec.AlsoVerify)...),
		TimeoutSec:       int(t.Settings.Timeouts.Agent.Seconds()),
		VerifyTimeoutSec: int(t.Settings.Timeouts.Test.Seconds()),
		MaxCostUSD:       spec.MaxCostUSD,
		Network:          spec.Network,
		Tags:             t.Settings.Tags,
		Cluster:          t.Settings.Cluster,
		Split:            spec.Split,
		Workspace:        t.Settings.Workspace,
	}
	for _, requirement := range spec.Requirements {
		one.Requirements = append(one.Requirements, evidence.Requirement{ID: requirement.ID, Text: requirement.Text})
	}
	for _, name := range slices.Sorted(maps.Keys(facts.Tests)) {
		one.Expected = append(one.Expected, evidence.ExpectedValues(facts.Tests[name])...)
	}
	slices.Sort(one.Expected)
	one.Expected = slices.Compact(one.Expected)
	one.Reference = describeReference(spec.Reference, &one)
	return one
}

func describeReference(reference *task.Reference, one *evidence.Task) *evidence.Reference {
	if reference == nil {
		return nil
	}
	described := &evidence.Reference{}
	if len(reference.Patch) > 0 {
		described = evidence.ReferenceOf(one, reference.Patch)
	}
	described.MaxLines = cmp.Or(reference.MaxLines, described.MaxLines)
	described.MaxFiles = cmp.Or(reference.MaxFiles, described.MaxFiles)
	return described
}

// tools are the first words of commands: programs that a task cannot be done without.
func tools(commands ...string) []string {
	var names []string
	for _, command := range commands {
		words := strings.Fields(command)
		if len(words) > 0 && !strings.ContainsAny(words[0], "=$(\"'") && !slices.Contains(names, words[0]) {
			names = append(names, words[0])
		}
	}
	return names
}
