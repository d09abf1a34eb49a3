package grade

import (
	"context"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// redefining returns which names of the language the agent's package declares and its tests use:
// where false is true, a test passes whatever it is given. What the reference declares is the
// task's.
func (b *goBuild) redefining(ctx context.Context) (string, error) {
	if b.fromBase {
		return "", nil
	}
	declared := redefined(b.root, b.dir)
	if len(declared) == 0 {
		return "", nil
	}
	used := b.usedByTests()
	maps.DeleteFunc(declared, func(name string, _ bool) bool { return !used[name] })
	if len(declared) == 0 {
		return "", nil
	}
	known, err := b.Baseline.texts.Get(ctx, "go names "+b.dir+" "+taskKey(b.Task), func() (string, error) {
		copied, err := b.without(b.Task.HasSolution()).copy(ctx)
		if err != nil {
			return "", err
		}
		defer func() { _ = copied.Remove() }()
		root, err := os.OpenRoot(copied.Dir)
		if err != nil {
			return "", err
		}
		defer root.Close()
		return strings.Join(slices.Collect(maps.Keys(redefined(root, b.dir))), " "), nil
	})
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !slices.Contains(strings.Fields(known), name) {
			return fmt.Sprintf("%s declares %s, which its tests use as the language has it: choose another name", b.dir,
				name), nil
		}
	}
	return "", nil
}

// redefined returns the names of the language that a package declares. What does not parse is the
// compiler's to say.
func redefined(root *os.Root, dir string) map[string]bool {
	names := map[string]bool{}
	note := func(name *ast.Ident) {
		if doc.IsPredeclared(name.Name) {
			names[name.Name] = true
		}
	}
	for _, file := range goFilesIn(root, dir, false) {
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				if declaration.Recv == nil {
					note(declaration.Name)
				}
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						note(spec.Name)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							note(name)
						}
					}
				}
			}
		}
	}
	return names
}

// usedByTests returns the names that the tests in the package take from it or from the language.
func (b *goBuild) usedByTests() map[string]bool {
	names := map[string]bool{}
	note := func(file *ast.File) {
		if strings.HasSuffix(file.Name.Name, "_test") {
			return // a package of its own
		}
		for _, name := range file.Unresolved {
			names[name.Name] = true
		}
	}
	for _, file := range goFilesIn(b.root, b.dir, true) {
		note(file)
	}
	for _, own := range b.overlay {
		if file, err := parser.ParseFile(token.NewFileSet(), own, nil, 0); err == nil {
			note(file)
		}
	}
	return names
}

// goFilesIn parses the Go files of a directory: its tests, or the others.
func goFilesIn(root *os.Root, dir string, tests bool) []*ast.File {
	var files []*ast.File
	names, _ := fs.Glob(root.FS(), path.Join(path.Clean(filepath.ToSlash(dir)), "*.go")) // the pattern is right
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		source, err := root.ReadFile(name)
		if err != nil {
			continue
		}
		if file, err := parser.ParseFile(token.NewFileSet(), name, source, 0); err == nil {
			files = append(files, file)
		}
	}
	return files
}
