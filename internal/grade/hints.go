package grade

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/task"
)

// maxHookSource bounds how much of a hook is read for hints.
const maxHookSource = 1 << 20

// startsProgram finds commands with which scripts start a program of the agent: a path below the
// working directory, an interpreter or a build tool, or git, which runs what a repository names. A
// file that a shell reads is one, too.
var startsProgram = lazyregexp.New(
	`(?:^|[;&|(]|\$\(|\b(?:if|while|until|then|do|else|exec|env|time|xargs|nohup|timeout\s+\S+|!)\s)\s*` +
		`(?:\w+=[^\s$(]*\s+)*("?\./\S+|"?\$\{?AGENT_CWD\}?\S*|(?:\.|source|(?:ba|da|k|z)?sh)\s+[^-\s]\S*|(?:` +
		`node|npm|npx|python3?|pytest|go|cargo|make|java|ruby|perl|git)\b)([^;&|)]*)`)

// ownProgram finds what belongs to the author of a hook, and not to the agent.
var ownProgram = lazyregexp.New(`\$\{?(?:HOOKS_DIR|TASK_DIR|FAMILY_DIR|0|BASH_SOURCE)\b`)

// shellScripts finds shells that run the scripts of a suite.
var shellScripts = lazyregexp.New(`(?:^|/)(?:ba|da|k|z)?sh$`)

// Hints returns what the author of a task should know about its graders: warnings about places
// where code of the agent runs closer to a grader than it has to, and notes about what this kind of
// grader cannot see.
func Hints(t *task.Task) (warnings, notes []string) {
	if t.Hooks.Invariants != "" {
		warnings = scriptHints(t.Hooks.Invariants, "add rows nor look into the hook")
	}
	if suite := t.Suite; suite != nil && !suite.Runner.Own && shellScripts.Get().MatchString(suite.Runner.Command[0]) {
		for _, check := range suite.Checks {
			name := filepath.Join(suite.Dir, filepath.FromSlash(check.File))
			warnings = append(warnings, scriptHints(name, "report for the test nor read it")...)
		}
	}
	if t.Instance != nil {
		return warnings, []string{"the tests report in a log that the agent's code can also print to: a patch that " +
			"ends the tests and prints a whole log of its own passes; look at the patches that matter"}
	}
	if t.Verifier != nil {
		return warnings, []string{"the verifier reports in files that the agent's code can write to as well when the " +
			"verifier runs it; look at the work that matters"}
	}
	if t.Suite == nil {
		return warnings, nil
	}
	const boundary = "; compare plain values, or start the agent's program from the test and look at what it prints"
	language := languageOf(t.Suite)
	switch SharedProcess(t) {
	case "":
	case t.Suite.Runner.Language:
		notes = append(notes, "the hidden tests run the agent's code in their own process: "+language.reach+boundary)
	default:
		notes = append(notes, "the family's own test command is judged by what it prints: agent code that runs in "+
			"its process can print a report"+boundary)
	}
	return warnings, notes
}

// ownCommand is the SharedProcess of a family's own test command.
const ownCommand = "the family's own command"

// SharedProcess returns the language of the hidden tests that run the agent's code in their own
// process, ownCommand for those that may, or the kind of task whose agent can write its report;
// empty if none do.
func SharedProcess(t *task.Task) string {
	switch {
	case t.Instance != nil:
		return "SWE-bench"
	case t.Verifier != nil:
		return "Harbor"
	case t.Suite == nil:
		return ""
	}
	runner, language := t.Suite.Runner, languageOf(t.Suite)
	switch {
	case runner.Own && language.try != nil:
		return runner.Language
	case !runner.Own && !language.compiled && runner.Report == "" &&
		!strings.Contains(strings.Join(runner.Command, " "), "{file}"):
		return ownCommand
	}
	return ""
}

// scriptHints looks for programs that a hook or a test starts itself, and says what they can do
// then.
func scriptHints(name, can string) []string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHookSource {
		return nil
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	var hints []string
	for i, line := range strings.Split(string(source), "\n") {
		command := strings.TrimSpace(line)
		if strings.HasPrefix(command, "#") || strings.Contains(command, untrusted.Name) {
			continue
		}
		match := startsProgram.Get().FindStringSubmatch(command)
		if match == nil || ownProgram.Get().MatchString(match[0]) {
			continue
		}
		hints = append(hints, fmt.Sprintf("%s:%d starts %s itself; start it with %s, so that it can neither %s",
			filepath.Base(name), i+1, match[1], untrusted.Name, can))
	}
	return hints
}
