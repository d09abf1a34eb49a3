package conventions

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheMakefileRunsTestsThatExist: a target whose test was moved or renamed would measure nothing
// and be green forever.
func TestTheMakefileRunsTestsThatExist(t *testing.T) {
	functions := map[string][]string{} // by package
	for _, file := range goFiles(t) {
		for _, decl := range file.ast.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok && file.test {
				functions[file.pkg()] = append(functions[file.pkg()], function.Name.Name)
			}
		}
	}
	var (
		chosen    = regexp.MustCompile(`-(?:run|bench) (?:'([^']*)'|"([^"]*)"|(\w+))`)
		directory = regexp.MustCompile(` \./([\w/]+)`)
		word      = regexp.MustCompile(`\w+`)
		checked   = 0
	)
	for _, line := range makefile(t) {
		for _, found := range chosen.FindAllStringSubmatch(line, -1) {
			pattern := strings.Join(found[1:], "")
			var here []string // in any of the packages
			for _, dir := range directory.FindAllStringSubmatch(line, -1) {
				here = append(here, functions[dir[1]]...)
				if pattern != "^$" && !slices.ContainsFunc(functions[dir[1]], regexp.MustCompile(pattern).MatchString) {
					t.Errorf("Makefile: no test of %s is chosen by %s", dir[1], pattern)
				}
			}
			for _, part := range word.FindAllString(pattern, -1) {
				checked++
				if !slices.ContainsFunc(here, func(name string) bool { return strings.Contains(name, part) }) {
					t.Errorf("Makefile: %s is in the name of no test that is chosen from by:%s", part, line)
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d words that choose tests were found in the Makefile", checked)
	}
}

// makefile returns the commands of the Makefile with its own variables filled in.
func makefile(t *testing.T) (commands []string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(repository(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for _, set := range regexp.MustCompile(`(?m)^(\w+) := (.*)$`).FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, "$("+set[1]+")", set[2])
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "$$", "$")) {
		if strings.HasPrefix(line, "\t") {
			commands = append(commands, line)
		}
	}
	return commands
}

// startsPrograms are packages whose import shows that a test starts programs.
var startsPrograms = []string{
	"os/exec", "github.com/rogpeppe/go-internal/testscript", module + "/internal/sandbox",
	module + "/internal/agent/agenttest", module + "/internal/cli", module + "/internal/containertest",
}

// TestTheFirstLayerStartsNoProgram: what make test runs first depends on nothing but Go.
func TestTheFirstLayerStartsNoProgram(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(repository(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(source), "\\\n", " ")
	lists := regexp.MustCompile(`(?m)^PURE_\w+ +:= (.*)$`).FindAllStringSubmatch(text, -1)
	var first []string
	for _, list := range lists {
		first = append(first, strings.Fields(list[1])...)
	}
	tested := map[string]bool{}
	for _, file := range goFiles(t) {
		if !file.test || !slices.Contains(first, file.pkg()) {
			continue
		}
		tested[file.pkg()] = true
		for _, spec := range file.ast.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); slices.Contains(startsPrograms, path) {
				t.Errorf("%s imports %s, so %s belongs in the second layer of the Makefile", file.path, path, file.pkg())
			}
		}
	}
	for _, pkg := range first {
		if !tested[pkg] {
			t.Errorf("the Makefile tests %s in its first layer, and it has no tests", pkg)
		}
	}
	if len(lists) != 2 {
		t.Errorf("the Makefile has %d lists of the first layer, not two", len(lists))
	}
}
