// Package conventions holds the house rules that can be checked: a rule that is only written down
// is forgotten.
package conventions

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/fit-eval/fit"

// layers is the table of ARCHITECTURE.md: what each package may import of ours, named without
// internal/. Sub-packages without a row of their own belong to their parent's, and everybody may
// use the small packages that are named in rooms.
var layers = map[string][]string{
	"redact":        {},
	"stats":         {},
	"price":         {},
	"sandbox":       {},
	"selfedit":      {},
	"task":          {},
	"profile":       {},
	"trace":         {"redact"},
	"ledger":        {"price", "redact"},
	"model":         {"price"},
	"gateway/calls": {"price", "redact"},
	"session":       {"trace", "price", "gateway/calls"},
	"evidence":      {"session", "ledger"},
	"gateway":       {"gateway/calls", "model", "price", "redact", "session", "trace"},
	"agent": {
		"agent/events", "gateway", "gateway/calls", "session", "sandbox", "trace", "model", "price", "redact",
	},
	"treatment": {"agent", "gateway/calls", "session", "ledger", "redact"},
	"query":     {"gateway/calls", "session", "trace"},
	"harness": {
		"agent", "gateway", "gateway/calls", "session", "sandbox", "trace", "price", "redact", "profile",
	},
	"bridge":    {"harness", "redact"},
	"workspace": {"task", "sandbox"},
	"grade":     {"task", "workspace", "sandbox", "redact", "ledger"},
	"experiment": {
		"experiment/control", "gateway", "task", "redact", "ledger", "report/failure", "session", "stats",
	},
	"experiment/control": {},
	"experiment/local": {
		"experiment", "task", "workspace", "grade", "harness", "agent", "gateway", "gateway/calls", "session",
		"sandbox", "trace", "price", "redact", "ledger", "profile", "query", "model", "treatment", "judge",
	},
	"experiment/fleet": {
		"experiment", "experiment/fleet/portable", "experiment/local", "sandbox", "task", "ledger", "redact",
	},
	"experiment/fleet/portable": {"experiment", "experiment/local", "task", "ledger"},
	"experiment/simulate":       {"experiment"},
	"report":                    {"gateway/calls", "judge", "ledger", "report/failure", "stats", "session", "price"},
	"report/failure":            {"ledger"},
	"report/given":              {"ledger", "report"},
	"report/foreign":            {"ledger", "session"},
	"report/forecast":           {"report", "stats"},
	"report/metrics":            {"report"},
	"report/results":            {"experiment", "evidence", "judge", "ledger", "report", "report/foreign", "session"},
	"judge":                     {"gateway", "model", "price", "redact", "session", "evidence", "stats", "ledger"},
	"report/skilltest": {
		"atomicfile", "evidence", "experiment", "judge", "report", "report/forecast", "report/results", "report/versus",
		"scratch", "ledger", "stats",
	},
	"report/versus": {
		"experiment", "ledger", "session", "evidence", "judge", "stats", "report", "report/failure",
		"report/results", "price",
	},
	"notes": {"ledger"},
	"view": {
		"bridge",
		"experiment", "experiment/control", "evidence", "gateway/calls", "judge", "ledger", "notes", "price", "query",
		"redact",
		"report", "report/failure", "report/forecast", "report/results", "report/skilltest", "report/versus", "session",
		"stats", "trace",
	},
	// the module's root
	".": {
		"agent", "gateway", "gateway/calls", "harness", "bridge", "session", "sandbox", "trace", "price", "redact",
		"experiment", "experiment/local", "task", "report", "report/foreign", "report/results", "report/versus",
		"evidence", "judge", "ledger", "model", "treatment",
	},
	"agent/events": {"model", "session"},
	"cmd":          {"cli"},
}

// public are the packages that programs outside this repository may import; everything else is
// below internal/.
var public = []string{
	".", "agent/events", "ledger", "price", "redact", "session", "stats", "trace", "session/sessiontest",
}

// rooms are the small shared packages, with what they may import of ours.
var rooms = map[string][]string{
	"git":               {},
	"glob":              {},
	"document":          {"jsonenc"},
	"display":           {},
	"egress":            {},
	"github":            {"retry"},
	"helper":            {},
	"retry":             {},
	"sarif":             {},
	"skill":             {"document", "tree", "redact", "jsontape", "lazyregexp"},
	"scratch":           {},
	"testenv":           {},
	"tree":              {"scratch"},
	"containertest":     {"sandbox"},
	"github/githubtest": {},
	"cheattest":         {"lazyregexp"},
	"conventions":       {},
	"inspectlog":        {"jsondoc", "lazyregexp", "session"},
	"jsondoc":           {},
	"jsonenc":           {"display", "jsontape"},
	"jsonlines":         {},
	"jsontape":          {},
	"messages":          {"jsontape"},
	"lazyregexp":        {},
	"memo":              {},
	"near":              {},
	"patch":             {},
	"render":            {"session", "trace", "gateway/calls"},
	"atomicfile":        {},
}

