package conventions

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
)

// TestEveryPlaceIsMeasured: an agent that the tests can run says where it reads what a project
// brings, and whoever says so is run with all places filled. A row of the table that nobody has
// measured would let an experiment be about a skill that no model was given.
func TestEveryPlaceIsMeasured(t *testing.T) {
	root := repository(t)
	measured := keysOf(t, filepath.Join(root, "test/agents/context_test.go"), "given")
	if len(measured) == 0 {
		t.Fatal("test/agents/context_test.go has no table of what was measured")
	}
	packages := pinned(t, filepath.Join(root, "test/agents"), filepath.Join(root, "test/acp"))
	for _, a := range catalog.Default().All() {
		info := a.Info()
		runs := slices.ContainsFunc(strings.Fields(info.InstallHint), func(word string) bool { return packages[word] })
		if runs && !info.Places.Reads() {
			t.Errorf("agent %s can be run here, and its row in the table of places is missing", info.ID)
		}
		if info.Places.Reads() && !measured[string(info.ID)] {
			t.Errorf("agent %s has a row in the table of places, and test/agents/context_test.go does not measure it",
				info.ID)
		}
		delete(measured, string(info.ID))
	}
	for _, id := range slices.Sorted(maps.Keys(measured)) {
		t.Errorf("test/agents/context_test.go measures %s, which is no agent of the catalog", id)
	}
}

// pinned returns the packages that directories of tests install.
func pinned(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var description struct{ Dependencies map[string]string }
		if err := json.Unmarshal(data, &description); err != nil {
			t.Fatal(err)
		}
		for name := range description.Dependencies {
			names[name] = true
		}
	}
	return names
}

// keysOf returns the keys of a map of the given name that a file declares.
func keysOf(t *testing.T, file, name string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name || len(spec.Values) != 1 {
			return true
		}
		table, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, element := range table.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if literal, ok := pair.Key.(*ast.BasicLit); ok {
				key, _ := strconv.Unquote(literal.Value) // it has been parsed
				keys[key] = true
			}
		}
		return false
	})
	return keys
}
