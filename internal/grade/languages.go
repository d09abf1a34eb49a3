package grade

import (
	"context"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
)

// Code that tries to read files, for Exposed.
const (
	goProbe = `
import "os"

func init() {
	found, err := os.OpenFile("` + exposedFile + `", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer found.Close()
	for _, name := range []string{FILES} {
		if _, err := os.ReadFile(name); err == nil {
			found.WriteString(name + "\n")
		}
	}
}
`
	nodeProbe = `
;{
  const fs = process.getBuiltinModule('node:fs');
  for (const name of ['', FILES]) {
    try { if (name) fs.readFileSync(name); fs.appendFileSync('` + exposedFile + `', name + '\n'); } catch {}
  }
}
`
	pythonProbeCode = `

for _fit in [FILES]:
    try:
        with open('` + exposedFile + `', 'a') as _found, open(_fit, 'rb') as _file:
            _file.read(1)
            _found.write(_fit + '\n')
    except OSError:
        pass
`
)

// language is what graders know about the language of a suite. The zero value is for languages
// without a runner of ours.
type language struct {
	// try runs one check. The command that the task package gives to suites that name none is not
	// run as it is: the runners here do the same with evidence that cannot be forged by printing. A
	// family's own command is run as it is.
	try func(*suiteRun, context.Context, task.Check, expectation) (evidence, error)
	// restore are the files that tests trust, which come from the base.
	restore []string
	// compiled says that tests are built once, and are named in their source.
	compiled bool
	// names finds names of tests that are in a source as plain text at the beginning of a line.
	names func(source string) []string
	// reach is what the agent's code can do to the tests.
	reach string
	// probe is code that writes to exposedFile which of FILES it can read, and sources are the
	// extensions of files that it can stand at the end of.
	probe   string
	sources []string
}

func languageOf(suite *task.Suite) language {
	switch suite.Runner.Language {
	case task.LanguageGo:
		return language{
			try:      (*suiteRun).tryGo,
			restore:  goFiles(suite),
			compiled: true,
			reach:    "it can reach their memory by package unsafe",
			probe:    goProbe,
		}
	case task.LanguageNode:
		return language{
			try:   (*suiteRun).tryNode,
			names: nodeNames,
			reach: "it can read the staged test and answer from a table, replace functions of the language that the " +
				"test calls, or reach its memory by /proc/self/mem or a native addon",
			probe:   nodeProbe,
			sources: []string{".js", ".cjs", ".mjs", ".ts"},
		}
	case task.LanguagePython:
		return language{
			try:     (*suiteRun).tryPython,
			restore: pythonImports,
			names:   pythonNames,
			reach: "an object whose __eq__ is always true passes, and code can walk the stack or the garbage " +
				"collector's objects",
			probe:   pythonProbeCode,
			sources: []string{".py"},
		}
	}
	return language{}
}

var (
	nodeTestName = lazyregexp.New(
		"(?m)^\\s*(?:await\\s+)?(?:test|it)\\(\\s*(?:'([^'\\\\\\n]+)'|\"([^\"\\\\\\n]+)\"|`([^`\\\\$\\n]+)`)\\s*,",
	)
	pythonTestName = lazyregexp.New(`(?m)^\s*(?:async\s+)?def\s+(test\w*)\s*\(`)
	blockComment   = lazyregexp.New(`(?s)/\*.*?\*/`)
)

func nodeNames(source string) []string {
	return namesInSource(nodeTestName, blockComment.Get().ReplaceAllString(source, ""))
}

func pythonNames(source string) []string { return namesInSource(pythonTestName, source) }

func namesInSource(name *lazyregexp.Regexp, source string) []string {
	var names []string
	for _, match := range name.FindAllStringSubmatch(source, -1) {
		names = append(names, strings.Join(match[1:], ""))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