type goFile struct {
	path   string // relative to the repository, with slashes
	source []byte
	ast    *ast.File
	test   bool
}

func (f goFile) pkg() string { return path.Dir(f.path) }

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// walk visits the repository's own files, leaving out what is generated or fetched.
func walk(t *testing.T, visit func(rel string)) {
	t.Helper()
	root := repository(t)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch entry.Name() {
			case ".git", ".tools", "node_modules", "bin":
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		visit(filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The repository's Go files, read and parsed once for all tests.
var (
	fset     = token.NewFileSet()
	allFiles []goFile
	parseAll sync.Once
)

func goFiles(t *testing.T) []goFile {
	t.Helper()
	parseAll.Do(func() {
		walk(t, func(rel string) {
			if !strings.HasSuffix(rel, ".go") || strings.Contains(rel, "testdata/") {
				return
			}
			source, err := os.ReadFile(filepath.Join(repository(t), rel))
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.ParseFile(fset, rel, source, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			allFiles = append(allFiles, goFile{
				path:   rel,
				source: source,
				ast:    parsed,
				test:   strings.HasSuffix(rel, "_test.go"),
			})
		})
	})
	return allFiles
}

// row returns the row of the table that a package belongs to.
func row(pkg string) string {
	pkg = strings.TrimPrefix(pkg, "internal/")
	if _, own := layers[pkg]; own {
		return pkg
	}
	top, _, _ := strings.Cut(pkg, "/")
	return top
}

// forTests reports whether a package has what several packages' tests share, such as
// session/sessiontest.
func forTests(pkg string) bool {
	if pkg == "internal/report/skilltest" { // it reports tests of skills
		return false
	}
	return strings.HasSuffix(path.Base(pkg), "test") && path.Dir(pkg) != "." || pkg == "internal/testenv"
}

// TestOnlyTestsImportWhatIsForTests: what tests share never gets into the product.
func TestOnlyTestsImportWhatIsForTests(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.test || forTests(file.pkg()) {
			continue
		}
		for _, spec := range file.ast.Imports {
			if target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ours &&
				forTests(target) {
				t.Errorf("%s imports %s, which is for tests", file.path, target)
			}
		}
	}
}

func TestImportsGoOneWay(t *testing.T) {
	for _, file := range goFiles(t) {
		from := row(file.pkg())
		free := []string{"cli", "test", "examples", "scripts"} // the wiring may import everything, and so may tests
		if file.test || forTests(file.pkg()) || slices.Contains(free, from) {
			continue
		}
		allowed, known := layers[from]
		if !known {
			if allowed, known = rooms[from]; !known {
				t.Errorf("%s: package %s has no row in the table of layers", file.path, from)
				continue
			}
		}
		for _, spec := range file.ast.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			if !ours {
				continue
			}
			to := row(target)
			_, isRoom := rooms[to]
			if to != from && !slices.Contains(allowed, to) && !isRoom {
				t.Errorf("%s imports %s, which %s may not (allowed: %s)", file.path, target, from,
					strings.Join(allowed, ", "))
			}
		}
	}
}

// TestTheFrontDoorIsSmall: what a program outside may import is promised, so it is chosen.
func TestTheFrontDoorIsSmall(t *testing.T) {
	for _, file := range goFiles(t) {
		pkg := file.pkg()
		top, _, _ := strings.Cut(pkg, "/")
		if slices.Contains([]string{"internal", "cmd", "scripts", "test", "examples"}, top) {
			continue
		}
		if !slices.Contains(public, pkg) {
			t.Errorf("%s: package %s is not below internal/ and not in the list of public packages", file.path, pkg)
		}
	}
	const most = 350
	names := 0
	for _, pkg := range public {
		if !strings.HasSuffix(pkg, "test") {
			names += offers(t, pkg)
		}
	}
	if names > most {
		t.Errorf("the public packages offer %d names, at most %d may be promised: unexport what only we use", names, most)
	}
}

// offers counts the lines that go doc -short prints of a package.
func offers(t *testing.T, pkg string) int {
	t.Helper()
	var files []*ast.File
	own := token.NewFileSet() // package doc changes the trees that it is given
	for _, file := range goFiles(t) {
		if file.pkg() != pkg || file.test {
			continue
		}
		parsed, err := parser.ParseFile(own, file.path, file.source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed)
	}
	found, err := doc.NewFromFiles(own, files, module+"/"+pkg)
	if err != nil {
		t.Fatal(err)
	}
	names := len(found.Consts) + len(found.Vars) + len(found.Funcs)
	for _, of := range found.Types {
		names += 1 + len(of.Consts) + len(of.Vars) + len(of.Funcs)
	}
	return names
}

func TestEveryPackageHasADocComment(t *testing.T) {
	documented := map[string]bool{}
	onlyTests := map[string]bool{}
	for _, file := range goFiles(t) {
		if _, seen := onlyTests[file.pkg()]; !seen {
			onlyTests[file.pkg()] = true
		}
		onlyTests[file.pkg()] = onlyTests[file.pkg()] && file.test
		documented[file.pkg()] = documented[file.pkg()] || file.ast.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok && !onlyTests[pkg] {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

func TestFilesHaveOneSubject(t *testing.T) {
	for _, file := range goFiles(t) {
		if lines := bytes.Count(file.source, []byte("\n")); lines > 600 && !file.test {
			t.Errorf("%s has %d lines; a file has one subject and rarely more than 400 lines", file.path, lines)
		}
	}
}

// TestNothingNeedsTheNeighbours: users have this repository and nothing beside it.
func TestNothingNeedsTheNeighbours(t *testing.T) {
	neighbour := []byte(".." + "/shared")
	walk(t, func(rel string) {
		content, err := os.ReadFile(filepath.Join(repository(t), rel))
		if err != nil {
			return // a file that a test makes and removes meanwhile
		}
		if bytes.Contains(content, neighbour) {
			t.Errorf("%s refers to %s", rel, neighbour)
		}
	})
}

func TestDependenciesAreTheCommittedOnes(t *testing.T) {
	t.Parallel()
	root := repository(t)
	list := exec.Command("scripts/dependencies")
	list.Dir = root
	got, err := list.Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	want, err := os.ReadFile(filepath.Join(root, "docs/dependencies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the binary's dependencies are not those of docs/dependencies.txt; if that is meant: make deps\n--- committed\n%s--- actual\n%s", want, got)
	}
}

// TestOnlyHelpersRunBeforeMain: a program that imports a library has not asked for anything yet.
// What a process is, is decided in one place; everybody else is handed its arguments.
func TestOnlyHelpersRunBeforeMain(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		if free := []string{"cmd", "cli", "test", "examples", "scripts"}; file.test || forTests(file.pkg()) ||
			slices.Contains(free, row(file.pkg())) {
			continue
		}
		if bytes.Contains(file.source, []byte("os.Args")) && file.pkg() != "internal/helper" {
			t.Errorf("%s names os.Args: helper.Become hands on the arguments of a helper", file.path)
		}
		for _, line := range bytes.Split(file.source, []byte("\n")) {
			if bytes.HasPrefix(line, []byte("var _ = ")) && !bytes.Contains(line, []byte("helper.Become(")) {
				t.Errorf("%s runs something before main: %s", file.path, line)
			}
		}
	}
}

// TestSupervisorsStartEarly: a supervisor is the whole binary, which does the work while
// its packages are initialised, after those that sandbox imports. Each attempt starts several.
func TestSupervisorsStartEarly(t *testing.T) {
	t.Parallel()
	for pkg, late := range map[string][]string{
		"./internal/sandbox":                {"net/http", "crypto/tls", "html/template"},
		"./internal/sandbox/internal/first": {"fmt", "strings"},
	} {
		list := exec.Command("go", "list", "-deps", pkg)
		list.Dir, list.Env = repository(t), append(os.Environ(), "GOOS=linux")
		got, err := list.Output()
		if err != nil {
			t.Fatalf("list the dependencies of %s: %v", pkg, err)
		}
		for name := range strings.FieldsSeq(string(got)) {
			if slices.Contains(late, name) {
				t.Errorf("%s imports %s, directly or not: its processes start later", pkg, name)
			}
		}
	}
}

func TestEveryDirectDependencyEarnsItsLine(t *testing.T) {
	root := repository(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	architecture, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || strings.Contains(line, "// indirect") {
			continue
		}
		if !strings.Contains(string(architecture), fields[0]) {
			t.Errorf("ARCHITECTURE.md does not say why we depend on %s", fields[0])
		}
	}
}
