package task

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// The languages of hidden suites.
const (
	LanguageNode   = "node"
	LanguageGo     = "go"
	LanguagePython = "python"
	languageOther  = "other"
)

// The ways in which test commands report.
const (
	ParserGoTest    = "go-test-json"
	ParserPytest    = "pytest" // JUnit XML as pytest writes it
	ParserNodeTest  = "node-test"
	ParserTAP       = "tap"
	ParserJUnit     = "junit"
	ParserExitNonce = "exit-nonce" // prints the nonce at its end, and exits with 0
	ParserExit      = "exit"       // has only its exit code; for commands that verify, not for suites
)

// reportFile is where our own commands write their report. It is in the copy that is graded, under
// a name that nothing else uses.
const reportFile = ".fit-report.xml"

//go:embed unittest_junit.py
var unittestRunner string

// naming finds the checks of a language among the files of a suite.
type naming struct {
	check func(base string) (name string, gate, check bool)
	help  string
}

var namings = map[string]naming{
	LanguageNode:   {nodeCheck, "name tests x.test.js or x.test.mjs, gates x.gate.test.js"},
	LanguageGo:     {goCheck, "name tests x_test.go, gates x_gate_test.go"},
	LanguagePython: {pythonCheck, "name tests test_x.py or x_test.py, gates test_x_gate.py"},
	languageOther:  {nil, "the globs in tests.files match nothing"},
}

func nodeCheck(base string) (string, bool, bool) {
	for _, suffix := range []string{".test.js", ".test.mjs"} {
		if name, ok := strings.CutSuffix(base, suffix); ok {
			plain, gate := strings.CutSuffix(name, ".gate")
			return plain, gate, true
		}
	}
	return "", false, false
}

func goCheck(base string) (string, bool, bool) {
	name, ok := strings.CutSuffix(base, "_test.go")
	plain, gate := strings.CutSuffix(name, "_gate")
	return plain, gate, ok
}

func pythonCheck(base string) (string, bool, bool) {
	stem, ok := strings.CutSuffix(base, ".py")
	if !ok {
		return "", false, false
	}
	name, before := strings.CutPrefix(stem, "test_")
	if !before {
		if name, ok = strings.CutSuffix(stem, "_test"); !ok {
			return "", false, false
		}
	}
	plain, gate := strings.CutSuffix(name, "_gate")
	return plain, gate, true
}

// otherNaming takes the files that the globs name. A gate is marked by a part of the name between
// dots.
func otherNaming(globs []glob.Pattern) func(rel string) (string, bool, bool) {
	return func(rel string) (string, bool, bool) {
		for _, pattern := range globs {
			if pattern.Match(rel) {
				name, _, _ := strings.Cut(path.Base(rel), ".")
				return name, strings.Contains(path.Base(rel), ".gate."), true
			}
		}
		return "", false, false
	}
}

// runnerOf returns the language's own way to run a test file, unless the settings say otherwise.
func runnerOf(language string, tests testsFile, suite *Suite) Runner {
	r := Runner{Language: language}
	switch language {
	case LanguageNode:
		r.Command, r.Parser = []string{"node", "--test", "--test-reporter=tap", "{file}"}, ParserNodeTest
	case LanguageGo:
		r.Command, r.Parser = []string{
			"go", "test", "-json", "-count=1", "-vet=off", "-run", "{tests}",
			"./{dir}",
		}, ParserGoTest
	case LanguagePython:
		if tests.Runner == "unittest" || tests.Runner == "" && !needsPytest(suite) {
			r.Command, r.Parser, r.Report, r.Script = []string{
				"python3", "-B", "{runner}", "{report}",
				"{file}",
			}, ParserJUnit, reportFile, unittestRunner
		} else {
			r.Command = []string{
				"python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}",
				"{file}",
			}
			r.Parser, r.Report = ParserPytest, reportFile
		}
	}
	r.Own = len(r.Command) > 0
	if len(tests.Command) > 0 {
		r.Own, r.Command, r.Report, r.Script = false, tests.Command, "", ""
	}
	if tests.Parser != "" {
		r.Parser = tests.Parser
	}
	if tests.Report != "" {
		r.Report = tests.Report
	}
	return r
}

var pytestSign = lazyregexp.New(`(?m)^(\s*(import|from) pytest\b|(async )?def test_)`)

// needsPytest reports whether a suite has tests that the standard library's runner would not find.
func needsPytest(suite *Suite) bool {
	for _, check := range suite.Checks {
		source, err := os.ReadFile(path.Join(suite.Dir, check.File))
		if err == nil && pytestSign.Get().Match(source) {
			return true
		}
	}
	return false
}

// goTests lists the test functions of a Go file. They are known before any code of the agent runs,
// so every one can be asked for.
func goTests(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && isGoTest(function.Name.Name) {
			names = append(names, function.Name.Name)
		}
	}
	return names, nil
}

func isGoTest(name string) bool {
	rest, ok := strings.CutPrefix(name, "Test")
	if !ok || name == "TestMain" {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !unicode.IsLower(next)
}
