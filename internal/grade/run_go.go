package grade

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"

	"github.com/fit-eval/fit/internal/task"
)

// buildFactor is how many times longer than tests their compilation may take.
const buildFactor = 3

// goBinary is the compiled tests of one package.
type goBinary struct {
	path      string
	tests     map[string][]string // the names of the tests of each check
	pads      pads
	failed    string // why it could not be built
	told      bool   // the compiler says what is wrong, and where
	died      bool   // nobody says why it failed
	accident  bool   // it or a program of it was killed
	cannotRun string
}

// tryGo runs the tests of one file. Everything is compiled before anything runs, because code of
// the agent that runs could change the compiler's cache.
func (s *suiteRun) tryGo(ctx context.Context, check task.Check, _ expectation) (evidence, error) {
	if s.binaries == nil {
		if err := s.buildAll(ctx); err != nil {
			return evidence{}, err
		}
	}
	binary := s.binaries[check.Name]
	if binary.cannotRun != "" || binary.failed != "" {
		return evidence{
			cannotRun: binary.cannotRun,
			status:    1,
			note:      binary.failed,
			told:      binary.told,
			died:      binary.died,
			accident:  binary.accident,
		}, nil
	}
	return s.runGo(ctx, check, path.Dir(check.File), binary)
}

// buildAll compiles all hidden files of a package together, or one by one if that fails, so that
// one that does not compile does not affect the others.
func (s *suiteRun) buildAll(ctx context.Context) error {
	s.binaries = map[string]goBinary{}
	for _, check := range s.suite.Checks {
		if _, done := s.binaries[check.Name]; done {
			continue
		}
		dir := path.Dir(check.File)
		group := s.checksIn(dir)
		binary, err := s.buildGo(ctx, dir, group)
		if err != nil {
			return err
		}
		for _, member := range group {
			s.binaries[member.Name] = binary
			if binary.failed == "" || len(group) == 1 {
				continue
			}
			if s.binaries[member.Name], err = s.buildGo(ctx, dir, []task.Check{member}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *suiteRun) checksIn(dir string) []task.Check {
	var checks []task.Check
	for _, check := range s.suite.Checks {
		if path.Dir(check.File) == dir {
			checks = append(checks, check)
		}
	}
	return checks
}

// runGo runs the tests of one check from a compiled binary. A test counts as passed if it has
// printed its secret exactly once.
func (s *suiteRun) runGo(ctx context.Context, check task.Check, dir string, binary goBinary) (evidence, error) {
	names := binary.tests[check.Name]
	own := pads{Names: map[string][]string{}}
	for _, name := range names {
		own.Names[name] = binary.pads.Names[name]
	}
	watch := newWitness(own)
	timeout := s.Task.Settings.Timeouts.Test
	done, err := s.run(ctx, program{
		argv:     []string{binary.path, "-test.run", goPattern(names), "-test.count=1", "-test.v"},
		dir:      filepath.Join(s.copied.Dir, filepath.FromSlash(dir)),
		place:    s.place,
		env:      goEnvironment(),
		watch:    watch,
		timeout:  timeout,
		readable: []string{filepath.Dir(binary.path)},
	})
	if err != nil {
		return evidence{}, err
	}
	shown := s.evidenceOf(check.Name, done)
	shown.report = watch.report
	output := done.stdout.last(keptHead + keptTail)
	shown.report.Complete = true
	for _, name := range names {
		if !slices.ContainsFunc(shown.report.Tests, func(t testResult) bool { return t.Name == name }) {
			message := goMessage(output, name)
			shown.report.add(name, testFailed, cmp.Or(message, "it did not pass"))
			shown.died = shown.died || message == "" && !strings.Contains(output, "--- FAIL: "+name+" ")
		}
	}
	shown.report.tidy(s.Redactor)
	return shown, nil
}

// diagnosis is a line of the compiler about a place in the source.
var diagnosis = lazyregexp.New(`(?m)^\S+\.go:\d+:\d+: `)

// goMessage finds what a test said in the output of its binary: the lines before it is called
// failed, or those of a panic.
func goMessage(output, name string) string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		failed := strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: "+name+" ")
		if !failed && !strings.HasPrefix(line, "panic:") {
			continue
		}
		if !failed {
			return display.FirstBytes(line, maxRaw)
		}
		from := i
		for from > 0 && i-from < 4 && !strings.HasPrefix(lines[from-1], "===") &&
			!strings.HasPrefix(lines[from-1], "---") {
			from--
		}
		return display.FirstBytes(strings.Join(strings.Fields(strings.Join(lines[from:i], " ")), " "), maxRaw)
	}
	return ""
}

// goEnvironment overrides everything through which the go command takes instructions from elsewhere
// than its arguments.
func goEnvironment() map[string]string {
	return map[string]string{
		"GOFLAGS": "", "GOENV": "off", "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOSUMDB": "off", "GOVCS": "*:off",
		"GO111MODULE":  "on",
		"GOEXPERIMENT": "", "GODEBUG": "", "GOCACHEPROG": "", "CGO_ENABLED": "0", "GOTELEMETRY": "off", "GOROOT": "",
		"GOOS": "", "GOARCH": "",
	}
}

// wrapped is a hidden Go file made ready.
type wrapped struct {
	source, helper []byte
	names          []string
	pads           map[string]string
}

// wrapGo renames the tests of a file and writes a second file that has tests of the old names. Each
// calls the renamed one and prints its secret when that has returned and neither it nor a subtest
// of it has failed or was skipped. Lines keep their numbers.
func wrapGo(source []byte) (wrapped, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "hidden_test.go", source, parser.SkipObjectResolution)
	if err != nil {
		return wrapped{}, err
	}
	w := wrapped{pads: map[string]string{}}
	prefix := "fit" + secret()
	var helper bytes.Buffer
	fmt.Fprintf(&helper, goHelper, file.Name.Name, prefix)
	at := 0
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || function.Type.TypeParams != nil {
			continue
		}
		kind := goTestKind(function.Name.Name)
		if kind == "" || len(function.Type.Params.List) != 1 {
			continue
		}
		name, pad := function.Name.Name, secret()
		offset := files.Position(function.Name.Pos()).Offset
		w.source = append(append(w.source, source[at:offset]...), prefix...)
		at = offset
		w.names = append(w.names, name)
		w.pads[name] = pad
		fmt.Fprintf(&helper, "\nfunc %s(t *testing.%s) {\n\tdone := false\n\tt.Cleanup(func() { %sSay(done && "+
			"!t.Failed() && !t.Skipped(), %q, 0x%s, 0x%s) })\n\t%s%s(t)\n\tdone = true\n}\n",
			name, kind, prefix, name, pad[:16], pad[16:], prefix, name)
	}
	w.source = append(w.source, source[at:]...)
	w.helper = helper.Bytes()
	return w, nil
}

const goHelper = `package %[1]s

import (
	"fmt"
	"os"
	"testing"
)

var %[2]sOut = os.NewFile(1, "report")

func %[2]sSay(passed bool, name string, a, b uint64) {
	if passed {
		fmt.Fprintf(%[2]sOut, "\n\x1efit {\"status\":\"pass\",\"name\":%%q,\"pad\":\"%%016x%%016x\"}\n", name, a, b)
	}
}
`

// goTestKind is T for a test, F for a fuzz target whose seeds run as tests, and empty for anything
// else.
func goTestKind(name string) string {
	for prefix, kind := range map[string]string{"Test": "T", "Fuzz": "F"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || name == "TestMain" {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(rest); rest == "" || !unicode.IsLower(next) {
			return kind
		}
	}
	return ""
}
