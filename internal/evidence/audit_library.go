package evidence

import (
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/patch"
)

// shadowed are modules that tests in Python load, by themselves or through their runner: one of
// these names in the work is loaded in place of the language's own.
var shadowed = []string{
	"unittest", "doctest", "pytest", "_pytest", "pluggy", "hypothesis", "nose", "nose2", "sitecustomize",
	"usercustomize",
	"difflib", "pprint", "traceback", "argparse", "contextlib", "warnings", "fnmatch", "importlib", "inspect", "signal",
	"functools", "collections", "weakref", "math", "random", "json", "typing", "dataclasses", "asyncio", "re",
	"logging",
}

// libraries are the directories in which the libraries of tests lie that a project brings.
var libraries = lazyregexp.New(`(?:^|/)(?:node_modules/(?:@?jest|@vitest|vitest|mocha|chai|ava|tap|tape|jasmine|uvu|expect|should|` +
	`power-assert|@testing-library)\b|vendor/(?:github\.com/(?:stretchr/testify|onsi|google/go-cmp)|gotest\.tools)/|` +
	`minitest\.rb$|rspec\.rb$|Test/More\.pm$)`)

// shadows reports whether a new file would be loaded in place of what tests are made of, or changes
// a library of theirs.
func shadows(file *patch.File) bool {
	if libraries.MatchString(file.Path()) {
		return true
	}
	if file.New == "" || file.New == file.Old {
		return false
	}
	parts := strings.Split(file.New, "/")
	if len(parts) > 1 && isOneOf(parts[0], "src", "lib", "test", "tests") {
		parts = parts[1:]
	}
	name, kind, _ := strings.Cut(parts[0], ".")
	if len(parts) > 1 { // a package
		return kind == "" && path.Ext(file.New) == ".py" && slices.Contains(shadowed, name)
	}
	return isOneOf(path.Ext(parts[0]), ".py", ".pyc", ".so") && slices.Contains(shadowed, name)
}

const library = `(?:unittest|doctest|_?pytest|(?:node:)?assert(?:/strict)?|(?:node:)?test)`

var (
	// importsLibrary finds the names that a file has for a library of tests, or for members of it.
	importsLibrary = []*lazyregexp.Regexp{
		lazyregexp.New(`^\s*import\s+(?:unittest|doctest|_?pytest)[\w.]*\s+as\s+(\w+)`),
		lazyregexp.New(`^\s*import\s+(unittest|doctest|_?pytest)\b`),
		lazyregexp.New(`^\s*from\s+(?:unittest|doctest|_?pytest)[\w.]*\s+import\s+(.+)`),
		lazyregexp.New(`\b(?:const|let|var)\s+(\w+|\{[^}]*\})\s*=\s*(?:await\s+)?(?:require|import)\(\s*['"]` + library + `['"]`),
		lazyregexp.New(`\bimport\s+(.+?)\s+from\s*['"]` + library + `['"]`),
	}
	identifiers = lazyregexp.New(`[A-Za-z_]\w*`)
	// replacesLoaded finds what is replaced in a library where it is loaded, or in its place.
	replacesLoaded = lazyregexp.New(`(?:require|import|__import__|import_module)\(\s*['"]` + library +
		`['"]\s*\)(?:\.\w+)+\s*=[^=>]|\bsys\.modules\[\s*['"]` + library + `\b[^\]]*\]\s*=[^=]|\bModule\._load\s*=[^=]|` +
		`\brequire\.cache\[[^\]]*\](?:\.\w+)*\s*=[^=]|\b(?:setattr|Object\.\w+|Reflect\.\w+)\(\s*(?:require|__import__)\(\s*['"]` +
		library)
)

// replaced finds lines that replace members of a library of tests: what they assert with, or what
// runs them.
func (a *diffAudit) replaced(file *patch.File) {
	names := map[string]bool{"TestCase": true, "TestResult": true, "TestProgram": true, "AssertionError": true}
	for line := range file.Lines() {
		for _, imports := range importsLibrary {
			if found := imports.FindStringSubmatch(line.Text); line.Op != patch.Minus && found != nil {
				for _, name := range identifiers.Get().FindAllString(found[1], 20) {
					names[name] = true
				}
			}
		}
	}
	for _, name := range []string{"mock", "patch", "Mock", "MagicMock"} { // members of these are set in tests
		delete(names, name)
	}
	for line := range file.Lines() {
		if line.Op != patch.Plus || isComment(line.Text) {
			continue
		}
		changed := slices.Concat(changes.Get().FindAllStringSubmatch(line.Text, 20)...)
		if replacesLoaded.MatchString(line.Text) ||
			slices.ContainsFunc(changed, func(name string) bool { return names[name] }) {
			a.inDiff(flagVerifyTampered, file.New, line.New, line.Text)
		}
	}
}

// changes finds assignments to members of something, also of a member of it, and calls that make
// them.
var changes = lazyregexp.New(`\b([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))*(?:\.\w+|\[[^\]]+\])\s*=[^=>]|` +
	`\b(?:setattr|delattr|Object\.(?:assign|defineProperty|defineProperties|setPrototypeOf)|patch\.object|mock\.method|` +
	`Reflect\.(?:set|defineProperty|setPrototypeOf))\(\s*([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))*`)
